"""Rows of a mixture whose pairs of columns are as frequent as the model has them.

Rows that are drawn at random have a sampling error in every table of a pair, which is as large as
that of as many real rows, and noise besides all that privacy needs. Here pairs of rows of one class
exchange their values in one column where that brings the tables of pairs nearer to the model's.
Nothing that is stratified changes: every class keeps its rows, and every value its number in it. A
column that hangs on others moves with them (`trees`, `joined`).

Each sweep puts the rows of a class side by side in a new order. Column by column, an exchange is
worth what the squared errors of all its pairs' tables lose; of those that are worth something, the
best fraction is made, the largest one tried that still pays: many at once go too far. Errors are
integers, so that the rows do not depend on the order in which they are added up.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from common.privacy.randomness import RandomSource

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

SWEEPS = 6
MOST_ROWS = 60_000  # beyond, chance hardly moves a table
MOST_VALUES = 100  # of a column: the cells of larger ones are too rare to be right
_MOST_CELLS = 1 << 11  # of all columns
_MOST_STEPS = 1 << 25  # rows times pairs of columns: it takes its time
_ROW = 16  # parts of a row in which errors are counted
_FRACTIONS = 6  # that are tried: all, half, a quarter


def balanced(
    columns: Sequence[NDArray[np.integer]],
    classes: NDArray[np.integer],
    weights: Floats,
    laws: Sequence[Floats],
    units: Sequence[int],
    source: RandomSource,
) -> list[NDArray[np.integer]]:
    """Return the columns of stratified rows with values exchanged within classes.

    Args:
        columns: of every attribute, its value in each row.
        classes: of each row.
        weights: of the classes (m,).
        laws: of every attribute, its values' distribution in each class (m, s).
        units: attributes of one unit move together; those of different units are independent given
            the class.
        source: of the order of rows.
    """
    small = [a for a, law in enumerate(laws) if 1 < law.shape[1] <= MOST_VALUES]
    fixed = {unit for a, unit in enumerate(units) if a not in small}
    moved = [a for a in small if units[a] not in fixed]
    rows, cells = len(classes), sum(laws[a].shape[1] for a in moved)
    out = list(columns)
    if (
        len({units[a] for a in moved}) < 2
        or not 1 < rows <= MOST_ROWS
        or cells > _MOST_CELLS
        or rows * len(moved) ** 2 > _MOST_STEPS
    ):
        return out
    errors = _Errors([laws[a] for a in moved], weights, [units[a] for a in moved], rows)
    places = errors.places([columns[a] for a in moved])
    errors.count(places)
    for _ in range(SWEEPS):
        order = np.lexsort((source.words(rows), classes))
        first, second = order[:-1:2], order[1::2]
        alike = classes[first] == classes[second]
        first, second = first[alike], second[alike]
        one, other = places[:, first], places[:, second]
        for unit in dict.fromkeys(errors.units):
            errors.exchange(unit, one, other)
        places[:, first], places[:, second] = one, other
    for a, numbers, start in zip(moved, places, errors.starts, strict=False):
        out[a] = (numbers - start).astype(columns[a].dtype)
    return out


class _Errors:
    """By how much the tables of all pairs are below the model's, in parts of a row.

    A value of a column has a place, its code in one numbering of all columns' values: the errors
    are a symmetric matrix by places, 0 within units.
    """

    def __init__(
        self, laws: Sequence[Floats], weights: Floats, units: Sequence[int], rows: int
    ) -> None:
        self.units = list(units)
        self.starts: list[int] = [0, *np.cumsum([law.shape[1] for law in laws]).tolist()]
        together = np.concatenate(laws, axis=1)
        expected = (together * weights[:, None]).T @ together * (rows * _ROW / weights.sum())
        self._missing = np.rint(expected).astype(np.int64)
        self._unit_of = np.repeat(units, np.diff(self.starts))

    def places(self, columns: Sequence[NDArray[np.integer]]) -> Integers:
        """Return the place of each row's value, (columns, rows)."""
        shifted = zip(columns, self.starts, strict=False)
        return np.stack([column.astype(np.int64) + start for column, start in shifted])

    def count(self, places: Integers) -> None:
        """Take what the rows have off what the model expects."""
        width = len(self._missing)
        for column, (start, stop) in zip(places, pairwise(self.starts), strict=True):
            keys = (column - start) * width + places
            counts = np.bincount(keys.ravel(), minlength=(stop - start) * width)
            self._missing[start:stop] -= _ROW * counts.reshape(-1, width)
        self._missing[self._unit_of[:, None] == self._unit_of] = 0

    def exchange(self, unit: int, one: Integers, other: Integers) -> None:
        """Exchange a unit's values between rows (columns, pairs of rows) where that pays."""
        inside = [a for a, name in enumerate(self.units) if name == unit]
        rest = [a for a, name in enumerate(self.units) if name != unit]
        differ = np.flatnonzero((one[inside] != other[inside]).any(axis=0))
        mine, yours = one[:, differ], other[:, differ]
        gain = -2 * _ROW * len(inside) * (mine[rest] != yours[rest]).sum(axis=0)
        for a in inside:
            for b in rest:
                gain += self._gain(mine[a], yours[a], mine[b], yours[b])
        worth = np.flatnonzero(gain > 0)
        worth = worth[np.argsort(-gain[worth], kind="stable")]
        best, chosen, change = 0, worth[:0], list[Integers]()
        for halvings in range(_FRACTIONS):
            some = worth[: len(worth) >> halvings]
            moves = [self._moves(a, rest, mine[:, some], yours[:, some]) for a in inside]
            less = sum(
                int((new * (2 * self._missing[self._span(a)] - new)).sum())  # of squares
                for a, new in zip(inside, moves, strict=True)
            )
            if less > best:
                best, chosen, change = less, some, moves
            elif best:
                break
        for a, new in zip(inside, change, strict=False):
            self._missing[self._span(a)] -= new
            self._missing[:, self._span(a)] -= new.T
            one[a, differ[chosen]], other[a, differ[chosen]] = yours[a, chosen], mine[a, chosen]

    def _span(self, a: int) -> slice:
        return slice(self.starts[a], self.starts[a + 1])

    def _gain(self, mine: Integers, yours: Integers, here: Integers, there: Integers) -> Integers:
        """Return what the errors of one pair of columns lose, to first order."""
        flat, width = self._missing.ravel(), len(self._missing)
        mine, yours = mine * width, yours * width
        return np.asarray(
            flat.take(yours + here)
            + flat.take(mine + there)
            - flat.take(mine + here)
            - flat.take(yours + there)
        )

    def _moves(self, a: int, rest: Sequence[int], mine: Integers, yours: Integers) -> Integers:
        """Return by how much exchanges raise the counts of a column's pairs, in parts of a row."""
        width, span = len(self._missing), self._span(a)
        here, there = (mine[a] - span.start) * width, (yours[a] - span.start) * width
        cells = (span.stop - span.start) * width
        plus = np.bincount(np.append(there + mine[rest], here + yours[rest]), minlength=cells)
        minus = np.bincount(np.append(here + mine[rest], there + yours[rest]), minlength=cells)
        return np.asarray(_ROW * (plus - minus).reshape(-1, width))
