"""What DP-SUBN settles before any row is looked at, and the most that each party can pay for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from common.methods.dp_subn.families import (
    FamilyLimit,
    frontier_limit,
    is_binary,
    network_limit,
)
from common.methods.dp_subn.settings import PHASES, Settings
from common.methods.dp_subn.updates import Party
from common.methods.variables import Variables
from common.privacy.budget import split
from common.study.document import Study
from common.study.method import Decision
from common.wording import many

_CAPS = "most_parents, most_cells or most_candidate_cells"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The public decisions of one study.

    Attributes:
        parties: name and row count, in the order of their turns.
        epsilons: of the first four phases.
    """

    settings: Settings
    variables: Variables
    parties: Sequence[Party]
    epsilons: tuple[Fraction, ...]
    network: FamilyLimit
    frontier: FamilyLimit

    @classmethod
    def of(cls, study: Study) -> Plan:
        settings, variables = Settings.of(study), Variables.of(study)
        epsilon = study.method_promise.budget
        epsilons = tuple(split(epsilon, settings.budget))
        total = settings.usefulness == "total"
        for_frontier, for_tables = (epsilon,) * 2 if total else epsilons[2:]
        sizes, rows = variables.sizes, study.rows
        network = network_limit(sizes, rows, for_tables, settings)
        return cls(
            settings=settings,
            variables=variables,
            parties=[(member.name, member.rows) for member in study.members],
            epsilons=epsilons,
            network=network,
            frontier=frontier_limit(sizes, rows, for_frontier, network, settings),
        )


def decisions(study: Study) -> list[Decision]:
    plan = Plan.of(study)
    settings = plan.settings
    budget = ", ".join(
        f"{name} {float(part):g}" for name, part in zip(PHASES, plan.epsilons, strict=True)
    )
    if plan.network.parents == 0:
        none = "0: the budget carries no table of two attributes, all of it buys single columns"
        return [Decision("parents of an attribute (k)", none)]
    updates = many(study.cohorts, "cohort")
    if study.profile == "paper":
        updates = "noise replacement, party by party"
    return [
        Decision("budget", budget),
        Decision("views of the correlations", settings.views),
        _limit("k, for the network", plan, plan.network, settings.theta_tables),
        _limit("k', for the frontier", plan, plan.frontier, settings.theta_frontier),
        Decision("structure update", updates),
    ]


def _limit(name: str, plan: Plan, limit: FamilyLimit, theta: Fraction) -> Decision:
    binary = is_binary(plan.variables.sizes)
    got = limit.parents if binary else limit.cells
    unit = "parents" if binary else "cells a table"
    words = f"{got:,} {unit} (theta {float(theta):g}, usefulness by {plan.settings.usefulness})"
    most = min(limit.useful, len(plan.variables.sizes) - 1) if binary else limit.useful
    return Decision(f"largest family ({name})", words, lowered(name, most, got, unit, "dp-subn"))


def lowered(
    name: str, useful: int, got: int, unit: str, method: str, caps: str = _CAPS
) -> str | None:
    """Say that a cap of the search made a limit smaller; None if it did not."""
    if got >= useful:
        return None
    return (
        f"{method}: {name} is {got:,} {unit}, lowered from {useful:,} by a cap of the search. "
        f"Raise {caps} in [{method}] of the study (--set KEY=VALUE) to lift it."
    )


def bound(study: Study) -> Mapping[str, Fraction] | None:
    """The most that each party pays by noise replacement, whatever is published [Su16, Theorem 5].

    The rows of party j are under fresh noise in every release from its turn on:
    eps_1 + eps_2 + (K - j + 1) eps_3 + eps_4. What a run realises may be less, because a table
    that is new in a release covers later parties only, and it depends on published results.
    """
    plan = Plan.of(study)
    if study.profile != "paper" or plan.network.parents == 0:
        return None
    views, choice, update, tables = plan.epsilons
    parties = len(plan.parties)
    return {
        name: views + choice + (parties - turn) * update + tables
        for turn, (name, _) in enumerate(plan.parties)
    }
