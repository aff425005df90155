"""What this owner decided about studies: in the party's file, so that it holds after a restart.

An owner decides with `parley party approve` or `decline`, or the policy decides for the owner if it
says so. The running node looks here; it never approves by itself. A no may follow a yes: the owner
withdraws. A no is for good.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from common.errors import PolicyError
from common.service.database import Database
from common.study.ids import StudyId, short_id
from common.wording import moment

_TABLES = """
CREATE TABLE IF NOT EXISTS decision (
    study BLOB PRIMARY KEY,
    approved INTEGER NOT NULL,
    epsilon TEXT NOT NULL,
    reason TEXT NOT NULL,
    decided_by TEXT NOT NULL,
    decided_at TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS withdrawal (
    study BLOB PRIMARY KEY REFERENCES decision (study),
    reason TEXT NOT NULL,
    withdrawn_at TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS reviewed_rows (
    study BLOB PRIMARY KEY,
    data_digest TEXT NOT NULL,
    changed_at TEXT NOT NULL
) STRICT;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What an owner decided about a study."""

    approved: bool  # yes or no; no, once it is withdrawn
    epsilon: Fraction  # what was approved: the study may not cost our rows more, whatever it asks
    reason: str  # of a no, for the owner's own records; it is not sent
    decided_by: str  # the owner, or the owner's policy
    decided_at: str
    withdrawn_at: str | None = None  # when the owner took a yes back; None if that never happened


class Approvals:
    """The decisions in a party's file."""

    def __init__(self, database: Database) -> None:
        self._file = database
        database.add_tables(_TABLES)

    def decision(self, study: StudyId) -> Decision | None:
        """What was decided about a study; None if nothing was yet."""
        rows = self._file.rows(
            "SELECT approved AND withdrawn_at IS NULL, epsilon, "
            "COALESCE(withdrawal.reason, decision.reason), decided_by, decided_at, withdrawn_at "
            "FROM decision LEFT JOIN withdrawal USING (study) WHERE study = ?",
            (study,),
        )
        if not rows:
            return None
        approved, epsilon, reason, decided_by, decided_at, withdrawn_at = rows[0]
        return Decision(
            approved=bool(approved),
            epsilon=Fraction(epsilon),
            reason=reason,
            decided_by=decided_by,
            decided_at=decided_at,
            withdrawn_at=withdrawn_at,
        )

    def studies(self) -> list[StudyId]:
        """The digests of all studies that were decided about, oldest decision first."""
        return [StudyId(study) for (study,) in self._file.rows("SELECT study FROM decision")]

    def review_rows(self, study: StudyId, data_digest: str) -> None:
        """Remember which rows the owner approved a study for."""
        with self._file.transaction():
            self._file.write(
                "INSERT OR REPLACE INTO reviewed_rows VALUES (?, ?, '')", (study, data_digest)
            )

    def compare_rows(self, study: StudyId, data_digest: str, *, at: str) -> None:
        """Note for the owner if a study begins with other rows than it was approved for.

        Nothing else comes of it: whether rows have changed is a fact about rows, and a node that
        stopped for it would tell the curator.
        """
        with self._file.transaction():
            self._file.write(
                "UPDATE reviewed_rows SET changed_at = "
                "CASE WHEN data_digest = ? THEN '' ELSE ? END WHERE study = ?",
                (data_digest, at, study),
            )

    def rows_changed_at(self, study: StudyId) -> str:
        """When it was seen that the rows are not those of the approval; empty if they are."""
        found = self._file.rows("SELECT changed_at FROM reviewed_rows WHERE study = ?", (study,))
        return str(found[0][0]) if found else ""

    def decide(self, study: StudyId, decision: Decision) -> None:
        """Decide; again is harmless, a no after a yes withdraws, a yes after a no raises."""
        with self._file.transaction():
            earlier = self.decision(study)
            if earlier is not None and decision.approved and not earlier.approved:
                word, at = "declined", earlier.decided_at
                if earlier.withdrawn_at is not None:
                    word, at = "withdrawn", earlier.withdrawn_at
                raise PolicyError(
                    f"study {short_id(study)} was {word} on {moment(at)}; a no that may have "
                    "been sent is not taken back. Ask for a new study"
                )
            if earlier is not None and earlier.approved and not decision.approved:
                self._file.write(
                    "INSERT INTO withdrawal VALUES (?, ?, ?)",
                    (study, decision.reason, decision.decided_at),
                )
            if earlier is None:
                self._file.write(
                    "INSERT INTO decision VALUES (?, ?, ?, ?, ?, ?)",
                    (
                        study, int(decision.approved), str(decision.epsilon), decision.reason,
                        decision.decided_by, decision.decided_at,
                    ),
                )  # fmt: skip
