"""Noise laws: everything that the rest of the program may ask about the noise in a count.

A law is one object, in a module of `common.privacy.laws`. No formula of a law is written anywhere
else: what draws noise, weighs it, bounds its tail or charges for it asks the law. `copies` is how
much of a law's noise a sum carries: 1 for a single draw; K / (K - t) for the shares of K parties,
of which any K - t make up the whole noise.
"""

from __future__ import annotations

import pkgutil
from fractions import Fraction
from functools import cache
from importlib import import_module
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

import common.privacy.laws
from common.privacy.budget import root_from_below
from common.privacy.laws.discrete_laplace import DiscreteLaplace as DiscreteLaplace
from common.privacy.laws.limits import ONE as ONE
from common.privacy.laws.limits import TAIL_BITS as TAIL_BITS
from common.privacy.laws.skellam import Skellam as Skellam
from common.privacy.randomness import RandomSource
from common.privacy.sensitivity import Sensitivity

_EQUIVALENT_BITS = 64


class NoiseLaw(Protocol):
    """Integer noise, independent in every cell of an answer."""

    @property
    def name(self) -> str:
        """Its name in the statement."""

    @property
    def norm(self) -> int:
        """The norm of the sensitivity that it is calibrated to: 1 or 2."""

    @property
    def scale(self) -> Fraction:
        """Its one parameter, for people and for digests."""

    @property
    def currency(self) -> str:
        """The currency that it is paid in: "epsilon" or "rho" (`common.privacy.promise`)."""

    @property
    def parameter(self) -> str:
        """The kind of that parameter: "scale" or "variance"."""

    def cost(self, sensitivity: Sensitivity) -> Fraction:
        """Return what an answer of this sensitivity costs the rows that it is about.

        In the currency of the promise that the law serves (`common.privacy.promise`).
        """

    def draw(self, count: int, source: RandomSource) -> NDArray[np.int64]:
        """Draw whole noise for `count` cells."""

    def draw_share(self, count: int, *, makers: int, source: RandomSource) -> NDArray[np.int64]:
        """Draw one share for `count` cells; `makers` independent shares add up to the noise."""

    @property
    def nominal_variance(self) -> Fraction:
        """The variance of the continuous law of this scale, for decisions on exact fractions."""

    @property
    def nominal_absolute(self) -> float:
        """The mean absolute value of the continuous law of this scale, for forecasts."""

    @property
    def kurtosis(self) -> int:
        """The excess kurtosis of the continuous law: 0 for normal noise."""

    def deviations(self, bits: int) -> float:
        """Return how many deviations a draw passes with a chance of 2^-bits, or a little less."""

    def variance(self, copies: Fraction = ONE) -> float:
        """Return the variance of the noise in one cell."""

    def mean_absolute(self, copies: Fraction = ONE) -> float:
        """Return E|noise| in one cell."""

    def bound(self, draws: int) -> int:
        """Return what none of `draws` draws or shares passes, but with probability 2^-128."""

    def times(self, factor: Fraction) -> NoiseLaw:
        """Return the law of noise that is `factor` times as large."""


class LawOfBudget(Protocol):
    """A kind of law, of which a part of a budget buys one."""

    currency: str

    def costing(self, cost: Fraction, /, *, sensitivity: Sensitivity) -> NoiseLaw:
        """Return the law under which an answer of this sensitivity costs at most `cost`."""


@cache
def laws_paid_in(currency: str) -> tuple[LawOfBudget, ...]:
    """Return every kind of law that is paid in a currency."""
    package = common.privacy.laws
    modules = (
        import_module(f"{package.__name__}.{entry.name}")
        for entry in pkgutil.iter_modules(package.__path__)
    )
    kinds = [module.LAW for module in modules if hasattr(module, "LAW")]
    return tuple(kind for kind in kinds if kind.currency == currency)


def pure_equivalent(law: NoiseLaw, sensitivity: Sensitivity) -> Fraction:
    """Return the epsilon at which Laplace noise of this sensitivity has the law's variance.

    For rules that are written for Laplace noise. Exact for that law, rounded down for others.
    """
    squared = 2 * sensitivity.l1**2 / law.nominal_variance
    return root_from_below(squared, _EQUIVALENT_BITS)
