"""Skellam noise, exact, in vectors.

A Skellam variable of variance s is the difference of two independent Poisson variables of mean
s / 2. P(k) = exp(-s) I_k(s), I_k the modified Bessel function, for every integer k. Sums of
independent Skellam variables are Skellam, and variances add up: m shares of variance s / m make
noise of variance s.

Why the sampler is exact. Beyond a variance of 2^16 a draw is the difference of two Poisson draws,
each exact, at a cost that does not depend on the variance (`poisson`). Up to there a table is
faster. A fair sign is given to an absolute value, which is drawn by inverting its distribution
function between integer bounds (`inversion`). The bounds come from the ratios r_k = I_k(s) /
I_(k-1)(s), of which three facts are known [DLMF, 10.29(i) and 10.37]:

    0 < r_k < 1 for k >= 1,   and   r_k = 1 / (2 k / s + r_(k+1)).

Start at k = N + 1 with the bounds 0 and 1 and go down: r_k falls as r_(k+1) grows, so bounds become
bounds, and their distance shrinks by r_k^2 at each step, to 2^-precision once N is some deviations
out. With q_k = r_1 r_2 .. r_k the law is P(k) = q_|k| / (1 + 2 q_1 + 2 q_2 + ..), where the terms
beyond N make up a mass of at most 2^-precision (`tail`). Every operation is on integers and rounded
outwards. A draw that the bounds do not settle reads more bits and makes tighter ones.

[DLMF] NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache, partial
from itertools import accumulate

import gmpy2
import numpy as np
from numpy.typing import NDArray

from common.errors import LocalError
from common.privacy.randomness import RandomSource
from common.privacy.sampling.inversion import Inversion
from common.privacy.sampling.poisson import Poisson

LARGEST_VARIANCE = 1 << 40
_LARGEST_TABLE_VARIANCE = 1 << 16  # a table of 2^16 takes 6 ms to make
_GUARD_BITS = 64
_CHUNK = 1 << 15
_LN_2_FROM_ABOVE = Fraction(693_147_181, 10**9)
_CURVATURE = Fraction(11, 20)  # cosh x - 1 <= 0.55 x^2 for x <= 1


def skellam(variance: Fraction, count: int, source: RandomSource) -> NDArray[np.int64]:
    """Draw `count` independent integers k with P(k) = exp(-variance) I_k(variance), exactly.

    The variance is above 0 and at most 2^40.
    """
    check_variance(variance)
    if count < 0:
        raise LocalError(f"cannot draw {count} times: give a count of zero or more")
    exact = Fraction(variance)
    small = exact <= _LARGEST_TABLE_VARIANCE
    draw = partial(_signed, _table(exact)) if small else partial(_difference, _poisson(exact / 2))
    result = np.empty(count, dtype=np.int64)
    for start in range(0, count, _CHUNK):
        chunk = result[start : start + _CHUNK]
        chunk[:] = draw(len(chunk), source)
    return result


def check_variance(variance: Fraction) -> None:
    """Refuse a variance that the sampler cannot serve."""
    if not 0 < variance <= LARGEST_VARIANCE:
        raise LocalError(f"a noise variance must lie in (0, 2^40], not {float(variance):g}")


def tail(variance: Fraction, bits: int) -> int:
    """Return k such that |X| > k has a probability of at most 2^-bits, for every smaller s too.

    E exp(x X) = exp(s (cosh x - 1)), so for 0 < x <= 1

        P(|X| >= k) <= 2 exp(s (cosh x - 1) - x k) <= 2 exp(c s x^2 - x k),   c = 0.55,

    because (cosh x - 1) / x^2 grows with x and is 0.5431 at 1. That is at most 2^-bits where
    x k >= T + c s x^2 with T = (bits + 1) ln 2. If T <= c s, take x = sqrt(T / (c s)): it is so
    from k = sqrt(4 c s T) on. Otherwise take x = 1: from k = T + c s on. Neither bound falls when s
    grows.
    """
    exponent = (bits + 1) * _LN_2_FROM_ABOVE
    spread = _CURVATURE * variance
    if exponent <= spread:
        return math.isqrt(math.ceil(4 * spread * exponent)) + 1
    return math.ceil(exponent + spread)


def _signed(table: Inversion, count: int, source: RandomSource) -> NDArray[np.int32]:
    values = table.draw(count, source)
    bits = np.frombuffer(source.random_bytes((count + 7) // 8), dtype=np.uint8)
    negative = np.unpackbits(bits, count=count).view(np.bool_)
    return np.negative(values, out=values, where=negative)


def _difference(poisson: Poisson, count: int, source: RandomSource) -> NDArray[np.int64]:
    values = poisson.draw(2 * count, source)
    return np.subtract(values[:count], values[count:])


@lru_cache(maxsize=64)
def _poisson(mean: Fraction) -> Poisson:
    return Poisson(mean)


@lru_cache(maxsize=64)
def _table(variance: Fraction) -> Inversion:
    return Inversion(lambda bits: _cumulative(variance, bits))


def _cumulative(variance: Fraction, bits: int) -> Iterator[tuple[int, int]]:
    """Yield integer bounds on P(|X| <= k) * 2^bits for k = 0, 1, .. N, rounded outwards.

    The last upper bound is 2^bits. The mass beyond N takes at most one unit from the lower ones.
    """
    precision = bits + _GUARD_BITS
    sums_low, sums_high = (
        list(accumulate(_products(bound, precision, up=up)))
        for bound, up in zip(_ratios(variance, precision), (False, True), strict=True)
    )
    whole_low, whole_high = sums_low[-1], sums_high[-1]
    for low, high in zip(sums_low, sums_high, strict=True):
        upper = -((-high << bits) // whole_low)
        yield max(0, int((low << bits) // whole_high) - 1), min(int(upper), 1 << bits)


def _ratios(variance: Fraction, precision: int) -> tuple[list[gmpy2.mpz], list[gmpy2.mpz]]:
    """Return lower and upper bounds on r_1, r_2, .. r_N, times 2^precision."""
    last = tail(variance, precision)
    one, square = gmpy2.mpz(1) << precision, gmpy2.mpz(1) << 2 * precision
    numerator, denominator = variance.as_integer_ratio()
    step = gmpy2.mpz(2 * denominator) << precision
    low, high = gmpy2.mpz(0), one
    lower, upper = [], []
    for k in range(last, 0, -1):
        twice = k * step
        low, high = (
            square // (-(-twice // numerator) + high),
            min(one, -(-square // (twice // numerator + low))),
        )
        lower.append(low)
        upper.append(high)
    return lower[::-1], upper[::-1]


def _products(ratios: list[gmpy2.mpz], precision: int, *, up: bool) -> Iterator[gmpy2.mpz]:
    """Yield the weights of |X| = 0, 1, .. N: 1 and then 2 r_1 .. r_k, rounded down or up."""
    weight = gmpy2.mpz(1) << precision
    yield weight
    for ratio in ratios:
        weight = -(-weight * ratio >> precision) if up else weight * ratio >> precision
        yield 2 * weight
