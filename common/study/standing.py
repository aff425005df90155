"""How each owner stands to the sums of a study that may miss parties.

Three states: in every sum, to the end; left after sum n, counted up to and including it; missing
from the start, in no sum. Sums are counted from 1.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass


class StandingState(enum.StrEnum):
    """How an owner stands to the sums of a study."""

    WHOLE = "in every sum"
    LEFT = "left"
    MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerStanding:
    """One owner's state, and in how many sums its rows are."""

    party: str
    state: StandingState
    sums: int

    @property
    def words(self) -> str:
        match self.state:
            case StandingState.WHOLE:
                return "in every sum"
            case StandingState.LEFT:
                return f"left after sum {self.sums}, and is counted up to it"
            case StandingState.MISSING:
                return "missing from the start: in no sum"

    def as_json(self) -> dict[str, object]:
        return {"party": self.party, "state": self.state.value, "sums": self.sums}


def standings(
    parties: Sequence[str], *, sums: int, missing: Mapping[str, int], left: Collection[str]
) -> list[OwnerStanding]:
    """Return the standing of every owner.

    `missing` has, for each owner that is not in all sums, how many come before the first without
    it. `left` are the owners that left, whether or not their rows are in all sums.
    """
    return [
        _standing(party, missing.get(party, sums), party in missing or party in left)
        for party in parties
    ]


def _standing(party: str, sums: int, gone: bool) -> OwnerStanding:  # noqa: FBT001  # private
    if not gone:
        return OwnerStanding(party=party, state=StandingState.WHOLE, sums=sums)
    return OwnerStanding(
        party=party, state=StandingState.LEFT if sums else StandingState.MISSING, sums=sums
    )
