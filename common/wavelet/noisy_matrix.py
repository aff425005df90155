"""Noisy counts of every cell, and range counts from them. They need no data.

    >>> matrix.count("age in 20..39 and sex = Female")          # doctest: +SKIP
    RangeCount(value=1204.5, standard_deviation=31.2, low=1142.7, high=1266.3, confidence=0.95)

Answers are unbiased and may be negative or broken; rounding them up to zero would bias every sum.
Along a padded Haar axis, a range that reaches the last value is answered in the more accurate of
two ways, so adjoining ranges there need not add up exactly. Where the schema has rules, a range is
answered with or without the impossible cells at its ends, whichever has less noise, and a range of
impossible cells is 0.

A range count is a signed sum of 2^d entries of the d-dimensional prefix sums. Its noise is a
weighted sum of independent draws, and the weights factorise over the axes; so do the sums of their
squares and fourth powers, which give the exact variance and fourth cumulant whatever the data is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError, LocalError
from common.privacy.laws.discrete_laplace import KURTOSIS
from common.privacy.sampling.discrete_laplace import discrete_laplace_variance
from common.schema import Schema
from common.schema.conditions import Vocabulary
from common.schema.rules import Possible
from common.wavelet.axis import Axis, Reach
from common.wavelet.decisions import WaveletDecisions

Boxes: TypeAlias = NDArray[np.intp]
Answers: TypeAlias = NDArray[np.float64] | None
_GRID = np.linspace(0.0, KURTOSIS, 61)
_NODES = 4096
_AT_ONCE = 1 << 18  # cells that are added up at once


@dataclass(frozen=True, slots=True)
class RangeCount:
    """An answer. Without exact noise moments (Privelet*) there is a value only."""

    value: float
    standard_deviation: float | None  # of its noise, exactly
    low: float | None
    high: float | None
    confidence: float  # the probability with which the interval holds the true count


@dataclass(frozen=True, slots=True)
class RangeCounts:
    """Many answers, one entry per query; see `RangeCount`."""

    values: NDArray[np.float64]
    standard_deviations: NDArray[np.float64] | None
    low: NDArray[np.float64] | None
    high: NDArray[np.float64] | None
    confidence: float


@dataclass(frozen=True)
class NoisyMatrix:
    """Noisy counts of every cell of a public domain."""

    schema: Schema
    plan: WaveletDecisions  # of the mechanism: method, epsilon, transforms, noise scale
    cells: NDArray[np.float64]  # the noisy counts, in the plan's stored order and shape
    rows: int  # the number of rows counted; public, since neighbouring tables have equally many
    private: bool  # False if the noise came from a seeded source, which protects nothing

    def __post_init__(self) -> None:
        if self.cells.shape != self.plan.stored_shape or self.cells.dtype != np.float64:
            raise LocalError(f"cells of shape {self.cells.shape} do not fit the plan")

    def count(self, query: str, *, confidence: float = 0.95) -> RangeCount:
        """Count the rows that satisfy a query; InputError names the place that is wrong in it.

        A query is like "age in 20..39 and sex = Female and country in Europe"; an empty one counts
        all rows (`common.schema.query`).
        """
        many = self.counts([query], confidence=confidence)
        exact = (many.standard_deviations, many.low, many.high)
        deviation, low, high = (None if values is None else float(values[0]) for values in exact)
        return RangeCount(float(many.values[0]), deviation, low, high, confidence)

    def counts(self, queries: Sequence[str], *, confidence: float = 0.95) -> RangeCounts:
        return self.box_counts(self._vocabulary.boxes(queries), confidence=confidence)

    def box_counts(self, boxes: Boxes, *, confidence: float = 0.95) -> RangeCounts:
        """Count the rows in each box of positions.

        Boxes have shape (boxes, attributes, 2): first position and one past the last. Positions are
        codes, or along a hierarchy the leaves from left to right, where only the leaves below one
        node make a range.
        """
        if self._possible is None:
            return self._counted(boxes, confidence)
        return self._without_impossible(boxes, confidence, self._possible)

    def _without_impossible(
        self, boxes: Boxes, confidence: float, possible: PossibleBoxes
    ) -> RangeCounts:
        """Choose the better answer: of each box, or of the box without impossible cells."""
        shrunk = possible.shrink(boxes)
        empty = (shrunk[..., 0] == shrunk[..., 1]).any(axis=1)
        shrunk[empty] = boxes[empty]
        one, other = self._counted(boxes, confidence), self._counted(shrunk, confidence)
        better = ~empty
        if one.standard_deviations is not None and other.standard_deviations is not None:
            better &= other.standard_deviations < one.standard_deviations

        def chosen(before: Answers, after: Answers) -> Answers:
            if before is None or after is None:
                return None
            return np.where(empty, 0.0, np.where(better, after, before))

        return RangeCounts(
            np.where(empty, 0.0, np.where(better, other.values, one.values)),
            chosen(one.standard_deviations, other.standard_deviations),
            chosen(one.low, other.low),
            chosen(one.high, other.high),
            confidence,
        )

    def _counted(self, boxes: Boxes, confidence: float) -> RangeCounts:
        reaches = self._reaches(boxes)
        values = range_sums(self._sums, reaches)
        if not self._exact:
            return RangeCounts(values, None, None, None, confidence)
        variances = self._noise.variances(reaches)
        margin = half_widths(variances, self._noise.fourth_cumulants(reaches), confidence)
        return RangeCounts(values, np.sqrt(variances), values - margin, values + margin, confidence)

    @property
    def _exact(self) -> bool:
        return self.plan.method != "privelet*"

    def _reaches(self, boxes: Boxes) -> list[Reach]:
        return [
            axis.reach(boxes[:, number, 0], boxes[:, number, 1])
            for number, axis in zip(self.plan.order, self.plan.stored_axes, strict=True)
        ]

    def cell_deviation(self) -> float | None:
        """Return the deviation of the noise in one cell; None if it is not known exactly."""
        first = np.array([[[0, 1]] * len(self.schema.sizes)], dtype=np.intp)
        variances = self._noise.variances(self._reaches(first)) if self._exact else None
        return None if variances is None else float(np.sqrt(variances[0]))

    def matrix(self) -> NDArray[np.float64]:
        """Return the noisy counts indexed by the codes of the attributes, in the schema's order."""
        values = self.cells[tuple(slice(0, axis.size) for axis in self.plan.stored_axes)]
        values = values.transpose(np.argsort(self.plan.order))
        for number, axis in enumerate(self.plan.axes):
            values = np.take(values, np.argsort(axis.leaf_codes), axis=number)
        return values

    @cached_property
    def _sums(self) -> NDArray[np.float64]:
        return prefix_sums(self.cells)

    @cached_property
    def _possible(self) -> PossibleBoxes | None:
        possible = self.schema.possible
        return PossibleBoxes.of(possible, self.plan.axes) if possible.rules else None

    @cached_property
    def _noise(self) -> NoiseMoments:
        return NoiseMoments(self.plan)

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return Vocabulary(self.schema.attributes)


@dataclass(frozen=True, eq=False, slots=True)
class PossibleBoxes:
    """The rules by the positions of cells.

    The true count of an impossible cell is 0. A box of which every cell is impossible has the count
    0, without noise. A box that ends in impossible cells holds as many rows as the smaller box
    without them: both noisy counts are unbiased and have a known variance. Which of the two has
    less noise depends on the transforms.
    """

    # Of each rule, its attributes, and whether each cell of their positions is possible.
    rules: tuple[tuple[tuple[int, ...], NDArray[np.bool_]], ...]
    # The attributes whose ranges must stay as they are: the leaves below one node.
    fixed: frozenset[int]

    @classmethod
    def of(cls, possible: Possible, axes: Sequence[Axis]) -> PossibleBoxes:
        """Look the rules up along the axes of a matrix."""
        rules = []
        for rule in possible.rules:
            table = rule.table
            for place, attribute in enumerate(rule.attributes):
                table = np.take(table, axes[attribute].leaf_codes, axis=place)
            rules.append((rule.attributes, table))
        fixed = (a for a, axis in enumerate(axes) if axis.kind == "nominal")
        return cls(tuple(rules), frozenset(fixed))

    def shrink(self, boxes: Boxes) -> Boxes:
        """Return each box without impossible cells at its ends; an empty one if all of them are."""
        shrunk = boxes.copy()
        for box in shrunk:
            while self._cut(box):
                pass
        return shrunk

    def _cut(self, box: Boxes) -> bool:
        """Cut impossible ends off one box, in place; return whether there were any."""
        changed = False
        for attributes, table in self.rules:
            inside = table[tuple(slice(*box[a]) for a in attributes)]
            if inside.size and not inside.any():
                box[:, 1] = box[:, 0]
                return False
            for place, attribute in enumerate(attributes):
                if attribute in self.fixed or not inside.size:
                    continue
                others = tuple(axis for axis in range(inside.ndim) if axis != place)
                there = np.flatnonzero(inside.any(axis=others))
                low, high = box[attribute]
                ends = low + there[0], low + there[-1] + 1
                if ends != (low, high):
                    box[attribute] = ends
                    changed = True
                    break
            if changed:
                return True
        return False


def discrete_laplace_fourth_cumulant(scale: Fraction) -> float:
    """Return 2 q (1 + 4 q + q^2) / (1 - q)^4 with q = exp(-1 / scale); near 12 scale^4.

    A draw is the difference of two geometric ones, whose cumulants follow from
    kappa_{n+1} = q d(kappa_n) / dq, starting from kappa_1 = q / (1 - q).
    """
    rate = float(1 / scale)
    ratio = math.exp(-rate)
    return 2 * ratio * (1 + 4 * ratio + ratio**2) / math.expm1(-rate) ** 4


def half_widths(
    variance: NDArray[np.float64], fourth_cumulant: NDArray[np.float64], confidence: float
) -> NDArray[np.float64]:
    """Return half the length of the interval that holds the noise with the given probability.

    A weighted sum of independent discrete Laplace draws lies between a single one (heavy tails) and
    a normal one (many equal parts); a normal interval would be too short and Chebyshev's twice too
    long. What is known exactly is the variance and the fourth cumulant. The interval is that of the
    law which has both and which holds the two ends and every sum of equal parts exactly: the
    symmetric variance gamma law, a normal draw whose variance is gamma distributed with shape
    3 / (excess kurtosis). One count is added on either side: the noise moves in steps of at most
    one, which matters only where there is hardly any noise.
    """
    if not 0 < confidence < 1:
        raise InputError(f"a confidence lies between 0 and 1, like 0.95; not {confidence}")
    excess = np.clip(fourth_cumulant / variance**2, 0.0, KURTOSIS)
    quantile = np.interp(excess, _GRID, _quantiles(confidence))
    return quantile * np.sqrt(variance) + 1.0


@lru_cache(maxsize=32)
def _quantiles(confidence: float) -> NDArray[np.float64]:
    """Return the quantile of |x| at unit variance for each kurtosis of the grid."""
    from scipy import special  # slow to load, and only Privelet's answers need it

    shapes = KURTOSIS / _GRID[1:, None]
    middles = (np.arange(_NODES) + 0.5) / _NODES
    spread = np.sqrt(2 * special.gammaincinv(shapes, middles) / shapes)
    low, high = np.zeros(len(shapes)), np.full(len(shapes), 50.0)
    for _ in range(50):  # bisection; the tail decreases in x
        middle = (low + high) / 2
        tail = special.erfc(middle[:, None] / spread).mean(axis=1)
        low = np.where(tail > 1 - confidence, middle, low)
        high = np.where(tail > 1 - confidence, high, middle)
    normal = math.sqrt(2) * float(special.erfinv(confidence))
    return np.concatenate(([normal], high))


def prefix_sums(cells: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the matrix whose entry (x_1, .., x_d) sums all cells up to and including it.

    One copy of the cells; numpy's own in-place cumsum would make another.
    """
    sums = cells.copy()
    for axis, length in enumerate(sums.shape):
        before = math.prod(sums.shape[:axis])
        view = sums.reshape(before, length, -1)
        step = max(1, _AT_ONCE // (length * view.shape[2]))
        if step > 1 or view.shape[2] == 1:
            for start in range(0, before, step):
                view[start : start + step] = np.cumsum(view[start : start + step], axis=1)
        else:
            for position in range(1, length):
                view[:, position] += view[:, position - 1]
    return sums


def range_sums(sums: NDArray[np.float64], reaches: Sequence[Reach]) -> NDArray[np.float64]:
    """Return the sum of the cells of each box, from prefix sums: O(2^d) per box."""
    flat = sums.reshape(-1)
    strides = [math.prod(sums.shape[axis + 1 :]) for axis in range(sums.ndim)]
    total = np.zeros(len(reaches[0].low))
    upper = [(r.high.astype(np.intp) - 1) * s for r, s in zip(reaches, strides, strict=True)]
    lower = [(r.low.astype(np.intp) - 1) * s for r, s in zip(reaches, strides, strict=True)]
    for corner in itertools.product((False, True), repeat=sums.ndim):
        place = np.zeros(len(total), dtype=np.intp)
        inside = np.ones(len(total), dtype=np.bool_)
        for axis, low in enumerate(corner):
            place += lower[axis] if low else upper[axis]
            if low:
                inside &= reaches[axis].low > 0  # nothing lies before the first cell
        entry = flat[np.where(inside, place, 0)]
        total += np.where(inside, -entry if sum(corner) % 2 else entry, 0.0)
    return total


class NoiseMoments:
    """Variance and fourth cumulant of the noise in range counts under a plan."""

    def __init__(self, plan: WaveletDecisions) -> None:
        multipliers = plan.class_multipliers()
        scales = [plan.scale * Fraction(int(m)) for m in multipliers.flat]
        self._variances = _shaped(map(discrete_laplace_variance, scales), multipliers, 2)
        self._cumulants = _shaped(map(discrete_laplace_fourth_cumulant, scales), multipliers, 4)

    def variances(self, reaches: Sequence[Reach]) -> NDArray[np.float64]:
        return _contract(self._variances, [reach.second for reach in reaches])

    def fourth_cumulants(self, reaches: Sequence[Reach]) -> NDArray[np.float64]:
        return _contract(self._cumulants, [reach.fourth for reach in reaches])


def _shaped(
    values: Iterable[float], multipliers: NDArray[np.float64], power: int
) -> NDArray[np.float64]:
    """Return the moments of weighted coefficients from those of integer ones."""
    return np.array(list(values)).reshape(multipliers.shape) / multipliers**power


def _contract(
    per_class: NDArray[np.float64], weights: Sequence[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Sum over all combinations of classes of the moment times the product of the weights."""
    result = np.broadcast_to(per_class, (len(weights[0]), *per_class.shape))
    for weight in weights:
        result = np.einsum("qc...,qc->q...", result, weight)
    return result
