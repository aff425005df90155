"""What a study promises its owners: pure epsilon, or (epsilon, delta), to a row or to a person.

A promise says in which currency its steps are paid, how much there is of it, and which noise a part
of it buys. A method asks for nothing else:

    budget = study.promise.budget
    law = study.promise.law(budget / 2, sensitivity.histograms(8))

Pure epsilon is paid in epsilon, (epsilon, delta) in rho (`common.privacy.spending`). A currency
buys the law of least variance among those that are paid in it (`common.privacy.laws`): epsilon
discrete Laplace noise, calibrated to the L1 sensitivity; rho Skellam noise, calibrated to the L2
sensitivity, which is less for many tables: it grows with the root of their number.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from common.privacy.noise_law import NoiseLaw, laws_paid_in
from common.privacy.sensitivity import Sensitivity
from common.privacy.spending import epsilon_of, rho_of


class _Epsilon:
    """Costs in epsilon, which add up."""

    name = "epsilon"

    def bought(self, promise: Promise) -> Fraction:
        return promise.epsilon

    def delivered(self, spent: Fraction, rows: int, promise: Promise) -> Fraction:
        """Return the epsilon: rows are replaced one after the other, and each pays."""
        return rows * spent


class _Rho:
    """Costs in rho, which add up; what they amount to depends on delta."""

    name = "rho"

    def bought(self, promise: Promise) -> Fraction:
        return rho_of(promise.epsilon, promise.delta)

    def delivered(self, spent: Fraction, rows: int, promise: Promise) -> Fraction:
        """Return the epsilon at delta.

        The sensitivities of k rows are k times as large in either norm, and the cost of a law that
        is paid in rho grows by at most the square of that factor.
        """
        bound = epsilon_of(rows * rows * spent, promise.delta)
        affordable = rows * rows * spent <= self.bought(promise)
        return min(bound, promise.epsilon) if affordable else bound


@dataclass(frozen=True, slots=True)
class Promise:
    """What is published is at most exp(epsilon) times as likely with one row as with another."""

    epsilon: Fraction  # what one row, or one person, may cost
    # The probability outside of which epsilon holds; 0 for pure epsilon.
    delta: Fraction = Fraction(0)
    rows: int = 0  # the most rows that a person has with one owner; 0 if the promise is to a row
    owners: int = 1  # the most owners that have rows of a person
    events: str = ""  # what a person's events are called, if a row is a person with all of them
    # Of the budget, if a part of it is for something else; None for all of it.
    left: Fraction | None = None

    @property
    def _paid_in(self) -> _Epsilon | _Rho:
        return _Rho() if self.delta else _Epsilon()

    @property
    def currency(self) -> str:
        """The currency in which steps are paid."""
        return self._paid_in.name

    @property
    def budget(self) -> Fraction:
        return self._paid_in.bought(self) if self.left is None else self.left

    @property
    def protected_rows(self) -> int:
        """The number of rows protected at once: those of one person, at all owners."""
        return max(1, self.rows) * self.owners

    def law(self, cost: Fraction, sensitivity: Sensitivity) -> NoiseLaw:
        """Return the law of the least noise for which an answer costs at most `cost`.

        The sensitivity is that of one row; noise is calibrated to all protected rows together.
        """
        moved = sensitivity.of_rows(self.protected_rows)
        laws = [kind.costing(cost, sensitivity=moved) for kind in laws_paid_in(self.currency)]
        return min(laws, key=lambda law: law.nominal_variance)

    def delivered(self, spent: Fraction, rows: int = 1) -> Fraction:
        """Return the epsilon, at delta, that `spent` amounts to for `rows` times as many rows."""
        return self._paid_in.delivered(spent, rows, self)
