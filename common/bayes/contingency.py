"""How much two attributes depend on each other in a table of counts, and whether by chance.

Rows that are drawn independently are never quite independent: two attributes of 20 and 12 values
have a mutual information of 0.1 bits in 1,200 rows by chance. A dependence is significant if its
mutual information is beyond a quantile of the law for independent attributes (the G-test), which
holds for all pairs of a table together. Where many cells expect about a row, the law is a little
further out than its limit, so some room is left.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from common.bayes.postprocessing import mutual_information
from common.privacy.special import chi_square_tail

_FALSE_ALARMS = 1e-3  # the probability of one among all pairs of independent attributes
_ROOM = 1.25


def significant(counts: NDArray[np.int64], *, among: int) -> bool:
    """Return whether two attributes depend more than chance explains, in one of many pairs."""
    rows, columns = (int((counts.sum(axis=axis) > 0).sum()) for axis in (1, 0))
    if min(rows, columns) < 2:
        return False
    statistic = 2 * math.log(2) * int(counts.sum()) * mutual_information(counts.astype(np.float64))
    by_chance = chi_square_tail(statistic / _ROOM, (rows - 1) * (columns - 1))
    return by_chance < _FALSE_ALARMS / among


def cramers_v(counts: NDArray[np.int64]) -> float:
    """Compute Cramer's V of a contingency table, over the values that occur."""
    used = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0].astype(np.float64)
    if min(used.shape) < 2:
        return 0.0
    expected = used.sum(axis=1, keepdims=True) * used.sum(axis=0) / used.sum()
    chi_square = ((used - expected) ** 2 / expected).sum()
    return float(np.sqrt(chi_square / (used.sum() * (min(used.shape) - 1))))
