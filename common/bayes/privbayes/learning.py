"""GreedyBayes: a network grown from a root, one draw of a selection per further attribute.

On binary attributes there is one global degree [Zhang17, Alg. 2]. Each round adds one attribute
with exactly min(k, attributes available) parents, chosen among all pairs of a new attribute and a
parent set of that size. The first k+1 attributes thus form one clique, whose single table yields
the conditionals of all of them.

On attributes of any size each round offers every attribute not yet placed with each of its maximal
parent sets: the sets, of possibly generalised parents, that fill a table up to the useful size
[Zhang17, Alg. 4].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import combinations, pairwise
from math import prod

import numpy as np
from numpy.typing import NDArray

from common.bayes.domain import Domain, View
from common.bayes.network import Family, Network, Pair
from common.bayes.privbayes.parent_sets import UNCONSTRAINED, Constraints, candidates
from common.bayes.privbayes.scores import Score, Scores, Scoring, Select, scored_by_shape, scores
from common.errors import LocalError
from common.privacy.randomness import RandomSource, below

PositionSets = NDArray[np.intp]  # (sets, attributes per set)
CountSets = Callable[[PositionSets], NDArray[np.int64]]  # -> (sets, cells), first attribute major
CountFamilies = Callable[[Sequence[Family]], list[NDArray[np.int64]]]


def draw_root(constraints: Constraints, attributes: int, source: RandomSource) -> int:
    """Draw the first attribute, at no cost: uniformly among those without required parents."""
    roots = [a for a in range(attributes) if not constraints.required_parents(a)]
    if not roots:
        raise LocalError("no attribute can come first; check the constraints before learning")
    return roots[below(len(roots), source)]


def learn_binary_network(
    count: CountSets,
    scoring: Scoring,
    *,
    attributes: int,
    degree: int,
    root: int,
    select: Select,
    constraints: Constraints = UNCONSTRAINED,
) -> Network:
    """Grow a network of binary attributes.

    The degree is the number of parents, in 1..d-1; with constraints children may have fewer.
    """
    if not 1 <= degree < attributes:
        raise LocalError(f"a network of {attributes} attributes cannot have degree {degree}")
    error, bound = scoring.error(cells=2 ** (degree + 1)), scoring.sensitivity(binary=True)
    frontier = _Frontier(count, attributes, degree, scoring.score, constraints)
    frontier.place(root)
    pairs = [Pair(root)]
    while len(pairs) < attributes:
        chosen = select(frontier.scores(), sensitivity=bound, score_error=error)
        pairs.append(frontier.pair(chosen))
        frontier.place(pairs[-1].child)
    return Network(tuple(pairs))


class _Frontier:
    """The candidates of the next draw: parent sets and their scores, child by child.

    Only pairs with the newest attribute among their parents are new in a round. A set of k+1
    attributes is met exactly once, when all but one of its members have been placed, so no table is
    counted twice.
    """

    def __init__(
        self,
        count: CountSets,
        attributes: int,
        degree: int,
        score: Score,
        constraints: Constraints,
    ) -> None:
        self._count = count
        self._degree = degree
        self._score = score
        self._constraints = constraints
        self._waiting = set(range(attributes))
        self._placed: list[int] = []
        self._candidates: dict[int, tuple[PositionSets, Scores]] = {}

    def scores(self) -> Scores:
        return np.concatenate([self._candidates[child][1] for child in self._offered()])

    def pair(self, chosen: int) -> Pair:
        """Return the candidate at a position of `scores`."""
        for child in self._offered():
            sets, _ = self._candidates[child]
            if chosen < len(sets):
                return Pair(child, tuple(map(View, sorted(sets[chosen].tolist()))))
            chosen -= len(sets)
        raise LocalError("the draw chose a candidate that is not there")

    def place(self, attribute: int) -> None:
        """Make an attribute a possible parent, and score the parent sets it opens."""
        self._placed.append(attribute)
        self._waiting.discard(attribute)
        self._candidates.pop(attribute, None)
        opened = {child: self._new_sets(child, attribute) for child in sorted(self._waiting)}
        self._add({child: sets for child, sets in opened.items() if sets is not None})

    def _offered(self) -> list[int]:
        """Return the children of this round, ascending.

        An empty parent set has the LARGEST score F there is, so an attribute that forbidden edges
        leave without parents would always win: with F it waits until no other is left.
        """
        children = sorted(self._candidates)
        if self._score is Score.MAXIMUM_JOINT:
            children = [c for c in children if self._candidates[c][0].shape[1]] or children
        return children

    def _new_sets(self, child: int, newest: int) -> PositionSets | None:
        """Return the parent sets that `newest` opens for a child; forget those now too small."""
        pool = self._constraints.pool(child, self._placed)
        known = self._candidates.get(child)
        if pool is None or (known is not None and newest not in pool):
            return None
        must = self._constraints.required_parents(child)
        size = max(min(self._degree, len(pool)), len(must))
        if known is not None and known[0].shape[1] == size:
            if len(must) == size:
                return None
            must.append(newest)
        else:
            self._candidates.pop(child, None)
        return _supersets(tuple(must), tuple(p for p in pool if p not in must), size)

    def _add(self, fresh: dict[int, PositionSets]) -> None:
        """Score new parent sets; sets of the same length are counted together."""
        for width in sorted({sets.shape[1] for sets in fresh.values()}):
            children = [child for child, sets in fresh.items() if sets.shape[1] == width]
            families = np.vstack([np.insert(fresh[c], 0, c, axis=1) for c in children])
            values = scores(self._score, self._count(families).reshape(len(families), 2, 2**width))
            ends = np.cumsum([0, *(len(fresh[child]) for child in children)])
            for child, (start, end) in zip(children, pairwise(ends), strict=True):
                fresh_scores = values[start:end]
                if child in self._candidates:
                    before, known = self._candidates[child]
                    both: Scores = np.concatenate([known, fresh_scores])
                    self._candidates[child] = np.concatenate([before, fresh[child]]), both
                else:
                    self._candidates[child] = fresh[child], fresh_scores


@lru_cache(maxsize=4)  # in a round, most children have the same possible parents
def _supersets(must: tuple[int, ...], free: tuple[int, ...], size: int) -> PositionSets:
    """Return all sets of `size` attributes that contain `must`, the rest from `free`."""
    rest = list(combinations(free, size - len(must)))
    chosen = np.array(rest, dtype=np.intp).reshape(len(rest), size - len(must))
    return np.hstack([np.tile(np.array(must, dtype=np.intp), (len(rest), 1)), chosen])


def learn_general_network(
    count: CountFamilies,
    scoring: Scoring,
    *,
    domain: Domain,
    cells: int,
    root: int,
    select: Select,
    constraints: Constraints = UNCONSTRAINED,
) -> Network:
    """Grow a network of attributes of any size; `cells` is the most that a useful table may have.

    Without levels of the domain this is the vanilla encoding. The score is R or I: F is feasible
    for binary children only.
    """
    if scoring.score is Score.MAXIMUM_JOINT:
        raise LocalError("score F is for binary attributes; use R or I, or a binary encoding")
    pairs = [Pair(root)]
    known: dict[Pair, int | float] = {}
    while len(pairs) < domain.width:
        omega = candidates(domain, [pair.child for pair in pairs], cells, constraints)
        fresh = [pair for pair in omega if pair not in known]
        values = scored_by_shape(
            count([pair.family for pair in fresh]), partial(scores, scoring.score)
        )
        known.update(zip(fresh, values, strict=True))
        binary = all(
            domain.sizes[pair.child] <= 2 or prod(domain.shape(pair.parents)) <= 2 for pair in omega
        )
        chosen = select(
            np.array([known[pair] for pair in omega]),
            sensitivity=scoring.sensitivity(binary=binary),
            score_error=scoring.error(max(prod(domain.shape(pair.family)) for pair in omega)),
        )
        pairs.append(omega[chosen])
    return Network(tuple(pairs))
