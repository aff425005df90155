"""Discrete Laplace noise, for pure epsilon.

It is calibrated to the L1 sensitivity. P(k) is proportional to alpha^|k|, with alpha =
exp(-1/scale), for every integer k. An integer statistic of L1 sensitivity s, plus such noise in
each cell, is (s / scale)-differentially private [Ghosh09].
Whole noise is drawn by `sampling.discrete_laplace`, shares of it by `sampling.polya`. Its bound:
- Discrete Laplace, P(Z = k) = (1 - alpha)/(1 + alpha) * alpha^|k|: for k >= 1,
  P(|Z| >= k) = 2 alpha^k / (1 + alpha) <= 2 alpha^k.
- A Polya share X - Y, X and Y negative binomial NB(1/m, alpha): m independent copies of X add up
  to a geometric G with P(G >= k) = alpha^k, and none is negative, so P(X >= k) <= alpha^k, the
  same for Y, and P(|X - Y| >= k) <= P(X >= k) + P(Y >= k) <= 2 alpha^k.
So the probability that any of `draws` draws passes B is at most 2 * draws * alpha^(B + 1) <= 2^-128
when B >= scale * ln 2 * (129 + log2(draws)).

[Ghosh09] Ghosh, Roughgarden, Sundararajan: Universally utility-maximizing privacy mechanisms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from common.errors import LocalError
from common.privacy.laws.limits import ONE, TAIL_BITS, in_range
from common.privacy.randomness import RandomSource
from common.privacy.sampling.discrete_laplace import (
    LARGEST_SCALE,
    check_scale,
    discrete_laplace,
    discrete_laplace_variance,
)
from common.privacy.sampling.polya import polya_shares
from common.privacy.sensitivity import Sensitivity
from common.privacy.special import integral

_LN_2_FROM_ABOVE = Fraction(693_147_181, 10**9)
KURTOSIS = 3.0
"""The excess of a single draw of continuous noise: of all laws and sums, the most for its scale."""


def tail(deviation: float, *, draws: int, chance: float) -> float:
    """Return what none of `draws` draws of continuous noise passes, but with probability `chance`.

    The tails of Laplace noise are longer than those of any sum of shares or of Skellam noise, so
    it also holds for these.
    """
    return deviation * math.log(draws / chance) / math.sqrt(2)


@dataclass(frozen=True, slots=True)
class DiscreteLaplace:
    """P(k) proportional to exp(-|k| / scale); see `NoiseLaw`."""

    scale: Fraction

    name = "discrete Laplace"
    norm = 1
    currency = "epsilon"
    parameter = "scale"

    def __post_init__(self) -> None:
        check_scale(self.scale)

    @classmethod
    def costing(cls, epsilon: Fraction, *, sensitivity: Sensitivity) -> DiscreteLaplace:
        """Return the law under which an answer of this sensitivity costs `epsilon`."""
        return cls(in_range("scale", sensitivity.l1 / epsilon, most=LARGEST_SCALE))

    def cost(self, sensitivity: Sensitivity) -> Fraction:
        """Return epsilon = L1 sensitivity / scale."""
        return sensitivity.l1 / self.scale

    def draw(self, count: int, source: RandomSource) -> NDArray[np.int64]:
        return discrete_laplace(self.scale, count, source)

    def draw_share(self, count: int, *, makers: int, source: RandomSource) -> NDArray[np.int64]:
        """Draw a Polya share, one of `makers`."""
        return polya_shares(self.scale, count, source, parties=makers)

    @property
    def nominal_variance(self) -> Fraction:
        """The variance of continuous Laplace noise: 2 scale^2."""
        return 2 * self.scale**2

    @property
    def nominal_absolute(self) -> float:
        """That of continuous Laplace noise: the scale."""
        return float(self.scale)

    @property
    def kurtosis(self) -> int:
        return 3

    def deviations(self, bits: int) -> float:
        """Return t / deviation, as P(|X| > t) = exp(-t / scale); a deviation is sqrt(2) scales."""
        return bits * float(_LN_2_FROM_ABOVE) / math.sqrt(2)

    def variance(self, copies: Fraction = ONE) -> float:
        return float(copies) * discrete_laplace_variance(self.scale)

    def mean_absolute(self, copies: Fraction = ONE) -> float:
        """Return E|X|, exactly.

        The characteristic function of the noise is a power of the discrete Laplace's:
        phi = (1 + s^2 u^2 / (1 + u^2))^-copies with u = tan(angle / 2), s = 2 sqrt(q) / (1 - q) and
        q = exp(-1 / scale). For an integer X, E|X| is the integral of (1 - phi) / u^2 over all
        u > 0, divided by pi.
        """
        root = math.exp(-1 / (2 * float(self.scale)))
        spread = 2 * root / -math.expm1(-1 / float(self.scale))
        if spread == 0.0:
            return 0.0
        if copies == 1:
            return 2 * root**2 / (-math.expm1(-2 / float(self.scale)))

        def height(angle: NDArray[np.float64]) -> NDArray[np.float64]:
            # u = tan(angle) / spread takes the half line to a quarter of a circle.
            tangent = np.tan(angle)
            inside = tangent**2 / (1 + (tangent / spread) ** 2)
            bends = -np.expm1(-float(copies) * np.log1p(inside))
            return np.asarray(bends / np.sin(angle) ** 2, dtype=np.float64)

        bend = math.atan(spread)
        area = integral(height, 0.0, bend) + integral(height, bend, math.pi / 2)
        return spread * area / math.pi

    def bound(self, draws: int) -> int:
        if draws < 1:
            raise LocalError(f"a noise bound is about at least one draw, not {draws}")
        exponent_bits = TAIL_BITS + 1 + (draws - 1).bit_length()
        return math.ceil(self.scale * _LN_2_FROM_ABOVE * exponent_bits)

    def times(self, factor: Fraction) -> DiscreteLaplace:
        """Return the law of `factor` times the scale."""
        return DiscreteLaplace(self.scale * factor)


LAW = DiscreteLaplace
