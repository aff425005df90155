"""What the running node last said about each study: in the party's file, for `party status`.

A note is for the owner's eyes and is never sent. Nothing depends on it.
"""

from __future__ import annotations

from collections.abc import Mapping

from common.service.database import Database
from common.study.ids import StudyId

_TABLES = """
CREATE TABLE IF NOT EXISTS note (
    study BLOB PRIMARY KEY,
    words TEXT NOT NULL,
    noted_at TEXT NOT NULL
) STRICT;
"""


class Notes:
    """The notes in a party's file."""

    def __init__(self, database: Database) -> None:
        self._file = database
        database.add_tables(_TABLES)

    def write(self, study: StudyId, words: str, *, at: str) -> None:
        """Say something about a study instead of what was said before; nothing if empty."""
        with self._file.transaction():
            self._file.write("DELETE FROM note WHERE study = ?", (study,))
            if words:
                self._file.write("INSERT INTO note VALUES (?, ?, ?)", (study, words, at))

    def clear(self) -> None:
        """Forget what an earlier run of the node said."""
        with self._file.transaction():
            self._file.write("DELETE FROM note")

    def all(self) -> Mapping[StudyId, str]:
        """What was said about each study, and when."""
        rows = self._file.rows("SELECT study, words, noted_at FROM note")
        return {StudyId(study): f"{words} (since {at})" for study, words, at in rows}
