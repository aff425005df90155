"""Which attributes of synthetic rows depend on each other, and not by chance alone.

Rows that are drawn independently are never quite independent: two attributes of 20 and 12 values
have a mutual information of 0.1 bits in 1,200 rows by chance. A picture of such numbers would show
dependences that were not measured. A pair stands out if its mutual information
is beyond a quantile of the law for independent attributes (the G-test), which holds for all pairs
of a table together. Where many cells expect about a row, the law is a little further out than its
limit, so some room is left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from common.bayes.postprocessing import mutual_information
from common.marginals import count
from common.release.evaluation import cramers_v
from common.schema import Codes

_FALSE_ALARMS = 1e-3  # the probability of one among all pairs of independent attributes
_ROOM = 1.25
_FEW = 3  # with fewer attributes it is nothing unusual that they are independent


@dataclass(frozen=True, slots=True)
class Relations:
    """What the rows show."""

    strength: NDArray[np.float64]  # Cramer's V of pairs that stand out; 0 for other pairs
    pairs: int
    standing_out: int
    alone: tuple[str, ...]  # the attributes that stand out with no other

    def caution(self) -> str | None:
        """Say which attributes the rows relate to no other."""
        width = len(self.strength)
        if width < _FEW or not self.alone:
            return None
        names = ", ".join(self.alone)
        return (
            f"No relations: {len(self.alone)} of {width} columns ({names}) depend on no other in "
            "these rows but by chance. Noise hid what relations there are, or there are none. Use "
            "them one column at a time; more rows, a larger epsilon or fewer columns would help."
        )


def relations(names: Sequence[str], codes: Codes) -> Relations:
    """Look at every pair of attributes."""
    places = list(combinations(range(codes.width), 2))
    strength = np.eye(codes.width)
    for (i, j), table in zip(places, count(codes, places), strict=True):
        if stands_out(table, among=len(places)):
            strength[i, j] = strength[j, i] = cramers_v(table)
    partners = (strength > 0).sum(axis=1) - 1
    return Relations(
        strength=strength,
        pairs=len(places),
        standing_out=int(partners.sum()) // 2,
        alone=tuple(name for name, others in zip(names, partners, strict=True) if others == 0),
    )


def stands_out(table: NDArray[np.int64], *, among: int) -> bool:
    """Whether counts of two attributes depend more than chance explains, in one of many pairs."""
    rows, columns = (int((table.sum(axis=axis) > 0).sum()) for axis in (1, 0))
    if min(rows, columns) < 2:
        return False
    from scipy import special  # slow to load, and few commands write a release

    statistic = 2 * math.log(2) * int(table.sum()) * mutual_information(table.astype(np.float64))
    likely = special.chdtri((rows - 1) * (columns - 1), _FALSE_ALARMS / among)
    return statistic > _ROOM * float(likely)
