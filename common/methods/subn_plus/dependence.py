"""Which pairs of attributes depend: tests, the strongest pairs, and forests of pairs.

The views that were summed for the correlations hold every pair, so the choice costs nothing, and
sums over all parties do not care how the rows are split among them. A pair's table in groups is
compared with the product of the published margins; the expected square of its noise is taken off.

The dependences of a table with many columns are many and local, and few classes cannot hold them. A
tree of pairs can [ChowLiu68]: every attribute given one other, and exact sums of its tables. The
agreement of halves shows every pair dimly. The pairs that are significant make a maximum spanning
forest, and what is left of them a second one: those at most 2 (d - 1) pairs are counted as tables,
whose noise is far less than that of the sum that named them. So a pair that noise has named costs
little: it is looked at again. The forest of the model is chosen from these tables, and no number
that named a pair enters its estimate.

Decisions are made in exact rational arithmetic: every party comes to the same pairs.

[ChowLiu68] Chow, Liu: Approximating discrete probability distributions with dependence trees.
[Laurent00] Laurent, Massart: Adaptive estimation of a quadratic functional by model selection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

from common.bayes.postprocessing import marginal_table
from common.methods.designs.nocd import Pair, pairs_of
from common.study.requests import Attributes, Counts

DEVIATIONS = 3  # of the noise, that a significant pair is above
LEAST_DISTANCE = Fraction(3, 10)  # from independence, as a total variation distance
_NOT_BY_CHANCE = Fraction(5, 2)  # see Departure.clear
_TOGETHER = 4  # see `depends`
_FORESTS = 2


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
        """Significance: noise alone would hardly show as much.

        The sum of f squares of normal noise of variance 1 exceeds f + 2 sqrt(f x) + 2 x with a
        probability of at most exp(-x) [Laurent00, Lemma 1]. The bound is generous: for x = 5/2 it
        is three deviations, whatever f.
        """
        return self.clear_among(1)

    def clear_among(self, pairs: int, *, sampled: int = 0) -> bool:
        """Return whether chance alone would hardly show as much in any of so many pairs.

        The chance of each is divided by their number: ln(pairs) is added to x, or a little more.
        `sampled` rows that are a sample of independent attributes (times the square of a row's
        unit) have squares of that times (1 - 1/q) (1 - 1/r) in q by r cells, or less.
        """
        chance = _NOT_BY_CHANCE + Fraction(7, 10) * (pairs - 1).bit_length()
        above = self.above(sampled) - 2 * chance
        return above > 0 and above**2 > 4 * self.freedom * chance

    @property
    def freedom(self) -> int:
        """The degrees of freedom of a table of known margins."""
        return (self.shape[0] - 1) * (self.shape[1] - 1)

    def above(self, sampled: int) -> Fraction:
        """Return the squares that chance does not explain, in units of its variance."""
        by_sampling = Fraction(sampled, prod(self.shape))
        return (self.squares - self.freedom * by_sampling) / (self.variance + by_sampling)

    def is_strong(self, rows: int) -> bool:
        """Return whether the departure is large, and significant.

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
    """Return whether some pair depends, or many do a little; chance alone seldom says so.

    All pairs' squares together have as many degrees of freedom f as their tables, and vary by
    2 f to 5 f around f if there is nothing but noise (normal or Laplace, and rows that are a
    sample): four times the square root of f is about two deviations, or three. `sampled` is that of
    `Departure.clear_among`.
    """
    if any(own.clear_among(len(found) ** 2, sampled=sampled) for own in found.values()):
        return True
    freedom = sum(own.freedom for own in found.values())
    total = sum((own.above(sampled) for own in found.values()), Fraction(0))
    return total > 0 and total**2 > _TOGETHER**2 * freedom


def departure(
    table: Counts, first: Sequence[int], second: Sequence[int], variance: Fraction, rows: int
) -> Departure:
    """Return what a pair's noisy table of groups shows beside its margins.

    The margins are weights of the first and the second attribute's groups; the variance is that of
    the noise in one cell.
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
    """Return the departure of every pair that some view holds; the first view counts.

    Tables are noisy counts of groups, with the weights of every attribute's groups by its margin,
    and the variance of the noise in one cell of each table.
    """
    found: dict[Pair, Departure] = {}
    for view, table, variance in zip(views, tables, variances, strict=True):
        for pair, axes in pairs_of(view):
            if pair not in found:
                own = marginal_table(table, axes)
                first, second = (weights[a] for a in pair)
                noise = variance * (table.size // own.size)
                found[pair] = departure(own, first, second, noise, rows)
    return found


def strong_pairs(
    found: Mapping[Pair, Departure], sizes: Sequence[int], *, rows: int, cells: int, most: int
) -> tuple[Pair, ...]:
    """Return disjoint strong pairs whose tables the budget bears, the strongest first.

    A table's noise grows with its cells and with the number of tables: their number times the cells
    of the largest is at most `cells`. No table has more than `most` cells.
    """
    chosen: list[Pair] = []
    largest = 0
    for pair in sorted(found, key=lambda pair: (-found[pair].strength, pair)):
        taken = {attribute for other in chosen for attribute in other}
        size = prod(sizes[a] for a in pair)
        if (
            found[pair].is_strong(rows)
            and min(sizes[a] for a in pair) > 2  # else one class says it all
            and taken.isdisjoint(pair)
            and size <= most
            and max(largest, size) * (len(chosen) + 1) <= cells
        ):
            chosen.append(pair)
            largest = max(largest, size)
    return tuple(chosen)


def spanning_forest(found: Mapping[Pair, Departure]) -> tuple[Pair, ...]:
    """Return the pairs of largest strength that close no circle, the strongest first."""
    tree_of: dict[int, set[int]] = {}
    chosen = []
    for pair in sorted(found, key=lambda pair: (-found[pair].strength, pair)):
        first, second = (tree_of.setdefault(a, {a}) for a in pair)
        if first is not second:
            first |= second
            tree_of.update(dict.fromkeys(second, first))
            chosen.append(pair)
    return tuple(chosen)


def candidates(found: Mapping[Pair, Departure]) -> tuple[Pair, ...]:
    """Return the pairs that are worth a table: of the significant ones, two forests."""
    left = {pair: own for pair, own in found.items() if own.clear}
    chosen: list[Pair] = []
    for _ in range(_FORESTS):
        forest = spanning_forest(left)
        chosen += forest
        left = {pair: own for pair, own in left.items() if pair not in set(forest)}
    return tuple(chosen)
