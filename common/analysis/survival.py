"""Survival: the proportion of people for whom something has not happened yet, time by time.

    statistic = survival(schema, "months", status="died", by="sex")
    curves = curves_of(statistic, estimates)

The product-limit estimate of Kaplan and Meier: with d_j people for whom it happened at time j, of
n_j who were watched until then, survival after j is the product of 1 - d_i / n_i over i <= j.
People who are watched no longer are left out from then on. Times are those of the schema's bins: a
curve has a step at the end of each, and those who leave in a bin are at risk until its end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from common.analysis.estimates import Estimate
from common.analysis.statistics import (
    By,
    CodedTable,
    Numbers,
    OfRows,
    Rows,
    Statistic,
    checked_numbers,
    ends_of,
    grouped,
    happens,
)
from common.errors import InputError
from common.schema import Attribute, Schema
from common.schema.attribute import Listed
from common.study.analyses import event_code


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
            ends = codes[watched].astype(np.float64)
            after = kaplan_meier(ends, known[watched], range(len(names)))
            last = ends.max(initial=-1)  # after that, no one is watched
            return {
                name: value if code <= last else math.nan
                for code, (name, value) in enumerate(zip(names, after, strict=True))
            }

        return curve

    return grouped(schema, (time, *happened.attributes), of, by, where, bounds=(0.0, 1.0))


def survival_at_fifths(schema: Schema, columns: Sequence[str], by: By = None) -> Statistic:
    """Ask for the survival beyond four times, fifths of the time's range.

    The columns are the time and the status, which is the last of its two values if it happened.
    """
    time, status = columns
    least, greatest = ends_of(checked_numbers(schema, time))
    times = [least + (greatest - least) * part / 5 for part in range(1, 5)]
    names = [f"survival of {time} beyond {at:g}" for at in times]
    happened = event_code(schema.attributes[schema.position(status)])

    def of(table: CodedTable) -> OfRows:
        numbers, known = table.numbers(time), table.column(status) == happened

        def points(rows: Rows) -> dict[str, float]:
            watched = rows & ~np.isnan(numbers)
            return dict(
                zip(names, kaplan_meier(numbers[watched], known[watched], times), strict=True)
            )

        return points

    return grouped(schema, (time, status), of, by, "", bounds=(0.0, 1.0))


def kaplan_meier(ends: Numbers, happened: Rows, times: Sequence[float]) -> list[float]:
    """Return the survival after some times, of people who were watched until their `ends`.

    It stays what it was after the last of them; NaN if no one was watched at all.
    """
    if not ends.size:
        return [math.nan] * len(times)
    order = np.lexsort((~happened, ends))  # what happens at an end is seen
    survival = np.cumprod(1 - happened[order] / np.arange(len(ends), 0, -1))
    places = np.searchsorted(ends[order], times, side="right")
    return [float(survival[place - 1]) if place else 1.0 for place in places.tolist()]


def curves_of(attribute: Attribute, estimates: Sequence[Estimate]) -> Iterator[Curve]:
    """Yield the curves of the estimates of `survival`, one for each group."""
    times = tuple(times_of(attribute))
    for start in range(0, len(estimates), len(times)):
        points = tuple(estimates[start : start + len(times)])
        yield Curve(points[0].group, times, points)
