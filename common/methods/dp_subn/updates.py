"""Phase 3: the structure is updated release by release [Su16, VI-A].

The curator holds a search frontier: for every attribute more possible parents than it may have. A
release brings noisy tables of the frontier's families; for every attribute the parents with the
most information among them become its parents, and CSFC makes the next frontier.

Two ways to make the releases. In *cohorts* each party is in one release, pays for one, and the sum
over B cohorts carries B shares of noise. By *noise replacement*, the paper's way, every release
carries one share, and a party whose rows came in early pays for every release after.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from common.bayes.postprocessing import marginal_table
from common.crypto.sums.replacement import Coverages
from common.crypto.sums.replacement import Statistics as Running
from common.exchanges.replacement import replacement_step
from common.methods.dp_subn.csfc import search_frontier
from common.methods.dp_subn.decisions import FamilyLimit, Party
from common.methods.dp_subn.information import mutual_information, on_grid
from common.methods.network_model import Structure, Variables
from common.privacy import sensitivity
from common.privacy.noise_law import NoiseLaw
from common.privacy.promise import Promise
from common.study.requests import Attributes, Counts
from common.study.script import Script, replaced

PHASE = "structure update"


@dataclass(frozen=True, slots=True)
class PartialTable:
    """A noisy table over some rows, axes in ascending order of the variables."""

    table: Counts
    rows: int
    variance: Fraction  # of the noise in a cell


Statistics = Mapping[Attributes, PartialTable]


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What does not change while the structure is updated.

    Attributes:
        information: the noisy correlations of phase 1.
        epsilon: of each release.
        noise_shares: how many times the variance of its law a sum of so many parties carries.
    """

    variables: Variables
    information: NDArray[np.float64]
    network_limit: FamilyLimit
    frontier_limit: FamilyLimit
    promise: Promise
    epsilon: Fraction
    noise_shares: Callable[[int], Fraction] = lambda parties: Fraction(1)

    def frontier(self, network: Structure) -> Structure:
        """Return the network with more possible parents, as many as fit."""
        sizes, limit = self.variables.sizes, self.frontier_limit
        return search_frontier(
            network,
            self.information,
            limit.parents,
            lambda child, parents: limit.fits(sizes, child, parents),
        )

    def law(self, families: Sequence[Attributes]) -> NoiseLaw:
        """Return the law of the noise in a release of these tables."""
        return self.promise.law(self.epsilon, sensitivity.histograms(len(families)))

    def updated(self, frontier: Structure, statistics: Statistics) -> Structure:
        """Return, of every attribute, the allowed parents with the most information.

        The frontier is acyclic, so every choice of parents in it is.
        """
        return tuple(
            self._best_parents(child, parents, statistics) if parents else ()
            for child, parents in enumerate(frontier)
        )

    def _best_parents(self, child: int, parents: Attributes, statistics: Statistics) -> Attributes:
        family = tuple(sorted((child, *parents)))
        statistic = statistics[family]
        most = min(self.network_limit.parents, len(parents))
        subsets = chain.from_iterable(
            combinations(sorted(parents), count) for count in range(most + 1)
        )
        allowed = [s for s in subsets if self.network_limit.fits(self.variables.sizes, child, s)]
        scores = [
            _information(statistic, [family.index(a) for a in (child, *subset)])
            for subset in allowed
        ]
        return allowed[int(np.argmax(on_grid(np.array(scores))))]


def _information(statistic: PartialTable, axes: Sequence[int]) -> float:
    """Return the information that the first axis shares with the others."""
    if len(axes) == 1:
        return 0.0
    table = marginal_table(statistic.table, axes).astype(np.float64)
    return mutual_information(table, statistic.rows)


def families_of(frontier: Structure) -> list[Attributes]:
    """Return the sufficient statistics: attributes with possible parents, each with its own.

    In a DAG no two attributes have the same family.
    """
    return [tuple(sorted((child, *parents))) for child, parents in enumerate(frontier) if parents]


def update_in_cohorts(
    search: Search, network: Structure, cohorts: Sequence[Sequence[Party]]
) -> Script[tuple[Structure, Statistics]]:
    """Make one sum per cohort; the curator adds up the tables that cohorts have in common.

    A table that is new with a cohort covers the rows from that cohort on. Return the network, and
    all tables with the rows that they cover.
    """
    statistics: dict[Attributes, PartialTable] = {}
    for number, cohort in enumerate(cohorts, start=1):
        frontier = search.frontier(network)
        families = families_of(frontier)
        if families:
            tables = yield from search.variables.sum_tables(
                families,
                name=f"{PHASE}, cohort {number} of {len(cohorts)}",
                phase=PHASE,
                parties=tuple(name for name, _ in cohort),
                promise=search.promise,
                cost=search.epsilon,
            )
            rows = sum(count for _, count in cohort)
            variance = search.law(families).nominal_variance * search.noise_shares(len(cohort))
            for family, table in zip(families, tables, strict=True):
                before = statistics.get(family, PartialTable(np.zeros_like(table), 0, Fraction(0)))
                statistics[family] = PartialTable(
                    before.table + table, before.rows + rows, before.variance + variance
                )
        network = search.updated(frontier, statistics)
    return network, statistics


def update_by_replacement(
    search: Search, network: Structure, parties: Sequence[Party]
) -> Script[tuple[Structure, Statistics]]:
    """Make one release per party by noise replacement: the paper's noise at its true cost.

    Return the network, and the tables of the last release with the rows that they cover.
    """
    sizes = search.variables.sizes
    coverages, running = Coverages(), Running()
    current: dict[Attributes, PartialTable] = {}
    turns: list[str] = []
    for name, rows in parties:
        turns.append(name)
        frontier = search.frontier(network)
        families = families_of(frontier)
        if families:
            turn = coverages.open_turn(
                party=name,
                rows=rows,
                marginals={family: prod(sizes[a] for a in family) for family in families},
                law=search.law(families),
            )
            totals = []
            for number, group in enumerate(turn.groups, start=1):
                step = replacement_step(
                    name=f"{PHASE}, turn of {name}, sum {number} of {len(turn.groups)}",
                    phase=PHASE,
                    turn=turn,
                    group=group,
                    request=search.variables.request(group.marginals),
                    turns=tuple(turns),
                )
                totals.append((yield from replaced(step)))
            running.apply(turn, totals)
            coverages = turn.coverages
        current = {
            family: PartialTable(
                running[family].reshape([sizes[a] for a in family]),
                coverages.by_marginal[family].rows,
                search.law(families).nominal_variance,
            )
            for family in families
        }
        network = search.updated(frontier, current)
    return network, current
