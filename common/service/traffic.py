"""The traffic of a study: rounds, seconds, and bytes per phase and party.

Both services count in the transaction that takes a message in or sends it, so a crash neither
loses a message nor counts it twice. A message belongs to the phase of its step; what belongs to no
step is part of setting up. Times are by this side's clock, from a step's opening to its result.
"""

from __future__ import annotations

import datetime as dt

from common.service.database import Database
from common.study.ids import StudyId
from common.study.messages import Message, ResultPublished, StepOpened, StudyOpened
from common.study.transcript import SETTING_UP, Phases, PhaseTraffic

_SETTING_UP_STEP = -1

_TABLES = """
CREATE TABLE IF NOT EXISTS step_time (
    study BLOB NOT NULL,
    step INTEGER NOT NULL,
    phase TEXT NOT NULL,
    opened_ms INTEGER NOT NULL,
    closed_ms INTEGER,
    PRIMARY KEY (study, step)
) STRICT;
CREATE TABLE IF NOT EXISTS traffic (
    study BLOB NOT NULL,
    step INTEGER NOT NULL,
    party TEXT NOT NULL,
    sent INTEGER NOT NULL,
    received INTEGER NOT NULL,
    PRIMARY KEY (study, step, party)
) STRICT;
"""


class TrafficLog:
    """The counts of all studies in a service's file."""

    def __init__(self, database: Database) -> None:
        self._file = database
        database.add_tables(_TABLES)

    def note(
        self,
        message: Message,
        size: int,
        *,
        party: str,
        sent: bool,
        phase: str,
        at: dt.datetime,
    ) -> None:
        """Count a message that the party `sent`, or was sent, in the caller's transaction."""
        study, now = message.study, round(at.timestamp() * 1000)
        step = getattr(message, "step", _SETTING_UP_STEP)
        if isinstance(message, StudyOpened):
            self._open(study, step, SETTING_UP, now)
        elif isinstance(message, StepOpened):
            self._close(study, _SETTING_UP_STEP, now)
            self._open(study, step, phase, now)
        elif isinstance(message, ResultPublished):
            self._close(study, step, now)
        self._file.write(
            "INSERT INTO traffic VALUES (?, ?, ?, ?, ?) ON CONFLICT (study, step, party) DO UPDATE "
            "SET sent = sent + excluded.sent, received = received + excluded.received",
            (study, step, party, size if sent else 0, 0 if sent else size),
        )

    def _open(self, study: StudyId, step: int, phase: str, now: int) -> None:
        self._file.write(
            "INSERT OR IGNORE INTO step_time VALUES (?, ?, ?, ?, NULL)", (study, step, phase, now)
        )

    def _close(self, study: StudyId, step: int, now: int) -> None:
        self._file.write(
            "UPDATE step_time SET closed_ms = ? WHERE study = ? AND step = ? AND closed_ms IS NULL",
            (now, study, step),
        )

    def newest_step(self, study: StudyId) -> int:
        """Return the number of the last step that was opened; 0 before the first."""
        ((newest,),) = self._file.rows(
            "SELECT MAX(0, COALESCE(MAX(step), 0)) FROM step_time WHERE study = ?", (study,)
        )
        return int(newest)

    def results(self, study: StudyId) -> int:
        """Return how many steps had their result."""
        ((closed,),) = self._file.rows(
            "SELECT COUNT(*) FROM step_time WHERE study = ? AND step != ? "
            "AND closed_ms IS NOT NULL",
            (study, _SETTING_UP_STEP),
        )
        return int(closed)

    def phases(self, study: StudyId) -> Phases:
        """Return what a study took so far, phase by phase, in the order of their first steps."""
        by_phase = {SETTING_UP: PhaseTraffic()}
        phase_of: dict[int, str] = {}
        for step, phase, opened, closed in self._file.rows(
            "SELECT step, phase, opened_ms, closed_ms FROM step_time WHERE study = ? ORDER BY step",
            (study,),
        ):
            phase_of[step] = phase
            traffic = by_phase.setdefault(phase, PhaseTraffic())
            traffic.rounds += step != _SETTING_UP_STEP
            # A clock that was set back in between makes no time negative.
            traffic.seconds += 0.0 if closed is None else max(0, closed - opened) / 1000
        for step, party, sent, received in self._file.rows(
            "SELECT step, party, sent, received FROM traffic WHERE study = ?", (study,)
        ):
            traffic = by_phase[phase_of.get(step, SETTING_UP)]
            traffic.sent[party] += sent
            traffic.received[party] += received
        return by_phase
