"""Skellam noise, for (epsilon, delta).

It is calibrated to the L2 sensitivity. The difference of two
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

[Agarwal21] Agarwal, Kairouz, Liu: The Skellam mechanism for differentially private federated
learning.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from common.errors import LocalError
from common.privacy.budget import rounded
from common.privacy.laws.limits import ONE, TAIL_BITS, in_range, root_from_above
from common.privacy.randomness import RandomSource
from common.privacy.sampling.skellam import LARGEST_VARIANCE, check_variance, skellam, tail
from common.privacy.sensitivity import Sensitivity
from common.privacy.special import integral

_VARIANCE_DIGITS = 12
_NEARLY_NORMAL = 1e8
_NORMAL_ABSOLUTE = 0.7978845608  # sqrt(2 / pi)
# P(|X| > t) = 2^-1, 2^-2, ... for standard normal X, t rounded up.
_NORMAL_DEVIATIONS = (
    0.68, 1.16, 1.54, 1.87, 2.16, 2.42, 2.67, 2.89, 3.1, 3.3, 3.49, 3.67, 3.85, 4.01, 4.17, 4.33,
    4.48, 4.63, 4.77, 4.91, 5.04, 5.17, 5.3, 5.42, 5.55, 5.67, 5.79, 5.9, 6.01, 6.13, 6.24, 6.34,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Skellam:
    """P(k) = exp(-s) I_k(s) with s the variance; see `NoiseLaw`."""

    scale: Fraction

    name = "Skellam"
    norm = 2
    currency = "rho"
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
        root = root_from_above(half**2 + 4 * rho * rest)
        least = min((half + root) / (2 * rho), (half + 3 * l1 / 4) / rho)
        variance = rounded(least, _VARIANCE_DIGITS, up=True)
        return cls(in_range("variance", variance, most=LARGEST_VARIANCE))

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

    @property
    def kurtosis(self) -> int:
        return 0

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


LAW = Skellam
