"""What a study promises its owners: pure epsilon, or (epsilon, delta), to a row or to a person.

A promise says in which currency its steps are paid, how much there is of it, and which noise a part
of it buys. A method asks for nothing else:

    budget = study.promise.budget
    law = study.promise.law(budget / 2, sensitivity.histograms(8))

Pure epsilon is paid in epsilon and buys discrete Laplace noise, calibrated to the L1 sensitivity.
(epsilon, delta) is paid in rho (`common.privacy.spending`) and buys Skellam noise, calibrated
to the L2 sensitivity, which is less for many tables: it grows with the root of their number.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from common.privacy.noise_law import DiscreteLaplace, NoiseLaw, Skellam
from common.privacy.sensitivity import Sensitivity
from common.privacy.spending import epsilon_of, rho_of


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
    def currency(self) -> str:
        """The currency in which steps are paid."""
        return "rho" if self.delta else "epsilon"

    @property
    def budget(self) -> Fraction:
        return self._bought if self.left is None else self.left

    @property
    def _bought(self) -> Fraction:
        return rho_of(self.epsilon, self.delta) if self.delta else self.epsilon

    @property
    def protected_rows(self) -> int:
        """The number of rows protected at once: those of one person, at all owners."""
        return max(1, self.rows) * self.owners

    def law(self, cost: Fraction, sensitivity: Sensitivity) -> NoiseLaw:
        """Return the law of the least noise for which an answer costs at most `cost`.

        The sensitivity is that of one row; noise is calibrated to all protected rows together.
        """
        moved = sensitivity.of_rows(self.protected_rows)
        law = Skellam if self.delta else DiscreteLaplace
        return law.costing(cost, sensitivity=moved)

    def delivered(self, spent: Fraction, rows: int = 1) -> Fraction:
        """Return the epsilon, at delta, that `spent` amounts to for `rows` times as many rows.

        Under pure epsilon rows are replaced one after the other, and each pays. With a delta the
        sensitivities are k times as large in either norm, and the cost of Skellam noise grows by at
        most the square of that factor.
        """
        if not self.delta:
            return rows * spent
        bound = epsilon_of(rows * rows * spent, self.delta)
        return min(bound, self.epsilon) if rows * rows * spent <= self._bought else bound
