"""What rows have paid, in epsilon and in rho, and what that amounts to.

**Concentrated differential privacy** adds up under Gaussian-like noise. A mechanism costs rho if
its Renyi divergence of every INTEGER order a >= 2, between any two neighbours, is at most a rho.
Costs add up over adaptive steps, because Renyi divergences of each order do [Mironov17, Proposition
1]. Only integer orders are ever used: that is what the bound of the Skellam law is proved for. A
pure epsilon costs epsilon^2 / 2 [Bun16, Proposition 1.4].

From rho to epsilon. For every order a, a divergence of at most a rho gives (epsilon, delta) with

    epsilon = a rho + g(a),   g(a) = (ln(1 / delta) - ln a) / (a - 1) + ln(1 - 1 / a)

[Canonne20, Proposition 12, solved for epsilon]. The smallest over a holds. g is computed by MPFR,
whose every operation is rounded correctly in the direction asked for, here upwards, so on every
machine alike; the rest is exact. So a printed epsilon is never too small, a rho that was bought
never too large, and all nodes of a study come to the same digits. The search for the best order
needs no proof: every order is valid.

**Several studies.** A step under pure epsilon has a Renyi divergence of order a of at most
min(e, a e^2 / 2), e its epsilon [Bun16, Proposition 1.4]; a step that costs rho one of at most
a rho. Divergences of one order add up over adaptive steps, so at every integer order a >= 2 all
steps together have at most

    D(a) = a rho + sum of min(e, a e^2 / 2),

and amount to the epsilon D(a) + g(a) at delta. Two questions, two answers.
- How much is it? The smallest epsilon over some orders; or the sum of epsilons, without a delta,
  where nothing was paid in rho.
- Is there room for more? What is asked next may depend on what was published before. So the order
  must not be chosen in view of the steps: it is the best one for the owner's cap and delta, which
  are written down before. The sum of epsilons may be held against the cap as well, as it needs no
  delta [Feldman21, section 3, for filters of one order].

[Bun16] Bun, Steinke: Concentrated differential privacy: simplifications, extensions, and lower
bounds. [Canonne20] Canonne, Kamath, Steinke: The discrete Gaussian for differential privacy.
[Feldman21] Feldman, Zrnic: Individual privacy accounting via a Renyi filter. [Mironov17] Mironov:
Renyi differential privacy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import gmpy2

from common.errors import LocalError
from common.privacy.budget import rounded, shown

ZERO = Fraction(0)
_LONGEST_FRACTION = 12
_LONGEST_DECIMAL = 9  # characters; 1677/800 is 2.09625
_PRECISION_BITS = 128
_LARGEST_ORDER = 1 << 64
_RHO_DIGITS = 12
_EPSILON_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Spending:
    """Some steps, of one study or of many."""

    epsilons: tuple[Fraction, ...] = ()  # of each step under pure epsilon
    rho: Fraction = ZERO  # of all steps under promises with a delta
    delta: Fraction = ZERO  # the largest delta of those promises

    @classmethod
    def of(cls, cost: Fraction, delta: Fraction = ZERO) -> Spending:
        """Return a cost in the currency of a promise with this delta."""
        return cls(rho=cost, delta=delta) if delta else cls(epsilons=(cost,))

    @classmethod
    def together(cls, parts: Iterable[Spending]) -> Spending:
        listed = list(parts)
        return cls(
            epsilons=tuple(epsilon for part in listed for epsilon in part.epsilons),
            rho=sum((part.rho for part in listed), ZERO),
            delta=max((part.delta for part in listed), default=ZERO),
        )

    def __add__(self, other: Spending) -> Spending:
        return Spending.together((self, other))

    def of_rows(self, rows: int) -> Spending:
        """Return what it costs so many rows: epsilons that many times, rho its square times."""
        epsilons = tuple(rows * epsilon for epsilon in self.epsilons)
        return Spending(epsilons, rows * rows * self.rho, self.delta)

    @property
    def pure(self) -> Fraction:
        return sum(self.epsilons, ZERO)

    @property
    def paid(self) -> Fraction:
        """The cost of steps under one promise, in its currency."""
        return self.rho if self.delta else self.pure

    @property
    def epsilon(self) -> Fraction:
        """The epsilon at its largest delta; the sum of epsilons where there is none."""
        return self.epsilon_at(self.delta) if self.delta else self.pure

    def epsilon_at(self, delta: Fraction) -> Fraction:
        """Return what it amounts to at some delta above 0.

        Every order holds; two are tried, which are best if all of it is counted as rho, and if
        what is pure is counted as epsilon.
        """
        squares = sum((e * e / 2 for e in self.epsilons), ZERO)
        costs = {cost for cost in (self.rho + squares, self.rho) if cost}
        orders = [cheapest_order(cost, delta) for cost in costs]
        amounts = [at_order(order, self._divergence(order), delta) for order in orders]
        return min(amounts if self.rho else [*amounts, self.pure])

    def within(self, epsilon: Fraction, delta: Fraction) -> bool:
        """Return whether an owner whose cap is `epsilon` at `delta` may spend it."""
        if not self.rho and self.pure <= epsilon:
            return True
        if not delta:
            return False
        order = best_order(epsilon, delta)
        return exactly_at(order, self._divergence(order), delta) <= epsilon

    def words(self) -> str:
        at = f" at delta {shown(self.delta):g}" if self.delta else ""
        return f"epsilon {fraction_words(self.epsilon)}{at}"

    def _divergence(self, order: int) -> Fraction:
        return order * self.rho + sum((min(e, order * e * e / 2) for e in self.epsilons), ZERO)


def fraction_words(value: Fraction) -> str:
    """Write a fraction, and about what it is when that is not plain."""
    written = short(value)
    return f"{written} (about {float(value):.4g})" if "/" in written else written


def short(value: Fraction) -> str:
    """Write a fraction for people: as a decimal or exact where that is short, else rounded."""
    exact, decimal = str(value), repr(float(value))
    if len(decimal) <= _LONGEST_DECIMAL and Fraction(decimal) == value:
        return decimal.removesuffix(".0")
    return exact if len(exact) <= _LONGEST_FRACTION else f"about {shown(value):.6g}"


@lru_cache(maxsize=256)
def epsilon_of(rho: Fraction, delta: Fraction) -> Fraction:
    """Return the epsilon that a cost of `rho` amounts to at `delta`, rounded up to nine digits."""
    return Spending(rho=rho).epsilon_at(delta)


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
    """Return that epsilon, rounded up by less than 1e-30, to be held against a cap."""
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
