"""What a row has paid over several studies, in both currencies, and what that amounts to.

A step under pure epsilon has a Renyi divergence of order a of at most min(e, a e^2 / 2), e its
epsilon [Bun16, Proposition 1.4]; a step that costs rho one of at most a rho. Divergences of one
order add up over adaptive steps, so at every integer order a >= 2 all steps together have at most

    D(a) = a rho + sum of min(e, a e^2 / 2),

and amount to the epsilon D(a) + g(a) at delta, g as in `common.privacy.concentrated`.

Two questions, two answers.
- How much is it? The smallest epsilon over some orders; or the sum of epsilons, without a delta,
  where nothing was paid in rho.
- Is there room for more? What is asked next may depend on what was published before. So the order
  must not be chosen in view of the steps: it is the best one for the owner's cap and delta, which
  are written down before. The sum of epsilons may be held against the cap as well, as it needs no
  delta [Feldman21, section 3, for filters of one order].

[Bun16] Bun, Steinke: Concentrated differential privacy. [Feldman21] Feldman, Zrnic: Individual
privacy accounting via a Renyi filter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from common.privacy.budget import shown
from common.privacy.concentrated import at_order, best_order, cheapest_order, exactly_at

ZERO = Fraction(0)
_LONGEST_FRACTION = 12


@dataclass(frozen=True, slots=True)
class Spending:
    """Some steps, of one study or of many.

    Attributes:
        epsilons: of each step under pure epsilon.
        rho: of all steps under promises with a delta.
        delta: the largest delta of those promises.
    """

    epsilons: tuple[Fraction, ...] = ()
    rho: Fraction = ZERO
    delta: Fraction = ZERO

    @classmethod
    def of(cls, cost: Fraction, delta: Fraction = ZERO) -> Spending:
        """Return a cost in the currency of a promise with this delta."""
        return cls(rho=cost, delta=delta) if delta else cls(epsilons=(cost,))

    @classmethod
    def together(cls, parts: Iterable[Spending]) -> Spending:
        listed = list(parts)
        return cls(
            epsilons=tuple(each for part in listed for each in part.epsilons),
            rho=sum((part.rho for part in listed), ZERO),
            delta=max((part.delta for part in listed), default=ZERO),
        )

    def __add__(self, other: Spending) -> Spending:
        return Spending.together((self, other))

    @property
    def pure(self) -> Fraction:
        return sum(self.epsilons, ZERO)

    @property
    def paid(self) -> Fraction:
        """What steps under one promise cost, in its currency."""
        return self.rho if self.delta else self.pure

    @property
    def epsilon(self) -> Fraction:
        """What it amounts to at its largest delta; the sum of epsilons where there is none."""
        return self.epsilon_at(self.delta) if self.delta else self.pure

    def epsilon_at(self, delta: Fraction) -> Fraction:
        """Return what it amounts to at some delta above 0.

        Every order holds; two are tried, which are best if all of it is counted as rho, and if
        what is pure is counted as epsilon.
        """
        costs = {cost for cost in (self.rho + self._squares, self.rho) if cost}
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
        """Return it for people, at its largest delta."""
        at = f" at delta {shown(self.delta):g}" if self.delta else ""
        return f"epsilon {fraction_words(self.epsilon)}{at}"

    @property
    def _squares(self) -> Fraction:
        return sum((e * e / 2 for e in self.epsilons), ZERO)

    def _divergence(self, order: int) -> Fraction:
        return order * self.rho + sum((min(e, order * e * e / 2) for e in self.epsilons), ZERO)


def fraction_words(value: Fraction) -> str:
    """Write a fraction, and about what it is when that is not plain."""
    written = short(value)
    return f"{written} (about {float(value):.4g})" if "/" in written else written


def short(value: Fraction) -> str:
    """Write a fraction for people: exact where that is short, else rounded."""
    exact = str(value)
    return exact if len(exact) <= _LONGEST_FRACTION else f"about {shown(value):.6g}"
