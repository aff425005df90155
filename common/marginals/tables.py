"""Tables of counts: how large one may be, which are counted, and which are summed out of others.

A pass over the rows costs nearly the same for a table of three attributes as for one of two, and a
three-way table holds three two-way tables. So `cover` replaces a request by fewer sets, each small
enough to stay in the processor's cache; `project` sums the tables asked for out of theirs,
exactly, since counts are integers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError, LocalError

AttributeSet = tuple[int, ...]
Number = TypeVar("Number", bound=np.number[Any])

MAX_CELLS = 1 << 31  # 16 GiB of totals, and every cell index fits 32 bits
CACHED_CELLS = 1 << 13  # 64 KiB of totals: a table that still counts at the speed of a small one
_SMALLEST_GROWTH = 2  # an attribute has at least two values, or it is not worth looking for
_MOST_SETS = 1 << 12  # covering takes time quadratic in the sets; beyond, they are counted as asked


def cell_count(sizes: Sequence[int], what: str = "the table") -> int:
    """Return the cells of a table over domains of these sizes; refuse more than `MAX_CELLS`."""
    cells = math.prod(sizes)
    if cells > MAX_CELLS:
        raise InputError(
            f"{what} would have {cells:,} cells ({' x '.join(map(str, sizes))}), and at most "
            f"{MAX_CELLS:,} can be counted. Ask for fewer attributes or for coarser domains"
        )
    return cells


def project(table: NDArray[Number], axes: Sequence[int]) -> NDArray[Number]:
    """Return the marginal of `table` over some axes, in the order given, as a fresh C array."""
    if len(set(axes)) != len(axes) or not all(0 <= axis < table.ndim for axis in axes):
        raise LocalError(f"axes {tuple(axes)} are not distinct axes of a {table.ndim}-way table")
    summed_out = tuple(axis for axis in range(table.ndim) if axis not in axes)
    ascending = sorted(axes)
    marginal = np.asarray(table.sum(axis=summed_out, dtype=table.dtype))
    order = [ascending.index(axis) for axis in axes]
    return np.array(marginal.transpose(order), dtype=table.dtype, order="C")


def cover(sets: Sequence[AttributeSet], sizes: Sequence[int]) -> dict[AttributeSet, AttributeSet]:
    """Return, for every non-empty set, the sorted set whose table it is summed out of.

    Greedy: start from a set not yet covered, and add the attribute that completes the most sets
    not yet covered while the table stays within `CACHED_CELLS`.
    """
    families = sorted({tuple(sorted(attributes)) for attributes in sets if attributes})
    if len(families) > _MOST_SETS:
        return {attributes: attributes for attributes in families}
    belongs = np.zeros((len(families), len(sizes)), dtype=bool)
    for place, attributes in enumerate(families):
        belongs[place, list(attributes)] = True
    order = sorted(range(len(families)), key=lambda place: -len(families[place]))
    homes: dict[AttributeSet, AttributeSet] = {}
    uncovered = np.ones(len(families), dtype=bool)
    for seed in order:
        if not uncovered[seed]:
            continue
        chosen = belongs[seed].copy()
        if math.prod(sizes[a] for a in families[seed]) * _SMALLEST_GROWTH <= CACHED_CELLS:
            _grow(chosen, belongs[uncovered], np.asarray(sizes, dtype=float))
        inside = uncovered & ~(belongs & ~chosen).any(axis=1)
        home = tuple(int(attribute) for attribute in np.flatnonzero(chosen))
        homes.update((families[int(place)], home) for place in np.flatnonzero(inside))
        uncovered &= ~inside
    return homes


def _grow(
    chosen: NDArray[np.bool_], uncovered: NDArray[np.bool_], sizes: NDArray[np.float64]
) -> None:
    """Add the attributes that are worth it to `chosen`, in place."""
    cells = float(np.prod(sizes[chosen]))
    while True:
        lacking = uncovered & ~chosen
        completed = lacking[lacking.sum(axis=1) == 1].sum(axis=0)
        completed[cells * sizes > CACHED_CELLS] = 0
        # Among equals the smallest domain leaves the most room for the next attribute.
        best = int(np.lexsort((sizes, -completed))[0])
        if completed[best] == 0:
            return
        chosen[best] = True
        cells *= sizes[best]
