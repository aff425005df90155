"""When each party was last heard of, and who is connected now. In memory: it is about now."""

from __future__ import annotations

import datetime as dt
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

ONLINE_FOR = dt.timedelta(seconds=60)  # after a call; a node calls every few seconds


class Presence:
    """Who is there. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[str, dt.datetime] = {}
        self._streams: Counter[str] = Counter()

    def saw(self, party: str, at: dt.datetime) -> None:
        """A party made a call."""
        with self._lock:
            self._seen[party] = at

    @contextmanager
    def listening(self, party: str) -> Iterator[None]:
        """A party waits for work, for the length of a block."""
        with self._lock:
            self._streams[party] += 1
        try:
            yield
        finally:
            with self._lock:
                self._streams[party] -= 1

    def seen(self) -> Mapping[str, dt.datetime]:
        """When every party was last heard of, since the curator started."""
        with self._lock:
            return dict(self._seen)

    def online(self, at: dt.datetime) -> frozenset[str]:
        """Who is connected, or was heard of just now."""
        with self._lock:
            recent = {name for name, seen in self._seen.items() if at - seen < ONLINE_FOR}
            return frozenset(recent | {name for name, number in self._streams.items() if number})
