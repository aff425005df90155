"""A release: noisy counts of every cell, and range counts from them. It needs no data.

    >>> release.count("age in 20..39 and sex = Female")          # doctest: +SKIP
    RangeCount(value=1204.5, standard_deviation=31.2, low=1142.7, high=1266.3, confidence=0.95)

Answers are unbiased and may be negative or broken; rounding them up to zero would bias every sum.
Along a padded Haar axis, a range that reaches the last value is answered in the more accurate of
two ways, so adjoining ranges there need not add up exactly. Where the schema has rules, a range is
answered with or without the impossible cells at its ends, whichever has less noise, and a range of
impossible cells is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from common.errors import LocalError
from common.schema import Schema
from common.schema.conditions import Vocabulary
from common.schema.rules import Possible
from common.wavelet.answers import NoiseMoments, half_widths, prefix_sums, range_sums
from common.wavelet.axis import Axis, Reach
from common.wavelet.decisions import Plan

Answers: TypeAlias = NDArray[np.float64] | None


@dataclass(frozen=True, slots=True)
class RangeCount:
    """An answer. Without exact noise moments (Privelet*) there is a value only.

    Attributes:
        standard_deviation: of its noise, exactly.
        confidence: the probability with which the interval holds the true count.
    """

    value: float
    standard_deviation: float | None
    low: float | None
    high: float | None
    confidence: float


@dataclass(frozen=True, slots=True)
class RangeCounts:
    """Many answers, one entry per query; see `RangeCount`."""

    values: NDArray[np.float64]
    standard_deviations: NDArray[np.float64] | None
    low: NDArray[np.float64] | None
    high: NDArray[np.float64] | None
    confidence: float


@dataclass(frozen=True)
class RangeRelease:
    """Noisy counts of every cell of a public domain.

    Attributes:
        plan: the mechanism that made the counts: method, epsilon, transforms, noise scale.
        cells: the noisy counts, in the plan's stored order and shape.
        rows: the number of rows counted; public, since neighbouring tables have equally many.
        private: False if the noise came from a seeded source, which protects nothing.
    """

    schema: Schema
    plan: Plan
    cells: NDArray[np.float64]
    rows: int
    private: bool

    def __post_init__(self) -> None:
        if self.cells.shape != self.plan.stored_shape or self.cells.dtype != np.float64:
            raise LocalError(f"cells of shape {self.cells.shape} do not fit the plan")

    def count(self, query: str, *, confidence: float = 0.95) -> RangeCount:
        """How many rows satisfy a query.

        A query is like "age in 20..39 and sex = Female and country in Europe"; an empty one counts
        all rows (`common.schema.query`).

        Raises:
            InputError: naming the place in the query and what is allowed there.
        """
        many = self.counts([query], confidence=confidence)
        exact = (many.standard_deviations, many.low, many.high)
        deviation, low, high = (None if each is None else float(each[0]) for each in exact)
        return RangeCount(float(many.values[0]), deviation, low, high, confidence)

    def counts(self, queries: Sequence[str], *, confidence: float = 0.95) -> RangeCounts:
        """How many rows satisfy each query: `count` for many at once."""
        return self.box_counts(self._vocabulary.boxes(queries), confidence=confidence)

    def box_counts(self, boxes: NDArray[np.intp], *, confidence: float = 0.95) -> RangeCounts:
        """How many rows are in each box of positions.

        Args:
            boxes: shape (boxes, attributes, 2): first position and one past the last. Positions
                are codes, or along a hierarchy the leaves from left to right, where only the leaves
                below one node make a range.
            confidence: of the intervals.
        """
        if self._possible is None:
            return self._counted(boxes, confidence)
        return self._without_impossible(boxes, confidence, self._possible)

    def _without_impossible(
        self, boxes: NDArray[np.intp], confidence: float, possible: PossibleBoxes
    ) -> RangeCounts:
        """The better of two answers: of each box, and of the box without impossible cells."""
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

    def _counted(self, boxes: NDArray[np.intp], confidence: float) -> RangeCounts:
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

    def _reaches(self, boxes: NDArray[np.intp]) -> list[Reach]:
        return [
            axis.reach(boxes[:, number, 0], boxes[:, number, 1])
            for number, axis in zip(self.plan.order, self.plan.stored_axes, strict=True)
        ]

    def cell_deviation(self) -> float | None:
        """Of the noise in one cell, possible or not; None if it is not known exactly."""
        first = np.array([[[0, 1]] * len(self.schema.sizes)], dtype=np.intp)
        variances = self._noise.variances(self._reaches(first)) if self._exact else None
        return None if variances is None else float(np.sqrt(variances[0]))

    def matrix(self) -> NDArray[np.float64]:
        """The noisy counts indexed by the codes of the attributes, in the schema's order."""
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


Boxes = NDArray[np.intp]


@dataclass(frozen=True, eq=False, slots=True)
class PossibleBoxes:
    """The rules by the positions of cells.

    The true count of an impossible cell is 0. A box of which every cell is impossible has the count
    0, without noise. A box that ends in impossible cells holds as many rows as the smaller box
    without them: both noisy counts are unbiased and have a known variance. Which of the two has
    less noise depends on the transforms.

    Attributes:
        rules: of each rule, its attributes, and whether each cell of their positions is possible.
        fixed: the attributes whose ranges must stay as they are: the leaves below one node.
    """

    rules: tuple[tuple[tuple[int, ...], NDArray[np.bool_]], ...]
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
        """Cut impossible ends off one box, in place; whether there were any."""
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
