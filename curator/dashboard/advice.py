"""What went wrong, and what to do about it, in words for the operator."""

from __future__ import annotations

from collections.abc import Iterable

from common.wire.catalogue import ErrorCode
from curator.store.records import StudyState

_BUDGET = "What the steps so far cost stays spent in the parties' ledgers."


UNREADABLE_ADVICE = (
    "The other studies go on. Look at this one with the version of parley that it was offered with."
)


def advice(state: StudyState, cause: str, *, overdue: bool = False) -> str:
    """What to do about a study that does not go on; empty for one that does."""
    match state:
        case StudyState.REFUSED:
            return (
                "Nothing more happens here: a no is for good. Ask the owner, then offer a new "
                "study, or the same without that owner: `parley curator study reform --without "
                f"OWNER`. {_BUDGET}"
            )
        case StudyState.FAILED:
            return (
                "Nothing more happens here. The curator's log has the details; put right what it "
                f"names and offer a new study. {_BUDGET}"
            )
        case StudyState.PUBLISHING if cause:
            return (
                "Every result is there and nothing is lost. Put right what it names (space and "
                "permissions of the folder of releases): the curator tries again by itself."
            )
        case _ if cause:
            return (
                "The study is stopped and nothing is lost. Put right what it names: the curator "
                "tries again by itself. If another version of parley began it, go on with that one."
            )
        case StudyState.RUNNING if overdue:
            return (
                "The study is overdue. Ask the owners that it waits for whether their nodes run. "
                "If one of them does not come back, end the study, and offer a new one without it: "
                f"`parley curator study reform --without OWNER`. {_BUDGET}"
            )
    return ""


def troubles(counted: Iterable[tuple[tuple[str, str], int]]) -> list[dict[str, object]]:
    """Refused calls since the start, by reason."""
    totals: dict[str, int] = {}
    for (_, outcome), number in counted:
        if outcome in ErrorCode.__members__:
            totals[outcome] = totals.get(outcome, 0) + number
    return [
        {
            "code": code,
            "count": number,
            "what": ErrorCode[code].public,
            "todo": ErrorCode[code].remedy,
        }
        for code, number in sorted(totals.items())
    ]
