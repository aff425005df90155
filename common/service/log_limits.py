"""A limit on how often a log repeats itself, for lines that a caller can provoke at will."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

_MOST_KINDS = 1000


class RateLimit(logging.Filter):
    """Lets so many records of a kind pass in a second; the next one says how many did not.

    A kind is a logger, a level, and the `kind` of the record (`extra={"kind": ...}`) or else its
    message without the arguments.
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
            passed, held = self._kinds.get(kind, (float("-inf"), 0))
            if now - passed < self._pause_s:
                self._kinds[kind] = (passed, held + 1)
                return False
            self._kinds[kind] = (now, 0)
        if held:
            record.msg, record.args = f"{record.getMessage()} ({held} more like this)", None
        return True
