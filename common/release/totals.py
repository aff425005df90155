"""What a release measured of the numbers inside the bins of its columns.

A published total of distances from the middles of bins (`common.methods.subn_plus.totals`) is T,
under noise of the deviation s, in units of the column. The bins of its class hold about R in
distances, if all numbers are at one end: so the true total is between -R and R, and a total whose
noise is large against R tells little. The total that is used is T v / (v + s^2) for v = R^2 / 3,
the variance of a total that may be anywhere; its squared error is at most
(s v / (v + s^2))^2 + (R s^2 / (v + s^2))^2, whatever the true total is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from common.methods.subn_plus.descent import RequestInCells
from common.methods.subn_plus.linked.requests import AveragedTables
from common.methods.subn_plus.totals import LARGEST, BinTotals
from common.release.measured import Shares, rows_of, study_shares, variance_of
from common.schema.attribute import Attribute
from common.schema.binning import Binning
from common.schema.decoder import Inside
from common.study.analyses import about_events
from common.study.document import Study
from common.study.requests import read_cells
from common.study.steps import Step


@dataclass(frozen=True, slots=True)
class BinTotal:
    """What is known of the numbers inside the bins of a column."""

    inside: Inside  # the mean places in bins
    distance: float  # from the middles of the bins, of all rows together, over the number of rows
    variance: float  # of the distance, by noise
    rounding: float = 0.0  # how far the distance can be off by being counted in integers


def study_totals(
    study: Study, steps: Sequence[Step], results: Sequence[bytes]
) -> Mapping[int, BinTotal]:
    """Return what the published totals of a study tell, by column of `Schema.joined`."""
    totals: dict[int, BinTotal] = {}
    shares: dict[int, Shares | None] | None = None
    for step, result in zip(steps, results, strict=True):
        request = totals_of(step)
        if request is None:
            continue
        if shares is None:
            shares = dict(enumerate(study_shares(study, steps, results)))
            shares |= averaged_shares(study, steps, results)
        rows = rows_of(study, step.parties)
        answer = request.split(read_cells(result, step.cells))
        deviation = math.sqrt(variance_of(study, step)) / request.unit
        for a, classes in zip(request.columns, request.classes, strict=True):
            known = shares.get(a)
            if known is not None:
                attribute, distances = study.schema.joined.attributes[a], answer[a] / request.unit
                total = bin_total(attribute, classes, distances, known, deviation, rows)
                totals[a] = replace(total, rounding=total.rounding * request.roundings(a))
    return totals


def averaged_shares(
    study: Study, steps: Sequence[Step], results: Sequence[bytes]
) -> dict[int, Shares]:
    """Return the noisy distributions of the number of events and of events, averaged by person.

    They are shares of all people: those of a column of events add up to less than 1. Columns are
    those of `Schema.joined`. Of several tables that count a column value by value, the one counts
    that has the least noise.
    """
    best: dict[int, tuple[float, Shares]] = {}
    sizes, events = study.schema.joined.sizes, len(study.schema.names) + 1
    for step, result in zip(steps, results, strict=True):
        request = step.request.request if isinstance(step.request, RequestInCells) else step.request
        if not isinstance(request, AveragedTables):
            continue
        people = request.unit * rows_of(study, step.parties)
        for columns, table in request.split(read_cells(result, step.cells)).items():
            for axis, column in enumerate(columns):
                # A table of events leaves people without events out, whatever they are.
                same = about_events((column,), events) == about_events(columns, events)
                noise = step.noise_law.variance() * table.size / table.shape[axis] / request.unit**2
                if same and table.shape[axis] == sizes[column]:
                    others = tuple(other for other in range(table.ndim) if other != axis)
                    shares = (noise, table.sum(axis=others) / people)
                    best[column] = min(best.get(column, shares), shares, key=lambda noisy: noisy[0])
    return {column: shares for column, (_, shares) in best.items()}


def totals_of(step: Step) -> BinTotals | None:
    """Return what a step asks for, if these are totals; columns in cells have none."""
    match step.request:
        case BinTotals() as request:
            return request
        case RequestInCells(request=BinTotals() as request):
            return request
    return None


def bin_total(
    attribute: Attribute,
    classes: Sequence[int],
    totals: NDArray[np.float64],
    shares: Shares,
    deviation: float,
    rows: int,
) -> BinTotal:
    """Divide the totals of a column by what its classes of bins can hold."""
    assert isinstance(attribute.domain, Binning)  # noqa: S101  (only bins have places)
    spans = attribute.domain.spans
    class_of, sizes = np.array(classes[: len(spans)]), np.maximum(shares[: len(spans)], 0)
    means, distance, variance, rounding = [], 0.0, 0.0, 0.0
    for number, total in enumerate(totals.tolist()):
        members = class_of == number
        unit = float(spans[members].max()) / (2 * LARGEST)
        most = float(sizes @ (spans * members)) * rows / 2
        value, error = shrunk(total * unit, deviation=deviation * unit, most=most)
        means.append((1 + value / most) / 2 if most else 0.5)
        distance += value / rows
        variance += error / rows**2
        rounding += float(sizes @ members) * unit  # half a unit by the place, and by the distance
    return BinTotal(Inside(tuple(class_of.tolist()), tuple(means)), distance, variance, rounding)


def shrunk(total: float, *, deviation: float, most: float) -> tuple[float, float]:
    """Return the total that is used, from -most to most, and a bound of its squared error."""
    variance = most**2 / 3
    if not variance:
        return 0.0, 0.0
    weight = variance / (variance + deviation**2)
    value = min(max(weight * total, -most), most)
    return value, (weight * deviation) ** 2 + ((1 - weight) * most) ** 2
