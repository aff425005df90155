"""Exact draws by inverting a distribution function that is known only between bounds.

The value at a uniform real u is the first k with u < F(k). The first 64 bits of u settle it unless
they fall between the bounds of a threshold F(k), or beyond the table; then more bits are read and
the bounds are recomputed to more places, until it is settled. The answer is the one that infinite
precision would have given, so the law is exact. A guide over the first 16 bits settles most draws
without the other 48.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from common.privacy.randomness import RandomSource
from common.privacy.sampling.enclosure import extend

Distribution = Callable[[int], Iterator[tuple[int, int]]]
"""Maps a number of bits b to integer bounds on F(0) * 2^b, F(1) * 2^b, ... as far as asked for."""

_WORD_BITS = 64
_GUIDE_BITS = 16


class Inversion:
    """The table of one distribution."""

    def __init__(self, distribution: Distribution) -> None:
        self._distribution = distribution
        lower: list[int] = []
        upper: list[int] = []
        for low, high in distribution(_WORD_BITS):
            lower.append(min(low, (1 << _WORD_BITS) - 1))
            if high >= 1 << _WORD_BITS:  # no word lies beyond: the last entry has no upper bound
                break
            upper.append(high)
        self._lower = np.array(lower, dtype=np.uint64)
        self._upper = np.array(upper, dtype=np.uint64)
        first = np.arange(1 << _GUIDE_BITS, dtype=np.uint64) << np.uint64(_WORD_BITS - _GUIDE_BITS)
        last = first + np.uint64((1 << (_WORD_BITS - _GUIDE_BITS)) - 1)
        self._guide = self.settle(first)
        self._guide[self._guide != self.settle(last)] = -1

    def __len__(self) -> int:
        return len(self._lower)

    def settle(self, words: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Return the value that the first 64 bits of each uniform settle, or -1."""
        values = np.searchsorted(self._upper, words, side="right").astype(np.int32)
        values[words >= self._lower[values]] = -1
        return values

    def invert(self, word: int, bits: int, source: RandomSource) -> int:
        """Return the value at a uniform real that begins with `word`, reading on as needed."""
        while True:
            for value, (lower, upper) in enumerate(self._distribution(bits)):
                if word < lower:  # below this threshold, and not below the one before
                    return value
                if word < upper:
                    break
            word, bits = extend(word, source), bits + _WORD_BITS

    def draw(self, count: int, source: RandomSource) -> NDArray[np.int32]:
        leading = np.frombuffer(source.random_bytes(2 * count), dtype="<u2")
        values: NDArray[np.int32] = self._guide[leading]
        unsettled = np.flatnonzero(values < 0)
        if len(unsettled) == 0:
            return values
        rest = source.words(len(unsettled)) >> np.uint64(_GUIDE_BITS)
        words = rest | (leading[unsettled].astype(np.uint64) << np.uint64(_WORD_BITS - _GUIDE_BITS))
        settled = self.settle(words)
        for position in np.flatnonzero(settled < 0):
            settled[position] = self.invert(int(words[position]), _WORD_BITS, source)
        values[unsettled] = settled
        return values
