"""Vectors of exact coin tosses.

A coin shows heads with a probability that is known only between bounds. The first 16 bits of a
uniform real settle nearly every toss; about once in 65,536 tosses more bits are read, until the
toss is settled as infinite precision would have settled it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from common.privacy.randomness import RandomSource
from common.privacy.sampling.enclosure import Bounds, falls_below

_WORD_BITS = 16


def digit_count(scale: Fraction) -> int:
    """Return how many low digits of a geometric variable of this scale are worth a coin each.

    Beyond 2^digits >= 12 scale lies a mass of at most e^-12 < 2^-16: a rare, slow continuation. The
    choice is one of speed; the law is exact for any number of digits.
    """
    return max(0, math.ceil(12 * scale) - 1).bit_length()


class Coins:
    """A row of coins that are tossed together, many times."""

    def __init__(self, probabilities: Sequence[Bounds]) -> None:
        self._probabilities = tuple(probabilities)
        bounds = [probability(_WORD_BITS) for probability in self._probabilities]
        # A word w is heads if w < below, tails if w >= below + unsure, else open.
        self._below = np.array([[lower] for lower, _ in bounds], dtype=np.uint16)
        self._unsure = np.array([[upper - lower] for lower, upper in bounds], dtype=np.uint16)

    def toss(self, count: int, source: RandomSource) -> NDArray[np.bool_]:
        """Toss every coin `count` times: an array (coins, count), true for heads."""
        shape = (len(self._probabilities), count)
        data = source.random_bytes(2 * shape[0] * count)
        words = np.frombuffer(data, dtype="<u2").reshape(shape)
        heads: NDArray[np.bool_] = words < self._below
        # Unsigned wrap-around on purpose: only words in [below, below + unsure) come out small.
        for coin, toss in np.argwhere((words - self._below) < self._unsure):
            heads[coin, toss] = falls_below(
                int(words[coin, toss]), _WORD_BITS, self._probabilities[coin], source
            )
        return heads

    def toss_one(self, coin: int, source: RandomSource) -> bool:
        return falls_below(0, 0, self._probabilities[coin], source)
