"""What went wrong, and what to do about it, in words for the operator."""

from __future__ import annotations

from collections.abc import Iterable

from common.wire.catalogue import CATALOGUE, ErrorCode
from curator.records import StudyState

_BUDGET = "What the steps so far cost stays spent in the parties' ledgers."


def advice(state: StudyState, cause: str) -> str:
    """What to do about a study that does not go on; empty for one that does."""
    match state:
        case StudyState.REFUSED:
            return (
                "Nothing more happens here. Ask the owner, then offer a new study with `parley "
                f"curator study new` and `add`: a no is for good. {_BUDGET}"
            )
        case StudyState.FAILED:
            return (
                "Nothing more happens here. The curator's log has the details; put right what it "
                f"names and offer a new study. {_BUDGET}"
            )
        case StudyState.PUBLISHING if cause:
            return (
                "Every result is there and nothing is lost. Put right what it names (space and "
                "permissions of the folder of releases), then restart the curator."
            )
        case _ if cause:
            return (
                "The study is stopped and nothing is lost. Put right what it names, then restart "
                "the curator; if another version of parley began it, go on with that one."
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
            "what": CATALOGUE[ErrorCode[code]].public,
            "todo": CATALOGUE[ErrorCode[code]].remedy,
        }
        for code, number in sorted(totals.items())
    ]
