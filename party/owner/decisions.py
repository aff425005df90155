"""An owner's yes or no, made the same way wherever it is said: command line or page."""

from __future__ import annotations

from fractions import Fraction

from common.errors import PolicyError
from common.study.ids import StudyId, study_id
from common.wording import moment
from party.journal import Journal, StudyState
from party.ledger import Ledger
from party.owner.approvals import Approvals, Decision
from party.owner.review import Review


def approve(approvals: Approvals, seen: Review, *, at: str, data_digest: str = "") -> None:
    """Approve a study as it was reviewed, at the cost that was shown.

    Rows whose digest is another one when the study begins are told to the owner.

    Raises:
        PolicyError: the owner's policy refuses it, or it was declined before.
    """
    if seen.reasons_against:
        listed = "\n".join(f"- {reason}" for reason in seen.reasons_against)
        raise PolicyError(f"our policy refuses this study:\n{listed}")
    decision = Decision(
        approved=True, epsilon=seen.cost, reason="", decided_by="owner", decided_at=at
    )
    approvals.decide(study_id(seen.digest), decision)
    if data_digest:
        approvals.review_rows(study_id(seen.digest), data_digest)


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
    decision = Decision(
        approved=False, epsilon=Fraction(0), reason=reason, decided_by="owner", decided_at=at
    )
    with journal.transaction():
        earlier = approvals.decision(study)
        if earlier is not None and earlier.approved:
            withdrawal_means(study, journal=journal, ledger=ledger)  # raises if it is over
        approvals.decide(study, decision)


def withdrawal_means(study: StudyId, *, journal: Journal, ledger: Ledger) -> str:
    """What comes of withdrawing from an approved study; PolicyError if it is over."""
    charged = ledger.spending(study.hex())
    record = journal.record(study)
    if record is not None and record.state is not StudyState.RUNNING:
        raise PolicyError(
            f"study {record.name!r} is over for us ({record.state.value}), with "
            f"{charged.words()} charged: there is nothing to withdraw from, and what has left is "
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
    """What to tell the owner of rows that are not those of the approval; empty if they are."""
    if not changed_at:
        return ""
    return (
        f"our rows are not those that were reviewed (seen on {moment(changed_at)}): the study goes "
        "on with the rows of then; if that is not meant, `parley party withdraw`"
    )


def in_words(decision: Decision | None) -> str:
    if decision is None:
        return "not decided"
    withdrawn = decision.withdrawn_at
    word = "approved" if decision.approved or withdrawn else "declined"
    told = f"{word} by the {decision.decided_by} on {moment(decision.decided_at)}"
    return f"{told}, withdrawn on {moment(withdrawn)}" if withdrawn else told
