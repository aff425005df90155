"""What a long-running process needs besides its work.

A clock, logs, a folder to itself, enough open files, and a clean stop.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import fcntl
import json
import logging
import os
import resource
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from types import FrameType
from typing import TextIO

from common.errors import InputError, ParleyError
from common.files import make_private_folder
from common.wording import harmless

LEVELS = ("debug", "info", "warning", "error")
LOCK = "running.lock"
ENOUGH_OPEN_FILES = 1 << 16
_LOCK_TRIES, _LOCK_PAUSE_S = 5, 0.05  # `running_in` holds the lock for a moment
_MOST_KINDS = 1000
_ours: set[Path] = set()  # state folders that services of this process are alone in


Clock = Callable[[], dt.datetime]
Monotonic = Callable[[], float]


def system_clock() -> dt.datetime:
    """Return the time. It is read here only, and handed to whatever needs it."""
    return dt.datetime.now(dt.UTC)


def stamp(at: dt.datetime) -> str:
    """Write a time as records have it."""
    return at.astimezone(dt.UTC).isoformat(timespec="seconds")


def software() -> str:
    """Return the name and version that we tell the other side."""
    try:
        return f"parley {metadata.version('parley')}"
    except metadata.PackageNotFoundError:  # run from a checkout
        return "parley"


class JsonFormatter(logging.Formatter):
    """Writes one JSON object a line.

    Of an exception only its kind and where it happened are written: its text may quote data. The
    message of the record says what may be known of the exception.
    """

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": dt.datetime.fromtimestamp(record.created, dt.UTC).isoformat(
                timespec="milliseconds"
            ),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info and record.exc_info[0] is not None:
            frames = traceback.extract_tb(record.exc_info[2])
            line["error"] = record.exc_info[0].__name__
            line["at"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        return harmless(json.dumps(line, ensure_ascii=False))


def check_level(level: str) -> None:
    if level.lower() not in LEVELS:
        raise InputError(f"log_level: {level!r} is not one of {', '.join(LEVELS)}")


def log_to(stream: TextIO = sys.stderr, *, level: str = "INFO") -> None:
    """Log as JSON, from now on and from everywhere in this process."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


@contextlib.contextmanager
def logging_failures(logger: logging.Logger, what: str, *names: str) -> Iterator[None]:
    """Log an error of a block instead of raising it: the block is tried again later."""
    try:
        yield
    except ParleyError as error:
        logger.error(f"{what}: %s", *names, error)  # `what` is a format itself


class RateLimit(logging.Filter):
    """Lets so many records of a kind pass in a second; the next one says how many did not.

    For lines that a caller can provoke at will. A kind is a logger, a level, and the `kind` of the
    record (`extra={"kind": ...}`) or else its message without the arguments.
    """

    def __init__(
        self, *, per_second: float = 5, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._pause_s, self._clock = 1 / per_second, clock
        self._lock = threading.Lock()
        # When one of a kind passed last, and how many were held since.
        self._kinds: dict[tuple[str, int, object], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        kind = (record.name, record.levelno, getattr(record, "kind", record.msg))
        now = self._clock()
        with self._lock:
            if len(self._kinds) >= _MOST_KINDS and kind not in self._kinds:
                self._kinds.clear()
            passed, suppressed = self._kinds.get(kind, (float("-inf"), 0))
            if now - passed < self._pause_s:
                self._kinds[kind] = (passed, suppressed + 1)
                return False
            self._kinds[kind] = (now, 0)
        if suppressed:
            record.msg, record.args = f"{record.getMessage()} ({suppressed} more like this)", None
        return True


def most_open_files() -> int:
    """Return how many files and connections this process could have open and use."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return ENOUGH_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, ENOUGH_OPEN_FILES)


def raise_open_files() -> int:
    """Allow as many open files and connections as we can use; return how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = most_open_files()
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    return limit


class FolderInUse(InputError):
    """Another service runs on a state folder."""

    def __init__(self, folder: Path, *, service: str, holder: str) -> None:
        super().__init__(
            f"{folder}: another {service} runs on this folder ({holder}). Stop that one first, or "
            "give this one a folder of its own"
        )
        self.holder = holder  # the process, in words


@contextlib.contextmanager
def alone_in(folder: Path, *, service: str) -> Iterator[None]:
    """Be the only service that runs on a state folder, for the length of a block.

    Two services would each trust what they have in memory. Commands that read the folder, or leave
    a request in it for the service, need no lock. The lock is the kernel's, on an open file: it
    goes with the process, however that ends, and the file that stays behind means nothing.

    Raises:
        InputError: another service runs there, or the folder cannot be used.
    """
    try:
        make_private_folder(folder)
        file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise InputError(f"{folder / LOCK}: cannot be opened: {error.strerror}") from error
    try:
        _lock(file, folder, service)
        _ours.add(folder.resolve())
        try:
            yield
        finally:
            _ours.remove(folder.resolve())
    finally:
        os.close(file)


def is_alone_in(folder: Path) -> bool:
    """Return whether a service of this process is the only one on a state folder."""
    return folder.resolve() in _ours


def running_in(folder: Path) -> str | None:
    """Name the process that runs on a state folder; None if none does."""
    try:
        file = os.open(folder / LOCK, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _holder(file)
    else:
        return None
    finally:
        os.close(file)


def _holder(file: int) -> str:
    number = os.read(file, 20).decode(errors="replace").strip()
    return f"process {number}" if number.isdecimal() else "a process"


def _take(file: int) -> None:
    for _ in range(_LOCK_TRIES):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(_LOCK_PAUSE_S)
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _lock(file: int, folder: Path, service: str) -> None:
    try:
        _take(file)
    except BlockingIOError:
        raise FolderInUse(folder, service=service, holder=_holder(file)) from None
    except OSError as error:
        raise InputError(
            f"{folder / LOCK}: cannot be locked: {error.strerror}. Keep the folder on a disk whose "
            "file system has locks"
        ) from error
    with contextlib.suppress(OSError):  # only words for people: a full disk stops nothing here
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n".encode(), 0)


@contextlib.contextmanager
def stopping_on_signals(
    *, with_stdin: bool = False, hang_up: Callable[[], None] | None = None
) -> Iterator[threading.Event]:
    """Yield an event that SIGTERM and SIGINT set; in the main thread only.

    SIGHUP calls `hang_up`, in the main thread between two of its instructions. Without one it is
    ignored: a terminal that closes does not end a service.

    `with_stdin` sets the event as well when standard input ends. A process that must not outlive
    its parent, however the parent dies, is given the reading end of a pipe from it.
    """
    stopping = threading.Event()
    if with_stdin:
        threading.Thread(target=_wait_for_end_of_input, args=(stopping,), daemon=True).start()

    def stop(number: int, frame: FrameType | None) -> None:
        stopping.set()

    def hang_up_now(number: int, frame: FrameType | None) -> None:
        if hang_up is not None:
            hang_up()

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    before[signal.SIGHUP] = signal.signal(
        signal.SIGHUP, signal.SIG_IGN if hang_up is None else hang_up_now
    )
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait_for_end_of_input(ended: threading.Event) -> None:
    # Not through sys.stdin: its lock would be held when the interpreter shuts down.
    with contextlib.suppress(OSError):
        while os.read(0, 1 << 12):
            pass
    ended.set()
