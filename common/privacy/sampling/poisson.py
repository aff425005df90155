"""Poisson draws of large means, exact by rejection, at a cost that does not grow with the mean.

P(k) is proportional to f(k) = P(k) / P(m) = mean^(k - m) m! / k!, m = floor(mean): 1 at m, and
falling to either side, because f(k + 1) / f(k) = mean / (k + 1).

1. Cut the integers into blocks of W = 2^w values: the j-th to the right of m begins with m + j W,
   the j-th to the left ends with m - j W - 1. Both have f(k) <= f(g), g = m + j W or m - j W.
   Give the blocks within six deviations the weights H = ceil(T f(g)), T an integer, and each of the
   two tails beyond the weight 1, such that all weights add up to 2^16 or less.
2. Read 64 bits. The first 16 choose a block by its weight (or nothing: then start again), w more a
   value in it, and the rest begin a uniform real u. Accept k if u < T f(k) / H, a probability
   because T f(k) <= T f(g) <= H. So k comes out at a rate of H / 2^16 / W * T f(k) / H.
3. In a tail, toss a fair coin until it shows tails: n heads. Draw a uniform o in 0..32 W - 1, and
   let k be the value that lies n * 32 W + o beyond the first of the tail. Accept it with
   probability 64 * 2^n T f(k). So k comes out at 2^-16 2^-(n + 1) / (32 W) * 64 * 2^n T f(k).

Both rates are T f(k) / (2^16 W): what is accepted has P(k) proportional to f(k), for every k >= 0.
Step 3 has a probability, too. Beyond J W from the mode each step multiplies f by at most
1 / (1 + J W / mean) to the right, and by less than 1 - J W / mean, which is less than that, to
the left; 32 W steps by at most 1 / (1 + 32 W J W / mean) <= 1/2, as J W >= 6 deviations and 32 W >=
one. So f(k) <= 2^-n f(m +- J W), and `__init__` checks that 64 T f(m +- J W) <= 1.

Every acceptance is an exact coin. Most are settled by the least acceptance of the block; the others
by doubles with an error bound (`_logarithm`), and what they leave open by bounds from MPFR that are
refined until the coin is settled (`enclosure`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import gmpy2
import numpy as np
from numpy.typing import NDArray

from common.errors import LocalError
from common.privacy.randomness import RandomSource, below
from common.privacy.sampling.enclosure import Bounds, falls_below

LEAST_MEAN = 1 << 15
LARGEST_MEAN = 1 << 39
_INDEX_BITS = 16
_REACH = 6  # deviations that the blocks go to either side
_TAIL_BITS = 5  # a step of a tail is 2^5 blocks long
_ERROR = 2.0**-30  # a bound on the error of an acceptance in doubles
_GUARD_BITS = 128
# The coefficients of ((1 + y) ln(1 + y) - y) / y^2, of ln(1 + y) / 2 and of exp(x):
_ENTROPY = [(-1.0) ** i / (i * (i - 1)) for i in range(2, 11)]
_HALF_LOG = [0.0, *((-1.0) ** (i + 1) / (2 * i) for i in range(1, 9))]
_EXPONENTIAL = [1.0 / math.factorial(i) for i in range(14)]

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]


class Poisson:
    """Draws from the Poisson law of one mean."""

    def __init__(self, mean: Fraction) -> None:
        if not LEAST_MEAN <= mean <= LARGEST_MEAN:
            raise LocalError(f"a Poisson mean must lie in [2^15, 2^39], not {float(mean):g}")
        self._mean, self._mode = mean, math.floor(mean)
        deviation = math.isqrt(self._mode)
        self._bits = deviation.bit_length() - 5  # so W is a 32nd to a 16th of a deviation
        self._real_bits = 64 - _INDEX_BITS - self._bits
        self._side = -(-_REACH * (deviation + 1) >> self._bits)  # J, the blocks of a side
        self._lay_out(np.arange(self._side + 1) << self._bits)

    def _lay_out(self, edges: Integers) -> None:
        """Make the tables, of a block each: those to the right, to the left, tails, and nothing."""
        right, left = self._ratios(edges), self._ratios(-edges)
        highest = np.concatenate([right[:-1], left[:-1]])
        lowest = np.concatenate([right[1:], left[1:]])
        self._blocks = len(highest)
        self._unit = int(((1 << _INDEX_BITS) - 2 - self._blocks) / highest.sum())  # T
        if max(right[-1], left[-1]) * self._unit > 2.0 ** -(_TAIL_BITS + 2):
            raise LocalError(f"mean {float(self._mean):g}: the tails begin too early")
        self._weights = np.ceil(self._unit * highest * (1 + _ERROR)).astype(np.int64)
        self._highest = self._unit * highest / self._weights
        self._logarithms = self._logarithm(np.concatenate([edges[:-1], -edges[:-1]]))
        self._first = np.concatenate([edges[:-1], -edges[1:], [0, 0, 0]])
        certain = (self._unit * lowest / self._weights - _ERROR) * 2.0**self._real_bits
        self._certain = np.concatenate([np.maximum(certain, 0), [0, 0, 0]]).astype(np.uint64)
        chosen = np.repeat(np.arange(self._blocks + 2), [*self._weights, 1, 1])
        self._block = np.full(1 << _INDEX_BITS, self._blocks + 2, dtype=np.int16)
        self._block[: len(chosen)] = chosen

    def draw(self, count: int, source: RandomSource) -> Integers:
        values, accepted = self._propose(count, source)
        while len(missing := np.flatnonzero(~accepted)):
            values[missing], accepted[missing] = self._propose(len(missing), source)
        values += self._mode
        return values

    def _propose(self, count: int, source: RandomSource) -> tuple[Integers, NDArray[np.bool_]]:
        """Return values, counted from the mode, and which of them are accepted."""
        words = source.words(count)
        block = self._block[words.view("<u2")[::4]]
        uniform = words >> np.uint64(_INDEX_BITS + self._bits)
        words >>= np.uint64(_INDEX_BITS)
        words &= np.uint64((1 << self._bits) - 1)
        values: Integers = self._first[block]
        values += words.view(np.int64)
        accepted: NDArray[np.bool_] = uniform < self._certain[block]
        unsettled = np.flatnonzero(~accepted)
        kinds = block[unsettled]
        inside = unsettled[kinds < self._blocks]
        accepted[inside] = self._accept(block[inside], values[inside], uniform[inside], source)
        for tail, sign in enumerate((1, -1), start=self._blocks):
            for place in unsettled[kinds == tail]:
                values[place], accepted[place] = self._from_tail(sign, source)
        return values, accepted

    def _accept(
        self,
        block: NDArray[np.int16],
        values: Integers,
        uniform: NDArray[np.uint64],
        source: RandomSource,
    ) -> NDArray[np.bool_]:
        """Toss the coins of values inside of blocks."""
        above = self._acceptance(block, values) - uniform * 2.0**-self._real_bits
        accepted: NDArray[np.bool_] = above > 0
        for place in np.flatnonzero(np.abs(above) <= _ERROR + 2.0**-self._real_bits):
            factor = Fraction(self._unit, int(self._weights[block[place]]))
            probability = self._times_ratio(factor, int(values[place]))
            accepted[place] = falls_below(int(uniform[place]), self._real_bits, probability, source)
        return accepted

    def _acceptance(self, block: NDArray[np.int16], values: Integers) -> Doubles:
        """Return T f(k) / H in doubles, with an error below 2^-32: a quarter of `_ERROR`.

        A logarithm is off by 2^-42 at most, and so is f at an edge by 2^-33 of itself: the sum of
        up to 200 steps from edge to edge. A step is shorter than 0.4, where the series of the
        exponential, cut off, loses less than 0.4^14 / 14! < 2^-54.
        """
        steps = self._logarithm(values) - self._logarithms[block]
        return np.asarray(self._highest[block] * _polynomial(_EXPONENTIAL, steps))

    def _ratios(self, edges: Integers) -> Doubles:
        """Return f at the edges of one side's blocks, the mode's first, in doubles."""
        steps = _polynomial(_EXPONENTIAL, np.diff(self._logarithm(edges)))
        return np.concatenate([[1.0], np.cumprod(steps)])

    def _logarithm(self, values: Integers) -> Doubles:
        """Return ln f(k) up to a constant, in doubles, with an error below 2^-42.

        Let D = k - mean and y = D / mean. By Stirling's series, ln k! = k ln k - k + ln(2 pi k) / 2
        + 1 / (12 k) less at most 1 / (360 k^3), so that ln f(k) is, up to a constant,

            - mean ((1 + y) ln(1 + y) - y) - ln(1 + y) / 2 - 1 / (12 k).

        In the blocks |y| < 0.035 and D y < 39. There the power series, cut off, lose less than
        1.04 * 0.035^9 (39 / 110 + 1 / 18) < 2^-44, Stirling's less than 2^-52, as k > 2^14.9, and
        some thirty roundings of numbers up to 20 less than 30 * 20 * 2^-53 < 2^-43. Only sums,
        products and quotients are taken, which every machine rounds alike.
        """
        distance = values.astype(np.float64) - float(self._mean - self._mode)
        relative: Doubles = distance / float(self._mean)
        curve = distance * relative * _polynomial(_ENTROPY, relative)
        curve += _polynomial(_HALF_LOG, relative)
        curve += 1 / (12.0 * (values + self._mode))
        return np.asarray(-curve)

    def _from_tail(self, sign: int, source: RandomSource) -> tuple[int, bool]:
        """Return a value of the right or the left tail, and whether it is accepted."""
        heads = 0
        while below(2, source):
            heads += 1
        step = self._bits + _TAIL_BITS
        beyond = (heads << step) + below(1 << step, source)
        value = (self._side << self._bits) + beyond
        if sign < 0:
            value = -value - 1
        if value < -self._mode:
            return 0, False
        factor = Fraction(self._unit << (heads + _TAIL_BITS + 1))
        return value, falls_below(0, 0, self._times_ratio(factor, value), source)

    def _times_ratio(self, factor: Fraction, value: int) -> Bounds:
        """Return the probability factor * f(k), k counted from the mode."""

        def bounds(bits: int) -> tuple[int, int]:
            lower = self._rounded_ratio(value, bits, gmpy2.RoundDown, gmpy2.RoundUp)
            upper = self._rounded_ratio(value, bits, gmpy2.RoundUp, gmpy2.RoundDown)
            return math.floor(factor * lower), math.ceil(factor * upper)

        return bounds

    def _rounded_ratio(self, value: int, bits: int, towards: int, away: int) -> Fraction:
        """Return f(k) * 2^bits, every step rounded in the direction `towards`.

        ln f(k) = (k - m) ln(mean) + ln Gamma(m + 1) - ln Gamma(k + 1), the logarithms below 2^44.
        """
        precision = bits + _GUARD_BITS
        mean = gmpy2.mpq(self._mean.numerator, self._mean.denominator)
        with gmpy2.context(gmpy2.get_context(), precision=precision, round=away):
            subtracted = gmpy2.lngamma(gmpy2.mpfr(self._mode + value + 1))
            log_mean = gmpy2.log(gmpy2.mpfr(mean))
        with gmpy2.context(gmpy2.get_context(), precision=precision, round=towards):
            if value >= 0:
                log_mean = gmpy2.log(gmpy2.mpfr(mean))
            logarithm = value * log_mean + gmpy2.lngamma(gmpy2.mpfr(self._mode + 1)) - subtracted
            exact = gmpy2.mpq(gmpy2.exp(logarithm))
        return Fraction(int(exact.numerator) << bits, int(exact.denominator))


def _polynomial(coefficients: Sequence[float], values: Doubles) -> Doubles:
    result = np.full_like(values, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result *= values
        result += coefficient
    return result
