"""A limit on the log lines of one kind, so that a flood of calls does not fill the disk."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

_WINDOW_S = 1.0
_SUMMARY = "%s (and %s more lines like this one)"


@dataclass(slots=True)
class _Window:
    """The second that a kind of line is in: when it began, lines written, and one left out."""

    began: float
    lines: int = 0
    left_out: int = 0


class RateLimit(logging.Filter):
    """Lets a few lines a second of each kind through; the rest are counted in one more line.

    A kind is the `kind` that a line has (`extra={"kind": ...}`), or else its text before the values
    are put in. Lines below WARNING pass: a service writes them about its own work.

        logger.addFilter(RateLimit())

    Args:
        lines_per_s: how many lines of a kind are written in a second.
        clock: seconds that only grow.
    """

    def __init__(
        self, lines_per_s: int = 5, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._lines_per_s = lines_per_s
        self._clock = clock
        self._lock = threading.Lock()
        self._windows: dict[object, _Window] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Decide whether the line is written."""
        if record.levelno < logging.WARNING:
            return True
        kind = getattr(record, "kind", record.msg)
        with self._lock:
            window = self._window(kind)
            window.lines += 1
            if window.lines <= self._lines_per_s:
                return True
            window.left_out += 1
            if window.left_out == 1:
                summary = threading.Timer(_WINDOW_S, self._summarise, (record, window))
                summary.daemon = True
                summary.start()
        return False

    def _window(self, kind: object) -> _Window:
        now = self._clock()
        window = self._windows.get(kind)
        if window is None or now - window.began >= _WINDOW_S:
            over = [k for k, w in self._windows.items() if now - w.began >= _WINDOW_S]
            for each in over:
                del self._windows[each]
            window = self._windows[kind] = _Window(now)
        return window

    def _summarise(self, first: logging.LogRecord, window: _Window) -> None:
        """Write how many lines were left out, past this filter and through the same handlers."""
        with self._lock:
            left_out = window.left_out
            window.lines, window.left_out = self._lines_per_s, 0
        logger = logging.getLogger(first.name)
        words = (first.getMessage(), f"{left_out - 1:,}")
        logger.callHandlers(
            logger.makeRecord(
                first.name, first.levelno, first.pathname, first.lineno, _SUMMARY, words, None
            )
        )
