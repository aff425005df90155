"""Noise shares: m parties each add one, and the sum is discrete Laplace noise.

A geometric variable is infinitely divisible: the sum of m independent negative binomials NB(1/m, q)
is geometric with ratio q, and the difference of two geometrics is discrete Laplace. So party k adds
NB(1/m, q) - NB(1/m, q) with q = exp(-1/scale), and no party, nor the one who adds up, knows or can
leave out the noise of the others. With m parties the sum is exactly discrete Laplace of that scale;
if more than m parties add shares there is more noise, never less privacy.

    P(k) = (1 - q)^r q^k (r)(r + 1)..(r + k - 1) / k!,   r = 1/m,
    P(k + 1) = P(k) q (k + r) / (k + 1).

Why the sampler is exact. It inverts the distribution function at a uniform real. The thresholds
are known between integer bounds, computed with outward rounding; the first 64 bits of the uniform
settle the answer unless they fall between the bounds of a threshold or beyond the table, with
probability below 2^-40. Then more bits are read, and bounds recomputed to more places, until it is
settled (`_invert`). The answer is the one that infinite precision would have given. A guide table
over the first 16 bits settles most draws without the other 48.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import count as counter

import gmpy2
import numpy as np
from numpy.typing import NDArray

from common.errors import LocalError
from common.privacy.enclosure import exponential_bounds, extend
from common.privacy.laplace import check_scale
from common.privacy.randomness import RandomSource

_LARGEST_TABLE_SCALE = 1 << 14
_WORD_BITS = 64
_GUIDE_BITS = 16
_GUARD_BITS = 64
_CHUNK = 1 << 15


def polya_shares(
    scale: Fraction, parties: int, count: int, source: RandomSource
) -> NDArray[np.int64]:
    """`count` independent shares of discrete Laplace noise of scale `scale`, one of m = `parties`.

    Args:
        scale: of the noise that the sum of `parties` shares is to have.
        parties: how many shares make up the whole noise: the parties whose shares nobody else
            knows.
        count: how many shares, one for each cell.
        source: where the random bits come from.
    """
    check_scale(scale)
    if parties < 1 or count < 0:
        raise LocalError(f"cannot draw {count} shares for {parties} parties")
    if scale > _LARGEST_TABLE_SCALE:
        raise LocalError("scale too large")
    table = _table(Fraction(scale), parties)
    result = np.empty(count, dtype=np.int64)
    for start in range(0, count, _CHUNK):
        chunk = result[start : start + _CHUNK]
        halves = _draw(table, 2 * len(chunk), source)
        np.subtract(halves[: len(chunk)], halves[len(chunk) :], out=chunk)
    return result


@dataclass(frozen=True)
class _Table:
    """Bounds on the distribution function F(k) * 2^64, and what 16 bits alone settle (else -1).

    `lower` has one entry more than `upper`, whose last bound would be 2^64 and exclude nothing.
    """

    scale: Fraction
    parties: int
    lower: NDArray[np.uint64]
    upper: NDArray[np.uint64]
    guide: NDArray[np.int32]

    def settle(self, words: NDArray[np.uint64]) -> NDArray[np.int32]:
        """The value that each 64-bit word settles, or -1."""
        values = np.searchsorted(self.upper, words, side="right").astype(np.int32)
        values[words >= self.lower[values]] = -1
        return values


@lru_cache(maxsize=32)
def _table(scale: Fraction, parties: int) -> _Table:
    lower: list[int] = []
    upper: list[int] = []
    for low, high in _cumulative(scale, parties, _WORD_BITS):
        lower.append(low)
        if high == 1 << _WORD_BITS:
            break
        upper.append(high)
    table = _Table(
        scale,
        parties,
        np.array(lower, dtype=np.uint64),
        np.array(upper, dtype=np.uint64),
        np.empty(0, dtype=np.int32),
    )
    first = np.arange(1 << _GUIDE_BITS, dtype=np.uint64) << np.uint64(_WORD_BITS - _GUIDE_BITS)
    last = first + np.uint64((1 << (_WORD_BITS - _GUIDE_BITS)) - 1)
    settled = table.settle(first)
    settled[settled != table.settle(last)] = -1
    return replace(table, guide=settled)


def _draw(table: _Table, count: int, source: RandomSource) -> NDArray[np.int32]:
    """`count` independent draws of NB(1/m, q)."""
    leading = np.frombuffer(source.random_bytes(2 * count), dtype="<u2")
    values: NDArray[np.int32] = table.guide[leading]
    open_ = np.flatnonzero(values < 0)
    if len(open_):
        rest = source.words(len(open_)) >> np.uint64(_GUIDE_BITS)
        words = (leading[open_].astype(np.uint64) << np.uint64(_WORD_BITS - _GUIDE_BITS)) | rest
        values[open_] = table.settle(words)
        for draw in open_[values[open_] < 0]:
            word = int(words[np.searchsorted(open_, draw)])
            values[draw] = _invert(word, _WORD_BITS, table.scale, table.parties, source)
    return values


def _cumulative(scale: Fraction, parties: int, bits: int) -> Iterator[tuple[int, int]]:
    """Integer bounds on F(0) * 2^bits, F(1) * 2^bits, ... without end, rounded outwards.

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


def _invert(word: int, bits: int, scale: Fraction, parties: int, source: RandomSource) -> int:
    """The value at a uniform real whose first `bits` bits are `word`, reading on as needed."""
    while True:
        for value, (lower, upper) in enumerate(_cumulative(scale, parties, bits)):
            if word < lower:  # the real is below this threshold, and not below the one before
                return value
            if word < upper:
                break
        word, bits = extend(word, source), bits + _WORD_BITS
