"""How large the table of an attribute and its parents may be, and which parents that leaves.

Everything here is computed from public values: domains, row counts, budgets.

On binary data the degree decides: k is the largest at which d-k tables of 2^(k+1) cells are
6-useful, k' the same for the d-1 tables of the search frontier and theta = 2 [Su16, VI]. On other
domains the cells decide: an attribute may have any parents with which its table is useful, however
many or few those are. A parent set is offered if it is maximal: no further parent would fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod

from common.bayes.domain import Domain
from common.bayes.privbayes.parent_sets import (
    Constraints,
    affordable_cells,
    affordable_degree,
    candidates,
    cell_limit,
    choose_degree,
)
from common.methods.dp_subn.settings import Settings
from common.study.requests import Attributes

_MOST_PARENT_SETS = 1 << 14
_DEFAULT = Settings()


@dataclass(frozen=True, slots=True)
class FamilyLimit:
    """The most parents of an attribute, and the most cells of their table together.

    Attributes:
        parents: their number.
        cells: of the attribute and its parents.
        useful: what usefulness allows, no cap applied: parents of bits, or cells.
    """

    parents: int
    cells: int
    useful: int = field(default=0, compare=False)

    def fits(self, sizes: Sequence[int], child: int, parents: Sequence[int]) -> bool:
        """Whether an attribute may have these parents; no parents always fit."""
        if not parents:
            return True
        cells = prod((sizes[child], *(sizes[parent] for parent in parents)))
        return len(parents) <= self.parents and cells <= self.cells

    def maximal(
        self, sizes: Sequence[int], child: int, parents: Sequence[int], pool: Iterable[int]
    ) -> bool:
        """Whether these parents fit, and no other of the pool would fit beside them."""
        return self.fits(sizes, child, parents) and not any(
            self.fits(sizes, child, [*parents, other]) for other in pool if other not in parents
        )


def network_limit(
    sizes: Sequence[int], rows: int, epsilon: Fraction, settings: Settings = _DEFAULT
) -> FamilyLimit:
    """The limit of the network whose d tables (d-k on binary data) are published at `epsilon`."""
    width, theta = len(sizes), settings.theta_tables
    if not is_binary(sizes):
        useful = cell_limit(rows=rows, attributes=width, epsilon=epsilon, theta=theta)
        return _by_cells(sizes, useful, settings)
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
    settings: Settings = _DEFAULT,
) -> FamilyLimit:
    """The limit of the search frontier's d-1 tables, never below that of the network it extends."""
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
    """Every attribute not yet placed, first, with each of its maximal parent sets, ascending."""
    most = Constraints(max_parents=limit.parents)
    pairs = candidates(Domain.flat(sizes), placed, limit.cells, most)
    return [tuple(view.attribute for view in pair.family) for pair in pairs]


def is_binary(sizes: Sequence[int]) -> bool:
    return all(size <= 2 for size in sizes)


def _by_cells(sizes: Sequence[int], useful: int, settings: Settings) -> FamilyLimit:
    cells = affordable_cells(
        Domain.flat(sizes), min(useful, settings.most_cells), Constraints(), _MOST_PARENT_SETS
    )
    ascending = sorted(sizes)
    most, degree = min(settings.most_parents, len(sizes) - 1), 0
    while degree < most and prod(ascending[: degree + 2]) <= cells:
        degree += 1
    return FamilyLimit(degree, cells, useful)
