"""The mean of every column of numbers, with an interval that needs no replicates.

Noise is added to the counts T of a column's values x, independently and of one deviation s. So the
mean m = sum(T x) / sum(T) is off by noise of about the deviation s |x - m| / sum(T), and by the
sampling of the real rows of the deviation sd(x) / sqrt(sum(T)).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from common.fitted.model import FittedModel
from common.release.measured import ExpectedError, Shares
from common.schema import Attribute, Schema
from common.schema.attribute import numbers_of

_CONFIDENCE = 0.95
_LEAST_KNOWN = 3.0  # deviations of the number of rows that have a value, to divide by it


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean with its error; its interval is that of 95 %."""

    name: str  # of the column
    mean: float  # from the released counts
    error: float  # its standard error
    ends: tuple[float, float]  # the least and the greatest value that the column may have

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return self.interval(_CONFIDENCE)[0]

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return self.interval(_CONFIDENCE)[1]

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return the interval of a confidence, inside the range of the column."""
        reach = NormalDist().inv_cdf((1 + confidence) / 2) * self.error
        return max(self.mean - reach, self.ends[0]), min(self.mean + reach, self.ends[1])

    @property
    def relative(self) -> tuple[float, float, float]:
        """Lower end, mean and upper end, as parts of the way from the least value."""
        least, greatest = self.ends
        low, middle, high = (
            (v - least) / (greatest - least) for v in (self.low, self.mean, self.high)
        )
        return low, middle, high


def known_means(fitted: FittedModel) -> list[Mean]:
    """Return the means that a release tells: one for the report and for `parley estimate`."""
    if fitted.every_cell:
        return []
    return means(fitted.schema, fitted.shares, fitted.column_errors, fitted.rows)


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
    yield Mean(attribute.name, mean, math.sqrt(noise + sampling), (least, greatest))
