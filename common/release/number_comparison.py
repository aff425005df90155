"""Numbers of a synthetic table beside the real ones: what happens within bins.

Marginals are compared bin by bin, and within a bin numbers are drawn evenly. Where most of a bin's
numbers are at one end of it, as with amounts that are mostly zero, the marginal is right and the
mean is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.release.single_owner import Table, as_arrow
from common.schema import Schema
from common.schema.binning import Binning
from common.schema.columns import arrow_column, real_numbers

_BINS = (
    "within a bin numbers are drawn evenly; list edges where most of them are, and give a number "
    "that many rows have, such as 0, a bin of its own"
)
_NOISE = (
    "a few rows of noise in bins far out move it; a smaller range with clip = true, or fewer bins "
    "there, would help"
)
_NUMBERS = ("integer", "real")
_FAR = 0.2  # of a standard deviation: no analysis of the mean would come out the same


@dataclass(frozen=True, slots=True)
class Summary:
    """Of the numbers of one column in one table."""

    mean: float
    deviation: float
    median: float


@dataclass(frozen=True, slots=True)
class NumberComparison:
    """One column of numbers."""

    name: str
    real: Summary
    synthetic: Summary
    binned_mean: float  # of the real numbers, each drawn evenly from its bin: the best to expect

    @property
    def misfit(self) -> float:
        """How far bins alone move the mean, in standard deviations of the real numbers."""
        return self._apart(self.binned_mean)

    @property
    def shift(self) -> float:
        """How far apart the means are, in the same unit."""
        return self._apart(self.synthetic.mean)

    def _apart(self, mean: float) -> float:
        deviation = self.real.deviation
        return abs(mean - self.real.mean) / deviation if deviation > 0 else 0.0

    def words(self) -> str:
        """For people: what is wrong and what would help."""
        return (
            f"{self.name}: mean {self.synthetic.mean:,.5g}, real {self.real.mean:,.5g}; median "
            f"{self.synthetic.median:,.5g}, real {self.real.median:,.5g}: "
            f"{_BINS if self.misfit > _FAR else _NOISE}"
        )


def compare_numbers(real: Table, synthetic: Table, schema: Schema) -> tuple[NumberComparison, ...]:
    """Every column of numbers that has some in both tables."""
    found = []
    for attribute in schema.attributes:
        bins = attribute.domain
        if not isinstance(bins, Binning) or attribute.kind not in _NUMBERS:
            continue
        ours, theirs = (_numbers(table, attribute.name) for table in (real, synthetic))
        if len(ours) and len(theirs):
            places, _ = bins.assign(ours.astype(np.int64) if bins.whole else ours)
            evenly = float(bins.centre(places).mean())
            found.append(NumberComparison(attribute.name, _summary(ours), _summary(theirs), evenly))
    return tuple(found)


def far_off(compared: Sequence[NumberComparison]) -> list[NumberComparison]:
    """The columns whose mean is spoilt, or would be but for luck; worst first."""
    return sorted(
        (column for column in compared if max(column.misfit, column.shift) > _FAR),
        key=lambda column: -column.shift,
    )


def _numbers(table: Table, name: str) -> NDArray[np.float64]:
    numbers, _, wrong = real_numbers(arrow_column(as_arrow(table)[name]).drop_null(), None)
    numbers = numbers if wrong is None else numbers[~wrong]
    return numbers[np.isfinite(numbers)]


def _summary(numbers: NDArray[np.float64]) -> Summary:
    return Summary(float(numbers.mean()), float(numbers.std()), float(np.median(numbers)))
