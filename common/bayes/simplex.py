"""Noisy tables as distributions: the nearest possible table, and what its axes share.

[Duchi08] Duchi, Shalev-Shwartz, Singer, Chandra: Efficient projections onto the l1-ball.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from common.errors import LocalError


def onto_simplex(table: NDArray[np.float64], *, total: float) -> NDArray[np.float64]:
    """Return the nearest table (Euclidean) with non-negative cells that add up to `total`.

    Clipping alone would leave the positive half of the noise in the table. The projection lowers
    every cell by the same amount and clips at zero; sorting finds the amount [Duchi08, Fig. 1].
    """
    if total < 0:
        raise LocalError(f"a table cannot sum to {total}")
    falling = np.sort(table, axis=None)[::-1]
    lowering = (np.cumsum(falling) - total) / np.arange(1, falling.size + 1)
    kept = np.flatnonzero(falling > lowering)
    shift = lowering[kept[-1]] if kept.size else lowering[0]
    return np.asarray(np.maximum(table - shift, 0.0), dtype=np.float64)


def mutual_information(table: NDArray[np.float64]) -> float:
    """Return I(rows; columns) in bits of a table of weights; negative ones count as none."""
    weights = np.maximum(table, 0.0)
    if weights.sum() <= 0:
        return 0.0
    law = weights / weights.sum()
    independent = law.sum(axis=1, keepdims=True) * law.sum(axis=0, keepdims=True)
    used = law > 0
    return max(0.0, float((law[used] * np.log2(law[used] / independent[used])).sum()))
