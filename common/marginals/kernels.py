"""The compiled inner loops, loaded when the first large request arrives.

The functions below are plain Python that numba translates; `compiled` hands out the translation.
Importing this module does not import numba, which alone takes longer than most small requests.
Every kernel releases the interpreter lock and writes only to the arrays it is given, so that
threads with totals of their own can share the rows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

P = ParamSpec("P")
R = TypeVar("R")

_loading = threading.Lock()
_loaded: dict[Callable[..., Any], Callable[..., Any]] = {}


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """The machine code of one of this module's kernels, kept on disk where that is possible."""
    with _loading:
        if function not in _loaded:
            from numba import njit

            try:
                _loaded[function] = njit(nogil=True, cache=True)(function)
            except RuntimeError:  # no writable folder for the cache: translate in every process
                _loaded[function] = njit(nogil=True)(function)
        return _loaded[function]


def add_block(
    block: NDArray[np.uint16],
    weights: NDArray[np.int64],
    members: NDArray[np.int64],
    sizes: NDArray[np.int64],
    bounds: NDArray[np.int64],
    offsets: NDArray[np.int64],
    totals: NDArray[np.int64],
) -> None:
    """Count a block of rows into several tables that lie one after the other in `totals`.

    Table t is over the columns `members[bounds[t]:bounds[t + 1]]` of `block` (attributes x rows),
    whose domain sizes are at the same places of `sizes`; its cells start at `offsets[t]`. A row
    stands for as many rows as its weight says, or for one where no weights are given.
    """
    rows = block.shape[1]
    cell = np.empty(rows, dtype=np.uint32)
    for table in range(len(bounds) - 1):
        first, last = bounds[table], bounds[table + 1]
        column = block[members[first]]
        for row in range(rows):
            cell[row] = column[row]
        for place in range(first + 1, last):
            column = block[members[place]]
            size = np.uint32(sizes[place])
            for row in range(rows):
                cell[row] = cell[row] * size + column[row]
        cells = totals[offsets[table] : offsets[table + 1]]
        if len(weights) == 0:
            for row in range(rows):
                cells[cell[row]] += 1
        else:
            for row in range(rows):
                cells[cell[row]] += weights[row]


def add_subsets(
    columns: NDArray[np.uint64],
    first: int,
    ranks: NDArray[np.int64],
    starts: NDArray[np.int64],
    totals: NDArray[np.int64],
) -> None:
    """Count, for every set of attributes whose smallest is `first`, the rows that have them all.

    Args:
        columns: One bit per row, attributes x words.
        first: The smallest attribute of the sets counted here.
        ranks: `ranks[i, c]` is C(c, i + 1), what attribute c adds to a set's rank at place i.
        starts: `starts[m]` is where the sets of m attributes begin in `totals`.
        totals: One count per set, in colexicographic order among sets of the same size.
    """
    width, words = columns.shape
    order = len(ranks)
    common = np.empty((order + 1, words), dtype=np.uint64)  # rows that have the first 0, 1, ...
    common[0] = ~np.uint64(0)
    chosen = np.zeros(order + 1, dtype=np.int64)
    rank = np.zeros(order + 1, dtype=np.int64)
    chosen[1] = first
    depth = 1  # a walk over the sets in lexicographic order; `chosen[1:depth + 1]` is the set
    while depth > 0:
        attribute = chosen[depth]
        if attribute == width or (depth == 1 and attribute > first):
            depth -= 1
            chosen[depth] += 1
            continue
        rank[depth] = rank[depth - 1] + ranks[depth - 1, attribute]
        before, column, after = common[depth - 1], columns[attribute], common[depth]
        held = np.uint64(0)
        for word in range(words):
            ones = before[word] & column[word]
            after[word] = ones
            # The usual count of ones by halves, which the compiler knows as one instruction.
            ones -= (ones >> np.uint64(1)) & np.uint64(0x5555555555555555)
            ones = (ones & np.uint64(0x3333333333333333)) + (
                (ones >> np.uint64(2)) & np.uint64(0x3333333333333333)
            )
            ones = (ones + (ones >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
            held += (ones * np.uint64(0x0101010101010101)) >> np.uint64(56)
        totals[starts[depth] + rank[depth]] += np.int64(held)
        if depth < order:
            depth += 1
            chosen[depth] = attribute + 1
        else:
            chosen[depth] += 1
