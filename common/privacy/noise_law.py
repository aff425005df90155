"""Noise laws: everything that the rest of the program may ask about the noise in a count.

A law is one object. No formula of a law is written anywhere else: what draws noise, weighs it,
bounds its tail or charges for it asks the law.

`copies` is how much of a law's noise a sum carries: 1 for a single draw; K / (K - t) for the shares
of K parties, of which any K - t make up the whole noise.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from common.privacy.randomness import RandomSource
from common.privacy.sensitivity import Sensitivity

ONE = Fraction(1)
TAIL_BITS = 128
"""Noise passes its bound with probability at most 2^-TAIL_BITS."""


class NoiseLaw(Protocol):
    """Integer noise, independent in every cell of an answer."""

    @property
    def name(self) -> str:
        """What the statement calls it."""

    @property
    def norm(self) -> int:
        """Which norm of the sensitivity it is calibrated to: 1 or 2."""

    @property
    def scale(self) -> Fraction:
        """Its one parameter, for people and for digests."""

    @property
    def parameter(self) -> str:
        """What that parameter is: its scale or its variance."""

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

    def variance(self, copies: Fraction = ONE) -> float:
        """Return the variance of the noise in one cell."""

    def mean_absolute(self, copies: Fraction = ONE) -> float:
        """Return E|noise| in one cell."""

    def bound(self, draws: int) -> int:
        """Return what none of `draws` draws or shares passes, but with probability 2^-128."""

    def times(self, factor: Fraction) -> NoiseLaw:
        """Return the law of noise that is `factor` times as large."""
