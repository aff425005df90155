"""Exact comparisons of a uniform real with a real number that only has bounds.

A sampler that rounds its probabilities is not pure epsilon. Ours never round: a probability is a
function that returns integer bounds at any precision asked for, a uniform real is a stream of bits,
and the two are compared by reading as many bits as the answer needs. Sixteen or sixty-four bits
settle nearly every comparison; the rest read on. The answer is the one that infinite precision
would have given, so the law of what is built on it is exact.

The only transcendental function is the exponential, evaluated by MPFR, which rounds correctly in
the direction asked for; everything after it is integer arithmetic.

`Coins` are vectors of tosses, each settled as infinite precision would have settled it: nearly
always by the first 16 bits of a uniform real, about once in 65,536 times by more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import gmpy2
import numpy as np
from numpy.typing import NDArray

from common.privacy.randomness import RandomSource

Bounds = Callable[[int], tuple[int, int]]
"""A real p in [0, 1]: maps a number of bits b to integers with lower <= p * 2^b <= upper."""

_GUARD_BITS = 64
_MORE_BITS = 64
_TOSS_BITS = 16


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
    """A row of coins that are tossed together, many times."""

    def __init__(self, probabilities: Sequence[Bounds]) -> None:
        self._probabilities = tuple(probabilities)
        bounds = [probability(_TOSS_BITS) for probability in self._probabilities]
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
                int(words[coin, toss]), _TOSS_BITS, self._probabilities[coin], source
            )
        return heads

    def toss_one(self, coin: int, source: RandomSource) -> bool:
        return falls_below(0, 0, self._probabilities[coin], source)
