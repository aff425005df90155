"""PriView's choice of views [Qardaji14]: blocks of equal size that cover every pair at least once.

The comparator of NOCD. The published covering designs come from a repository of best known ones;
ours are made greedily, which is a few blocks worse. Pairs that lie in several blocks are averaged.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from common.errors import LocalError
from common.methods.designs.views import Design, View

PRIVIEW_BLOCK = 8  # PriView's recommendation for binary data at moderate budgets


def covering_design(sizes: Sequence[int], block: int = PRIVIEW_BLOCK) -> Design:
    """Blocks of at most `block` attributes in which every pair occurs at least once."""
    if block < 2:
        raise LocalError(f"a block covers pairs only if it has 2 attributes or more, not {block}")
    uncovered = ~np.eye(len(sizes), dtype=np.bool_)
    views: list[View] = []
    while uncovered.any():
        chosen = [int(uncovered.sum(axis=1).argmax())]
        while len(chosen) < min(block, len(sizes)):
            gains = uncovered[chosen].sum(axis=0)
            gains[chosen] = -1
            # Ties go to the attribute that still misses most: it is the hardest to place later.
            best = np.lexsort((-uncovered.sum(axis=1), -gains))[0]
            if gains[best] <= 0:
                break
            chosen.append(int(best))
        for a, b in combinations(chosen, 2):
            uncovered[a, b] = uncovered[b, a] = False
        views.append(tuple(sorted(chosen)))
    return Design(tuple(views), tuple(sizes))
