"""What DP-SUBN settles before any row is looked at: all of it follows from public values.

`SETTINGS` are the keys of the table `[dp-subn]` of study.toml; `parley methods` prints them.
A new study in profile `sound` has `budget`, `views`, `consistency` and `reuse` by forecast
(`common.methods.dp_subn.forecast`).

The degrees limit the table of an attribute and its parents. On binary data the degree decides: k
is the largest at which d-k tables of 2^(k+1) cells are 6-useful, k' is the largest at which the d-1
tables of the search frontier are 2-useful [Su16, VI]. On other domains the cells decide: an
attribute may have any parents with which its table is useful, however many or few those are. A
parent set is offered if it is maximal: no further parent would fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod

from common.bayes.domain import Domain
from common.bayes.privbayes.parent_sets import (
    UNCONSTRAINED,
    Constraints,
    affordable_cells,
    affordable_degree,
    candidates,
    cell_limit,
    choose_degree,
)
from common.errors import InputError
from common.methods.network_model import Variables
from common.privacy.budget import split
from common.schema.toml import one_of
from common.study.document import Study
from common.study.method import PublicDecision, Setting, above_zero, between, parts, read_settings
from common.study.requests import Attributes
from common.wording import many

Party = tuple[str, int]  # name and row count

PHASES = ("correlations", "initial structure", "structure update", "parameters")
_MOST_PARENT_SETS = 1 << 14
_CAPS = "most_parents, most_cells or most_candidate_cells"
_MOST_PARENTS = 16  # caps have caps: a node works on them before an owner can see how long it takes
SWITCH = one_of(("off", "on"))
HALVES = "halves"
SETTINGS = {
    "budget": Setting(
        parts(len(PHASES)), "1:1:1:1",
        "how epsilon is split: correlations : initial structure : structure update : parameters",
    ),
    "theta_tables": Setting(above_zero, "6", "usefulness of the published tables, for k"),
    "theta_frontier": Setting(above_zero, "2", "usefulness of the search frontier, for k'"),
    "degree": Setting(
        between(0, _MOST_PARENTS), "by usefulness", "k itself; binary encoding only, but for 0"
    ),
    "frontier_degree": Setting(
        between(0, _MOST_PARENTS), "by usefulness", "k' itself; binary encoding only"
    ),
    "usefulness": Setting(
        one_of(("phase", "total")), "phase", "by the phase's part of epsilon, or by the total"
    ),
    "views": Setting(
        one_of(("optimal", "printed", HALVES)), "optimal",
        "of phase 1; printed: the paper's Algorithm 2; halves: the agreement of halves, and no "
        "network if it shows no dependence",
    ),
    "consistency": Setting(SWITCH, "off", "on: tables agree, are not negative, sum to the rows"),
    "reuse": Setting(SWITCH, "off", "on: tables are combined with the sums of phases 1 and 3"),
    "most_parents": Setting(between(1, _MOST_PARENTS), "10", "cap on the parents of an attribute"),
    "most_cells": Setting(between(4, 1 << 22), str(1 << 16), "cap on the cells of a table"),
    "most_candidate_cells": Setting(
        between(4, 1 << 28), str(1 << 23), "cap on the cells of all candidates together"
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SubnSettings:
    """What a study may choose about DP-SUBN; the defaults are the paper's, errata applied.

    Attributes:
        usefulness: whether usefulness is computed with the epsilon of the phase that publishes the
            tables, or with all of epsilon: [Su16] cites the definition of [Zhang14], which knows
            one epsilon, and does not say.
        consistency: whether tables are made consistent; then a network without edges is made of
            histograms of the attributes, whatever the encoding.
        reuse: whether the tables are combined with the sums of the other phases.
    """

    budget: tuple[Fraction, ...] = (Fraction(1),) * len(PHASES)
    theta_tables: Fraction = Fraction(6)
    theta_frontier: Fraction = Fraction(2)
    degree: int | None = None
    frontier_degree: int | None = None
    usefulness: str = "phase"
    views: str = "optimal"
    consistency: str = "off"
    reuse: str = "off"
    most_parents: int = 10
    most_cells: int = 1 << 16
    most_candidate_cells: int = 1 << 23

    @classmethod
    def of(cls, study: Study) -> SubnSettings:
        """Read the settings; profile `paper` has the views of Algorithm 2 on binary data."""
        binary = study.encoding == "binary" or max(study.schema.sizes) <= 2
        values = read_settings(study, SETTINGS)
        if binary and study.profile == "paper":
            values.setdefault("views", "printed")
        settings = cls(**values)
        if not binary and (settings.degree or settings.frontier_degree is not None):
            raise InputError(
                "dp-subn.degree: on attributes with domains of their own the cells decide, not a "
                'degree. Use encoding = "binary", or theta_tables and most_cells'
            )
        if not binary and settings.views == "printed":
            raise InputError(
                'dp-subn.views: Algorithm 2 is for binary attributes. Use encoding = "binary"'
            )
        if settings.views == HALVES:
            _check_halves(study)
        return settings


def _check_halves(study: Study) -> None:
    """Refuse, with InputError, phase 1 by halves where it is not offered."""
    if study.encoding == "binary" or study.profile == "paper":
        raise InputError(
            "dp-subn.views: halves are those of attributes with domains of their own, and not the "
            'paper\'s. Use encoding = "own" and profile = "sound", or views = "optimal"'
        )


_DEFAULTS = SubnSettings()


@dataclass(frozen=True, slots=True)
class FamilyLimit:
    """The most parents of an attribute, and the most cells of their table together.

    Attributes:
        parents: their number.
        cells: of the attribute and its parents.
        useful: what usefulness allows, no cap applied: the number of parents of bits, or cells.
    """

    parents: int
    cells: int
    useful: int = field(default=0, compare=False)

    def fits(self, sizes: Sequence[int], child: int, parents: Sequence[int]) -> bool:
        """Return whether an attribute may have these parents; no parents always fit."""
        if not parents:
            return True
        cells = prod((sizes[child], *(sizes[parent] for parent in parents)))
        return len(parents) <= self.parents and cells <= self.cells

    def maximal(
        self, sizes: Sequence[int], child: int, parents: Sequence[int], pool: Iterable[int]
    ) -> bool:
        """Return whether these parents fit, and no other of the pool would fit beside them."""
        return self.fits(sizes, child, parents) and not any(
            self.fits(sizes, child, [*parents, other]) for other in pool if other not in parents
        )


def network_limit(
    sizes: Sequence[int], rows: int, epsilon: Fraction, settings: SubnSettings = _DEFAULTS
) -> FamilyLimit:
    """Limit the network, whose d tables (d-k on binary data) are published at `epsilon`."""
    width, theta = len(sizes), settings.theta_tables
    if not is_binary(sizes):
        useful = cell_limit(rows=rows, attributes=width, epsilon=epsilon, theta=theta)
        return _by_cells(sizes, 0 if settings.degree == 0 else useful, settings)
    computed = choose_degree(rows=rows, attributes=width, epsilon=epsilon, theta=theta)
    useful = computed if settings.degree is None else settings.degree
    degree = affordable_degree(
        attributes=width,
        degree=min(useful, settings.most_parents, width - 1),
        max_cells=settings.most_candidate_cells,
    )
    return FamilyLimit(degree, 2 << degree, useful)


def frontier_limit(
    sizes: Sequence[int],
    rows: int,
    epsilon: Fraction,
    network: FamilyLimit,
    settings: SubnSettings = _DEFAULTS,
) -> FamilyLimit:
    """Limit the search frontier's d-1 tables, never below the network that it extends."""
    width, tables, theta = len(sizes), max(len(sizes) - 1, 1), settings.theta_frontier
    if not is_binary(sizes):
        useful = cell_limit(rows=rows, attributes=tables, epsilon=epsilon, theta=theta)
        limit = _by_cells(sizes, useful, settings)
        parents, cells = max(limit.parents, network.parents), max(limit.cells, network.cells)
        return FamilyLimit(parents, cells, useful)
    computed = choose_degree(
        rows=rows, attributes=width, epsilon=epsilon, theta=theta, tables=tables
    )
    useful = computed if settings.frontier_degree is None else settings.frontier_degree
    degree = max(min(useful, settings.most_parents, width - 1), network.parents)
    return FamilyLimit(degree, 2 << degree, useful)


def candidate_families(
    sizes: Sequence[int], placed: Sequence[int], limit: FamilyLimit
) -> list[Attributes]:
    """Return families: an attribute not yet placed, then a maximal parent set, ascending."""
    most = Constraints(max_parents=limit.parents)
    pairs = candidates(Domain.flat(sizes), placed, limit.cells, most)
    return [tuple(view.attribute for view in pair.family) for pair in pairs]


def is_binary(sizes: Sequence[int]) -> bool:
    return all(size <= 2 for size in sizes)


def _by_cells(sizes: Sequence[int], useful: int, settings: SubnSettings) -> FamilyLimit:
    cells = affordable_cells(
        Domain.flat(sizes), min(useful, settings.most_cells), UNCONSTRAINED, _MOST_PARENT_SETS
    )
    ascending = sorted(sizes)
    most, degree = min(settings.most_parents, len(sizes) - 1), 0
    while degree < most and prod(ascending[: degree + 2]) <= cells:
        degree += 1
    return FamilyLimit(degree, cells, useful)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubnDecisions:
    """The public decisions of one study.

    Attributes:
        parties: name and row count, in the order of their turns.
        epsilons: of the first four phases.
    """

    settings: SubnSettings
    variables: Variables
    parties: Sequence[Party]
    epsilons: tuple[Fraction, ...]
    network: FamilyLimit
    frontier: FamilyLimit

    @classmethod
    def of(cls, study: Study) -> SubnDecisions:
        settings, variables = SubnSettings.of(study), Variables.of(study)
        epsilon = study.method_promise.budget
        epsilons = tuple(split(epsilon, settings.budget))
        total = settings.usefulness == "total"
        for_frontier, for_tables = (epsilon,) * 2 if total else epsilons[2:]
        sizes, rows = variables.sizes, study.rows
        network = network_limit(sizes, rows, for_tables, settings)
        return cls(
            settings=settings,
            variables=variables,
            parties=list(study.rows_of.items()),
            epsilons=epsilons,
            network=network,
            frontier=frontier_limit(sizes, rows, for_frontier, network, settings),
        )


def decisions(study: Study) -> list[PublicDecision]:
    plan = SubnDecisions.of(study)
    settings = plan.settings
    budget = ", ".join(
        f"{name} {float(part):g}" for name, part in zip(PHASES, plan.epsilons, strict=True)
    )
    if plan.network.parents == 0:
        return [no_network("dp-subn", projected=settings.consistency == "on")]
    updates = many(study.cohorts, "cohort")
    if study.profile == "paper":
        updates = "noise replacement, party by party"
    return [
        PublicDecision("budget", budget),
        PublicDecision("views of the correlations", _views(settings)),
        _limit("k, for the network", plan, plan.network, settings.theta_tables),
        _limit("k', for the frontier", plan, plan.frontier, settings.theta_frontier),
        PublicDecision("structure update", updates),
        *_estimates(settings),
    ]


def no_network(method: str, *, projected: bool) -> PublicDecision:
    """Say that the network has no edges; a caution where the columns are projected instead."""
    words = "0: the budget carries no table of two attributes, all of it buys single columns"
    caution = (
        f"{method}: a network is forecast to be noise at this epsilon, with so many rows and such "
        "columns. All of the budget buys single columns, drawn independently of each other."
    )
    return PublicDecision("parents of an attribute (k)", words, caution if projected else None)


def _views(settings: SubnSettings) -> str:
    if settings.views != HALVES:
        return settings.views
    return "the agreement of halves; if it shows no dependence, all that is left buys margins"


def _estimates(settings: SubnSettings) -> list[PublicDecision]:
    """Tell how tables are estimated, where it is not as printed."""
    switched = {
        "tables": (settings.consistency, "made consistent"),
        "sums of the other phases": (settings.reuse, "combined with the tables"),
    }
    return [
        PublicDecision(name, words) for name, (switch, words) in switched.items() if switch == "on"
    ]


def _limit(name: str, plan: SubnDecisions, limit: FamilyLimit, theta: Fraction) -> PublicDecision:
    binary = is_binary(plan.variables.sizes)
    got = limit.parents if binary else limit.cells
    unit = "parents" if binary else "cells a table"
    words = f"{got:,} {unit} (theta {float(theta):g}, usefulness by {plan.settings.usefulness})"
    most = min(limit.useful, len(plan.variables.sizes) - 1) if binary else limit.useful
    return PublicDecision(
        f"largest family ({name})", words, lowered(name, useful=most, got=got, unit=unit)
    )


def lowered(
    name: str, *, useful: int, got: int, unit: str, method: str = "dp-subn", caps: str = _CAPS
) -> str | None:
    """Say that a cap of the search made a limit smaller; None if it did not."""
    if got >= useful:
        return None
    return (
        f"{method}: {name} is {got:,} {unit}, lowered from {useful:,} by a cap of the search. "
        f"Raise {caps} in [{method}] of the study (--set KEY=VALUE) to lift it."
    )
