"""What the studies of one curator share, and what they come to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from common.service.clock import Clock, stamp
from common.study.document import Study
from common.study.ids import StudyId
from common.study.script import ScriptRun
from common.study.steps import Model, Step
from common.study.transcript import Phases
from curator.presence import Presence
from curator.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A study that has every result, for the release to be made of."""

    study: Study
    model: Model  # what was learnt
    steps: Sequence[Step]  # every step that was made, in order: what the privacy statement adds up
    results: Sequence[bytes]  # what was published in each of them
    private: bool  # whether the curator's randomness came from a private source
    traffic: Phases  # what it took, phase by phase


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyContext:
    """What the studies of one curator share."""

    store: Store
    presence: Presence
    begin: Callable[[Study], ScriptRun]  # begins a fresh copy of a study's script
    # Makes the release and says where it is; made again after a crash, it is the same.
    publish: Callable[[Outcome], Path]
    clock: Clock  # the time, for the records
    # Runs something after the call that asked for it was answered.
    later: Callable[[Callable[[], None]], None]
    # Called with a study's digest and the parties for whom there may be something new; never inside
    # a transaction.
    changed: Callable[[StudyId, Iterable[str]], None]

    def now(self) -> str:
        """The time as records have it."""
        return stamp(self.clock())

    def absent(self, parties: Iterable[str]) -> tuple[str, ...]:
        """Those of the parties that are not online."""
        online = self.presence.online(self.clock())
        return tuple(name for name in parties if name not in online)
