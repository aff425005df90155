"""An owner's decisions about studies, in the party's file, so that they hold after a restart.

An owner decides with `parley party approve` or `decline` or on the owner's page, or the policy
decides for the owner if it says so. The running node looks here; it never approves by itself. A no
may follow a yes: the owner withdraws. A no is for good.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from common.errors import PolicyError
from common.service.database import Database
from common.study.ids import StudyId, short_id, study_id
from common.wording import moment
from party.journal import Journal, JournalState
from party.ledger import Ledger
from party.owner.review import Review

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
class OwnerDecision:
    """What an owner decided about a study."""

    approved: bool  # yes or no; no, once it is withdrawn
    decided_at: str
    # What was approved: the study may not cost our rows more, whatever it asks.
    epsilon: Fraction = Fraction(0)
    reason: str = ""  # of a no, for the owner's own records; it is not sent
    decided_by: str = "owner"  # or the owner's policy
    withdrawn_at: str | None = None  # when the owner took a yes back; None if that never happened


class Approvals:
    """The decisions in a party's file."""

    def __init__(self, database: Database) -> None:
        self._file = database
        database.add_tables(_TABLES)

    def decision(self, study: StudyId) -> OwnerDecision | None:
        """Return what was decided about a study; None if nothing was yet."""
        decisions = self._file.records(
            OwnerDecision,
            "SELECT approved AND withdrawn_at IS NULL AS approved, epsilon, decided_by, "
            "COALESCE(withdrawal.reason, decision.reason) AS reason, decided_at, withdrawn_at "
            "FROM decision LEFT JOIN withdrawal USING (study) WHERE study = ?",
            (study,),
            approved=bool,
            epsilon=Fraction,
        )
        return decisions[0] if decisions else None

    def studies(self) -> list[StudyId]:
        """List all studies that were decided about, oldest decision first."""
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
        """Return when the rows were seen to differ from those of the approval; empty if not."""
        rows = self._file.rows("SELECT changed_at FROM reviewed_rows WHERE study = ?", (study,))
        return str(rows[0][0]) if rows else ""

    def decide(self, study: StudyId, decision: OwnerDecision) -> None:
        """Decide; repeating is harmless, a no after a yes withdraws, a yes after a no raises."""
        with self._file.transaction():
            earlier = self.decision(study)
            if earlier is not None and decision.approved and not earlier.approved:
                word, at = f"declined by the {earlier.decided_by}", earlier.decided_at
                if earlier.withdrawn_at is not None:
                    word, at = "withdrawn", earlier.withdrawn_at
                raise PolicyError(
                    f"study {short_id(study)}: it was {word} on {moment(at)}, and a no that may "
                    "have been sent is not taken back. Ask for a new study"
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


def approve(approvals: Approvals, review: Review, *, at: str, data_digest: str = "") -> None:
    """Approve a study as it was reviewed, at the cost that was shown.

    If the rows have another digest when the study begins, the owner is told.
    """
    if review.reasons_against:
        listed = "\n".join(f"- {reason}" for reason in review.reasons_against)
        raise PolicyError(f"our policy refuses this study:\n{listed}")
    study = study_id(review.digest)
    approvals.decide(study, OwnerDecision(approved=True, epsilon=review.charged, decided_at=at))
    if data_digest:
        approvals.review_rows(study, data_digest)


def require_not_over(study: StudyId, journal: Journal) -> None:
    """Refuse to decide about a study that our own records say is over."""
    record = journal.record(study)
    if record is not None and record.state is not JournalState.RUNNING:
        raise PolicyError(
            f"study {record.name!r}: it is over for us ({record.state.value}). Nothing was "
            "decided. Ask for a new study"
        )


def decline(
    study: StudyId,
    *,
    approvals: Approvals,
    journal: Journal,
    ledger: Ledger,
    reason: str,
    at: str,
) -> None:
    """Decline a study, for good; one that was approved is withdrawn from.

    Once this returns nothing more is charged: the node looks for it in the transaction in which it
    charges, and a charge that was earlier is in the ledger by now.

    The reason is for the owner's own records; it is not sent.

    Raises:
        PolicyError: it was approved before, and is over.
    """
    with journal.transaction():
        earlier = approvals.decision(study)
        if earlier is not None and earlier.approved:
            withdrawal_means(study, journal=journal, ledger=ledger)  # raises if it is over
        approvals.decide(study, OwnerDecision(approved=False, reason=reason, decided_at=at))


def withdrawal_means(study: StudyId, *, journal: Journal, ledger: Ledger) -> str:
    """Say what comes of withdrawing from an approved study; PolicyError if it is over."""
    charged = ledger.spending(study.hex())
    record = journal.record(study)
    if record is not None and record.state is not JournalState.RUNNING:
        raise PolicyError(
            f"study {record.name!r}: it is over for us ({record.state.value}), with "
            f"{charged.words()} charged. There is nothing to withdraw from, and what has left is "
            "not taken back"
        )
    cost = (
        f"{charged.words().capitalize()} was charged for what has left, and stays charged: that "
        "is not taken back. Nothing more leaves."
        if charged.paid
        else "Nothing was charged: no answer of ours has left."
    )
    return (
        f"{cost} When our node has told the curator, the study goes on without us if it can do "
        "without an owner (may_miss), and ends for every party otherwise; they learn that we "
        "withdrew, and not why."
    )


def rows_in_words(changed_at: str) -> str:
    """Tell the owner that the rows are not those of the approval; empty if they are."""
    if not changed_at:
        return ""
    return (
        f"our rows are not those that were reviewed (seen on {moment(changed_at)}): the study goes "
        "on with the rows of then; if that is not meant, `parley party withdraw`"
    )


def in_words(decision: OwnerDecision | None) -> str:
    if decision is None:
        return "not decided"
    withdrawn = decision.withdrawn_at
    word = "approved" if decision.approved or withdrawn else "declined"
    words = f"{word} by the {decision.decided_by} on {moment(decision.decided_at)}"
    return f"{words}, withdrawn on {moment(withdrawn)}" if withdrawn else words
