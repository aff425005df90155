"""Confidence intervals for a weighted sum of independent discrete Laplace draws.

Such a sum lies between a single Laplace draw (heavy tails) and a normal one (many equal parts); a
normal interval would be too short and Chebyshev's twice too long. What is known exactly is
the variance and the fourth cumulant. The interval is that of the law which has both and which holds
the two ends and every sum of equal parts exactly: the symmetric variance gamma law, a normal draw
whose variance is gamma distributed with shape 3 / (excess kurtosis). One count is added on either
side: the noise moves in steps of at most one, which matters only where there is hardly any noise.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError

LAPLACE_KURTOSIS = 3.0  # the excess of a single draw, the largest there is for large scales
_GRID = np.linspace(0.0, LAPLACE_KURTOSIS, 61)
_NODES = 4096


def discrete_laplace_fourth_cumulant(scale: Fraction) -> float:
    """2 q (1 + 4 q + q^2) / (1 - q)^4 with q = exp(-1 / scale); near 12 scale^4.

    A draw is the difference of two geometric ones, whose cumulants follow from
    kappa_{n+1} = q d(kappa_n) / dq, starting from kappa_1 = q / (1 - q).
    """
    rate = float(1 / scale)
    ratio = math.exp(-rate)
    return 2 * ratio * (1 + 4 * ratio + ratio**2) / math.expm1(-rate) ** 4


def half_widths(
    variance: NDArray[np.float64], fourth_cumulant: NDArray[np.float64], confidence: float
) -> NDArray[np.float64]:
    """Half the length of the interval that holds the noise with the given probability.

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
    """The |x| not passed with this probability, for unit variance and each kurtosis of the grid."""
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
