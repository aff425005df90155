"""GreedyBayes on attributes of any size: maximal parent sets per child [Zhang17, Alg. 4].

Each round offers every attribute not yet placed with each of its maximal parent sets: the sets, of
possibly generalised parents, that fill a table up to the useful size. An attribute so large that
not even its own histogram is useful is offered without parents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from math import prod

import numpy as np
from numpy.typing import NDArray

from common.bayes.domain import Domain, View
from common.bayes.network import Network, Pair
from common.bayes.privbayes.constraints import Constraints
from common.bayes.privbayes.parent_sets import (
    ParentSet,
    TooManyParentSetsError,
    maximal_parent_sets,
)
from common.bayes.privbayes.scores import (
    Score,
    mutual_information_error,
    scored_by_shape,
    scores,
)
from common.bayes.privbayes.selection import Select, score_sensitivity
from common.errors import LocalError

CountFamilies = Callable[[Sequence[tuple[View, ...]]], list[NDArray[np.int64]]]


def learn_general_network(
    count: CountFamilies,
    *,
    domain: Domain,
    rows: int,
    cells: int,
    score: Score,
    root: int,
    select: Select,
    constraints: Constraints | None = None,
    printed_sensitivity: bool = False,
) -> Network:
    """Grow a network from `root`, one draw of `select` per further attribute.

    Args:
        count: the tables of many families, child first.
        domain: the public domains; without levels this is the vanilla encoding.
        rows: the public number of rows, n.
        cells: the most cells a useful table may have.
        score: R or I; F is feasible for binary children only.
        root: the attribute to start from.
        select: makes the d-1 draws.
        constraints: the user's wishes.
        printed_sensitivity: the paper's looser bound for score R.
    """
    if score is Score.MAXIMUM_JOINT:
        raise LocalError("score F is for binary attributes; use R or I, or a binary encoding")
    wishes = constraints or Constraints()
    pairs = [Pair(root)]
    known: dict[Pair, int | float] = {}
    while len(pairs) < domain.width:
        omega = candidates(domain, [pair.child for pair in pairs], cells, wishes)
        fresh = [pair for pair in omega if pair not in known]
        tables = count([pair.family for pair in fresh])
        known.update(zip(fresh, scored_by_shape(tables, partial(scores, score)), strict=True))
        binary = all(_is_binary(pair, domain) for pair in omega)
        chosen = select(
            np.array([known[pair] for pair in omega]),
            sensitivity=score_sensitivity(
                score, rows=rows, binary=binary, printed=printed_sensitivity
            ),
            score_error=_score_error(omega, domain, score, rows),
        )
        pairs.append(omega[chosen])
    return Network(tuple(pairs))


def candidates(
    domain: Domain, placed: Sequence[int], cells: int, constraints: Constraints
) -> list[Pair]:
    """Omega: every possible child with each of its maximal parent sets; depends on no row."""
    memo: dict[tuple[tuple[int, ...], int], list[ParentSet]] = {}
    omega: list[Pair] = []
    for child in sorted(set(range(domain.width)) - set(placed)):
        pool = constraints.pool(child, placed)
        if pool is None:
            continue
        key = (tuple(pool), cells // domain.sizes[child])
        if key not in memo:
            memo[key] = maximal_parent_sets(
                domain, pool, key[1], max_parents=constraints.max_parents
            )
        least = least_parents(domain, child, constraints)
        omega += [Pair(child, parents) for parents in _fitting(memo[key], least)]
    return omega


def affordable_cells(domain: Domain, cells: int, constraints: Constraints, max_sets: int) -> int:
    """`cells`, halved until no attribute has more than `max_sets` maximal parent sets.

    A public rule for wide tables with fine hierarchies, whose candidates grow exponentially.
    """
    while cells > 1:
        try:
            for size in sorted(set(domain.sizes)):
                maximal_parent_sets(
                    domain,
                    range(domain.width),
                    cells // size,
                    max_parents=constraints.max_parents,
                    max_sets=max_sets,
                )
        except TooManyParentSetsError:
            cells //= 2
        else:
            return cells
    return cells


def has_choice(domain: Domain, cells: int, constraints: Constraints) -> bool:
    """Whether any attribute, given all others, could have more than its required parents."""
    everything = range(domain.width)
    return any(
        pair.parents != least_parents(domain, child, constraints)
        for child in everything
        for pair in candidates(domain, [a for a in everything if a != child], cells, constraints)
    )


def least_parents(domain: Domain, child: int, constraints: Constraints) -> ParentSet:
    """The required parents of an attribute and no others, at their coarsest."""
    required = constraints.required_parents(child)
    return tuple(View(parent, domain.height(parent) - 1) for parent in required)


def _fitting(sets: list[ParentSet], least: ParentSet) -> list[ParentSet]:
    """The sets that hold every required parent; if none does, the required parents alone.

    A set that is maximal among those with the required parents is maximal among all, so nothing is
    missed. A required parent outranks usefulness: the user asked for it.
    """
    wanted = {view.attribute for view in least}
    return [s for s in sets if wanted <= {view.attribute for view in s}] or [least]


def _is_binary(pair: Pair, domain: Domain) -> bool:
    """Whether the child or the joint domain of the parents has two values (or one)."""
    return domain.sizes[pair.child] <= 2 or prod(domain.shape(pair.parents)) <= 2


def _score_error(omega: list[Pair], domain: Domain, score: Score, rows: int) -> Fraction:
    if score is not Score.MUTUAL_INFORMATION:
        return Fraction(0)
    largest = max(prod(domain.shape(pair.family)) for pair in omega)
    return Fraction(mutual_information_error(rows=rows, cells=largest))
