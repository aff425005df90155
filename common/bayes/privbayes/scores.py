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

from common.bayes.privbayes.maximum_joint import doubled_maximum_joint_scores
from common.errors import LocalError
from common.privacy import sensitivity

Scores = NDArray[np.int64] | NDArray[np.float64]
CountTables = NDArray[np.int64]  # (tables, |X|, |P|)
_MAX_ROWS = 2**31 - 1  # n^2 must fit into 63 bits


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
    found: list[int | float] = [0] * len(tables)
    for shape, own in places.items():
        values = score(np.stack([tables[place].reshape(shape) for place in own]))
        for place, value in zip(own, values.tolist(), strict=True):
            found[place] = value
    return found


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


class Select(Protocol):
    """Chooses one candidate by its score: privately in a release, by argmax in an experiment."""

    def __call__(self, scores: Scores, *, sensitivity: Fraction, score_error: Fraction) -> int:
        """Return the index of the candidate chosen.

        The scores are secret, and one replaced row moves each by at most the sensitivity.
        """


@dataclass(frozen=True, slots=True)
class Scoring:
    """A score, and how far it can move and be off, in the units of this module.

    Attributes:
        rows: the public number of rows, n.
        printed: use the looser bound on R that the paper prints.
    """

    score: Score
    rows: int
    printed: bool = False

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
