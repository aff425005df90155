"""Events of studies for the operator's webhook or command, kept until it has taken them."""

from __future__ import annotations

from dataclasses import dataclass

from common.service.database import Database
from common.study.ids import StudyId


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """An event of a study that the operator is to be told of."""

    number: int
    study: StudyId
    name: str
    event: str
    words: str
    at: str


class AlertLog:
    """The events in the curator's file; its table is one of the store's."""

    def __init__(self, database: Database) -> None:
        self._file = database

    def add(self, study: StudyId, event: str, *, words: str, at: str) -> None:
        """Note an event, in the caller's transaction or in one of its own."""
        with self._file.transaction():
            self._file.write(
                "INSERT INTO alert (study, event, words, at) VALUES (?, ?, ?, ?)",
                (study, event, words, at),
            )

    def pending(self) -> list[Alert]:
        """The events that were not taken yet, oldest first."""
        rows = self._file.rows(
            "SELECT number, alert.study, name, event, words, at FROM alert JOIN study "
            "USING (study) ORDER BY number"
        )
        return [
            Alert(
                number=number,
                study=StudyId(study),
                name=name,
                event=event,
                words=words,
                at=at,
            )
            for number, study, name, event, words, at in rows
        ]

    def drop(self, newest: int) -> None:
        """Forget the events up to a number."""
        with self._file.transaction():
            self._file.write("DELETE FROM alert WHERE number <= ?", (newest,))
