"""Which pairs of attributes depend so strongly that they are counted together in full detail.

The views that were summed for the correlations hold every pair, so the choice costs nothing, and
sums over all parties do not care how the rows are split among them. A pair's table in groups is
compared with the product of the published margins; the expected square of its noise is taken off.

Decisions are made in exact rational arithmetic: every party comes to the same pairs.

[Laurent00] Laurent, Massart: Adaptive estimation of a quadratic functional by model selection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import prod

import numpy as np

from common.methods.subn_plus.grouping import without_noise_floor
from common.study.requests import Attributes, Counts

Groups = tuple[int, ...]  # the group of each value of an attribute
Pair = tuple[int, int]

DEVIATIONS = 3  # of the noise, that a pair must stand out by
LEAST_DISTANCE = Fraction(3, 10)  # from independence, as a total variation distance
_NOT_BY_CHANCE = Fraction(5, 2)  # see Departure.clear
_TOGETHER = 4  # see `depends`


@dataclass(frozen=True, slots=True)
class Departure:
    """How far a noisy table of a pair is from independence.

    Attributes:
        squares: the sum of squared deviations, less what noise alone would show.
        variance: of the noise in one cell.
        shape: of the table.
    """

    squares: Fraction
    variance: Fraction
    shape: tuple[int, int]

    @property
    def strength(self) -> Fraction:
        """Cells times squares: the square of the L1 norm if all cells deviate alike."""
        return prod(self.shape) * self.squares

    @property
    def clear(self) -> bool:
        """Whether noise alone would hardly show as much.

        The sum of f squares of normal noise of variance 1 exceeds f + 2 sqrt(f x) + 2 x with a
        probability of at most exp(-x) [Laurent00, Lemma 1]. The bound is generous: for x = 5/2 it
        is three deviations, whatever f.
        """
        return self.clear_among(1)

    def clear_among(self, pairs: int, sampled: int = 0) -> bool:
        """Whether chance alone would hardly show as much in any of so many pairs.

        The chance of each is divided by their number: ln(pairs) is added to x, or a little more.

        Args:
            pairs: how many.
            sampled: rows that are a sample of independent attributes (times the square of a row's
                unit) have squares of that times (1 - 1/q) (1 - 1/r) in q by r cells, or less.
        """
        chance = _NOT_BY_CHANCE + Fraction(7, 10) * (pairs - 1).bit_length()
        above = self.above(sampled) - 2 * chance
        return above > 0 and above**2 > 4 * self.freedom * chance

    @property
    def freedom(self) -> int:
        """How many numbers a table of known margins has."""
        return (self.shape[0] - 1) * (self.shape[1] - 1)

    def above(self, sampled: int) -> Fraction:
        """The squares that chance does not explain, in units of its variance."""
        by_sampling = Fraction(sampled, prod(self.shape))
        return (self.squares - self.freedom * by_sampling) / (self.variance + by_sampling)

    def stands_out(self, rows: int) -> bool:
        """Whether it is large, and more than noise.

        The sum of f squares of noise, of variance v each, and of a signal of square s varies by
        v^2 (2 f + 4 s / v) around its mean (as if the noise were normal).
        """
        signal = self.squares / self.variance
        return (
            signal > 0
            and signal**2 > DEVIATIONS**2 * (2 * self.freedom + 4 * signal)
            and self.strength > (2 * LEAST_DISTANCE * rows) ** 2
        )


def depends(found: Mapping[Pair, Departure], sampled: int) -> bool:
    """Whether some pair depends, or many do a little; chance alone seldom says so of any table.

    All pairs' squares together have as many degrees of freedom f as their tables, and vary by
    2 f to 5 f around f if there is nothing but noise (normal or Laplace, and rows that are a
    sample): four times the square root of f is about two deviations, or three.

    Args:
        found: how far every pair is from independence.
        sampled: as in `Departure.clear_among`.
    """
    if any(own.clear_among(len(found) ** 2, sampled) for own in found.values()):
        return True
    freedom = sum(own.freedom for own in found.values())
    total = sum((own.above(sampled) for own in found.values()), Fraction(0))
    return total > 0 and total**2 > _TOGETHER**2 * freedom


def group_weights(histogram: Counts, groups: Groups, rows: int) -> tuple[int, ...]:
    """A noisy margin as non-negative weights of groups; equal ones if nothing is left of it."""
    left = without_noise_floor(histogram, rows)
    weights = np.zeros(max(groups) + 1, dtype=np.int64)
    np.add.at(weights, np.array(groups, dtype=np.intp), left)
    return tuple(weights.tolist()) if weights.any() else (1,) * len(weights)


def departure(
    table: Counts, first: Sequence[int], second: Sequence[int], variance: Fraction, rows: int
) -> Departure:
    """What a pair's table shows beside its margins.

    Args:
        table: noisy counts, in groups.
        first: weights of the first attribute's groups.
        second: weights of the second's.
        variance: of the noise in one cell.
        rows: how many rows are counted.
    """
    high, wide = table.shape
    unit = sum(first) * sum(second)
    counts: list[list[int]] = table.tolist()  # Python's integers: products pass 64 bits
    off = [
        [counts[i][j] * unit - rows * one * other for j, other in enumerate(second)]
        for i, one in enumerate(first)
    ]
    by_row, by_column = (
        [sum(row) for row in off],
        [sum(column) for column in zip(*off, strict=True)],
    )
    total = sum(by_row)
    # Rows and columns are centred: what the margins got wrong is not dependence.
    squares = sum(
        (high * wide * off[i][j] - high * by_row[i] - wide * by_column[j] + total) ** 2
        for i in range(high)
        for j in range(wide)
    )
    noise = (high - 1) * (wide - 1) * variance
    return Departure(Fraction(squares, (unit * high * wide) ** 2) - noise, variance, (high, wide))


def departures(
    views: Sequence[Attributes],
    tables: Sequence[Counts],
    weights: Sequence[Sequence[int]],
    variances: Sequence[Fraction],
    rows: int,
) -> dict[Pair, Departure]:
    """Every pair that some view holds; the first one counts.

    Args:
        views: the attributes of each table.
        tables: noisy counts, in groups.
        weights: of every attribute's groups, from its margin.
        variances: of the noise in one cell of each table.
        rows: how many rows are counted.
    """
    found: dict[Pair, Departure] = {}
    for view, table, variance in zip(views, tables, variances, strict=True):
        for (i, first), (j, second) in combinations(enumerate(view), 2):
            a, b = sorted((first, second))
            if (a, b) not in found:
                others = tuple(axis for axis in range(table.ndim) if axis not in (i, j))
                pair = table.sum(axis=others) if first < second else table.sum(axis=others).T
                summed = table.size // pair.size
                found[a, b] = departure(pair, weights[a], weights[b], variance * summed, rows)
    return found


def strong_pairs(
    found: Mapping[Pair, Departure], sizes: Sequence[int], *, rows: int, cells: int, most: int
) -> tuple[Pair, ...]:
    """Disjoint pairs, the strongest first, that stand out and whose tables the budget bears.

    A table's noise grows with its cells and with the number of tables.

    Args:
        found: how far every pair is from independence.
        sizes: the domain size of every attribute.
        rows: how many rows are counted.
        cells: of the largest table, times the number of tables: the most.
        most: cells of one table.
    """
    chosen: list[Pair] = []
    largest = 0
    for pair in sorted(found, key=lambda pair: (-found[pair].strength, pair)):
        taken = {attribute for other in chosen for attribute in other}
        size = prod(sizes[a] for a in pair)
        if (
            found[pair].stands_out(rows)
            and min(sizes[a] for a in pair) > 2  # else one class says it all
            and taken.isdisjoint(pair)
            and size <= most
            and max(largest, size) * (len(chosen) + 1) <= cells
        ):
            chosen.append(pair)
            largest = max(largest, size)
    return tuple(chosen)
