"""The parties that a study waits for and how long, and pauses between attempts at what failed."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from common.errors import InputError
from common.service.process import Clock, Monotonic
from common.study.ids import StudyId
from common.wording import moment
from curator.store.records import Awaited, Record, StudyState, Word
from curator.store.store import Store

_MOST_LOOKS = 300  # between two attempts; the curator looks every second
_INTERRUPTION_S = 30.0  # between two looks, or between what two clocks say of the time between
_LASTING_S = 3600.0


def ask_to_miss(store: Store, record: Record, owner: str, *, at: str) -> None:
    """Ask the curator to go on without an owner; InputError if the study cannot now."""
    study = store.study(record.study)
    study.member(owner)  # an unknown one is refused
    if not study.may_miss:
        raise InputError(
            f"study {record.name!r}: it needs all of its owners, so none can be declared missing. "
            "End it with `parley curator study abort`, then write it again with `parley curator "
            f"study reform --without {owner}`"
        )
    if record.state is not StudyState.RUNNING:
        raise InputError(
            f"study {record.name!r}: it does not run ({record.state.value}), so no owner is missing"
        )
    store.ask_to_miss(record.study, owner, at=at)


class Waits:
    """Measures how long parties are waited for, from look to look.

    The clock that measures cannot be set. All waits begin anew when the process starts, when it did
    not run for a while, and when the wall clock was set: parties could not call then, or were
    refused for the dates in their certificates.
    """

    def __init__(self, clock: Clock, monotonic: Monotonic) -> None:
        self._clock, self._monotonic = clock, monotonic
        self._looked = (monotonic(), clock())
        self._since: dict[tuple[StudyId, Awaited], float] = {}

    def look(
        self, awaited: Iterable[tuple[StudyId, Awaited]]
    ) -> Mapping[StudyId, Mapping[Awaited, dt.timedelta]]:
        """Return how long every study has waited for each of its parties."""
        if self._was_interrupted():
            self._since = {}
        now = self._looked[0]
        self._since = {wait: self._since.get(wait, now) for wait in awaited}
        waits: dict[StudyId, dict[Awaited, dt.timedelta]] = defaultdict(dict)
        for (study, party), since in self._since.items():
            waits[study][party] = dt.timedelta(seconds=now - since)
        return waits

    def _was_interrupted(self) -> bool:
        (ran, time), self._looked = self._looked, (self._monotonic(), self._clock())
        passed, shown = self._looked[0] - ran, (self._looked[1] - time).total_seconds()
        return max(passed, abs(shown - passed)) > _INTERRUPTION_S


@dataclass(slots=True)
class Lasting:
    """Whether something was seen at every look for an hour: a clock may be wrong for a moment."""

    since: float | None = None

    def holds(self, *, called: bool, now: float) -> bool:
        """Note a look; `now` is by a clock that cannot be set."""
        if not called:
            self.since = None
        elif self.since is None:
            self.since = now
        return self.since is not None and now - self.since >= _LASTING_S


@dataclass(slots=True)
class Pause:
    """Between attempts at a study that cannot go on: 2, 4, 8, ... looks at it."""

    failures: int = 0
    looks: int = 0

    def is_over(self) -> bool:
        """Count a look; return whether to try now."""
        self.looks += 1
        return self.looks >= min(_MOST_LOOKS, 1 << min(self.failures, 10))

    def lengthen(self) -> None:
        self.failures += 1
        self.looks = 0

    def end(self) -> None:
        self.failures = 0


def waited(since: str, now: dt.datetime) -> dt.timedelta:
    return now - dt.datetime.fromisoformat(since)


def how_long(wait: dt.timedelta) -> str:
    """Write a wait in the largest unit that it fills twice."""
    seconds = max(0, int(wait.total_seconds()))
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def approvals_in_words(names: Sequence[str], *, since: str, until: dt.date | None) -> str:
    """Say whose approval a study waits for, since when, and what ends the wait; "" if none."""
    if not names:
        return ""
    last = f"until {until} (UTC), its last day" if until else "without a last day (expires)"
    return f"the approval of {', '.join(names)}, since {moment(since)}, {last}"


def in_words(awaited: Sequence[Awaited], *, step: int) -> str:
    """Say whom a running study waits for, after so many steps; "" if for no party."""
    if not awaited:
        return ""
    names = ", ".join(wait.party for wait in awaited)
    since = min(wait.since for wait in awaited)
    if awaited[0].word is Word.CALL:
        return f"{names} to call before step {step + 1} is opened, since {moment(since)}"
    return f"the answer of {names} in step {step + 1}, since {moment(since)}"
