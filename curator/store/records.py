"""What the curator's store hands out: the state of a study, its steps, its parties."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from common.study.ids import StudyId
from common.study.progress import StudyState as StudyState
from common.study.progress import StudySummary as StudySummary
from common.wording import many

UNREADABLE = "this version of parley cannot read its text"

Links = tuple[tuple[int, int], ...]


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
    """A party that a running study waits for."""

    party: str
    word: Word
    since: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """A party that left a study, which went on without it."""

    party: str
    step: int  # the step that was open, from 0
    reason: str
    sums: int | None  # how many sums it is in; None before all sums are made
    at: str

    @property
    def words(self) -> str:
        counted = "" if self.sums is None else f"; it is in {many(self.sums, 'sum')}"
        return f"left in step {self.step + 1}{counted}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartyRecord:
    """A party as it introduced itself; its identity is empty if it was withheld."""

    identity: bytes
    software: str
    seen_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """A step that was opened."""

    number: int  # steps are counted from 0
    name: str  # unique in the study
    phase: str  # what it belongs to
    opened_at: str
    # Exact, of every party whose rows it is about, in the currency of the promise.
    costs: Mapping[str, Fraction]
    # Pairs of attributes that it counts together; empty if they are (nearly) all pairs.
    links: Links


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBytes:
    """Bytes of one party in one step."""

    party: str
    step: int
    sent: int  # by the party
    received: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """An event of a study that the operator has not been told yet."""

    number: int
    study: StudyId
    name: str
    event: str
    words: str
    at: str
