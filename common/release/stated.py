"""What a privacy statement says of itself and of its study, before anything is derived."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from common.errors import InputError
from common.privacy.budget import parse_epsilon, shown
from common.release.folder import STATEMENT
from common.study.document import Study


def adds_up(privacy: Mapping[str, Any]) -> bool:
    """Return whether the steps cost what was delivered, to the digits that the file prints."""
    spent = sum(float(step["epsilon"]) for step in privacy["steps"])
    delivered = float(parse_epsilon(privacy["exact"]["epsilon_delivered"]))
    return math.isclose(spent, delivered, rel_tol=1e-9) and math.isclose(
        float(privacy["epsilon_delivered"]), delivered, rel_tol=1e-9
    )


def costs_add_up(privacy: Mapping[str, Any], study: Study) -> bool:
    """Return whether the steps cost every owner what it paid; in profile paper, at most that."""
    costs: Counter[str] = Counter()
    for step in privacy["steps"]:
        for party, cost in step["parties"].items():
            costs[party] += cost
    paid = {
        party: float(Fraction(cost)) for party, cost in privacy["exact"]["parties_paid"].items()
    }
    bounded = study.profile == "paper"  # of all runs, which may cost more than this one
    return costs.keys() <= paid.keys() and all(
        math.isclose(costs[party], most, rel_tol=1e-9, abs_tol=1e-9)
        or (bounded and costs[party] < most)
        for party, most in paid.items()
    )


def is_agreed(privacy: Mapping[str, Any], study: Study) -> bool:
    """Return whether the epsilon asked for is the study's.

    In profile sound it is also the most that any party pays. A party that has no turn in a step
    pays less. Which party that is, only the derivation tells.
    """

    def states(key: str) -> bool:
        exact = privacy["exact"][key] == str(study.epsilon)
        return bool(exact and privacy[key] == shown(study.epsilon))

    if study.profile != "sound":
        return states("epsilon_requested")
    paid = {name: Fraction(cost) for name, cost in privacy["exact"]["parties"].items()}
    return (
        states("epsilon_requested")
        and states("epsilon_delivered")
        and privacy["exact"]["delta"] == str(study.delta)
        and privacy["delta"] == privacy["delta_delivered"] == float(study.delta)
        and set(paid) == set(study.parties)
        and max(paid.values()) == study.epsilon
        and privacy["parties"] == {name: shown(cost) for name, cost in paid.items()}
    )


def stated_missing(privacy: Mapping[str, Any], study: Study) -> dict[str, int]:
    """Return for each missing party the first step without it, as the statement says."""
    stated = privacy.get("missing")
    known = set(study.parties)
    if not isinstance(stated, dict) or not set(stated) <= known or len(stated) > study.may_miss:
        raise InputError(f"{STATEMENT}: names missing parties that the study cannot miss")
    if any(type(first) is not int or first < 0 for first in stated.values()):
        raise InputError(f"{STATEMENT}: a party is missing from a step on, from 0")
    return stated


def stated_left(
    privacy: Mapping[str, Any], study: Study, missing: Collection[str]
) -> Collection[str]:
    """Return the parties that left and are counted, as the statement says.

    After which sums they left is derived. Statements of parley 0.2.0 name none.
    """
    stated = privacy.get("left", {})
    if not isinstance(stated, dict) or not set(stated) <= set(study.parties):
        raise InputError(f"{STATEMENT}: names parties that left and are not in the study")
    if len({*stated, *missing}) > study.may_miss:
        raise InputError(f"{STATEMENT}: names more parties that left than the study allows")
    return stated


def stated_disputes(
    privacy: Mapping[str, Any], study: Study, missing: Collection[str]
) -> Sequence[Mapping[str, Any]]:
    """Return the disputes about boxes of key shares, as the statement says."""
    stated = privacy.get("disputes", [])
    left = {*privacy.get("left", {}), *missing}
    if not isinstance(stated, list) or not all(
        isinstance(dispute, dict) and _is_dispute(dispute, study, left) for dispute in stated
    ):
        raise InputError(f"{STATEMENT}: a dispute is not one that the study can have had")
    return stated


def _is_dispute(stated: Mapping[str, Any], study: Study, left: Collection[str]) -> bool:
    if set(stated) != {"step", "dealer", "receiver", "left", "evidence"}:
        return False
    step, evidence = stated["step"], stated["evidence"]
    two = [stated["dealer"], stated["receiver"]]
    return (
        type(step) is int
        and step >= 0
        and isinstance(evidence, str)
        and re.fullmatch("[0-9a-f]{64}", evidence) is not None
        and len({name for name in two if name in study.parties}) == len(two)
        and stated["left"] in two
        and stated["left"] in left
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerStanding:
    """How an owner stands to the sums of a study that may miss parties; sums count from 1."""

    party: str
    sums: int  # in how many of them its rows are: up to this one
    left: bool

    @property
    def state(self) -> str:
        if not self.left:
            return "in every sum"
        return "left" if self.sums else "missing"

    @property
    def words(self) -> str:
        if self.left and self.sums:
            return f"left after sum {self.sums}, and is counted up to it"
        return "missing from the start: in no sum" if self.left else self.state

    def as_json(self) -> dict[str, object]:
        return {"party": self.party, "state": self.state, "sums": self.sums}


def standings(
    parties: Sequence[str], *, sums: int, missing: Mapping[str, int], left: Collection[str]
) -> tuple[OwnerStanding, ...]:
    """Return the standing of every owner.

    `missing` has, for each owner that is not in all sums, how many come before the first without
    it. `left` are the owners that left, whether or not their rows are in all sums.
    """
    return tuple(
        OwnerStanding(
            party=party, sums=missing.get(party, sums), left=party in missing or party in left
        )
        for party in parties
    )
