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

[Breiman95] Breiman: Better subset regression using the nonnegative garrote.
[ChowLiu68] Chow, Liu: Approximating discrete probability distributions with dependence trees.
[Laurent00] Laurent, Massart: Adaptive estimation of a quadratic functional by model selection.
[Satterthwaite46] Satterthwaite: An approximate distribution of estimates of variance components.
[Wilson31] Wilson, Hilferty: The distribution of chi-square.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, product
from math import prod, sqrt

from common.bayes.postprocessing import marginal_table
from common.methods.designs.nocd import Pair, pairs_of
from common.privacy.noise_law import NoiseLaw
from common.study.requests import Attributes, Counts

LEAST_DISTANCE = 0.2  # from independence, as a total variation distance: of a pair in detail
LEAST_OF_CODES = 0.16  # of a code of many values and a column of few, if others are asked
LEAST_IN_TREE = 0.3  # of one that makes a tree of more than two: its other pairs follow from it
NOISE_LEFT = 0.35  # of the noise in a table in detail, by the fit
MOST_EDGES = 8
MOST_IN_TREE = 8
FEW_VALUES = 6
MOST_DETAIL_CELLS = 1 << 12
MEAN_ABSOLUTE = 0.8  # of normal noise, in deviations
_NOT_BY_CHANCE = Fraction(5, 2)  # see Departure.clear
_RARE = 7  # bits of chance, of one pair among all
_TOGETHER = 1.863  # deviations that normal noise is above once in 2^5 times: of all pairs together
_FORESTS = 2
_GARROTE = Fraction(5, 2)  # deviations below which a pair of a sieve is taken for noise


@dataclass(frozen=True, slots=True)
class Departure:
    """How far a noisy table of a pair is from independence.

    Attributes:
        squares: the sum of squared deviations, less what noise alone would show.
        variance: of the noise in one cell.
        shape: of the table.
        absolute: the sum of absolute deviations, with what noise shows.
        shared: the parts of the variance that are noise in the first and in the second attribute's
            own count, and so in all of its pairs.
    """

    squares: Fraction
    variance: Fraction
    shape: tuple[int, int]
    absolute: Fraction = Fraction(0)
    shared: tuple[Fraction, Fraction] = (Fraction(0), Fraction(0))

    def distance(self, rows: int) -> float:
        """Return the total variation distance from independence that is more than noise.

        Noise alone shows the mean of its absolute value in every cell, which is taken off. Roots
        and products of single numbers are rounded alike on every machine.
        """
        by_noise = MEAN_ABSOLUTE * sqrt(prod(self.shape) * self.freedom * self.variance)
        return max((float(self.absolute) - by_noise) / (2 * rows), 0.0)

    def in_units(self, unit: int) -> Departure:
        """Return the departure of a table whose numbers are so many times smaller."""
        square = unit * unit
        return Departure(
            self.squares / square, self.variance / square, self.shape, self.absolute / unit
        )

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
        if self.squares <= 0:
            return False
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


def depends(by_pair: Mapping[Pair, Departure], sampled: int, law: NoiseLaw) -> bool:
    """Return whether some pair depends, or many do a little; chance says so once in 25 times.

    One pair is clear if noise would show as much in one of so many pairs once in 2^7 times, by the
    quantile of its law (`NoiseLaw.deviations`). All pairs' squares together, of f degrees of
    freedom, have the mean f if there is nothing but noise, and the variance that `scatter` derives.
    The multiple of chi-square that has both [Satterthwaite46] passes the limit once in 2^5 times
    [Wilson31]. `sampled` is that of `Departure.clear_among`: rows that are a sample scatter less.
    """
    limit = law.deviations(_RARE + (len(by_pair) - 1).bit_length()) ** 2
    for one in by_pair.values():
        if one.above(sampled) + one.freedom > _of_freedom(limit, one.freedom):
            return True
    freedom = sum(one.freedom for one in by_pair.values())
    total = sum((one.above(sampled) for one in by_pair.values()), Fraction(0))
    unit = scatter(by_pair, law.kurtosis) / (9 * freedom * freedom) if freedom else 0.0
    root = 1 - unit + _TOGETHER * sqrt(unit)  # unit is 2 / 9h of chi-square in h degrees
    return freedom + total > freedom * root * root * root


def scatter(by_pair: Mapping[Pair, Departure], kurtosis: int) -> float:
    """Return the variance of the sum of all pairs' squares, if all that they show is noise.

    Independent noises e of variance 1 make the pairs' deviations A e, each of variance 1. The
    variance of |A e|^2 is 2 |A A'|^2 + kurtosis * |diagonal of A' A|^2: pairs that share the noise
    of an attribute are correlated, and its entry of the diagonal is the sum of their parts.
    """
    of_attributes: dict[int, float] = {}
    total = 0.0
    for pair, off in by_pair.items():
        alone = float(1 - sum(off.shared))
        total += off.freedom * (2 + kurtosis * alone * alone)
        for attribute, part in zip(pair, map(float, off.shared), strict=True):
            of_attributes[attribute] = of_attributes.get(attribute, 0.0) + part
            total -= 2 * part * part
    return total + (2 + kurtosis) * sum(part * part for part in of_attributes.values())


def _of_freedom(limit: float, freedom: int) -> float:
    """Return what a sum of squares passes as seldom as one square of noise passes `limit`.

    With f degrees of freedom, f + 2 sqrt(f x) + 2 x does [Laurent00, Lemma 1], of which x is at
    most half of what one square passes.
    """
    return limit if freedom == 1 else freedom + sqrt(2 * freedom * limit) + limit


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
    centred = [
        high * wide * off[i][j] - high * by_row[i] - wide * by_column[j] + total
        for i in range(high)
        for j in range(wide)
    ]
    noise, scale = (high - 1) * (wide - 1) * variance, unit * high * wide
    return Departure(
        Fraction(sum(cell * cell for cell in centred), scale**2) - noise,
        variance,
        (high, wide),
        Fraction(sum(map(abs, centred)), scale),
    )


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
    by_pair: dict[Pair, Departure] = {}
    for view, table, variance in zip(views, tables, variances, strict=True):
        for pair, axes in pairs_of(view):
            if pair not in by_pair:
                pair_table = marginal_table(table, axes)
                first, second = (weights[a] for a in pair)
                noise = variance * (table.size // pair_table.size)
                by_pair[pair] = departure(pair_table, first, second, noise, rows)
    return by_pair


def strong_forest(
    departures: Mapping[Pair, Departure],
    sizes: Sequence[int],
    *,
    rows: int,
    noise: Callable[[int, int], float],
    most: int = MOST_IN_TREE,
    ordered: Sequence[int] = (),
) -> tuple[Pair, ...]:
    """Return the pairs that are worth a table in detail, the strongest first: no circles.

    `noise` forecasts that of a table of so many cells, as a total variation distance, if so many
    tables share the cost. A pair must be far from independence, and no less far than a part of the
    noise that its table will have: margins and sparsity take off the rest. A tree has at most
    `most` attributes, and more than two only of many values each: classes tell few values. But what
    a code of many values says of few, such as the chapter that it is in, groups of codes hide; of
    values in an order (of so many of each attribute) groups hide little, and halves are too noisy
    to tell.
    """
    chosen: list[Pair] = []
    tree_of = {a: frozenset((a,)) for a in range(len(sizes))}
    distances = {
        pair: departure.distance(rows) for pair, departure in departures.items() if departure.clear
    }
    strongest = sorted(distances, key=lambda pair: (-departures[pair].strength, pair))
    # A weak code is worth a table, but no sum of its own: it is asked beside other pairs only.
    for pair, of_codes in chain(
        product(strongest, (LEAST_DISTANCE,)), product(strongest, (LEAST_OF_CODES,))
    ):
        first, second = (tree_of[a] for a in pair)
        widths = [sizes[a] for a in pair]
        cells = prod(widths)
        alone = len(first | second) == 2
        least, values = (LEAST_DISTANCE, 2) if alone else (LEAST_IN_TREE, FEW_VALUES)
        sights = zip(pair, widths, departures[pair].shape, strict=True)
        hidden = any(
            size > groups > 2 and not (ordered and ordered[a]) for a, size, groups in sights
        )
        if min(widths) <= FEW_VALUES and hidden:
            least, values = of_codes, 1
        if (
            first != second
            and len(first | second) <= most
            and min(widths) > values  # else a few classes say it all
            and cells <= MOST_DETAIL_CELLS
            and len(chosen) < MOST_EDGES
            and (chosen or of_codes == LEAST_DISTANCE)
            and distances[pair] >= max(least, NOISE_LEFT * noise(cells, len(chosen) + 1))
        ):
            chosen.append(pair)
            tree_of.update(dict.fromkeys(first | second, first | second))
    return tuple(chosen)


def shrinkage(departure: Departure) -> Fraction:
    """Return the part of a departure in halves that is not taken for noise; 0 for none.

    That is 1 - c^2 / z^2 of what is z deviations away [Breiman95, the garrote]: weak pairs enter a
    model in part, so none is lost by a hair, and noise costs little.
    """
    squares = departure.above(0) + departure.freedom
    return max(1 - _GARROTE**2 / squares, Fraction(0)) if squares > 0 else Fraction(0)


def standing_out(departures: Mapping[Pair, Departure], most: int) -> tuple[Pair, ...]:
    """Return the pairs that are worth a second look: the strongest, if noise is not likelier."""
    worth = {pair: departure for pair, departure in departures.items() if departure.above(0) > 0}
    ranked = sorted(worth, key=lambda pair: (-worth[pair].strength, pair))
    return tuple(sorted(ranked[:most]))


def spanning_forest(departures: Mapping[Pair, Departure]) -> tuple[Pair, ...]:
    """Return the pairs of largest strength that close no circle, the strongest first."""
    tree_of: dict[int, set[int]] = {}
    chosen = []
    for pair in sorted(departures, key=lambda pair: (-departures[pair].strength, pair)):
        first, second = (tree_of.setdefault(a, {a}) for a in pair)
        if first is not second:
            first |= second
            tree_of.update(dict.fromkeys(second, first))
            chosen.append(pair)
    return tuple(chosen)


def candidates(departures: Mapping[Pair, Departure]) -> tuple[Pair, ...]:
    """Return the pairs that are worth a table: of the significant ones, two forests."""
    left = {pair: departure for pair, departure in departures.items() if departure.clear}
    chosen: list[Pair] = []
    for _ in range(_FORESTS):
        forest = spanning_forest(left)
        chosen += forest
        in_forest = set(forest)
        left = {pair: departure for pair, departure in left.items() if pair not in in_forest}
    return tuple(chosen)
