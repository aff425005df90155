"""The mean of every column of numbers, with an interval that needs no replicates.

Noise is added to the counts T of a column's values x, independently and of one deviation s. So the
mean m = sum(T x) / sum(T) is off by noise of about the deviation s |x - m| / sum(T), and by the
sampling of the real rows of the deviation sd(x) / sqrt(sum(T)).

The value of a bin is its middle, and numbers need not be there. Where their distance from the
middles was measured (`common.release.totals`), the mean has it, and the interval its noise. Where
it was not, the interval reaches further by all that it can be: half a bin, by the bins' rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from common.fitted.model import FittedModel
from common.release.measured import ExpectedError, Shares
from common.release.totals import BinTotal
from common.schema import Attribute, Schema
from common.schema.attribute import middles_of, spans_of

_CONFIDENCE = 0.95
_LEAST_KNOWN = 3.0  # deviations of the number of rows that have a value, to divide by it


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean with its error; its interval is that of 95 %."""

    name: str  # of the column
    mean: float  # from the released counts
    error: float  # its standard error
    ends: tuple[float, float]  # the least and the greatest value that the column may have
    hidden: float = 0.0  # how far the places of numbers in their bins can move it

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
        reach = NormalDist().inv_cdf((1 + confidence) / 2) * self.error + self.hidden
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
    return means(
        fitted.schema, fitted.shares, fitted.column_errors, fitted.rows, totals=fitted.totals
    )


def means(
    schema: Schema,
    shares: Sequence[Shares | None],
    columns: Sequence[ExpectedError],
    rows: int,
    *,
    totals: Mapping[int, BinTotal] = MappingProxyType({}),
) -> list[Mean]:
    """Return the mean of every column of numbers that was counted value by value."""
    deviations = {error.attributes[0]: error.deviation for error in columns}
    return [
        mean
        for place, (attribute, known) in enumerate(zip(schema.attributes, shares, strict=True))
        if known is not None and place in deviations
        for mean in _mean(attribute, known * rows, deviations[place], totals.get(place), rows)
    ]


def _mean(
    attribute: Attribute,
    counts: NDArray[np.float64],
    deviation: float,
    inside: BinTotal | None,
    rows: int,
) -> Iterator[Mean]:
    """Yield the mean, unless the column has no numbers, or fewer of them than noise makes."""
    values = middles_of(attribute)
    if values is None or values.min() == values.max():
        return
    known = counts[: len(values)]
    total = float(known.sum())
    if total <= _LEAST_KNOWN * deviation * math.sqrt(len(values)):
        return
    spans = spans_of(attribute)
    least, greatest = float((values - spans / 2).min()), float((values + spans / 2).max())
    moved = 0.0 if inside is None else inside.distance * rows / total
    mean = min(max(float(known @ values) / total + moved, least), greatest)
    distances = (values - mean) ** 2
    noise = deviation**2 * float(distances.sum()) / total**2
    sampling = max(float(known @ (distances + spans**2 / 12)), 0.0) / total**2
    hidden = float(np.maximum(known, 0) @ spans) / (2 * total)
    if inside is not None:
        noise += inside.variance * (rows / total) ** 2
        hidden = inside.rounding * rows / total
    yield Mean(attribute.name, mean, math.sqrt(noise + sampling), (least, greatest), hidden)
