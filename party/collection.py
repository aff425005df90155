"""The releases that a party fetched, or why it did not keep or countersign them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from common.service.database import Database
from common.study.ids import StudyId
from party.journal import Journal, JournalState

_FETCHED_FOR = dt.timedelta(days=30)  # after the end of a study; later, by hand
_TABLES = """
CREATE TABLE IF NOT EXISTS collected (
    study BLOB PRIMARY KEY,
    place TEXT NOT NULL,
    countersigned INTEGER NOT NULL,
    problem TEXT NOT NULL,
    at TEXT NOT NULL
) STRICT;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """A release that was fetched, or why it was not kept or not countersigned."""

    place: Path | None  # the .zip; None if none was kept
    countersigned: bool = False  # whether our signature is in it
    problem: str = ""  # for the owner's eyes; empty if there is none

    def text(self) -> str:
        if self.place is None:
            return f"not kept: {self.problem}"
        signed = "countersigned" if self.countersigned else f"NOT countersigned: {self.problem}"
        return f"{self.place}, {signed}"


class Collection:
    """The table of releases that were asked for, in the party's file."""

    def __init__(self, database: Database) -> None:
        self._file = database
        database.add_tables(_TABLES)

    def note(self, study: StudyId, collected: Collected, *, at: str) -> None:
        place = "" if collected.place is None else str(collected.place)
        with self._file.transaction():
            self._file.write(
                "INSERT OR REPLACE INTO collected VALUES (?, ?, ?, ?, ?)",
                (study, place, int(collected.countersigned), collected.problem, at),
            )

    def all(self) -> Mapping[StudyId, Collected]:
        rows = self._file.rows("SELECT study, place, countersigned, problem FROM collected")
        return {
            StudyId(study): Collected(
                place=Path(place) if place else None, countersigned=bool(signed), problem=problem
            )
            for study, place, signed, problem in rows
        }

    def due(self, journal: Journal, *, now: dt.datetime) -> list[StudyId]:
        """List the studies that finished lately and were not asked about yet, oldest first."""
        known = self.all()
        return [
            record.study
            for record in journal.studies()
            if record.state in (JournalState.FINISHED, JournalState.LEFT)
            and record.study not in known
            and record.ended_at is not None
            and now - dt.datetime.fromisoformat(record.ended_at) < _FETCHED_FOR
        ]
