"""The mean of every column of numbers, with an interval that needs no replicates.

Noise is added to the counts T of a column's values x, independently and of one deviation s. So the
mean m = sum(T x) / sum(T) is off by noise of about the deviation s |x - m| / sum(T), and by the
sampling of the real rows of the deviation sd(x) / sqrt(sum(T)).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.release.measured import ExpectedError, Shares
from common.schema import Attribute, Schema
from common.schema.attribute import numbers_of

_TWO_SIDED_95 = 1.96
_LEAST_KNOWN = 3.0  # deviations of the number of rows that have a value, to divide by it


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean and its 95 % interval."""

    name: str  # of the column
    mean: float  # from the released counts
    low: float  # lower end of the interval
    high: float  # upper end of the interval
    ends: tuple[float, float]  # the least and the greatest value that the column may have

    @property
    def relative(self) -> tuple[float, float, float]:
        """Lower end, mean and upper end, as parts of the way from the least value."""
        least, greatest = self.ends
        low, middle, high = (
            (v - least) / (greatest - least) for v in (self.low, self.mean, self.high)
        )
        return low, middle, high


def means(
    schema: Schema, shares: Sequence[Shares | None], columns: Sequence[ExpectedError], rows: int
) -> list[Mean]:
    """Return the mean of every column of numbers that was counted value by value."""
    deviations = {error.attributes[0]: error.deviation for error in columns}
    return [
        mean
        for place, (attribute, known) in enumerate(zip(schema.attributes, shares, strict=True))
        if known is not None and place in deviations
        for mean in _mean(attribute, known * rows, deviations[place])
    ]


def _mean(attribute: Attribute, counts: NDArray[np.float64], deviation: float) -> Iterator[Mean]:
    """Yield the mean, unless the column has no numbers, or fewer of them than noise makes."""
    values = numbers_of(attribute)
    if values is None or values.min() == values.max():
        return
    known = counts[: len(values)]
    total = float(known.sum())
    if total <= _LEAST_KNOWN * deviation * math.sqrt(len(values)):
        return
    least, greatest = float(values.min()), float(values.max())
    mean = min(max(float(known @ values) / total, least), greatest)
    distances = (values - mean) ** 2
    noise = deviation**2 * float(distances.sum()) / total**2
    sampling = max(float(known @ distances), 0.0) / total**2
    reach = _TWO_SIDED_95 * math.sqrt(noise + sampling)
    low, high = max(mean - reach, least), min(mean + reach, greatest)
    yield Mean(attribute.name, mean, low, high, (least, greatest))
