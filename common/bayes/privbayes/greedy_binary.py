"""GreedyBayes on binary attributes: one global degree [Zhang17, Alg. 2].

Each round adds one attribute with exactly min(k, attributes available) parents, chosen among all
pairs of a new attribute and such a parent set. The first k+1 attributes thus form one clique, whose
single table yields the conditionals of all of them.

Only pairs with the newest attribute among their parents are new in a round. A set of k+1 attributes
is met exactly once, when all but one of its members have been placed, so no table is counted twice.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from common.bayes.domain import View
from common.bayes.network import Network, Pair
from common.bayes.privbayes.constraints import Constraints
from common.bayes.privbayes.scores import Score, Scores, Scoring, Select, scores
from common.errors import LocalError

PositionSets = NDArray[np.intp]  # (sets, attributes per set)
CountSets = Callable[[PositionSets], NDArray[np.int64]]  # -> (sets, cells), first attribute major


def learn_binary_network(
    count: CountSets,
    scoring: Scoring,
    *,
    attributes: int,
    degree: int,
    root: int,
    select: Select,
    constraints: Constraints | None = None,
) -> Network:
    """Grow a network from `root`, one draw of `select` per further attribute.

    The degree is the number of parents, in 1..d-1; with constraints children may have fewer.
    """
    if not 1 <= degree < attributes:
        raise LocalError(f"a network of {attributes} attributes cannot have degree {degree}")
    error, bound = scoring.error(cells=2 ** (degree + 1)), scoring.sensitivity(binary=True)
    frontier = _Frontier(count, attributes, degree, scoring.score, constraints or Constraints())
    frontier.place(root)
    pairs = [Pair(root)]
    while len(pairs) < attributes:
        chosen = select(frontier.scores(), sensitivity=bound, score_error=error)
        pairs.append(frontier.pair(chosen))
        frontier.place(pairs[-1].child)
    return Network(tuple(pairs))


class _Frontier:
    """The candidates of the next draw: parent sets and their scores, child by child."""

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
        self._parents: dict[int, PositionSets] = {}
        self._scores: dict[int, Scores] = {}

    def scores(self) -> Scores:
        return np.concatenate([self._scores[child] for child in self._offered()])

    def pair(self, chosen: int) -> Pair:
        """The candidate at a position of `scores`."""
        for child in self._offered():
            if chosen < len(self._parents[child]):
                parents = sorted(int(parent) for parent in self._parents[child][chosen])
                return Pair(child, tuple(View(parent) for parent in parents))
            chosen -= len(self._parents[child])
        raise LocalError("the draw chose a candidate that is not there")

    def place(self, attribute: int) -> None:
        """Make an attribute a possible parent, and score the parent sets it opens."""
        self._placed.append(attribute)
        self._waiting.discard(attribute)
        self._parents.pop(attribute, None)
        self._scores.pop(attribute, None)
        fresh: dict[int, PositionSets] = {}
        for child in sorted(self._waiting):
            sets = self._new_sets(child, attribute)
            if sets is not None:
                fresh[child] = sets
        self._add(fresh)

    def _offered(self) -> list[int]:
        """The children of this round, ascending.

        An empty parent set has the LARGEST score F there is, so an attribute that forbidden edges
        leave without parents would always win: with F it waits until no other is left.
        """
        children = sorted(self._parents)
        if self._score is Score.MAXIMUM_JOINT:
            children = [c for c in children if self._parents[c].shape[1]] or children
        return children

    def _new_sets(self, child: int, newest: int) -> PositionSets | None:
        """The parent sets that `newest` opens for a child; forgets those it makes too small."""
        pool = self._constraints.pool(child, self._placed)
        known = self._parents.get(child)
        if pool is None or (known is not None and newest not in pool):
            return None
        must = self._constraints.required_parents(child)
        size = max(min(self._degree, len(pool)), len(must))
        if known is not None and known.shape[1] == size:
            if len(must) == size:
                return None
            must.append(newest)
        else:
            self._parents.pop(child, None)
            self._scores.pop(child, None)
        return _supersets(tuple(must), tuple(p for p in pool if p not in must), size)

    def _add(self, fresh: dict[int, PositionSets]) -> None:
        """Score new parent sets; sets of the same length are counted together."""
        for width in sorted({sets.shape[1] for sets in fresh.values()}):
            children = [child for child, sets in fresh.items() if sets.shape[1] == width]
            families = np.vstack([np.insert(fresh[c], 0, c, axis=1) for c in children])
            tables = self._count(families).reshape(len(families), 2, 2**width)
            values = scores(self._score, tables)
            start = 0
            for child in children:
                end = start + len(fresh[child])
                self._append(child, fresh[child], values[start:end])
                start = end

    def _append(self, child: int, sets: PositionSets, values: Scores) -> None:
        if child in self._parents:
            self._parents[child] = np.concatenate([self._parents[child], sets])
            self._scores[child] = np.concatenate([self._scores[child], values])
        else:
            self._parents[child], self._scores[child] = sets, values


@lru_cache(maxsize=4)  # in a round, most children have the same possible parents
def _supersets(must: tuple[int, ...], free: tuple[int, ...], size: int) -> PositionSets:
    """All sets of `size` attributes that contain `must`, the rest from `free`."""
    rest = list(combinations(free, size - len(must)))
    chosen = np.array(rest, dtype=np.intp).reshape(len(rest), size - len(must))
    return np.hstack([np.tile(np.array(must, dtype=np.intp), (len(rest), 1)), chosen])
