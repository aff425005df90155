"""GreedyBayes on attributes of any size: maximal parent sets per child [Zhang17, Alg. 4].

Each round offers every attribute not yet placed with each of its maximal parent sets: the sets, of
possibly generalised parents, that fill a table up to the useful size. An attribute so large that
not even its own histogram is useful is offered without parents.

A parent set is *maximal* when it fits the limit and no set that fits contains it with one more
attribute or with one attribute at a finer level [Zhang17, Alg. 5 and 6]. Scores never fall when
parents are added or refined, so nothing is lost by looking at maximal sets only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod

import numpy as np
from numpy.typing import NDArray

from common.bayes.domain import Domain, View
from common.bayes.network import Network, Pair
from common.bayes.privbayes.constraints import Constraints
from common.bayes.privbayes.scores import Score, Scoring, Select, scored_by_shape, scores
from common.errors import LocalError

ParentSet = tuple[View, ...]


class TooManyParentSetsError(LocalError):
    """The limit on the number of parent sets was passed; the caller shrinks the tables."""


def maximal_parent_sets(
    domain: Domain,
    attributes: Sequence[int],
    cells: int,
    *,
    max_parents: int | None = None,
    max_sets: int | None = None,
) -> list[ParentSet]:
    """All maximal parent sets among `attributes` with at most `cells` joint values.

    Without hierarchies (height 1) this is Algorithm 5, with them Algorithm 6. At least one cell is
    needed: with `cells` = 0 not even the empty set fits and there is no parent set at all.

    Sets of `max_parents` count as maximal.

    Raises:
        TooManyParentSetsError: there are more than `max_sets`.
    """
    order = sorted(attributes)
    memo: dict[tuple[int, int, int], list[ParentSet]] = {}
    ways = {attribute: _levels(domain, attribute) for attribute in order}

    def search(count: int, room: int, slots: int) -> list[ParentSet]:
        """Maximal sets among the first `count` attributes, in canonical order."""
        if room < 1:
            return []
        if count == 0 or slots == 0:
            return [()]
        slots = min(slots, count)
        key = (count, room, slots)
        if key in memo:
            return memo[key]
        found: list[ParentSet] = []
        extended: set[ParentSet] = set()
        for view, size in ways[order[count - 1]]:  # finest first: a finer level wins
            for rest in search(count - 1, room // size, slots - 1):
                if rest not in extended:
                    extended.add(rest)
                    found.append((*rest, view))
        found.extend(r for r in search(count - 1, room, slots) if r not in extended)
        if max_sets is not None and len(found) > max_sets:
            raise TooManyParentSetsError(f"more than {max_sets:,} parent sets fit {cells:,} cells")
        memo[key] = found
        return found

    return search(len(order), cells, len(order) if max_parents is None else max_parents)


def _levels(domain: Domain, attribute: int) -> list[tuple[View, int]]:
    """The views of an attribute with their sizes, finest first."""
    views = [View(attribute, level) for level in range(domain.height(attribute))]
    return [(view, domain.size(view)) for view in views]


CountFamilies = Callable[[Sequence[tuple[View, ...]]], list[NDArray[np.int64]]]


def learn_general_network(
    count: CountFamilies,
    scoring: Scoring,
    *,
    domain: Domain,
    cells: int,
    root: int,
    select: Select,
    constraints: Constraints | None = None,
) -> Network:
    """Grow a network from `root`, one draw of `select` per further attribute.

    `cells` is the most that a useful table may have. Without levels of the domain this is the
    vanilla encoding. The score is R or I: F is feasible for binary children only.
    """
    if scoring.score is Score.MAXIMUM_JOINT:
        raise LocalError("score F is for binary attributes; use R or I, or a binary encoding")
    wishes = constraints or Constraints()
    pairs = [Pair(root)]
    known: dict[Pair, int | float] = {}
    while len(pairs) < domain.width:
        omega = candidates(domain, [pair.child for pair in pairs], cells, wishes)
        fresh = [pair for pair in omega if pair not in known]
        tables = count([pair.family for pair in fresh])
        known.update(
            zip(fresh, scored_by_shape(tables, partial(scores, scoring.score)), strict=True)
        )
        chosen = select(
            np.array([known[pair] for pair in omega]),
            sensitivity=scoring.sensitivity(binary=all(_is_binary(pair, domain) for pair in omega)),
            score_error=scoring.error(max(prod(domain.shape(pair.family)) for pair in omega)),
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
