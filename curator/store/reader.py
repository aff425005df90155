"""The part of the curator's store that only reads, and never its secrets.

The service reads through its own connection. The dashboard's connection cannot write, so it never
holds the lock of the service, and a mistake in it changes nothing. Every read is short: SQLite lets
a writer wait for a reader. Keys, messages and signatures are never selected here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from fractions import Fraction

from common.errors import InputError
from common.service.database import Database, Value
from common.study.document import Study
from common.study.ids import StudyId, short_id
from curator.store.records import (
    UNREADABLE,
    Absence,
    Awaited,
    PartyRecord,
    Record,
    StepBytes,
    StepRecord,
    StudyState,
    StudySummary,
    Word,
)

_READ_ELSEWHERE = "Go on with the version of parley that the study was offered with"
_SUMMARIES = (
    "SELECT study.study AS study, name, state, "
    "EXISTS (SELECT 1 FROM approval WHERE study = member.study AND party = member.party) "
    "AS approved, "
    "(SELECT COALESCE(MAX(sequence), 0) FROM received "
    "WHERE study = member.study AND sender = member.party) AS submitted, "
    "(SELECT COALESCE(MAX(sequence), 0) FROM outgoing "
    "WHERE study = member.study AND recipient = member.party AND acknowledged = 1) "
    "AS acknowledged, "
    "(SELECT COALESCE(MAX(sequence), 0) FROM outgoing "
    "WHERE study = member.study AND recipient = member.party) AS queued "
    "FROM member INDEXED BY {index} CROSS JOIN study ON study.study = member.study "
    "WHERE member.party = ? AND member.rowid < ? {which} ORDER BY member.rowid DESC LIMIT ?"
)
_ALL_SUMMARIES = _SUMMARIES.format(index="member_of", which="")
_OPEN_SUMMARIES = _SUMMARIES.format(index="member_open", which="AND settled = 0")
_RECORDS = (
    "SELECT study, name, state, step, phase, cause, place, COALESCE(reason, '') AS abort_asked, "
    "proposed_at, ended_at FROM study LEFT JOIN abort_request USING (study)"
)


class StoreReader:
    """The studies of a curator on disk. Threads may share it."""

    def __init__(self, database: Database) -> None:
        self._file = database

    def data_version(self) -> int:
        """Return a number that changes whenever another connection has written; this is cheap."""
        ((version,),) = self._file.rows("PRAGMA data_version")
        return int(version)

    def parties(self) -> Mapping[str, PartyRecord]:
        """Return every party that ever introduced itself, as it did last."""
        rows = self._file.rows("SELECT name, identity, software, seen_at FROM party ORDER BY name")
        return {
            name: PartyRecord(identity=bytes(identity), software=software, seen_at=seen_at)
            for name, identity, software, seen_at in rows
        }

    def under_way(self) -> Mapping[StudyId, str]:
        """Return the studies under way, each with the operator's reason to end it, or ""."""
        return dict(
            self._file.rows(
                "SELECT study.study, COALESCE(reason, '') FROM study INDEXED BY study_open "
                "LEFT JOIN abort_request USING (study) WHERE ended_at IS NULL ORDER BY study.rowid"
            )
        )

    def members(self, study: StudyId) -> tuple[str, ...]:
        """Return the parties of a study, in its order; none if there is no such study."""
        rows = self._file.rows("SELECT party FROM member WHERE study = ? ORDER BY rowid", (study,))
        return tuple(party for (party,) in rows)

    def summaries(
        self, party: str, *, with_settled: bool, most: int, after: StudyId | None = None
    ) -> list[StudySummary]:
        """List the studies of a party, newest first; or those after a study of this list.

        `with_settled` adds those that ended and that the party has acknowledged.
        """
        query = _ALL_SUMMARIES if with_settled else _OPEN_SUMMARIES
        values = (party, self._position(party, after), most)
        return self._file.records(StudySummary, query, values, state=StudyState, approved=bool)

    def _position(self, party: str, study: StudyId | None) -> int:
        """Return the place of a study in the list of a party, which begins above every place."""
        if study is None:
            return sys.maxsize
        query = "SELECT rowid FROM member WHERE study = ? AND party = ?"
        ((place,),) = self._file.rows(query, (study, party))
        return int(place)

    def study(self, study: StudyId) -> Study:
        """Return a study, read from its text; InputError if this version cannot read it."""
        where = f"study {short_id(study)} ({self.record(study).name!r})"
        try:
            document = Study.from_toml(self.document(study), where="its text")
        except InputError as error:
            raise InputError(f"{where}: {UNREADABLE}: {error}. {_READ_ELSEWHERE}") from error
        if document.digest != study:
            raise InputError(f"{where}: {UNREADABLE}: it means another study. {_READ_ELSEWHERE}")
        return document

    def document(self, study: StudyId) -> str:
        """Return the text of a study, with the signature under it if it has one."""
        ((document,),) = self._file.rows("SELECT document FROM study WHERE study = ?", (study,))
        return str(document)

    def record(self, study: StudyId) -> Record:
        records = self._records("WHERE study = ?", (study,))
        if not records:
            raise InputError(f"study {short_id(study)}: there is no study of this digest here")
        return records[0]

    def records(self) -> list[Record]:
        """List the studies, oldest first."""
        return self._records("ORDER BY study.rowid")

    def newest(self, most: int) -> list[Record]:
        """List the newest studies, newest first."""
        return self._records("ORDER BY study.rowid DESC LIMIT ?", (most,))

    def _records(self, which: str, values: Sequence[Value] = ()) -> list[Record]:
        return self._file.records(Record, f"{_RECORDS} {which}", values, state=StudyState)

    def count_by_state(self) -> Mapping[StudyState, int]:
        """Return the number of studies in each state that occurs."""
        rows = self._file.rows("SELECT state, COUNT(*) FROM study GROUP BY state")
        return {StudyState(state): number for state, number in rows}

    def approvals(self, study: StudyId) -> Mapping[str, str]:
        """Return the parties that approved, and when."""
        return dict(
            self._file.rows("SELECT party, approved_at FROM approval WHERE study = ?", (study,))
        )

    def not_approved_by(self, record: Record) -> tuple[str, ...]:
        """Return the parties whose approval a study waits for."""
        if record.state is not StudyState.WAITING:
            return ()
        approved = self.approvals(record.study)
        return tuple(name for name in self.members(record.study) if name not in approved)

    def steps(self, study: StudyId) -> list[StepRecord]:
        return self._file.records(
            StepRecord,
            "SELECT number, name, phase, opened_at, costs, links FROM step WHERE study = ? "
            "ORDER BY number",
            (study,),
            costs=lambda text: {name: Fraction(cost) for name, cost in json.loads(text).items()},
            links=lambda text: tuple((a, b) for a, b in json.loads(text)),
        )

    def step_bytes(self, study: StudyId) -> list[StepBytes]:
        query = "SELECT party, step, sent, received FROM traffic WHERE study = ?"
        return self._file.records(StepBytes, query, (study,))

    def awaited(self, study: StudyId) -> list[Awaited]:
        query = "SELECT party, word, since FROM awaited WHERE study = ? ORDER BY rowid"
        return self._file.records(Awaited, query, (study,), word=Word)

    def absences(self, study: StudyId) -> list[Absence]:
        """List the parties that left a study, in their order."""
        query = "SELECT party, step, reason, sums, at FROM absence WHERE study = ? ORDER BY rowid"
        return self._file.records(Absence, query, (study,))

    def all_awaited(self) -> list[tuple[StudyId, Awaited]]:
        rows = self._file.rows("SELECT study, party, word, since FROM awaited ORDER BY rowid")
        return [
            (StudyId(study), Awaited(party=party, word=Word(word), since=since))
            for study, party, word, since in rows
        ]
