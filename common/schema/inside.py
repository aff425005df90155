"""Where numbers are drawn inside their bins: along the slope of the bins, and where they heap.

What is known of numbers inside bins is the mean of their places, for classes of neighbouring bins:
0 is the smallest number of a bin, 1 the largest. Without it, numbers follow the slope of the bins
alone (`Binning.slopes`). With it the places t in [0, 1) that follow the slope are moved to

    log(1 + t (exp(k) - 1)) / k

which for places that are equally likely is an exponential density, and keeps their order. One k for
each class is found by bisection, so that the numbers of the class have their mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.schema.binning import Binning, sloped

Floats = NDArray[np.float64]
_STEEPEST = 500.0  # exponents: nearly all of a bin's numbers are then at one of its ends
_HALVINGS = 40
_GRID = 1 << 14  # places of all bins together, by which means are computed
_LEAST_GRID = 32  # places of a bin
_ALMOST_ONE = 1 - 2.0**-53


@dataclass(frozen=True, slots=True)
class Inside:
    """The mean places of an attribute's numbers.

    Attributes:
        classes: the class of each bin; a negative one if nothing is known of it.
        means: of each class, from 0 to 1.
    """

    classes: tuple[int, ...]
    means: tuple[float, ...]

    def as_json(self) -> dict[str, object]:
        return {"classes": list(self.classes), "means": list(self.means)}


def places_of(
    domain: Binning,
    codes: NDArray[np.integer[Any]],
    uniforms: Floats,
    inside: Inside | None = None,
) -> Floats:
    """Return where in their bins numbers are, from uniforms in [0, 1).

    Slopes and exponents follow from the codes and from what is known: they cost no budget. Codes
    beyond the bins are those of empty cells and other values.
    """
    counts = np.bincount(codes, minlength=domain.count)[: domain.count].astype(np.float64)
    slopes = domain.slopes(counts)
    bins = np.minimum(codes, domain.count - 1)
    places = sloped(slopes[bins], uniforms)
    if inside is None:
        return places
    return _tilted(exponents(domain, counts, slopes, inside)[bins], places)


def exponents(domain: Binning, counts: Floats, slopes: Floats, inside: Inside) -> Floats:
    """Return the exponent of every bin, with which the numbers of a class have its mean."""
    grid = max(_LEAST_GRID, _GRID // domain.count)
    along = sloped(slopes[:, None], (np.arange(grid) + 0.5)[None, :] / grid)
    classes = np.array(inside.classes)
    known = (classes >= 0) & (domain.spans > 0)
    number = np.where(known, classes, 0)
    weights = np.where(known, np.maximum(counts, 1e-9) * domain.spans, 0.0)
    totals = np.maximum(np.bincount(number, weights, len(inside.means)), 1e-300)
    goals = np.array(inside.means)
    low, high = np.full(len(goals), -_STEEPEST), np.full(len(goals), _STEEPEST)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        reached = domain.parts(_tilted(middle[number][:, None], along)).mean(axis=1)
        means = np.bincount(number, weights * reached, len(goals)) / totals
        low, high = np.where(means < goals, middle, low), np.where(means < goals, high, middle)
    return np.where(known, ((low + high) / 2)[number], 0.0)


def _tilted(exponent: Floats, places: Floats) -> Floats:
    """Move places along an exponential density; an exponent of 0 leaves them."""
    flat = np.abs(exponent) < 1e-9
    k = np.where(flat, 1.0, exponent)
    # The same from either end: exp() of a large exponent would overflow.
    near = np.where(k > 0, 1 - places, places)
    size = np.abs(k)
    moved = -np.log1p(-near * -np.expm1(-size)) / size
    result = np.where(flat, places, np.where(k > 0, 1 - moved, moved))
    return np.asarray(np.clip(result, 0.0, _ALMOST_ONE), np.float64)
