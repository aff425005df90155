"""The compiled inner loops of counting; see `common.schema.compilation`.

Threads with totals of their own can share the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def add_block(
    block: NDArray[np.unsignedinteger[Any]],
    weights: NDArray[np.int64],
    tables: NDArray[np.int64],
    members: NDArray[np.int64],
    sizes: NDArray[np.int64],
    bounds: NDArray[np.int64],
    offsets: NDArray[np.int64],
    totals: NDArray[np.int64],
) -> None:
    """Count a block of rows into some of the tables that lie one after the other in `totals`.

    `tables` says which. Table t is over the columns `members[bounds[t]:bounds[t + 1]]` of `block`
    (attributes x rows), whose domain sizes are at the same places of `sizes`; its cells start at
    `offsets[t]`. A row stands for as many rows as its weight says, or for one where no weights are
    given.
    """
    rows = block.shape[1]
    cell = np.empty(rows, dtype=np.uint32)
    for table in tables:
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


def add_small(
    block: NDArray[np.unsignedinteger[Any]],
    tables: NDArray[np.int64],
    members: NDArray[np.int64],
    sizes: NDArray[np.int64],
    bounds: NDArray[np.int64],
    offsets: NDArray[np.int64],
    totals: NDArray[np.int64],
) -> None:
    """`add_block` without weights, for tables of at most 2^16 cells: twice as fast.

    Cells are numbered in 16 bits, of which twice as many are computed at a time, and a block is
    counted in 32 bits, of which twice as many stay in the first-level cache.
    """
    rows = block.shape[1]
    cell = np.empty(rows, dtype=np.uint16)
    largest = 0
    for table in tables:
        largest = max(largest, offsets[table + 1] - offsets[table])
    counts = np.empty(largest, dtype=np.uint32)
    for table in tables:
        first, last = bounds[table], bounds[table + 1]
        column = block[members[first]]
        for row in range(rows):
            cell[row] = column[row]
        for place in range(first + 1, last):
            column = block[members[place]]
            size = np.uint16(sizes[place])
            for row in range(rows):
                cell[row] = np.uint16(cell[row] * size) + np.uint16(column[row])
        cells = totals[offsets[table] : offsets[table + 1]]
        counts[: len(cells)] = 0
        for row in range(rows):
            counts[cell[row]] += 1
        for place in range(len(cells)):
            cells[place] += counts[place]


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
        count = np.uint64(0)
        for word in range(words):
            ones = before[word] & column[word]
            after[word] = ones
            # The usual count of ones by halves, which the compiler knows as one instruction.
            ones -= (ones >> np.uint64(1)) & np.uint64(0x5555555555555555)
            ones = (ones & np.uint64(0x3333333333333333)) + (
                (ones >> np.uint64(2)) & np.uint64(0x3333333333333333)
            )
            ones = (ones + (ones >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
            count += (ones * np.uint64(0x0101010101010101)) >> np.uint64(56)
        totals[starts[depth] + rank[depth]] += np.int64(count)
        if depth < order:
            depth += 1
            chosen[depth] = attribute + 1
        else:
            chosen[depth] += 1
