"""Noise shares: m parties each add one, and the sum is discrete Laplace noise.

A geometric variable is infinitely divisible: the sum of m independent negative binomials NB(1/m, q)
is geometric with ratio q, and the difference of two geometrics is discrete Laplace. So party k adds
NB(1/m, q) - NB(1/m, q) with q = exp(-1/scale), and no party, nor the one who adds up, knows or can
leave out the noise of the others. With m parties the sum is exactly discrete Laplace of that scale;
if more than m parties add shares there is more noise, never less privacy.

    P(k) = (1 - q)^r q^k (r)(r + 1)..(r + k - 1) / k!,   r = 1/m,
    P(k + 1) = P(k) q (k + r) / (k + 1).

Why the sampler is exact. For small scales the distribution function is inverted, its thresholds
known between integer bounds with outward rounding and refined until a draw is settled: see
`inversion`. For larger scales the table would be too long, and `blocks` draws by exact rejection.
In neither is a probability ever rounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import count as counter

import gmpy2
import numpy as np
from numpy.typing import NDArray

from common.errors import LocalError
from common.privacy.randomness import RandomSource
from common.privacy.sampling.blocks import PolyaBlocks
from common.privacy.sampling.discrete_laplace import check_scale
from common.privacy.sampling.enclosure import exponential_bounds
from common.privacy.sampling.inversion import Inversion

_LARGEST_TABLE_SCALE = 1 << 14
_LARGEST_CHEAP_SCALE = 1 << 8
_DRAWS_FOR_A_TABLE = 64
_GUARD_BITS = 64
_CHUNK = 1 << 15


def polya_shares(
    scale: Fraction, count: int, source: RandomSource, *, parties: int
) -> NDArray[np.int64]:
    """Draw `count` independent shares; those of m = `parties` parties make noise of this scale.

    `parties` counts those whose shares no other party knows.
    """
    check_scale(scale)
    if parties < 1 or count < 0:
        raise LocalError(f"cannot draw {count} shares for {parties} parties")
    exact = Fraction(scale)
    halves = _table(exact, parties) if _worth_a_table(exact, count) else _blocks(exact, parties)
    result = np.empty(count, dtype=np.int64)
    for start in range(0, count, _CHUNK):
        chunk = result[start : start + _CHUNK]
        drawn = halves.draw(2 * len(chunk), source)
        np.subtract(drawn[: len(chunk)], drawn[len(chunk) :], out=chunk)
    return result


def _worth_a_table(scale: Fraction, count: int) -> bool:
    """Choose between two exact ways: a table draws faster, and takes 50 us * scale to make."""
    return scale <= _LARGEST_TABLE_SCALE and (
        scale <= _LARGEST_CHEAP_SCALE or count > _DRAWS_FOR_A_TABLE * scale
    )


@lru_cache(maxsize=32)
def _table(scale: Fraction, parties: int) -> Inversion:
    return Inversion(lambda bits: _cumulative(scale, parties, bits))


@lru_cache(maxsize=32)
def _blocks(scale: Fraction, parties: int) -> PolyaBlocks:
    return PolyaBlocks(scale, parties)


def _cumulative(scale: Fraction, parties: int, bits: int) -> Iterator[tuple[int, int]]:
    """Yield integer bounds on F(0) * 2^bits, F(1) * 2^bits, ... without end, rounded outwards.

    The first probability (1 - q)^(1/m) is an integer root of integer bounds on 1 - q. Each later
    one loses at most two units of 2^-precision, so k terms are known to k^2 such units together.
    """
    precision = bits + _GUARD_BITS
    ratio_low, ratio_high = map(gmpy2.mpz, exponential_bounds(1 / scale, precision))
    one = gmpy2.mpz(1) << precision
    padding = precision * (parties - 1)
    low = gmpy2.iroot((one - ratio_high) << padding, parties)[0]
    high = gmpy2.iroot((one - ratio_low) << padding, parties)[0] + 1
    sum_low, sum_high = gmpy2.mpz(0), gmpy2.mpz(0)
    for value in counter():
        sum_low += low
        sum_high += high
        yield int(sum_low >> _GUARD_BITS), int(-(-sum_high >> _GUARD_BITS))
        numerator, denominator = value * parties + 1, (value + 1) * parties
        low = low * ratio_low * numerator // denominator >> precision
        high = -(-high * ratio_high * numerator // denominator >> precision)
