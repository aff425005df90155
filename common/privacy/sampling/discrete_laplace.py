"""Discrete Laplace noise, exact, in vectors.

P(k) is proportional to q^|k| with q = exp(-1/scale), for every integer k. An integer statistic of
L1 sensitivity s, plus such noise in each cell, is (s / scale)-differentially private [Ghosh09].

Why the sampler is exact. The law is a mixture: zero with probability (1 - q) / (1 + q), otherwise
a fair sign times 1 + G, where G is geometric, P(G = g) = (1 - q) q^g. So zero is counted once and
nothing is rejected. The binary digits of G are independent: q^g is the product of q^(2^j) over the
digits j that are one, hence digit j is one with probability q^(2^j) / (1 + q^(2^j)). The J lowest
digits are drawn so; what is left, G div 2^J, is independent of them and geometric with ratio
q^(2^J), and is drawn by counting successes of that probability. Every coin compares a uniform real
with a transcendental number. Its first 16 bits are compared with bounds on the number; where they
do not settle it (about once in 65,536 coins) `coins` reads more bits until it is settled. No
probability is ever rounded, and the work does not depend on the value drawn, but for those rare
continuations.

Limits. Results are int64, so a draw of 2^62 or more raises LocalError instead of wrapping. For the
largest scale accepted, 2^40, its probability is below exp(-2^22); this is the one event in which
the law departs from the infinite one.

[Ghosh09] Ghosh, Roughgarden, Sundararajan: Universally utility-maximizing privacy mechanisms.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from common.errors import LocalError
from common.privacy.randomness import RandomSource
from common.privacy.sampling.enclosure import Coins, digit_count, exponential, half_tangent, odds

LARGEST_SCALE = 1 << 40
_LARGEST_DRAW = 1 << 62
_MORE = 1  # the coin for a high part
_CHUNK = 1 << 14  # a chunk's coins stay in the cache


def discrete_laplace(scale: Fraction, count: int, source: RandomSource) -> NDArray[np.int64]:
    """Draw `count` independent integers k with P(k) proportional to exp(-|k| / scale), exactly.

    The scale is above 0 and at most 2^40. An integer statistic with L1 sensitivity s, released with
    such noise, costs epsilon = s / scale.
    """
    check_scale(scale)
    if count < 0:
        raise LocalError(f"cannot draw {count} times: give a count of zero or more")
    coins, digits = _coins(Fraction(scale))
    result = np.empty(count, dtype=np.int64)
    for start in range(0, count, _CHUNK):
        chunk = result[start : start + _CHUNK]
        chunk[:] = _draw(coins, digits, len(chunk), source)
    return result


def discrete_laplace_variance(scale: Fraction) -> float:
    """Return the variance 2 q / (1 - q)^2 with q = exp(-1/scale)."""
    check_scale(scale)
    rate = float(1 / Fraction(scale))
    return 2.0 * math.exp(-rate) / math.expm1(-rate) ** 2


def check_scale(scale: Fraction) -> None:
    """Refuse a scale that no sampler here can serve."""
    if not 0 < scale <= LARGEST_SCALE:
        raise LocalError(f"a noise scale must lie in (0, 2^40], not {scale}")


@lru_cache(maxsize=256)
def _coins(scale: Fraction) -> tuple[Coins, int]:
    """Return the coins of one scale, and the number of digits.

    In order: is it zero; is there anything beyond 2^digits; the digits from the highest down.
    """
    digits = digit_count(scale)
    coins = Coins(
        [
            half_tangent(1 / scale),
            exponential(2**digits / scale),
            *(odds(2**digit / scale) for digit in reversed(range(digits))),
        ]
    )
    return coins, digits


def _draw(coins: Coins, digits: int, count: int, source: RandomSource) -> NDArray[np.int64]:
    zero, more, *ones = coins.toss(count, source)
    geometric = np.zeros(count, dtype=np.int64)
    for one in ones:
        geometric += geometric
        geometric += one
    for position in np.flatnonzero(more):
        geometric[position] += _beyond(coins, digits, source)
    negative = np.unpackbits(
        np.frombuffer(source.random_bytes((count + 7) // 8), dtype=np.uint8), count=count
    ).view(np.bool_)
    geometric += 1
    geometric[zero] = 0
    return np.negative(geometric, out=geometric, where=negative)


def _beyond(coins: Coins, digits: int, source: RandomSource) -> int:
    """Draw 2^digits times the high part of a geometric that has a high part of one or more."""
    high = 1
    while coins.toss_one(_MORE, source):
        high += 1
        if high << digits >= _LARGEST_DRAW:
            raise LocalError("a noise draw left the 64-bit integers (its chance: below e^-(2^22))")
    return high << digits
