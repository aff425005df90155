"""Negative binomial draws for scales too large for a table, exact by rejection.

NB(r, q) with 0 < r <= 1 has P(k) proportional to c_k q^k, where c_0 = 1 and c_k = c_{k-1} (k-1+r)
/ k falls with k. Take the blocks {0}, {1}, {2, 3}, {4..7}, .. up to 2^J, and all the rest as a
last one.

1. Draw a block with the mass of the larger weights c_s q^k, s the block's first value. That mass
   is c_s (q^s - q^(2s)) up to a factor, c_s q^s for the last block and 1 - q for {0}: an exact
   inversion.
2. Draw k in the block proportionally to q^k: a geometric variable given its highest digit. The
   digits of a geometric variable are independent (see `discrete_laplace`), so the lower ones are
   coins.
3. Accept k with probability c_k / c_s, at least about one half; else start again.

What is accepted has P(k) proportional to c_s q^k c_k / c_s = c_k q^k. The acceptance is an exact
coin: doubles settle it where they are certain (`_approximate`), else bounds from MPFR's log-gamma
do.

[Kershaw83] Kershaw: Some extensions of W. Gautschi's inequalities for the gamma function.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import partial

import gmpy2
import numpy as np
from numpy.typing import NDArray

from common.errors import LocalError
from common.privacy.randomness import RandomSource
from common.privacy.sampling.enclosure import (
    Coins,
    digit_count,
    exponential,
    exponential_bounds,
    falls_below,
    odds,
)
from common.privacy.sampling.inversion import Inversion

_GUARD_BITS = 128
_SMALL = 1 << 12
_LARGEST_DRAW = 1 << 62


class PolyaBlocks:
    """Draws from NB(1 / parties, exp(-1 / scale))."""

    def __init__(self, scale: Fraction, parties: int) -> None:
        self._scale = scale
        self._parties = parties
        self._digits = digit_count(scale)
        self._inversion = Inversion(self._block_bounds)
        self._coins = Coins(
            [
                *(odds(2**digit / scale) for digit in range(self._digits)),
                exponential(2**self._digits / scale),
            ]
        )
        small = np.arange(1, _SMALL)
        steps = (small - 1 + 1 / parties) / small
        self._small = np.concatenate([[1.0], np.cumprod(steps)])

    def draw(self, count: int, source: RandomSource) -> NDArray[np.int64]:
        values = np.empty(count, dtype=np.int64)
        missing = np.arange(count)
        while len(missing):
            first, proposed = self._propose(len(missing), source)
            accepted = self._accept(first, proposed, source)
            values[missing[accepted]] = proposed[accepted]
            missing = missing[~accepted]
        return values

    def _propose(
        self, count: int, source: RandomSource
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw a block for each; return its first value, and a value in it."""
        block = self._inversion.draw(count, source).astype(np.int64)
        first = np.where(block > 0, np.int64(1) << np.maximum(block - 1, 0), 0)
        low = np.zeros(count, dtype=np.int64)
        for digit in reversed(self._coins.toss(count, source)[: self._digits]):
            low += low
            low += digit
        proposed = first + (low & np.maximum(first - 1, 0))
        for position in np.flatnonzero(block == self._digits + 1):
            proposed[position] += self._beyond(source)
        return first, proposed

    def _beyond(self, source: RandomSource) -> int:
        """Draw what a value of the last block has above its first, but for the lower digits."""
        high = 0
        while self._coins.toss_one(self._digits, source):
            high += 1
            if (high + 1) << self._digits >= _LARGEST_DRAW:
                raise LocalError("a noise share left the 64-bit integers (chance below e^-(2^22))")
        return high << self._digits

    def _accept(
        self, first: NDArray[np.int64], proposed: NDArray[np.int64], source: RandomSource
    ) -> NDArray[np.bool_]:
        ratio, error = self._approximate(first, proposed)
        words = source.words(len(first))
        uniform = words.astype(np.float64) * 2.0**-64
        accepted: NDArray[np.bool_] = uniform < ratio
        for position in np.flatnonzero(np.abs(uniform - ratio) <= error):
            first_value, value = int(first[position]), int(proposed[position])
            accepted[position] = first_value == value or falls_below(
                int(words[position]),
                64,
                partial(self._ratio_bounds, value, first_value),
                source,
            )
        return accepted

    def _approximate(
        self, first: NDArray[np.int64], proposed: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return c_k / c_s in doubles, and a bound on its error, that of a 64-bit uniform included.

        Below 2^12 a product of k factors, each with an error of 2^-51. Above, (k + r/2)^(r-1) is
        off by less than the relative 1 / (8 k): [Kershaw83] has c_k Gamma(r) between it and the
        same with sqrt(r + 1/4) - 1/2 in the place of r/2, which is larger by at most 1/8.
        """
        r = 1 / self._parties
        power = ((proposed + r / 2) / (first + r / 2)) ** (r - 1)
        small = self._small[np.minimum(proposed, _SMALL - 1)]
        small /= self._small[np.minimum(first, _SMALL - 1)]
        is_small = proposed < _SMALL
        error = np.where(is_small, 2.0**-36, 0.5 / np.maximum(first, 1) + 2.0**-44)
        return np.where(is_small, small, power), error

    def _ratio_bounds(self, value: int, first: int, bits: int) -> tuple[int, int]:
        """Return integer bounds on (c_value / c_first) * 2^bits."""
        low, high = self._rising(value, bits + _GUARD_BITS)
        first_low, first_high = self._rising(first, bits + _GUARD_BITS)
        return (low << bits) // first_high, -((-high << bits) // first_low)

    def _rising(self, value: int, bits: int) -> tuple[int, int]:
        """Return integer bounds on c_value * 2^bits.

        c_k = Gamma(k + r) / (Gamma(r) k!). From k = 2 on relative to c_2, so that log-gamma is only
        taken where it grows, and an argument rounded outwards gives a value rounded outwards.
        """
        r = Fraction(1, self._parties)
        if value <= 2:
            exact = (Fraction(1), r, r * (1 + r) / 2)[value] * 2**bits
            return math.floor(exact), math.ceil(exact)
        lower = self._rounded_rising(value, bits, towards=gmpy2.RoundDown, away=gmpy2.RoundUp)
        upper = self._rounded_rising(value, bits, towards=gmpy2.RoundUp, away=gmpy2.RoundDown)
        return math.floor(lower), math.ceil(upper)

    def _rounded_rising(self, value: int, bits: int, *, towards: int, away: int) -> Fraction:
        """Return c_value * 2^bits for value > 2, every step rounded in the direction `towards`."""
        r = Fraction(1, self._parties)
        precision = bits + _GUARD_BITS
        numerator = _log_gamma(value + r, precision, towards)
        two = _log_gamma(Fraction(3), precision, towards)
        denominator = _log_gamma(Fraction(value + 1), precision, away)
        second = _log_gamma(2 + r, precision, away)
        with gmpy2.context(gmpy2.get_context(), precision=precision, round=towards):
            ratio = gmpy2.exp(numerator + two - denominator - second)
            ratio *= gmpy2.mpfr(gmpy2.mpq(1 + self._parties, 2 * self._parties**2))
            exact = gmpy2.mpq(ratio)
        return Fraction(int(exact.numerator) << bits, int(exact.denominator))

    def _block_bounds(self, bits: int) -> Iterator[tuple[int, int]]:
        """Yield integer bounds on the distribution function of the block, times 2^bits."""
        precision = bits + _GUARD_BITS
        one = 1 << precision
        weights = [(one - high, one - low) for low, high in [self._power(1, precision)]]
        for digit in range(self._digits + 1):
            start_low, start_high = self._power(2**digit, precision)
            end_low, end_high = self._power(2 ** (digit + 1), precision)
            if digit == self._digits:
                end_low = end_high = 0
            c_low, c_high = self._rising(2**digit, precision)
            weights.append(
                (
                    c_low * (start_low - end_high) >> precision,
                    -(-c_high * (start_high - end_low) >> precision),
                )
            )
        total_low, total_high = (sum(bound) for bound in zip(*weights, strict=True))
        sum_low = sum_high = 0
        for low, high in weights[:-1]:
            sum_low += low
            sum_high += high
            upper = -((-sum_high << bits) // total_low)
            yield (sum_low << bits) // total_high, min(upper, 1 << bits)
        yield 1 << bits, 1 << bits

    def _power(self, exponent: int, bits: int) -> tuple[int, int]:
        """Return integer bounds on q^exponent * 2^bits."""
        return exponential_bounds(exponent / self._scale, bits)


def _log_gamma(argument: Fraction, precision: int, rounding: int) -> gmpy2.mpfr:
    """Return ln Gamma, rounded as asked, for an argument of at least 2, where it grows."""
    exact = gmpy2.mpq(argument.numerator, argument.denominator)
    with gmpy2.context(gmpy2.get_context(), precision=precision, round=rounding):
        return gmpy2.lngamma(gmpy2.mpfr(exact))
