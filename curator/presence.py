"""When each party was last heard of, and who is connected now. In memory: it is about now.

A party is online while it waits for work, and for a minute after a call; unless it hung up, which
a node that dies does, and has not called since.
"""

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
        self._hung_up: set[str] = set()

    def saw(self, party: str, at: dt.datetime) -> bool:
        """Note that a party made a call; whether it was not online before."""
        with self._lock:
            away = not self._is_online(party, at)
            self._seen[party] = at
            self._hung_up.discard(party)
            return away

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
                if not self._streams[party]:
                    self._hung_up.add(party)

    def seen(self) -> Mapping[str, dt.datetime]:
        """When every party was last heard of, since the curator started."""
        with self._lock:
            return dict(self._seen)

    def online(self, at: dt.datetime) -> frozenset[str]:
        """Who is connected, or was heard of just now."""
        with self._lock:
            known = self._seen.keys() | self._streams.keys()
            return frozenset(name for name in known if self._is_online(name, at))

    def _is_online(self, party: str, at: dt.datetime) -> bool:
        if self._streams[party]:
            return True
        seen = self._seen.get(party)
        if seen is None or party in self._hung_up:
            return False
        return abs(at - seen) < ONLINE_FOR  # also when the clock was set back since
