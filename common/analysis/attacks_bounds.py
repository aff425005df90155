"""What an attack may reach: rates with confidence bounds, and the rates that epsilon allows.

An attack is a yes or no about a target row: "it was in the study", "its disease is flu". Let p be
the rate of yes among rows of the study and q the rate among rows that were not in it. If the
release is (epsilon, delta)-differentially private and both kinds of rows are drawn alike, then

    p <= exp(epsilon) q + delta     and     1 - q <= exp(epsilon) (1 - p) + delta,

because replacing one row of the study by a fresh one changes the probability of yes about that row
by no more [Wasserman, Zhou 2010; Kairouz, Oh, Viswanath 2015]. So p - q is at most
(exp(epsilon) - 1 + 2 delta) / (exp(epsilon) + 1).

An attack on the whole table, such as "exactly one row is like this", is about n rows. By the first
inequality, row by row, the expected number of rows of the study that a released statement is true
of is at most exp(epsilon) times that of n other rows, plus n delta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.stats import beta


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """How often an attack succeeded, with exact binomial bounds (Clopper, Pearson 1934)."""

    hits: int
    trials: int
    low: float  # below the true rate with the stated confidence
    high: float  # above it

    @classmethod
    def of(cls, hits: int, *, trials: int, level: float) -> Rate:
        """Return the rate with two bounds, each of which fails with probability `level`."""
        low = beta.ppf(level, hits, trials - hits + 1) if hits else 0.0
        high = beta.ppf(1 - level, hits + 1, trials - hits) if hits < trials else 1.0
        return cls(hits=hits, trials=trials, low=float(low), high=float(high))

    @property
    def value(self) -> float:
        return self.hits / self.trials

    def as_json(self) -> dict[str, object]:
        return {
            "hits": self.hits, "trials": self.trials, "rate": self.value, "low": self.low,
            "high": self.high,
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """The (epsilon, delta) that a release states; None where it states none."""

    epsilon: float | None
    delta: float = 0.0

    def most_hits(self, others: float) -> float:
        """Return the highest rate among rows of the study, given the rate among other rows."""
        if self.epsilon is None:
            return 1.0
        growth = math.exp(min(self.epsilon, 700.0))
        by_hits = growth * others + self.delta
        by_misses = 1 - (1 - others - self.delta) / growth
        return min(1.0, by_hits, by_misses)

    def most_about_a_table(self, matches: float, *, rows: int) -> float:
        """Return the highest rate of statements that are true of a row in a table of the study.

        `matches` is the mean number of rows, of as many others, that a statement is true of.
        """
        if self.epsilon is None:
            return 1.0
        return min(1.0, math.exp(min(self.epsilon, 700.0)) * matches + rows * self.delta)

    @property
    def advantage(self) -> float:
        if self.epsilon is None:
            return 1.0
        growth = math.exp(-self.epsilon)  # divided through, so that it does not overflow
        return min(1.0, (1 - growth + 2 * self.delta * growth) / (1 + growth))

    def words(self) -> str:
        if self.epsilon is None:
            return "no epsilon"
        return f"epsilon {self.epsilon:g}" + (f" at delta {self.delta:g}" if self.delta else "")


def epsilon_at_least(members: Rate, others: Rate, *, delta: float) -> float:
    """Return the epsilon that the two rates prove, with their confidence; 0 if they prove none."""
    proofs = [
        (members.low - delta, others.high),
        (1 - others.high - delta, 1 - members.low),
    ]
    epsilons = [
        math.log(above / below) if below else math.inf for above, below in proofs if above > 0
    ]
    return max([0.0, *epsilons])
