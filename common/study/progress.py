"""Where a study stands, as the curator says it: in its store, on the wire and at the nodes."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from common.study.ids import StudyId


class StudyState(enum.StrEnum):
    """The state of a study."""

    WAITING = "waiting for parties"
    RUNNING = "running"
    PUBLISHING = "making the release"
    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"

    @property
    def over(self) -> bool:
        return self is StudyState.DONE or self.failed

    @property
    def failed(self) -> bool:
        return self in (StudyState.REFUSED, StudyState.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySummary:
    """A study as the curator knows it, and as one of its parties sees it."""

    study: StudyId
    name: str  # for people
    state: StudyState
    approved: bool  # whether the curator has the party's approval
    submitted: int  # the newest message of the party that is on the curator's disk
    acknowledged: int  # the newest message to the party that the party acknowledged
    queued: int  # the newest message to the party
