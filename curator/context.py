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
    """A study that has every result, for the release to be made of.

    Attributes:
        study: what was agreed.
        model: what was learnt.
        steps: every step that was made, in order: what the privacy statement adds up.
        results: what was published in each of them.
        private: whether the curator's randomness came from a private source.
        traffic: what it took, phase by phase.
    """

    study: Study
    model: Model
    steps: Sequence[Step]
    results: Sequence[bytes]
    private: bool
    traffic: Phases


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyContext:
    """What the studies of one curator share.

    Attributes:
        store: where everything is kept.
        presence: who is there.
        begin: begins a fresh copy of a study's script.
        publish: makes the release and says where it is; made again after a crash, it is the same.
        clock: the time, for the records.
        later: runs something after the call that asked for it was answered.
        changed: called with a study's digest and the parties for whom there may be something new;
            never inside a transaction.
    """

    store: Store
    presence: Presence
    begin: Callable[[Study], ScriptRun]
    publish: Callable[[Outcome], Path]
    clock: Clock
    later: Callable[[Callable[[], None]], None]
    changed: Callable[[StudyId, Iterable[str]], None]

    def now(self) -> str:
        """The time as records have it."""
        return stamp(self.clock())

    def absent(self, parties: Iterable[str]) -> tuple[str, ...]:
        """Those of the parties that are not online."""
        online = self.presence.online(self.clock())
        return tuple(name for name in parties if name not in online)
