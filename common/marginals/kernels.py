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
    members: NDArray[np.int64],
    sizes: NDArray[np.int64],
    bounds: NDArray[np.int64],
    offsets: NDArray[np.int64],
    totals: NDArray[np.int64],
) -> None:
    """Count a block of rows into several tables that lie one after the other in `totals`.

    Table t is over the columns `members[bounds[t]:bounds[t + 1]]` of `block` (attributes x rows),
    whose domain sizes are at the same places of `sizes`; its cells start at `offsets[t]`.
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
        for row in range(rows):
            cells[cell[row]] += 1


def add_weighted_block(
    block: NDArray[np.uint16],
    weights: NDArray[np.int64],
    members: NDArray[np.int64],
    sizes: NDArray[np.int64],
    bounds: NDArray[np.int64],
    offsets: NDArray[np.int64],
    totals: NDArray[np.int64],
) -> None:
    """`add_block`, where row r stands for `weights[r]` rows."""
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
        for row in range(rows):
            cells[cell[row]] += weights[row]
