"""How well a set of parents predicts a child: the scores I, F and R of PrivBayes, many at once.

Tables are integer counts of shape (tables, |X|, |P|): rows of a table are the child's values,
columns the parents' joint values. Scores come in *count units* scaled to whole numbers, so that the
exponential mechanism compares exact integers:

* R as n^2 R and F as 2 n F are exact integers,
* I as n I, in bits, is a float with the error bound `mutual_information_error`.

True scores are secrets: they may reach the exponential mechanism and nothing else.

[Zhang14] Zhang, Cormode, Procopiuc, Srivastava, Xiao: PrivBayes, SIGMOD 2014.
[Zhang17] the same, ACM TODS 42(4), 2017.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from common.errors import LocalError
from common.marginals.threads import run_in_threads, worker_count
from common.privacy import sensitivity
from common.schema.compilation import compiled

Scores = NDArray[np.int64] | NDArray[np.float64]
CountTables = NDArray[np.int64]  # (tables, |X|, |P|)
_MAX_ROWS = 2**31 - 1  # n^2 must fit into 63 bits
_TABLES_PER_TASK = 128


class Score(StrEnum):
    """The three score functions."""

    MUTUAL_INFORMATION = "I"
    MAXIMUM_JOINT = "F"
    INDEPENDENCE = "R"


def scores(score: Score, tables: CountTables) -> Scores:
    """Return the score of every table, in the units of this module (n I, 2 n F or n^2 R)."""
    if tables.ndim != 3:
        raise LocalError(f"expected tables of shape (tables, |X|, |P|), got {tables.shape}")
    if len(tables) and int(tables[0].sum()) > _MAX_ROWS:
        raise LocalError(f"scores are exact up to {_MAX_ROWS:,} rows; this table has more")
    match score:
        case Score.MUTUAL_INFORMATION:
            return mutual_information(tables)
        case Score.MAXIMUM_JOINT:
            return doubled_maximum_joint_scores(tables)
        case Score.INDEPENDENCE:
            return independence_distance(tables)


def scored_by_shape(
    tables: Sequence[NDArray[np.int64]], score: Callable[[CountTables], Scores]
) -> list[int | float]:
    """Return the score of every table, child first; those of one shape are scored together."""
    places: dict[tuple[int, int], list[int]] = {}
    for place, table in enumerate(tables):
        places.setdefault((len(table), table.size // len(table)), []).append(place)
    scores: list[int | float] = [0] * len(tables)
    for shape, positions in places.items():
        values = score(np.stack([tables[place].reshape(shape) for place in positions]))
        for place, value in zip(positions, values.tolist(), strict=True):
            scores[place] = value
    return scores


def mutual_information(tables: CountTables) -> NDArray[np.float64]:
    """Return n I(X, P), mutual information in bits times the number of rows [Zhang17, Eq. 5].

    n I = sum c log c - sum c_x log c_x - sum c_p log c_p + n log n, with 0 log 0 = 0.

    Each c log c is looked up once per distinct count, so equal tables have equal scores.
    """
    if not len(tables):
        return np.zeros(0)
    rows = int(tables[0].sum())
    counts = np.arange(rows + 1, dtype=np.float64)
    entropy_term = counts * np.log2(np.maximum(counts, 1.0))
    cells = entropy_term[tables].sum(axis=(1, 2))
    children = entropy_term[tables.sum(axis=2)].sum(axis=1)
    parents = entropy_term[tables.sum(axis=1)].sum(axis=1)
    result: NDArray[np.float64] = cells - children - parents + entropy_term[rows]
    return result


def mutual_information_error(*, rows: int, cells: int) -> float:
    """Return a bound on |computed - true| of `mutual_information`, for tables of so many cells.

    With u = 2^-53: a term c log c is off by at most 9 u of itself (numpy's log2 by 8 u, the product
    by u). There are at most 2 cells + 2 terms, in four sums of at most n log n each, and adding
    m terms loses at most m u of the sum of their sizes. Together below (2 cells + 16) u times
    4 n log n; the bound is twice that.
    """
    magnitude = 4.0 * rows * np.log2(max(rows, 2))
    return float(2 * (2 * cells + 16) * 2.0**-53 * magnitude)


def independence_distance(tables: CountTables) -> NDArray[np.int64]:
    """Return the score n^2 R(X, P) = 1/2 sum |n c_xp - c_x c_p|, exactly [Zhang17, Eq. 11].

    The differences add up to zero, so their absolute values have an even sum.
    """
    rows = tables.sum(axis=(1, 2), keepdims=True)
    gaps = rows * tables - tables.sum(axis=2, keepdims=True) * tables.sum(axis=1, keepdims=True)
    halves: NDArray[np.int64] = np.abs(gaps).sum(axis=(1, 2)) // 2
    return halves


def doubled_maximum_joint_scores(tables: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return 2 n F(X, P) of many tables of shape (tables, 2, |P|), exactly; between -n and 0.

    F says how close a table is to one in which the parents determine a uniform binary child: it is
    -1/2 min ||Pr - Pr'||_1 over the *maximum joint distributions* Pr' [Zhang14, Sec. 4.3], uniform
    on the binary child X, with at most one value of X per parent value. Giving each column p of the
    count table to one row of X (Z0 to X=0, Z1 to X=1) leaves

        n F = max over partitions of  min(a, n/2) + min(b, n/2) - n,
        a = sum of c_0p over Z0,  b = sum of c_1p over Z1.

    The papers search all reachable (a, b). Here is a smaller search. Start from the *majority*
    partition, which gives every column to its larger count. If neither sum passes n/2, it is
    optimal. Otherwise exactly one does, say a = n/2 + excess (a + b <= n). Then

    * a column whose majority is X=1 stays in Z1 in some optimum: the counts c_0 of all columns with
      majority 0, c_1 of those moved, and c_1 of all columns with majority 1 are distinct cells,
      their sum is at most n, and the first sum alone passes n/2; so the others never pass it, and
      moving the column into Z1 raises b by c_1 > c_0 at a cost of at most c_0;
    * moving a column with majority 0 into Z1 gains c_1 and costs nothing as long as a stays at n/2
      or above: a knapsack with weights c_0, values c_1 and capacity `excess`;
    * the last column moved may overshoot: each unit of weight beyond the capacity costs one. Moving
      another one after that loses c_0 - c_1 >= 0.

    The knapsack has `excess` <= n/2 states, and only columns with both counts positive take part.
    """
    if tables.ndim != 3 or tables.shape[1] != 2:
        raise LocalError(f"score F needs a binary child; these tables have shape {tables.shape}")
    rows = tables.sum(axis=(1, 2))
    covered = 2 * tables.max(axis=1).sum(axis=1)
    for side in range(2):
        mine, other = tables[:, side], tables[:, 1 - side]
        majority = mine >= other  # a tie may stand on either side
        ahead = np.where(majority, mine, 0).sum(axis=1)
        over = 2 * ahead > rows
        gains = _doubled_gains(
            np.where(majority, mine, 0)[over].astype(np.int32),
            np.where(majority, other, 0)[over].astype(np.int32),
            (2 * ahead - rows)[over],
        )
        rest = np.where(majority, 0, other).sum(axis=1)
        covered[over] = (rows + 2 * rest)[over] + gains
    result: NDArray[np.int64] = covered - 2 * rows
    return result


def _doubled_gains(
    weights: NDArray[np.int32], values: NDArray[np.int32], excesses: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the gains of many tables' knapsacks, divided among the cores."""
    gains = np.zeros(len(excesses), dtype=np.int64)
    kernel = compiled(_fill_doubled_gains)

    def fill(start: int) -> None:
        part = slice(start, start + _TABLES_PER_TASK)
        kernel(weights[part], values[part], excesses[part], gains[part])

    starts = range(0, len(excesses), _TABLES_PER_TASK)
    run_in_threads(fill, starts, worker_count(None) if len(starts) > 1 else 1)
    return gains


def _fill_doubled_gains(
    weights: NDArray[np.int32],
    values: NDArray[np.int32],
    excesses: NDArray[np.int64],
    gains: NDArray[np.int64],
) -> None:
    """Fill in twice the best knapsack value less the overshoot; an excess is twice a capacity.

    The inner loops run over slices from zero because only then do they compile to vector code.
    """
    for table in range(len(excesses)):
        capacity = excesses[table] // 2
        best = np.zeros(capacity + 1, dtype=np.int32)  # largest value of weight at most w
        scratch = np.zeros(capacity + 1, dtype=np.int32)
        overshoot = np.int64(0)
        for weight, value in zip(weights[table], values[table]):  # noqa: B905 (numba knows no strict)
            if value == 0:
                continue
            first = max(capacity + 1 - weight, 0)  # from here on the item overshoots
            tail = best[first:]
            reach = np.int32(-2147483648)
            for w in range(len(tail)):
                reach = max(reach, np.int32(tail[w] - np.int32(w)))
            beyond = 2 * (np.int64(reach) - first + value - weight) + excesses[table]
            overshoot = max(overshoot, beyond)
            if weight <= capacity:
                scratch[:weight] = best[:weight]
                without, shorter, out = best[weight:], best[:first], scratch[weight:]
                for w in range(len(out)):
                    out[w] = max(without[w], np.int32(shorter[w] + value))
                best, scratch = scratch, best
        gains[table] = max(2 * np.int64(best[capacity]), overshoot)


class Select(Protocol):
    """Chooses one candidate by its score: privately in a release, by argmax in an experiment."""

    def __call__(self, scores: Scores, *, sensitivity: Fraction, score_error: Fraction) -> int:
        """Return the index of the candidate chosen.

        The scores are secret, and one replaced row moves each by at most the sensitivity.
        """


@dataclass(frozen=True, slots=True)
class Scoring:
    """A score, and how far it can move and be off, in the units of this module."""

    score: Score
    rows: int  # the public number of rows, n
    printed: bool = False  # use the looser bound on R that the paper prints

    def sensitivity(self, *, binary: bool) -> Fraction:
        """Return how far a replaced row moves the score.

        It is less if every candidate is binary: its child, or the joint domain of its parents, has
        two values.
        """
        match self.score:
            case Score.MUTUAL_INFORMATION:
                return sensitivity.mutual_information(self.rows, binary=binary)
            case Score.MAXIMUM_JOINT:
                return 2 * sensitivity.score_f(self.rows)
            case Score.INDEPENDENCE:
                bound = sensitivity.score_r(self.rows, binary=binary, printed=self.printed)
                return self.rows * bound

    def error(self, cells: int) -> Fraction:
        """Return how far a computed score of at most so many cells can be from the true one."""
        if self.score is not Score.MUTUAL_INFORMATION:
            return Fraction(0)
        return Fraction(mutual_information_error(rows=self.rows, cells=cells))
