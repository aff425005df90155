"""Exact comparisons of a uniform real with a real number that only has bounds.

A sampler that rounds its probabilities is not pure epsilon. Ours never round: a probability is a
function that returns integer bounds at any precision asked for, a uniform real is a stream of bits,
and the two are compared by reading as many bits as the answer needs. Sixteen or sixty-four bits
settle nearly every comparison; the rest read on. The answer is the one that infinite precision
would have given, so the law of what is built on it is exact.

The only transcendental function is the exponential, evaluated by MPFR, which rounds correctly in
the direction asked for; everything after it is integer arithmetic.

Built on the comparison are vectors of coins (`Coins`) and draws by inverting a distribution
function (`Inversion`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import gmpy2
import numpy as np
from numpy.typing import NDArray

from common.privacy.randomness import RandomSource

Bounds = Callable[[int], tuple[int, int]]
"""A real p in [0, 1]: maps a number of bits b to integers with lower <= p * 2^b <= upper."""

Distribution = Callable[[int], Iterator[tuple[int, int]]]
"""Maps a number of bits b to integer bounds on F(0) * 2^b, F(1) * 2^b, ... as far as asked for."""

_GUARD_BITS = 64
_MORE_BITS = 64
_COIN_BITS = 16
_WORD_BITS = 64
_GUIDE_BITS = 16


def exponential_bounds(exponent: Fraction, bits: int) -> tuple[int, int]:
    """Return integers around exp(-exponent) * 2^bits, at most two apart; the exponent is >= 0.

    Both the conversion of the exponent and the exponential are rounded outwards by MPFR. A relative
    error of 2^-p in the exponent x moves exp(-x) by x exp(-x) 2^-p <= 2^-p / e, so a working
    precision of bits + 64 keeps the bounds this close for every x.
    """
    minus = gmpy2.mpq(-exponent.numerator, exponent.denominator)
    precision = bits + _GUARD_BITS
    with gmpy2.context(gmpy2.get_context(), precision=precision, round=gmpy2.RoundDown):
        lower = gmpy2.floor(gmpy2.mul_2exp(gmpy2.exp(gmpy2.mpfr(minus)), bits))
    with gmpy2.context(gmpy2.get_context(), precision=precision, round=gmpy2.RoundUp):
        upper = gmpy2.ceil(gmpy2.mul_2exp(gmpy2.exp(gmpy2.mpfr(minus)), bits))
    return int(lower), int(upper)


def exponential(exponent: Fraction) -> Bounds:
    """Return the probability exp(-exponent)."""
    return lambda bits: exponential_bounds(exponent, bits)


def odds(exponent: Fraction) -> Bounds:
    """Return the probability y / (1 + y) with y = exp(-exponent); it grows with y."""

    def bounds(bits: int) -> tuple[int, int]:
        low, high = exponential_bounds(exponent, bits + _GUARD_BITS)
        one = 1 << (bits + _GUARD_BITS)
        return (low << bits) // (one + low), -((-high << bits) // (one + high))

    return bounds


def half_tangent(exponent: Fraction) -> Bounds:
    """Return the probability (1 - y) / (1 + y) with y = exp(-exponent); it falls with y."""

    def bounds(bits: int) -> tuple[int, int]:
        low, high = exponential_bounds(exponent, bits + _GUARD_BITS)
        one = 1 << (bits + _GUARD_BITS)
        return ((one - high) << bits) // (one + high), -(((low - one) << bits) // (one + low))

    return bounds


def extend(word: int, source: RandomSource, bits: int = _MORE_BITS) -> int:
    """Append `bits` (a multiple of 8) fresh bits to the leading bits of a uniform real."""
    return (word << bits) | int.from_bytes(source.random_bytes(bits // 8), "little")


def falls_below(word: int, bits: int, probability: Bounds, source: RandomSource) -> bool:
    """Return whether a uniform real, its first `bits` bits `word`, lies below `probability`.

    With zero bits this is a fresh Bernoulli draw. Each round fails to decide with probability below
    2^-62, so the loop ends with probability one and practically at once.
    """
    while True:
        lower, upper = probability(bits)
        if word < lower:  # the real is below (word + 1) / 2^bits <= lower / 2^bits
            return True
        if word >= upper:
            return False
        word, bits = extend(word, source), bits + _MORE_BITS


def digit_count(scale: Fraction) -> int:
    """Return how many low digits of a geometric variable of this scale are worth a coin each.

    Beyond 2^digits >= 12 scale lies a mass of at most e^-12 < 2^-16: a rare, slow continuation. The
    choice is one of speed; the law is exact for any number of digits.
    """
    return max(0, math.ceil(12 * scale) - 1).bit_length()


class Coins:
    """A row of coins that are tossed together, many times.

    A coin shows heads with a probability that is known only between bounds. The first 16 bits of a
    uniform real settle nearly every toss; about once in 65,536 tosses more bits are read, until the
    toss is settled as infinite precision would have settled it.
    """

    def __init__(self, probabilities: Sequence[Bounds]) -> None:
        self._probabilities = tuple(probabilities)
        bounds = [probability(_COIN_BITS) for probability in self._probabilities]
        # A word w is heads if w < below, tails if w >= below + unsure, else open.
        self._below = np.array([[lower] for lower, _ in bounds], dtype=np.uint16)
        self._unsure = np.array([[upper - lower] for lower, upper in bounds], dtype=np.uint16)

    def toss(self, count: int, source: RandomSource) -> NDArray[np.bool_]:
        """Toss every coin `count` times: an array (coins, count), true for heads."""
        shape = (len(self._probabilities), count)
        data = source.random_bytes(2 * shape[0] * count)
        words = np.frombuffer(data, dtype="<u2").reshape(shape)
        heads: NDArray[np.bool_] = words < self._below
        # Unsigned wrap-around on purpose: only words in [below, below + unsure) come out small.
        for coin, toss in np.argwhere((words - self._below) < self._unsure):
            heads[coin, toss] = falls_below(
                int(words[coin, toss]), _COIN_BITS, self._probabilities[coin], source
            )
        return heads

    def toss_one(self, coin: int, source: RandomSource) -> bool:
        """Toss a single coin once."""
        return falls_below(0, 0, self._probabilities[coin], source)


class Inversion:
    """The table of one distribution, for exact draws.

    The value at a uniform real u is the first k with u < F(k). The first 64 bits of u settle it
    unless they fall between the bounds of a threshold F(k), or beyond the table; then more bits are
    read and the bounds are recomputed to more places, until it is settled. The answer is the one
    that infinite precision would have given, so the law is exact. A guide over the first 16 bits
    settles most draws without the other 48.
    """

    def __init__(self, distribution: Distribution) -> None:
        self._distribution = distribution
        lower: list[int] = []
        upper: list[int] = []
        for low, high in distribution(_WORD_BITS):
            lower.append(min(low, (1 << _WORD_BITS) - 1))
            if high >= 1 << _WORD_BITS:  # no word lies beyond: the last entry has no upper bound
                break
            upper.append(high)
        self._lower = np.array(lower, dtype=np.uint64)
        self._upper = np.array(upper, dtype=np.uint64)
        first = np.arange(1 << _GUIDE_BITS, dtype=np.uint64) << np.uint64(_WORD_BITS - _GUIDE_BITS)
        last = first + np.uint64((1 << (_WORD_BITS - _GUIDE_BITS)) - 1)
        self._guide = self.settle(first)
        self._guide[self._guide != self.settle(last)] = -1

    def __len__(self) -> int:
        return len(self._lower)

    def settle(self, words: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Return the value that the first 64 bits of each uniform settle, or -1."""
        values = np.searchsorted(self._upper, words, side="right").astype(np.int32)
        values[words >= self._lower[values]] = -1
        return values

    def invert(self, word: int, bits: int, source: RandomSource) -> int:
        """Return the value at a uniform real that begins with `word`, reading on as needed."""
        while True:
            for value, (lower, upper) in enumerate(self._distribution(bits)):
                if word < lower:  # below this threshold, and not below the one before
                    return value
                if word < upper:
                    break
            word, bits = extend(word, source), bits + _WORD_BITS

    def draw(self, count: int, source: RandomSource) -> NDArray[np.int32]:
        """`count` independent values."""
        leading = np.frombuffer(source.random_bytes(2 * count), dtype="<u2")
        values: NDArray[np.int32] = self._guide[leading]
        unsettled = np.flatnonzero(values < 0)
        if len(unsettled) == 0:
            return values
        rest = source.words(len(unsettled)) >> np.uint64(_GUIDE_BITS)
        words = rest | (leading[unsettled].astype(np.uint64) << np.uint64(_WORD_BITS - _GUIDE_BITS))
        settled = self.settle(words)
        for position in np.flatnonzero(settled < 0):
            settled[position] = self.invert(int(words[position]), _WORD_BITS, source)
        values[unsettled] = settled
        return values
