"""What a long-running process needs besides its work: logs for machines, and a clean stop."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from types import FrameType
from typing import TextIO

from common.errors import InputError

LEVELS = ("debug", "info", "warning", "error")


class JsonFormatter(logging.Formatter):
    """One JSON object a line.

    Of an exception only its kind and where it happened are written: its text may quote data. Who
    logs an error says in the message what may be known of it.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
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
        return json.dumps(line, ensure_ascii=False)


def check_level(level: str) -> None:
    """Refuse a level that there is not."""
    if level.lower() not in LEVELS:
        raise InputError(f"log_level: {level!r} is not one of {', '.join(LEVELS)}")


def log_to(stream: TextIO = sys.stderr, *, level: str = "INFO") -> None:
    """Log as JSON, from now on and from everywhere in this process."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


@contextlib.contextmanager
def stopping_on_signals(*, with_stdin: bool = False) -> Iterator[threading.Event]:
    """An event that SIGTERM and SIGINT set, for the length of a block; in the main thread only.

    Args:
        with_stdin: set it as well when standard input ends: so a process that is not to outlive its
            parent, however that dies, is given the reading end of a pipe from it.
    """
    stopping = threading.Event()
    if with_stdin:
        threading.Thread(target=_wait_for_end_of_input, args=(stopping,), daemon=True).start()

    def stop(number: int, frame: FrameType | None) -> None:
        stopping.set()

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
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
