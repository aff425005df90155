"""What a study promises its owners: pure epsilon, or (epsilon, delta).

A promise says in which currency its steps are paid, how much there is of it, and which noise a part
of it buys. A method asks for nothing else:

    budget = study.promise.budget
    law = study.promise.law(budget / 2, sensitivity.histograms(8))

Pure epsilon is paid in epsilon and buys discrete Laplace noise. (epsilon, delta) is paid in rho
(`common.privacy.concentrated`) and buys Skellam noise, which is less for many tables: it grows with
the root of their number.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from common.privacy.concentrated import epsilon_of, rho_of
from common.privacy.laplace import DiscreteLaplace
from common.privacy.noise_law import NoiseLaw
from common.privacy.sensitivity import Sensitivity
from common.privacy.skellam import Skellam

NONE = Fraction(0)


class Promise(Protocol):
    """What may be asked about a promise."""

    @property
    def epsilon(self) -> Fraction:
        """What one row may cost."""

    @property
    def delta(self) -> Fraction:
        """The probability outside of which epsilon holds; 0 for pure epsilon."""

    @property
    def currency(self) -> str:
        """In what steps are paid: `epsilon` or `rho`."""

    @property
    def budget(self) -> Fraction:
        """How much of the currency there is."""

    def law(self, cost: Fraction, sensitivity: Sensitivity) -> NoiseLaw:
        """Return the law of the least noise for which an answer costs at most `cost`."""

    def delivered(self, spent: Fraction, rows: int = 1) -> Fraction:
        """Return the epsilon, at delta, that `spent` amounts to for a person with so many rows."""


@dataclass(frozen=True, slots=True)
class PureEpsilon:
    """What is published is at most exp(epsilon) times as likely with one row as with another."""

    epsilon: Fraction

    delta = NONE
    currency = "epsilon"

    @property
    def budget(self) -> Fraction:
        """Epsilon itself."""
        return self.epsilon

    def law(self, cost: Fraction, sensitivity: Sensitivity) -> DiscreteLaplace:
        """Return discrete Laplace noise, calibrated to the L1 sensitivity."""
        return DiscreteLaplace.costing(cost, sensitivity=sensitivity)

    def delivered(self, spent: Fraction, rows: int = 1) -> Fraction:
        """Return what was spent, once for each row: k rows are replaced one after the other."""
        return rows * spent


@dataclass(frozen=True, slots=True)
class EpsilonDelta:
    """The same, but for a probability of at most delta."""

    epsilon: Fraction
    delta: Fraction

    currency = "rho"

    @property
    def budget(self) -> Fraction:
        """The rho that (epsilon, delta) buys."""
        return rho_of(self.epsilon, self.delta)

    def law(self, cost: Fraction, sensitivity: Sensitivity) -> Skellam:
        """Return Skellam noise, calibrated to the L2 sensitivity."""
        return Skellam.costing(cost, sensitivity=sensitivity)

    def delivered(self, spent: Fraction, rows: int = 1) -> Fraction:
        """Return the epsilon at delta.

        For a person with k rows sensitivities are k times as large in either norm, and the cost of
        Skellam noise grows by at most the square of that factor.
        """
        bound = epsilon_of(rows * rows * spent, self.delta)
        return min(bound, self.epsilon) if rows * rows * spent <= self.budget else bound


@dataclass(frozen=True, slots=True)
class PerPerson:
    """A promise to a person with several rows: noise is calibrated to all of them together.

    Attributes:
        to_one: what is promised, to a person with one row.
        rows: the most that a person has with one owner.
        owners: the most that have rows of a person.
    """

    to_one: PureEpsilon | EpsilonDelta
    rows: int
    owners: int = 1

    @property
    def epsilon(self) -> Fraction:
        """What one person may cost."""
        return self.to_one.epsilon

    @property
    def delta(self) -> Fraction:
        """The probability outside of which epsilon holds."""
        return self.to_one.delta

    @property
    def currency(self) -> str:
        """In what steps are paid."""
        return self.to_one.currency

    @property
    def budget(self) -> Fraction:
        """How much of the currency there is for a person."""
        return self.to_one.budget

    def law(self, cost: Fraction, sensitivity: Sensitivity) -> NoiseLaw:
        """Return the law of the least noise for which a person pays at most `cost`."""
        return self.to_one.law(cost, sensitivity.of_rows(self.rows * self.owners))

    def delivered(self, spent: Fraction, rows: int = 1) -> Fraction:
        """Return the epsilon at delta; `rows` is how often a person has as many rows as agreed."""
        return self.to_one.delivered(spent, rows)


@dataclass(frozen=True, slots=True)
class PartOf:
    """A promise of whose budget a part is left.

    Attributes:
        whole: what is promised.
        budget: how much of its currency there is.
    """

    whole: Promise
    budget: Fraction

    @property
    def epsilon(self) -> Fraction:
        """That of the whole."""
        return self.whole.epsilon

    @property
    def delta(self) -> Fraction:
        """That of the whole."""
        return self.whole.delta

    @property
    def currency(self) -> str:
        """That of the whole."""
        return self.whole.currency

    def law(self, cost: Fraction, sensitivity: Sensitivity) -> NoiseLaw:
        """Return the law of the least noise for which an answer costs at most `cost`."""
        return self.whole.law(cost, sensitivity)

    def delivered(self, spent: Fraction, rows: int = 1) -> Fraction:
        """Return what `spent` amounts to."""
        return self.whole.delivered(spent, rows)


def promise_of(epsilon: Fraction, delta: Fraction = NONE) -> PureEpsilon | EpsilonDelta:
    """Return the promise of a study: pure epsilon where delta is 0."""
    return EpsilonDelta(epsilon, delta) if delta else PureEpsilon(epsilon)
