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
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.methods.subn_plus.descent import RequestInCells
from common.methods.subn_plus.totals import LARGEST, BinTotals
from common.release.measured import Shares, rows_of, study_shares, variance_of
from common.schema.attribute import Attribute
from common.schema.binning import Binning
from common.schema.inside import Inside
from common.study.document import Study
from common.study.results import read_cells
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
    """Return what the published totals of a study tell, by attribute."""
    totals: dict[int, BinTotal] = {}
    shares = None
    for step, result in zip(steps, results, strict=True):
        request = totals_of(step)
        if request is None:
            continue
        shares = study_shares(study, steps, results) if shares is None else shares
        rows = rows_of(study, step.parties)
        answer = request.split(read_cells(result, step.cells))
        deviation = math.sqrt(variance_of(study, step))
        for a, classes in zip(request.columns, request.classes, strict=True):
            known = shares[a]
            if known is not None:
                totals[a] = bin_total(
                    study.schema.attributes[a], classes, answer[a], known, deviation, rows
                )
    return totals


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
    totals: NDArray[np.int64],
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
