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

from common.release.diagnostics import ExpectedError
from common.release.measured import Shares
from common.release.report.charts import forest
from common.release.report.page import Section, figure, joined, paragraph, readable, table
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
        found
        for place, (attribute, own) in enumerate(zip(schema.attributes, shares, strict=True))
        if own is not None and place in deviations
        for found in _mean(attribute, own * rows, deviations[place])
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


def means_section(found: Sequence[Mean]) -> list[Section]:
    """Show the means as a picture and a table, if there are any."""
    if not found:
        return []
    words = (
        "The means are those of the released counts of single columns; a number counts as the "
        "centre of its bin. The 95 % interval is for the mean of the population: it allows for the "
        "noise and for the sampling of the real rows. For means by group, and for other "
        "statistics, use `parley estimate`."
    )
    picture = forest("Means with their intervals", [(each.name, *each.relative) for each in found])
    caption = "Each line is the range of a column. The mark is the mean, inside its interval."
    lines = [
        [each.name, readable(each.mean), f"{readable(each.low)} .. {readable(each.high)}"]
        for each in found
    ]
    listed = table(["column", "mean", "95 % interval"], lines)
    return [Section("Means", joined([paragraph(words), figure(picture, caption=caption), listed]))]
