"""Noise laws: everything that the rest of the program may ask about the noise in a count.

A law is one object. No formula of a law is written anywhere else: what draws noise, weighs it,
bounds its tail or charges for it asks the law. `copies` is how much of a law's noise a sum carries:
1 for a single draw; K / (K - t) for the shares of K parties, of which any K - t make up the whole
noise.

**Discrete Laplace noise** is for pure epsilon, calibrated to the L1 sensitivity. P(k) is
proportional to alpha^|k| with alpha = exp(-1/scale), for every integer k. An integer statistic of
L1 sensitivity s, plus such noise in each cell, is (s / scale)-differentially private [Ghosh09].
Whole noise is drawn by `sampling.discrete_laplace`, shares of it by `sampling.polya`. Its bound:
- Discrete Laplace, P(Z = k) = (1 - alpha)/(1 + alpha) * alpha^|k|: for k >= 1,
  P(|Z| >= k) = 2 alpha^k / (1 + alpha) <= 2 alpha^k.
- A Polya share X - Y, X and Y negative binomial NB(1/m, alpha): m independent copies of X add up
  to a geometric G with P(G >= k) = alpha^k, and none is negative, so P(X >= k) <= alpha^k, the
  same for Y, and P(|X - Y| >= k) <= P(X >= k) + P(Y >= k) <= 2 alpha^k.
So the probability that any of `draws` draws passes B is at most 2 * draws * alpha^(B + 1) <= 2^-128
when B >= scale * ln 2 * (129 + log2(draws)).

**Skellam noise** is for (epsilon, delta), calibrated to the L2 sensitivity. The difference of two
independent Poisson variables of mean s / 2 has variance s. It is closed under addition, so any m
shares of variance s / m ARE the noise of variance s: no approximation, whichever parties collude.
Drawn by `sampling.skellam`. Its cost: between neighbours whose exact answers, integer vectors,
differ by D1 in the L1 norm and D2 in the L2 norm, the Renyi divergence of every integer order
a >= 2 is at most

    a D2^2 / (2 s) + min( ((2 a - 1) D2^2 + 6 D1) / (4 s^2), 3 D1 / (2 s) )    [Agarwal21, Thm 3.5].

Both are of the form a x + c, and a x + c <= a (x + max(c, 0) / 2) because a >= 2. So the cost, in
the sense of `common.privacy.spending`, is at most the smaller of

    D2^2 / (2 s) + D2^2 / (2 s^2) + max(6 D1 - D2^2, 0) / (8 s^2)   and
    D2^2 / (2 s) + 3 D1 / (4 s),

a fraction when D1, D2^2 and s are. Both fall when s grows. With D1 and D2 both k times as large
each is at most k^2 times as large, for a whole k.

[Ghosh09] Ghosh, Roughgarden, Sundararajan: Universally utility-maximizing privacy mechanisms.
[Agarwal21] Agarwal, Kairouz, Liu: The Skellam mechanism for differentially private federated
learning.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError, LocalError
from common.privacy.budget import root_from_below, rounded
from common.privacy.randomness import RandomSource
from common.privacy.sampling.discrete_laplace import (
    LARGEST_SCALE,
    check_scale,
    discrete_laplace,
    discrete_laplace_variance,
)
from common.privacy.sampling.polya import polya_shares
from common.privacy.sampling.skellam import LARGEST_VARIANCE, check_variance, skellam, tail
from common.privacy.sensitivity import Sensitivity
from common.privacy.special import integral

ONE = Fraction(1)
TAIL_BITS = 128
"""Noise passes its bound with probability at most 2^-TAIL_BITS."""
_LN_2_FROM_ABOVE = Fraction(693_147_181, 10**9)
_EQUIVALENT_BITS = 64
_VARIANCE_DIGITS = 12
_ROOT_BITS = 128
_NEARLY_NORMAL = 1e8
_NORMAL_ABSOLUTE = 0.7978845608  # sqrt(2 / pi)
# P(|X| > t) = 2^-1, 2^-2, ... for standard normal X, t rounded up.
_NORMAL_DEVIATIONS = (
    0.68, 1.16, 1.54, 1.87, 2.16, 2.42, 2.67, 2.89, 3.1, 3.3, 3.49, 3.67, 3.85, 4.01, 4.17, 4.33,
    4.48, 4.63, 4.77, 4.91, 5.04, 5.17, 5.3, 5.42, 5.55, 5.67, 5.79, 5.9, 6.01, 6.13, 6.24, 6.34,
)  # fmt: skip


class NoiseLaw(Protocol):
    """Integer noise, independent in every cell of an answer."""

    @property
    def name(self) -> str:
        """Its name in the statement."""

    @property
    def norm(self) -> int:
        """The norm of the sensitivity that it is calibrated to: 1 or 2."""

    @property
    def scale(self) -> Fraction:
        """Its one parameter, for people and for digests."""

    @property
    def parameter(self) -> str:
        """The kind of that parameter: "scale" or "variance"."""

    def cost(self, sensitivity: Sensitivity) -> Fraction:
        """Return what an answer of this sensitivity costs the rows that it is about.

        In the currency of the promise that the law serves (`common.privacy.promise`).
        """

    def draw(self, count: int, source: RandomSource) -> NDArray[np.int64]:
        """Draw whole noise for `count` cells."""

    def draw_share(self, count: int, *, makers: int, source: RandomSource) -> NDArray[np.int64]:
        """Draw one share for `count` cells; `makers` independent shares add up to the noise."""

    @property
    def nominal_variance(self) -> Fraction:
        """The variance of the continuous law of this scale, for decisions on exact fractions."""

    @property
    def nominal_absolute(self) -> float:
        """The mean absolute value of the continuous law of this scale, for forecasts."""

    def deviations(self, bits: int) -> float:
        """Return how many deviations a draw passes with a chance of 2^-bits, or a little less."""

    def variance(self, copies: Fraction = ONE) -> float:
        """Return the variance of the noise in one cell."""

    def mean_absolute(self, copies: Fraction = ONE) -> float:
        """Return E|noise| in one cell."""

    def bound(self, draws: int) -> int:
        """Return what none of `draws` draws or shares passes, but with probability 2^-128."""

    def times(self, factor: Fraction) -> NoiseLaw:
        """Return the law of noise that is `factor` times as large."""


@dataclass(frozen=True, slots=True)
class DiscreteLaplace:
    """P(k) proportional to exp(-|k| / scale); see `NoiseLaw`."""

    scale: Fraction

    name = "discrete Laplace"
    norm = 1
    parameter = "scale"

    def __post_init__(self) -> None:
        check_scale(self.scale)

    @classmethod
    def costing(cls, epsilon: Fraction, *, sensitivity: Sensitivity) -> DiscreteLaplace:
        """Return the law under which an answer of this sensitivity costs `epsilon`."""
        return cls(_in_range("scale", sensitivity.l1 / epsilon, most=LARGEST_SCALE))

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


@dataclass(frozen=True, slots=True)
class Skellam:
    """P(k) = exp(-s) I_k(s) with s the variance; see `NoiseLaw`."""

    scale: Fraction

    name = "Skellam"
    norm = 2
    parameter = "variance"

    def __post_init__(self) -> None:
        check_variance(self.scale)

    @classmethod
    def costing(cls, rho: Fraction, *, sensitivity: Sensitivity) -> Skellam:
        """Return the law of the least variance, to twelve digits, that costs at most `rho`.

        The first bound is at most rho from the larger root of rho s^2 - b s - c on, with
        b = D2^2 / 2 and c = D2^2 / 2 + max(6 D1 - D2^2, 0) / 8; the second from
        (b + 3 D1 / 4) / rho on. Roots are rounded up.
        """
        l1, squared = sensitivity.l1, sensitivity.l2_squared
        half, rest = squared / 2, squared / 2 + max(6 * l1 - squared, Fraction(0)) / 8
        root = _root_from_above(half**2 + 4 * rho * rest)
        least = min((half + root) / (2 * rho), (half + 3 * l1 / 4) / rho)
        variance = rounded(least, _VARIANCE_DIGITS, up=True)
        return cls(_in_range("variance", variance, most=LARGEST_VARIANCE))

    def cost(self, sensitivity: Sensitivity) -> Fraction:
        """Return rho; see above."""
        variance, l1, squared = self.scale, sensitivity.l1, sensitivity.l2_squared
        small = 4 * squared + max(6 * l1 - squared, Fraction(0))
        return squared / (2 * variance) + min(small / (8 * variance**2), 3 * l1 / (4 * variance))

    def draw(self, count: int, source: RandomSource) -> NDArray[np.int64]:
        return skellam(self.scale, count, source)

    def draw_share(self, count: int, *, makers: int, source: RandomSource) -> NDArray[np.int64]:
        """Draw a share, one of `makers`: Skellam noise of a part of the variance."""
        if makers < 1:
            raise LocalError(f"cannot draw a share for {makers} parties")
        return skellam(self.scale / makers, count, source)

    @property
    def nominal_variance(self) -> Fraction:
        return self.scale

    @property
    def nominal_absolute(self) -> float:
        """That of normal noise of this variance."""
        return _NORMAL_ABSOLUTE * math.sqrt(self.scale)

    def deviations(self, bits: int) -> float:
        """Return those of normal noise, from a table: a sum of many draws is nearly that."""
        return _NORMAL_DEVIATIONS[min(bits, len(_NORMAL_DEVIATIONS)) - 1]

    def variance(self, copies: Fraction = ONE) -> float:
        return float(copies * self.scale)

    def mean_absolute(self, copies: Fraction = ONE) -> float:
        """Return E|X| = s exp(-s) (I_0(s) + I_1(s)) at the variance of all copies.

        Bessel's integral [DLMF 10.32.1, 10.32.3]: exp(-s) I_n(s) is the mean of
        exp(s (cos(angle) - 1)) cos(n angle) over half a circle.
        """
        variance = self.variance(copies)
        if variance > _NEARLY_NORMAL:  # the two agree to 1 / (8 s)
            return math.sqrt(2 * variance / math.pi)

        def height(angle: NDArray[np.float64]) -> NDArray[np.float64]:
            cosine = np.cos(angle)
            return np.asarray(
                np.exp(-2 * variance * np.sin(angle / 2) ** 2) * (1 + cosine), dtype=np.float64
            )

        bend = min(8 / math.sqrt(max(variance, 1.0)), math.pi)
        area = integral(height, 0.0, bend) + integral(height, bend, math.pi)
        return variance * area / math.pi

    def bound(self, draws: int) -> int:
        if draws < 1:
            raise LocalError(f"a noise bound is about at least one draw, not {draws}")
        return tail(self.scale, TAIL_BITS + (draws - 1).bit_length())

    def times(self, factor: Fraction) -> Skellam:
        """Return the law of `factor` times the standard deviation."""
        return Skellam(self.scale * factor**2)


def _in_range(parameter: str, value: Fraction, *, most: int) -> Fraction:
    """Refuse a study whose noise no sampler draws: its terms ask for too much of it."""
    if value > most:
        raise InputError(
            f"epsilon: an answer needs noise of {parameter} {float(value):.3g}, and at most "
            f"{float(most):.3g} can be drawn. Choose a larger epsilon or delta, fewer attributes, "
            "or smaller rows_per_person and owners_per_person"
        )
    return value


def _root_from_above(value: Fraction) -> Fraction:
    """Return at least the square root, more by at most a relative 2^-127 where the root is >= 1."""
    scaled = -(-(value.numerator << 2 * _ROOT_BITS) // value.denominator)
    return Fraction(math.isqrt(scaled) + 1, 1 << _ROOT_BITS)


def pure_equivalent(law: NoiseLaw, sensitivity: Sensitivity) -> Fraction:
    """Return the epsilon at which Laplace noise of this sensitivity has the law's variance.

    For rules that are written for Laplace noise. Exact for that law, rounded down for others.
    """
    squared = 2 * sensitivity.l1**2 / law.nominal_variance
    return root_from_below(squared, _EQUIVALENT_BITS)
