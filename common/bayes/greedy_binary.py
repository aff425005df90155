"""GreedyBayes on binary attributes: one global degree [Zhang17, Alg. 2].

Each round adds one attribute with exactly min(k, attributes available) parents, chosen among all
pairs of a new attribute and such a parent set. The first k+1 attributes thus form one clique, whose
single table yields the conditionals of all of them.

Only pairs with the newest attribute among their parents are new in a round. A set of k+1 attributes
is met exactly once, when all but one of its members have been placed, so no table is counted twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from common.bayes.constraints import Constraints
from common.bayes.domain import View
from common.bayes.network import Network, Pair
from common.bayes.scores import Score, mutual_information_error, scores
from common.bayes.selection import Scores, Select, score_sensitivity
from common.errors import LocalError

PositionSets = NDArray[np.intp]  # (sets, attributes per set)
CountSets = Callable[[PositionSets], NDArray[np.int64]]  # -> (sets, cells), first attribute major


@dataclass(frozen=True, slots=True)
class _Candidates:
    """The parent sets that one child may still get, with their scores."""

    parents: PositionSets
    scores: Scores


def learn_binary_network(
    count: CountSets,
    *,
    attributes: int,
    rows: int,
    degree: int,
    score: Score,
    root: int,
    select: Select,
    constraints: Constraints | None = None,
    printed_sensitivity: bool = False,
) -> Network:
    """Grow a network from `root`, one draw of `select` per further attribute.

    Args:
        count: the tables of many sets of binary attributes, all sets of the same length.
        attributes: their number, d.
        rows: the public number of rows, n.
        degree: the number of parents, k, in 1..d-1.
        score: what to compare parent sets by.
        root: the attribute to start from.
        select: makes the d-1 draws.
        constraints: the user's wishes; children may then have fewer parents than k.
        printed_sensitivity: the paper's looser bound for score R.
    """
    if not 1 <= degree < attributes:
        raise LocalError(f"a network of {attributes} attributes cannot have degree {degree}")
    wishes = constraints or Constraints()
    error = Fraction(0)
    if score is Score.MUTUAL_INFORMATION:
        error = Fraction(mutual_information_error(rows=rows, cells=2 ** (degree + 1)))
    bound = score_sensitivity(score, rows=rows, binary=True, printed=printed_sensitivity)
    pairs = [Pair(root)]
    placed = [root]
    known: dict[int, _Candidates] = {}
    while len(placed) < attributes:
        _update(known, placed, count, score, degree, wishes, attributes)
        omega = _offered(known, score)
        joined: Scores = np.concatenate([known[child].scores for child in omega])
        chosen = select(joined, sensitivity=bound, score_error=error)
        for child in omega:
            if chosen < len(known[child].parents):
                break
            chosen -= len(known[child].parents)
        parents = sorted(int(p) for p in known.pop(child).parents[chosen])
        pairs.append(Pair(child, tuple(View(p) for p in parents)))
        placed.append(child)
    return Network(tuple(pairs))


def _offered(known: dict[int, _Candidates], score: Score) -> list[int]:
    """The children offered in this round, ascending.

    An empty parent set has the LARGEST score F there is, so an attribute that forbidden edges leave
    without parents would always win: with F it waits until no other is left.
    """
    children = sorted(known)
    if score is Score.MAXIMUM_JOINT:
        children = [c for c in children if known[c].parents.shape[1]] or children
    return children


def _update(
    known: dict[int, _Candidates],
    placed: list[int],
    count: CountSets,
    score: Score,
    degree: int,
    wishes: Constraints,
    attributes: int,
) -> None:
    """Score the parent sets that the attribute placed last makes possible."""
    fresh: dict[int, PositionSets] = {}
    combined: dict[tuple[tuple[int, ...], int | None], PositionSets] = {}
    for child in set(range(attributes)) - set(placed):
        pool = wishes.pool(child, placed)
        newest = placed[-1]
        if pool is None or (child in known and newest not in pool):
            continue
        required = wishes.required_parents(child)
        size = max(min(degree, len(pool)), len(required))
        grown = child in known and known[child].parents.shape[1] == size
        if grown and len(required) == size:
            continue
        must = [*required, newest] if grown else required
        free = tuple(p for p in pool if p not in must)
        key = (free, tuple(must), size)
        if key not in combined:
            combined[key] = _supersets(must, free, size)
        fresh[child] = combined[key]
        if not grown:
            known.pop(child, None)
    for child, sets, values in _score_all(fresh, count, score):
        if child in known:
            sets = np.concatenate([known[child].parents, sets])
            values = np.concatenate([known[child].scores, values])
        known[child] = _Candidates(sets, values)


def _supersets(must: list[int], free: tuple[int, ...], size: int) -> PositionSets:
    """All sets of `size` attributes that contain `must`, the rest from `free`."""
    rest = list(combinations(free, size - len(must)))
    chosen = np.array(rest, dtype=np.intp).reshape(len(rest), size - len(must))
    return np.hstack([np.tile(np.array(must, dtype=np.intp), (len(rest), 1)), chosen])


def _score_all(
    fresh: dict[int, PositionSets], count: CountSets, score: Score
) -> list[tuple[int, PositionSets, Scores]]:
    """The scores of new parent sets; sets of the same length are counted together."""
    result: list[tuple[int, PositionSets, Scores]] = []
    for width in sorted({sets.shape[1] for sets in fresh.values()}):
        children = [child for child, sets in fresh.items() if sets.shape[1] == width]
        families = np.vstack(
            [np.insert(fresh[child], 0, child, axis=1) for child in children]
        )
        values = scores(score, count(families).reshape(len(families), 2, 2**width))
        ends = np.cumsum([len(fresh[child]) for child in children])
        parts = np.split(values, ends[:-1])
        result += [(c, fresh[c], part) for c, part in zip(children, parts, strict=True)]
    return result
