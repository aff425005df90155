"""The tails of an ordered attribute: falling outwards where they are no more than noise.

The bins far out of an amount are nearly empty. Noise in them is small against the table, and large
against the mean: ten rows too many at a million move it by more than a thousand at the median do.
From each end, the run of bins that together stay within the noise is fitted by the closest counts
that never rise outwards. That takes off the noise that stands out of its neighbours, keeps what the
run counts in all, and leaves counts that are more than noise as they are.

    >>> falling_tails(np.array([90.0, 40.0, 6.0, -5.0, 4.0, -6.0, 7.0]), 5.0).tolist()
    [90.0, 40.0, 6.0, 0.0, 0.0, 0.0, 0.0]

It works on noisy counts only, and costs no privacy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from common.bayes.simplex import onto_simplex
from common.schema.attribute import Attribute

Floats = NDArray[np.float64]

WITHIN = 2.0  # deviations of a run's noise


def ordered_values(attribute: Attribute) -> int:
    """How many of an attribute's first values are in an order; 0 if none are."""
    return attribute.value_count if attribute.ordered else 0


def margin_of(counts: Floats, rows: int, deviation: float, ordered: int) -> Floats:
    """Return an attribute's counts, non-negative and `rows` in all, from noisy ones.

    Of its values the first `ordered` are in an order; the deviation is that of the noise in one
    count.
    """
    tails = falling_tails(counts[:ordered], deviation)
    return onto_simplex(np.concatenate([tails, counts[ordered:]]), total=rows)


def falling_tails(counts: Floats, deviation: float) -> Floats:
    """Return the counts with tails that do not rise outwards."""
    made = np.array(counts, dtype=np.float64)
    for inwards in (made, made[::-1]):
        lengths = np.arange(1, inwards.size + 1)
        above = np.flatnonzero(np.cumsum(inwards) > WITHIN * deviation * np.sqrt(lengths))
        run = inwards[: int(above[0]) + 1 if above.size else inwards.size]
        run[:] = _not_falling(run)
    return made


def _not_falling(values: Floats) -> Floats:
    """Return the closest values that never fall: neighbours that do are pooled into their mean.

    `scipy.optimize.isotonic_regression` does the same. Loading it takes longer than most fits.
    """
    means, sizes = list[float](), list[int]()
    for value in values.tolist():
        mean, size = value, 1
        while means and means[-1] >= mean:
            before = sizes.pop()
            mean = (means.pop() * before + mean * size) / (before + size)
            size += before
        means.append(mean)
        sizes.append(size)
    return np.repeat(means, sizes)
