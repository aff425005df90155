"""Range counts from prefix sums, each with the exact variance of its noise, and its interval.

A range count is a signed sum of 2^d entries of the d-dimensional prefix sums. Its noise is a
weighted sum of independent draws, and the weights factorise over the axes; so do the sums of their
squares and fourth powers, which give the exact variance and fourth cumulant whatever the data is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError
from common.privacy.sampling.discrete_laplace import discrete_laplace_variance
from common.wavelet.axis import Reach
from common.wavelet.decisions import Plan

LAPLACE_KURTOSIS = 3.0  # the excess of a single draw, the largest there is for large scales
_GRID = np.linspace(0.0, LAPLACE_KURTOSIS, 61)
_NODES = 4096


def discrete_laplace_fourth_cumulant(scale: Fraction) -> float:
    """Return 2 q (1 + 4 q + q^2) / (1 - q)^4 with q = exp(-1 / scale); near 12 scale^4.

    A draw is the difference of two geometric ones, whose cumulants follow from
    kappa_{n+1} = q d(kappa_n) / dq, starting from kappa_1 = q / (1 - q).
    """
    rate = float(1 / scale)
    ratio = math.exp(-rate)
    return 2 * ratio * (1 + 4 * ratio + ratio**2) / math.expm1(-rate) ** 4


def half_widths(
    variance: NDArray[np.float64], fourth_cumulant: NDArray[np.float64], confidence: float
) -> NDArray[np.float64]:
    """Return half the length of the interval that holds the noise with the given probability.

    A weighted sum of independent discrete Laplace draws lies between a single one (heavy tails) and
    a normal one (many equal parts); a normal interval would be too short and Chebyshev's twice too
    long. What is known exactly is the variance and the fourth cumulant. The interval is that of the
    law which has both and which holds the two ends and every sum of equal parts exactly: the
    symmetric variance gamma law, a normal draw whose variance is gamma distributed with shape
    3 / (excess kurtosis). One count is added on either side: the noise moves in steps of at most
    one, which matters only where there is hardly any noise.

    Raises:
        InputError: a confidence that is not between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise InputError(f"a confidence lies between 0 and 1, like 0.95; not {confidence}")
    excess = np.clip(fourth_cumulant / variance**2, 0.0, LAPLACE_KURTOSIS)
    quantile = np.interp(excess, _GRID, _quantiles(confidence))
    return quantile * np.sqrt(variance) + 1.0


@lru_cache(maxsize=32)
def _quantiles(confidence: float) -> NDArray[np.float64]:
    """Return the quantile of |x| at unit variance for each kurtosis of the grid."""
    from scipy import special  # slow to load, and only Privelet's answers need it

    shapes = LAPLACE_KURTOSIS / _GRID[1:, None]
    middles = (np.arange(_NODES) + 0.5) / _NODES
    spread = np.sqrt(2 * special.gammaincinv(shapes, middles) / shapes)
    low, high = np.zeros(len(shapes)), np.full(len(shapes), 50.0)
    for _ in range(50):  # bisection; the tail decreases in x
        middle = (low + high) / 2
        tail = special.erfc(middle[:, None] / spread).mean(axis=1)
        low = np.where(tail > 1 - confidence, middle, low)
        high = np.where(tail > 1 - confidence, high, middle)
    normal = math.sqrt(2) * float(special.erfinv(confidence))
    return np.concatenate(([normal], high))


_AT_ONCE = 1 << 18


def prefix_sums(cells: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the matrix whose entry (x_1, .., x_d) sums all cells up to and including it.

    One copy of the cells; numpy's own in-place cumsum would make another.
    """
    sums = cells.copy()
    for axis, length in enumerate(sums.shape):
        before = math.prod(sums.shape[:axis])
        view = sums.reshape(before, length, -1)
        step = max(1, _AT_ONCE // (length * view.shape[2]))
        if step > 1 or view.shape[2] == 1:
            for start in range(0, before, step):
                view[start : start + step] = np.cumsum(view[start : start + step], axis=1)
        else:
            for position in range(1, length):
                view[:, position] += view[:, position - 1]
    return sums


def range_sums(sums: NDArray[np.float64], reaches: Sequence[Reach]) -> NDArray[np.float64]:
    """Return the sum of the cells of each box, from prefix sums: O(2^d) per box."""
    flat = sums.reshape(-1)
    strides = [math.prod(sums.shape[axis + 1 :]) for axis in range(sums.ndim)]
    total = np.zeros(len(reaches[0].low))
    upper = [(r.high.astype(np.intp) - 1) * s for r, s in zip(reaches, strides, strict=True)]
    lower = [(r.low.astype(np.intp) - 1) * s for r, s in zip(reaches, strides, strict=True)]
    for corner in itertools.product((False, True), repeat=sums.ndim):
        place = np.zeros(len(total), dtype=np.intp)
        inside = np.ones(len(total), dtype=np.bool_)
        for axis, low in enumerate(corner):
            place += lower[axis] if low else upper[axis]
            if low:
                inside &= reaches[axis].low > 0  # nothing lies before the first cell
        entry = flat[np.where(inside, place, 0)]
        total += np.where(inside, -entry if sum(corner) % 2 else entry, 0.0)
    return total


class NoiseMoments:
    """Variance and fourth cumulant of the noise in range counts under a plan."""

    def __init__(self, plan: Plan) -> None:
        multipliers = plan.class_multipliers()
        scales = [plan.scale * Fraction(int(m)) for m in multipliers.flat]
        self._variances = _shaped(map(discrete_laplace_variance, scales), multipliers, 2)
        self._cumulants = _shaped(map(discrete_laplace_fourth_cumulant, scales), multipliers, 4)

    def variances(self, reaches: Sequence[Reach]) -> NDArray[np.float64]:
        """Return the exact variance of each answer."""
        return _contract(self._variances, [reach.second for reach in reaches])

    def fourth_cumulants(self, reaches: Sequence[Reach]) -> NDArray[np.float64]:
        """Return the exact fourth cumulant of each answer."""
        return _contract(self._cumulants, [reach.fourth for reach in reaches])


def _shaped(
    values: Iterable[float], multipliers: NDArray[np.float64], power: int
) -> NDArray[np.float64]:
    """Return the moments of weighted coefficients from those of integer ones."""
    return np.array(list(values)).reshape(multipliers.shape) / multipliers**power


def _contract(
    per_class: NDArray[np.float64], weights: Sequence[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Sum over all combinations of classes of the moment times the product of the weights."""
    result = np.broadcast_to(per_class, (len(weights[0]), *per_class.shape))
    for weight in weights:
        result = np.einsum("qc...,qc->q...", result, weight)
    return result
