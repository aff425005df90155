"""What a long-running process needs besides its work: a folder to itself, logs, a clean stop."""

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
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TextIO

from common.errors import InputError
from common.files import make_private_folder
from common.wording import harmless

LEVELS = ("debug", "info", "warning", "error")
LOCK = "running.lock"
ENOUGH_OPEN_FILES = 1 << 16
_LOCK_TRIES, _LOCK_PAUSE_S = 5, 0.05  # `running_in` holds the lock for a moment


class JsonFormatter(logging.Formatter):
    """One JSON object a line.

    Of an exception only its kind and where it happened are written: its text may quote data. Who
    logs an error says in the message what may be known of it.
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


def most_open_files() -> int:
    """How many files and connections this process could have open, of those it can use."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return ENOUGH_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, ENOUGH_OPEN_FILES)


def raise_open_files() -> int:
    """Have as many files and connections as the hard limit allows and we can use; how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most_open_files()
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


@contextlib.contextmanager
def alone_in(folder: Path, *, service: str) -> Iterator[None]:
    """Be the only service that runs on a state folder, for the length of a block.

    Two of them would each believe what it has in memory and answer for itself. Commands that read
    the folder or leave a request in it for the service are no second service, and need not ask.
    The lock is the kernel's, on an open file: it goes with the process, however that ends, and the
    file that stays behind means nothing.

    Raises:
        InputError: another one runs there, or the folder cannot be used.
    """
    try:
        make_private_folder(folder)
        file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise InputError(f"{folder / LOCK}: cannot be opened: {error.strerror}") from error
    try:
        _lock(file, folder, service)
        yield
    finally:
        os.close(file)


def running_in(folder: Path) -> str | None:
    """The number of the process that runs on a state folder, as words; None if none does."""
    try:
        file = os.open(folder / LOCK, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(file, 20).decode(errors="replace").strip()
        return f"process {holder}" if holder.isdecimal() else "a process"
    else:
        return None
    finally:
        os.close(file)


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
        holder = os.read(file, 20).decode(errors="replace").strip()
        known = f" (process {holder})" if holder.isdecimal() else ""
        raise InputError(
            f"another {service} runs on the folder {folder}{known}: stop that one first, or give "
            "this one a folder of its own"
        ) from None
    except OSError as error:
        raise InputError(
            f"{folder / LOCK}: cannot be locked: {error.strerror}. Keep the folder on a disk whose "
            "file system has locks"
        ) from error
    with contextlib.suppress(OSError):  # only words for people: a full disk stops nothing here
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n".encode(), 0)


@contextlib.contextmanager
def stopping_on_signals(*, with_stdin: bool = False) -> Iterator[threading.Event]:
    """An event that SIGTERM and SIGINT set, for the length of a block; in the main thread only.

    SIGHUP is ignored meanwhile: a log rotation sends it, or a terminal that closes, and a service
    has no log file to open again.

    `with_stdin` sets it as well when standard input ends: so a process that is not to outlive its
    parent, however that dies, is given the reading end of a pipe from it.
    """
    stopping = threading.Event()
    if with_stdin:
        threading.Thread(target=_wait_for_end_of_input, args=(stopping,), daemon=True).start()

    def stop(number: int, frame: FrameType | None) -> None:
        stopping.set()

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    before[signal.SIGHUP] = signal.signal(signal.SIGHUP, signal.SIG_IGN)
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
