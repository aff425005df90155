"""What the studies of one curator share: the store, the clock, and which parties are online."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from common.service.process import Clock, Monotonic, stamp
from common.study.commitments import Commitments
from common.study.document import Study
from common.study.ids import StudyId
from common.study.messages import ToParty
from common.study.script import ScriptRun
from common.study.steps import Model, Step
from common.study.transcript import Phases
from curator.store.store import Store

ONLINE_FOR_S = 60.0  # after a call; a node calls every few seconds


class Presence:
    """When each party called last, and which parties are connected. Threads may share it.

    It is about now, so it is kept in memory. A party is online while it waits for work, and for a
    minute after a call. A node that dies hangs up: then its party is offline until it calls again.
    The minute is measured by a clock that cannot be set.
    """

    def __init__(self, monotonic: Monotonic = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._last_calls: dict[str, dt.datetime] = {}  # for people
        self._called: dict[str, float] = {}
        self._streams: Counter[str] = Counter()
        self._hung_up: set[str] = set()

    def saw(self, party: str, at: dt.datetime) -> bool:
        """Note that a party made a call; return whether it was offline before."""
        with self._lock:
            away = not self._is_online(party)
            self._last_calls[party], self._called[party] = at, self._monotonic()
            self._hung_up.discard(party)
            return away

    @contextmanager
    def listening(self, party: str) -> Iterator[None]:
        """Count a party as waiting for work, for the length of a block."""
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
        """Return when each party called last, since the curator started."""
        with self._lock:
            return dict(self._last_calls)

    def online(self) -> frozenset[str]:
        with self._lock:
            known = self._called.keys() | self._streams.keys()
            return frozenset(name for name in known if self._is_online(name))

    def _is_online(self, party: str) -> bool:
        if self._streams[party]:
            return True
        called = self._called.get(party)
        if called is None or party in self._hung_up:
            return False
        return self._monotonic() - called < ONLINE_FOR_S


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedStudy:
    """A study that has every result, for the release to be made of."""

    study: Study
    model: Model  # what was learnt
    steps: Sequence[Step]  # every step that was made, in order: what the privacy statement adds up
    results: Sequence[bytes]  # what was published in each of them
    private: bool  # whether the curator's randomness came from a private source
    traffic: Phases  # what it took, phase by phase
    left: Sequence[str] = ()  # the parties that left the study, whatever sums they are in
    disputes: Sequence[Mapping[str, object]] = ()  # about boxes, as the statement has them
    commitments: Commitments | None = None  # of the owners, in a study that has them

    @property
    def sums_of_left(self) -> Mapping[str, int]:
        """For each party that left, the number of sums that it is in."""
        return {name: sum(name in step.parties for step in self.steps) for name in self.left}


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyContext:
    """What the studies of one curator share."""

    store: Store
    presence: Presence
    begin: Callable[[Study], ScriptRun]  # begins a fresh copy of a study's script
    # Makes the release and returns where it is; after a crash it makes an equal release.
    publish: Callable[[FinishedStudy], Path]
    clock: Clock  # the time, for the records
    monotonic: Monotonic  # seconds of a clock that cannot be set, for whatever has a limit
    # Runs something after the call that asked for it was answered.
    later: Callable[[Callable[[], None]], None]
    # Called with a study's digest and the parties for whom there may be something new; never inside
    # a transaction.
    changed: Callable[[StudyId, Iterable[str]], None]

    def now(self) -> str:
        return stamp(self.clock())

    def absent(self, parties: Iterable[str]) -> tuple[str, ...]:
        online = self.presence.online()
        return tuple(name for name in parties if name not in online)

    def queue(
        self, message: ToParty, body: bytes, parties: Iterable[str], *, phase: str = ""
    ) -> None:
        """Queue and count a message, whose bytes are `body`, in the caller's transaction."""
        for party in parties:
            self.store.outbox.add(message.study, party, body)
            self.store.traffic.note(
                message, len(body), party=party, sent=False, phase=phase, at=self.clock()
            )
