"""An owner's yes or no, made the same way wherever it is said: command line or page."""

from __future__ import annotations

from fractions import Fraction

from common.errors import PolicyError
from party.approvals import Approvals, Decision
from party.review import Review


def approve(approvals: Approvals, seen: Review, *, at: str) -> None:
    """Approve a study as it was reviewed, at the cost that was shown.

    Raises:
        PolicyError: the owner's policy refuses it, or it was declined before.
    """
    if seen.reasons_against:
        listed = "\n".join(f"- {reason}" for reason in seen.reasons_against)
        raise PolicyError(f"our policy refuses this study:\n{listed}")
    decision = Decision(
        approved=True, epsilon=seen.cost, reason="", decided_by="owner", decided_at=at
    )
    approvals.decide(bytes.fromhex(seen.digest), decision)


def decline(approvals: Approvals, study: bytes, *, reason: str, at: str) -> None:
    """Decline a study, for good.

    Args:
        approvals: where it is written.
        study: its digest.
        reason: for the owner's own records; nobody is told.
        at: the time.

    Raises:
        PolicyError: it was approved before.
    """
    decision = Decision(
        approved=False, epsilon=Fraction(0), reason=reason, decided_by="owner", decided_at=at
    )
    approvals.decide(study, decision)


def in_words(decision: Decision | None) -> str:
    """What was decided, for people."""
    if decision is None:
        return "not decided"
    word = "approved" if decision.approved else "declined"
    return f"{word} by the {decision.decided_by} on {decision.decided_at}"
