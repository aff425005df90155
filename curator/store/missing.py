"""The owners that the operator declares missing, until the curator has gone on without them."""

from __future__ import annotations

from common.service.database import Database
from common.study.ids import StudyId


class MissingRequests:
    """The requests in the curator's file; their table is one of the store's."""

    def __init__(self, database: Database) -> None:
        self._file = database

    def ask(self, study: StudyId, party: str, *, at: str) -> None:
        """Have the curator that runs on this file, now or later, go on without a party."""
        with self._file.transaction():
            self._file.write(
                "INSERT OR IGNORE INTO missing_request VALUES (?, ?, ?)", (study, party, at)
            )

    def pending(self) -> list[tuple[StudyId, str]]:
        """The studies and the parties that they are to go on without."""
        rows = self._file.rows("SELECT study, party FROM missing_request ORDER BY rowid")
        return [(StudyId(study), party) for study, party in rows]

    def drop(self, study: StudyId, party: str) -> None:
        """Forget a request: it was seen to, or the study is over."""
        with self._file.transaction():
            self._file.write(
                "DELETE FROM missing_request WHERE study = ? AND party = ?", (study, party)
            )
