"""Fewer, larger tables that contain the tables asked for.

A pass over the rows costs nearly the same for a table of three attributes as for one of two, and a
three-way table holds three two-way tables. So before the rows are read the request is covered by
fewer sets, each small enough to stay in the processor's cache; what was asked for is summed out
of them afterwards, exactly, since counts are integers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

AttributeSet = tuple[int, ...]

CACHED_CELLS = 1 << 13
"""64 KiB of totals: a table that still counts at the speed of a small one."""

_SMALLEST_GROWTH = 2  # an attribute has at least two values, or it is not worth looking for
_MOST_SETS = 1 << 12  # covering takes time quadratic in the sets; beyond, they are counted as asked


def cover(sets: Sequence[AttributeSet], sizes: Sequence[int]) -> dict[AttributeSet, AttributeSet]:
    """For every non-empty set, the sorted set whose table it is read off.

    Greedy: start from a set not yet covered, and add the attribute that completes the most sets
    not yet covered while the table stays within `CACHED_CELLS`.
    """
    wanted = sorted({tuple(sorted(each)) for each in sets if each})
    if len(wanted) > _MOST_SETS:
        return {each: each for each in wanted}
    belongs = np.zeros((len(wanted), len(sizes)), dtype=bool)
    for place, each in enumerate(wanted):
        belongs[place, list(each)] = True
    order = sorted(range(len(wanted)), key=lambda place: -len(wanted[place]))
    homes: dict[AttributeSet, AttributeSet] = {}
    uncovered = np.ones(len(wanted), dtype=bool)
    for seed in order:
        if not uncovered[seed]:
            continue
        chosen = belongs[seed].copy()
        if math.prod(sizes[a] for a in wanted[seed]) * _SMALLEST_GROWTH <= CACHED_CELLS:
            chosen = _grown(chosen, belongs[uncovered], np.asarray(sizes, dtype=float))
        inside = uncovered & ~(belongs & ~chosen).any(axis=1)
        home = tuple(int(attribute) for attribute in np.flatnonzero(chosen))
        homes.update((wanted[int(place)], home) for place in np.flatnonzero(inside))
        uncovered &= ~inside
    return homes


def _grown(
    chosen: NDArray[np.bool_], uncovered: NDArray[np.bool_], sizes: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """`chosen` and the attributes that are worth adding to it."""
    cells = float(np.prod(sizes[chosen]))
    while True:
        lacking = uncovered & ~chosen
        completed = lacking[lacking.sum(axis=1) == 1].sum(axis=0)
        completed[cells * sizes > CACHED_CELLS] = 0
        # Among equals the smallest domain leaves the most room for the next attribute.
        best = int(np.lexsort((sizes, -completed))[0])
        if completed[best] == 0:
            return chosen
        chosen[best] = True
        cells *= sizes[best]
