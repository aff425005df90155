"""Concentrated differential privacy: what adds up under Gaussian-like noise.

A mechanism costs rho if its Renyi divergence of every INTEGER order a >= 2, between any two
neighbours, is at most a rho. Costs add up over adaptive steps, because Renyi divergences of each
order do [Mironov17, Proposition 1]. Only integer orders are ever used: that is what the bound of
the Skellam law is proved for. A pure epsilon costs epsilon^2 / 2 [Bun16, Proposition 1.4].

From rho to epsilon. For every order a, a divergence of at most a rho gives (epsilon, delta) with

    epsilon = a rho + g(a),   g(a) = (ln(1 / delta) - ln a) / (a - 1) + ln(1 - 1 / a)

[Canonne20, Proposition 12, solved for epsilon]. The smallest over a holds. g is computed by MPFR,
whose every operation is rounded correctly in the direction asked for, here upwards, so on every
machine alike; the rest is exact. So a printed epsilon is never too small, a rho that was bought
never too large, and all nodes of a study come to the same digits. The search for the best order
needs no proof: every order is valid.

[Bun16] Bun, Steinke: Concentrated differential privacy: simplifications, extensions, and lower
bounds. [Canonne20] Canonne, Kamath, Steinke: The discrete Gaussian for differential privacy.
[Mironov17] Mironov: Renyi differential privacy.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import gmpy2

from common.errors import LocalError
from common.privacy.budget import rounded

_PRECISION_BITS = 128
_LARGEST_ORDER = 1 << 64
_RHO_DIGITS = 12
_EPSILON_DIGITS = 9


@lru_cache(maxsize=256)
def epsilon_of(rho: Fraction, delta: Fraction) -> Fraction:
    """Return the epsilon that a cost of `rho` amounts to at `delta`, rounded up to nine digits."""
    if rho == 0:
        return rho
    order = cheapest_order(rho, delta)
    return at_order(order, order * rho, delta)


@lru_cache(maxsize=256)
def cheapest_order(rho: Fraction, delta: Fraction) -> int:
    """Return the order at which a cost of `rho` amounts to the least epsilon."""
    if rho <= 0:
        raise LocalError(f"a cost is not negative, and zero has no order: {rho}")
    return _best(lambda order: -(order * rho + _excess(order, delta)))


def at_order(order: int, divergence: Fraction, delta: Fraction) -> Fraction:
    """Return the epsilon at `delta` of a divergence of one order, rounded up to nine digits."""
    # g falls below 0 where delta is large, and an epsilon is not negative.
    return rounded(max(exactly_at(order, divergence, delta), Fraction(0)), _EPSILON_DIGITS, up=True)


def exactly_at(order: int, divergence: Fraction, delta: Fraction) -> Fraction:
    """Return the same, rounded up by less than 1e-30, to be held against a cap."""
    return divergence + _excess(order, delta)


@lru_cache(maxsize=256)
def best_order(epsilon: Fraction, delta: Fraction) -> int:
    """Return the order at which (epsilon, delta) buys most."""
    if epsilon <= 0:
        raise LocalError(f"epsilon {epsilon} buys nothing: it must be above zero")
    return _best(lambda order: (epsilon - _excess(order, delta)) / order)


@lru_cache(maxsize=256)
def rho_of(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the cost that (epsilon, delta) buys, rounded down to twelve digits."""
    order = best_order(epsilon, delta)
    return rounded((epsilon - _excess(order, delta)) / order, _RHO_DIGITS, up=False)


@lru_cache(maxsize=4096)
def _excess(order: int, delta: Fraction) -> Fraction:
    """g, rounded up, as an exact fraction."""
    if not 0 < delta < 1:
        raise LocalError(f"delta {delta} must lie between 0 and 1")
    inverse = gmpy2.mpq(delta.denominator, delta.numerator)
    with gmpy2.context(gmpy2.get_context(), precision=_PRECISION_BITS, round=gmpy2.RoundDown):
        subtracted = gmpy2.log(gmpy2.mpfr(order))
    with gmpy2.context(gmpy2.get_context(), precision=_PRECISION_BITS, round=gmpy2.RoundUp):
        bits = gmpy2.log(gmpy2.mpfr(inverse)) - subtracted
        shrunk = gmpy2.log1p(gmpy2.mpfr(gmpy2.mpq(-1, order)))
        exact = gmpy2.mpq(bits / (order - 1) + shrunk)
    return Fraction(int(exact.numerator), int(exact.denominator))


def _best(value: Callable[[int], Fraction]) -> int:
    """Return the integer order of the largest value, where values rise and then fall."""
    low, high = 2, _LARGEST_ORDER
    while high - low > 2:
        third = (high - low) // 3
        if value(low + third) < value(high - third):
            low += third
        else:
            high -= third
    return max(range(low, high + 1), key=value)
