"""What this owner decided about studies: in the party's file, so that it holds after a restart.

An owner decides with `parley party approve` or `decline`, or the policy decides for the owner if it
says so. The running node looks here; it never approves by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from common.database import Database
from common.errors import PolicyError

_TABLES = """
CREATE TABLE IF NOT EXISTS decision (
    study BLOB PRIMARY KEY,
    approved INTEGER NOT NULL,
    epsilon TEXT NOT NULL,
    reason TEXT NOT NULL,
    decided_by TEXT NOT NULL,
    decided_at TEXT NOT NULL
) STRICT;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What an owner decided about a study.

    Attributes:
        approved: yes or no.
        epsilon: what was approved: the study may not cost our rows more, whatever it asks.
        reason: of a no, for the owner's own records; nobody else is told.
        decided_by: the owner, or the owner's policy.
        decided_at: when.
    """

    approved: bool
    epsilon: Fraction
    reason: str
    decided_by: str
    decided_at: str


class Approvals:
    """The decisions in a party's file."""

    def __init__(self, database: Database) -> None:
        self._file = database
        database.add_tables(_TABLES)

    def decision(self, study: bytes) -> Decision | None:
        """What was decided about a study; None if nothing was yet."""
        rows = self._file.rows(
            "SELECT approved, epsilon, reason, decided_by, decided_at FROM decision "
            "WHERE study = ?",
            (study,),
        )
        if not rows:
            return None
        approved, epsilon, reason, decided_by, decided_at = rows[0]
        return Decision(
            approved=bool(approved),
            epsilon=Fraction(epsilon),
            reason=reason,
            decided_by=decided_by,
            decided_at=decided_at,
        )

    def decide(self, study: bytes, decision: Decision) -> None:
        """Decide, once; the same again is harmless.

        Raises:
            PolicyError: it was decided otherwise before.
        """
        with self._file.transaction():
            earlier = self.decision(study)
            if earlier is not None and earlier.approved != decision.approved:
                word = "approved" if earlier.approved else "declined"
                raise PolicyError(
                    f"study {study.hex()[:16]} was {word} on {earlier.decided_at}; a decision that "
                    "may have been sent is not taken back. Ask for a new study"
                )
            if earlier is None:
                self._file.write(
                    "INSERT INTO decision VALUES (?, ?, ?, ?, ?, ?)",
                    (
                        study, int(decision.approved), str(decision.epsilon), decision.reason,
                        decision.decided_by, decision.decided_at,
                    ),
                )  # fmt: skip
