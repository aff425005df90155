"""The curator's store, read by a connection of its own that cannot write.

So the dashboard never holds the lock of the service, and a mistake in it changes nothing. Every
read is short: SQLite lets a writer wait for a reader. Keys, messages and signatures are
never selected.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from common.errors import InputError, LocalError
from common.study.document import Study
from common.study.ids import StudyId
from curator.progress import StepRecord
from curator.store.records import Awaited, StudyState, Word
from curator.store.store import read_study

_WAIT_S = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class PartyRecord:
    """A party as it introduced itself."""

    name: str
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
class StudyView:
    """A study as the store has it; see `curator.store.records.Record`."""

    study: Study
    state: StudyState
    step: int
    phase: str
    cause: str
    place: str
    proposed_at: str
    ended_at: str | None
    approvals: Mapping[str, str]
    steps: Sequence[StepRecord]
    traffic: Sequence[StepBytes]
    awaited: Sequence[Awaited]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableStudy:
    """A study whose text this version of the program cannot read; `problem` says why."""

    digest: StudyId
    name: str
    state: StudyState
    place: str
    proposed_at: str
    ended_at: str | None
    problem: str


class StoreReader:
    """Reads a store that another process writes. Threads may share it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._studies: dict[StudyId, Study] = {}
        try:
            # Without transactions of its own: each read lets go of the file when it is done.
            self._connection = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None,
                check_same_thread=False, timeout=_WAIT_S,
            )  # fmt: skip
        except sqlite3.Error as error:
            raise LocalError(f"{path} cannot be read: {error}") from error

    def close(self) -> None:
        """Close the file; not under the feet of a thread that reads."""
        with self._lock:
            self._connection.close()

    def version(self) -> int:
        """Changes whenever the service has written something; asking costs next to nothing."""
        ((version,),) = self._rows("PRAGMA data_version")
        return int(version)

    def parties(self) -> list[PartyRecord]:
        """Return every party that ever introduced itself."""
        rows = self._rows("SELECT name, software, seen_at FROM party ORDER BY name")
        return [PartyRecord(name=n, software=s, seen_at=at) for n, s, at in rows]

    def count(self) -> int:
        """How many studies there are."""
        ((number,),) = self._rows("SELECT COUNT(*) FROM study")
        return int(number)

    def newest(self, most: int) -> list[StudyView | UnreadableStudy]:
        """The newest studies, newest first."""
        rows = self._rows("SELECT study FROM study ORDER BY rowid DESC LIMIT ?", (most,))
        return [view for (digest,) in rows if (view := self.study(StudyId(digest))) is not None]

    def study(self, digest: StudyId) -> StudyView | UnreadableStudy | None:
        found = self._rows(
            "SELECT name, state, step, phase, cause, place, proposed_at, ended_at FROM study "
            "WHERE study = ?",
            (digest,),
        )
        if not found:
            return None
        name, state, step, phase, cause, place, proposed_at, ended_at = found[0]
        try:
            study = self._document(digest, name)
        except InputError as error:
            return UnreadableStudy(
                digest=digest, name=name, state=StudyState(state), place=place,
                proposed_at=proposed_at, ended_at=ended_at, problem=str(error),
            )  # fmt: skip
        approvals = self._rows("SELECT party, approved_at FROM approval WHERE study = ?", (digest,))
        return StudyView(
            study=study,
            state=StudyState(state),
            step=step,
            phase=phase,
            cause=cause,
            place=place,
            proposed_at=proposed_at,
            ended_at=ended_at,
            approvals=dict(approvals),
            steps=self._steps(digest),
            traffic=self._traffic(digest),
            awaited=self._awaited(digest),
        )

    def _document(self, digest: StudyId, name: str) -> Study:
        """The agreed study; it never changes, so it is parsed once."""
        if digest not in self._studies:
            ((text,),) = self._rows("SELECT document FROM study WHERE study = ?", (digest,))
            self._studies[digest] = read_study(digest, name, text=text)
        return self._studies[digest]

    def _awaited(self, digest: StudyId) -> list[Awaited]:
        rows = self._rows(
            "SELECT party, word, since FROM awaited WHERE study = ? ORDER BY rowid", (digest,)
        )
        return [Awaited(party=party, word=Word(word), since=since) for party, word, since in rows]

    def _steps(self, digest: StudyId) -> list[StepRecord]:
        rows = self._rows(
            "SELECT number, name, phase, opened_at, costs, links FROM step WHERE study = ? "
            "ORDER BY number",
            (digest,),
        )
        return [
            StepRecord(
                number=number,
                name=name,
                phase=phase,
                opened_at=opened_at,
                costs={party: Fraction(cost) for party, cost in json.loads(costs).items()},
                links=tuple((a, b) for a, b in json.loads(links)),
            )
            for number, name, phase, opened_at, costs, links in rows
        ]

    def _traffic(self, digest: StudyId) -> list[StepBytes]:
        rows = self._rows(
            "SELECT party, step, sent, received FROM traffic WHERE study = ?", (digest,)
        )
        return [StepBytes(party=p, step=s, sent=o, received=i) for p, s, o, i in rows]

    def _rows(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        try:
            with self._lock:
                return self._connection.execute(query, tuple(values)).fetchall()
        except sqlite3.Error as error:
            raise LocalError(f"{self._path} cannot be read now: {error}") from error
