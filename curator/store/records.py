"""What the curator's store hands out: where a study stands."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path

from common.study.ids import StudyId

UNREADABLE = "this version of parley cannot read its text"


class StudyState(enum.StrEnum):
    """Where a study stands."""

    WAITING = "waiting for parties"
    RUNNING = "running"
    PUBLISHING = "making the release"
    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"

    @property
    def over(self) -> bool:
        """Whether nothing more can happen."""
        return self in (StudyState.DONE, StudyState.REFUSED, StudyState.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A study as the store knows it."""

    study: StudyId
    name: str
    state: StudyState
    step: int  # how many steps have their result
    phase: str  # what the open step belongs to; empty before the first
    cause: str  # why it was refused or failed, or why its release cannot be made
    place: str  # where the release is
    abort_asked: str  # why the operator wants it ended; empty if not
    proposed_at: str  # when it was offered
    ended_at: str | None  # when it ended

    @property
    def folder(self) -> Path | None:
        """Where the release is, if it can be handed out."""
        if self.state is not StudyState.DONE or not self.place:
            return None
        folder = Path(self.place)
        return folder if folder.is_dir() and not folder.is_symlink() else None

    @property
    def unreadable(self) -> bool:
        """Whether the study does not go on because this version cannot read its text."""
        return UNREADABLE in self.cause


class Word(enum.StrEnum):
    """What a running study waits for from a party."""

    CALL = "call"  # the next step is opened when all of its owners call
    ANSWER = "answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Awaited:
    """A party that a running study waits for, and since when."""

    party: str
    word: Word
    since: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartyRecord:
    """A party as it introduced itself; its identity is empty if it was withheld."""

    identity: bytes
    software: str
    seen_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBytes:
    """Bytes of one party in one step: what it sent, and what it was sent."""

    party: str
    step: int
    sent: int
    received: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """An event of a study that the operator is to be told of."""

    number: int
    study: StudyId
    name: str
    event: str
    words: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A study as one of its parties needs to know it."""

    study: StudyId
    name: str
    state: StudyState
    approved: bool  # whether the party approved
    submitted: int  # the newest message of the party that is on disk here
    acknowledged: int  # the newest message to the party that the party acknowledged
    queued: int  # the newest message to the party
