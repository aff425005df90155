"""Survival: the proportion of people for whom something has not happened yet, time by time.

    statistic = survival(schema, "months", status="died", by="sex")
    curves = curves_of(statistic, estimates)

The product-limit estimate of Kaplan and Meier: with d_j people for whom it happened at time j, of
n_j who were watched until then, survival after j is the product of 1 - d_i / n_i over i <= j.
People who are watched no longer are left out from then on. Times are those of the schema's bins: a
curve has a step at the end of each, and those who leave in a bin are at risk until its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from common.analysis.estimates import Estimate
from common.analysis.statistics import (
    CodedTable,
    OfRows,
    Rows,
    Statistic,
    checked_numbers,
    grouped,
    happens,
)
from common.errors import InputError
from common.schema import Attribute, Schema
from common.schema.attribute import Listed


@dataclass(frozen=True, slots=True)
class Curve:
    """Survival in one group, at the times at which it may fall."""

    group: str | None
    times: tuple[float, ...]
    points: tuple[Estimate, ...]


def times_of(attribute: Attribute) -> list[float]:
    """Return the times of a column: the upper end of each of its bins."""
    domain = attribute.domain
    if isinstance(domain, Listed):
        return [float(str(value)) for value in domain.values]
    ends = domain.last if attribute.kind == "integer" else domain.edges[1:]
    return [float(end) for end in ends]


def survival(
    schema: Schema, time: str, *, status: str, by: str | None = None, where: str = ""
) -> Statistic:
    """Ask for the survival after each time of a column; `status` holds where it happened.

    The status is a yes-or-no column, or a condition.
    """
    attribute = checked_numbers(schema, time)
    if not attribute.ordered or time in (by, status):
        raise InputError(f"--survival {time}: its values are in no order, or it is used twice")
    happened = happens(status, schema)
    names = [f"survival of {time} after {end:g}" for end in times_of(attribute)]

    def of(table: CodedTable) -> OfRows:
        codes, known = table.column(time), happened.mask(table.codes)

        def curve(rows: Rows) -> dict[str, float]:
            watched = rows & (codes < len(names))  # a missing time says nothing
            return dict(
                zip(names, kaplan_meier(codes[watched], known[watched], len(names)), strict=True)
            )

        return curve

    return grouped(schema, (time, *happened.attributes), of, by, where, bounds=(0.0, 1.0))


def kaplan_meier(times: np.ndarray, happened: np.ndarray, size: int) -> list[float]:
    """Return survival after each of `size` times; NaN where nobody was watched."""
    ends = np.bincount(times, minlength=size)
    at_risk = np.cumsum(ends[::-1])[::-1]
    events = np.bincount(times, weights=happened, minlength=size)
    with np.errstate(invalid="ignore", divide="ignore"):
        return [float(value) for value in np.cumprod(1 - events / at_risk)]


def curves_of(attribute: Attribute, estimates: Sequence[Estimate]) -> Iterator[Curve]:
    """Yield the curves of the estimates of `survival`, one for each group."""
    times = tuple(times_of(attribute))
    for start in range(0, len(estimates), len(times)):
        points = tuple(estimates[start : start + len(times)])
        yield Curve(points[0].group, times, points)
