"""Rows of a mixture, stratified.

Every class gets its expected number of rows and every value in it its expected share, up to
rounding; only the pairing of the columns within a class is left to chance. Margins then carry next
to no sampling error.

The same bytes of a source give the same rows in every version: the owners of a study draw the same
reference rows, and a reader who verifies the release draws them again. In order: a word for the
numbers of the classes and one per row for the order of the rows; then class by class, if it has
rows, and column by column, a word for the numbers of the values and one per row for their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.privacy.randomness import RandomSource

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]
Integers = NDArray[np.int64]

_MOST_CELLS = 1 << 20  # that are drawn together: memory is 24 bytes each


def stratified(
    weights: Floats, columns: Sequence[Floats], rows: int, source: RandomSource
) -> NDArray[np.uint16]:
    """Draw rows of a mixture, as an array (columns, rows).

    `weights` are those of the classes (m,), and a column has its law in each class (m, s).
    """
    drawn = np.empty((len(columns), rows), dtype=np.uint16)
    if rows == 0:
        return drawn
    classes = _Strata.of([weights[None, :]]).numbers(0, source.words(1), rows)
    # The classes' rows lie side by side; who comes first must not tell the class.
    place = order(source.words(rows)[None, :])[0]
    together, alone = [_Strata.of(columns)], [_Strata.of([column]) for column in columns]
    start = 0
    for component, count in enumerate(classes.tolist()):
        stop, first = start + count, 0
        for strata in together if count * len(columns) <= _MOST_CELLS else alone:
            width = len(strata.last)
            drawn[first : first + width, start:stop] = strata.draw(component, count, source)
            first += width
        start = stop
    for column in drawn:
        column[place] = column.copy()
    return drawn


@dataclass(frozen=True, slots=True)
class _Strata:
    """The distribution functions of all columns, side by side.

    Attributes:
        values: the values of each column.
        column: the column that each value is of.
        last: the place of each column's last value.
        edges: per class, the distribution function at each value.
    """

    values: NDArray[np.uint16]
    column: Integers
    last: Integers
    edges: Floats

    @classmethod
    def of(cls, columns: Sequence[Floats]) -> _Strata:
        sizes = [column.shape[1] for column in columns]
        return cls(
            np.concatenate([np.arange(size, dtype=np.uint16) for size in sizes]),
            np.repeat(np.arange(len(sizes)), sizes),
            np.cumsum(sizes) - 1,
            np.concatenate([np.cumsum(column, axis=1) for column in columns], axis=1),
        )

    def draw(self, component: int, rows: int, source: RandomSource) -> NDArray[np.uint16]:
        """Draw the rows of a class, as an array (columns, rows)."""
        width = len(self.last)
        if rows == 0:
            return np.empty((width, 0), dtype=np.uint16)
        words = source.words(width * (1 + rows)).reshape(width, 1 + rows)
        numbers = self.numbers(component, words[:, 0], rows)
        values = np.repeat(self.values, numbers).reshape(width, rows)
        return np.take_along_axis(values, order(words[:, 1:]), axis=1)

    def numbers(self, component: int, words: Words, rows: int) -> Integers:
        """Return how many of the rows have each value: about its weight times rows, unbiased.

        One uniform u for each column. Row i has the first value whose edge is above the point
        (i + u) / rows. Instead of all points, the first point at or above each edge is looked for.
        """
        edges = self.edges[component]
        totals = edges[self.last][self.column]
        uniform = ((words >> np.uint64(11)).astype(np.float64) * 2.0**-53)[self.column]

        def points(place: Integers) -> Floats:
            return np.asarray((place + uniform) / rows * totals)

        proportion = np.divide(edges, totals, out=np.zeros_like(edges), where=totals > 0)
        first = np.clip(np.ceil(proportion * rows - uniform), 0, rows).astype(np.int64)
        while (late := (first > 0) & (points(first - 1) >= edges)).any():
            first -= late
        while (early := (first < rows) & (points(first) < edges)).any():
            first += early
        first[self.last] = rows
        before = np.concatenate([[0], first[:-1]])
        before[self.last[:-1] + 1] = 0
        return np.asarray(first - before)


def order(words: Words) -> NDArray[np.uint64]:
    """Return the places of each row's words in ascending order, as `np.argsort` would.

    Sorting is faster than to sort places, so the last bits of each word give way to its place. If
    two words then differ by so little that their order may be lost, places are sorted after all.
    """
    number = words.shape[1]
    unit = np.uint64(1 << (number - 1).bit_length())
    keys = words & ~(unit - np.uint64(1))
    keys |= np.arange(number, dtype=np.uint64)
    keys.sort(axis=1)
    close = (np.diff(keys, axis=1) < unit).any(axis=1)
    keys &= unit - np.uint64(1)
    keys[close] = np.argsort(words[close], axis=1)
    return keys
