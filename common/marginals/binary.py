"""All small tables of binary attributes at once.

A table over m binary attributes follows from 2^m numbers, one per subset: how many rows have all
of the subset's attributes. Tables overlap, so each subset is counted once, on columns packed to one
bit per row, and the tables are assembled from the counts: a row lacks attribute a and has S if it
has S but not S + a, hence one subtraction per attribute (the Moebius transform).

The count of the set c_1 < ... < c_m lies at rank C(c_1, 1) + ... + C(c_m, m) among the sets of m
attributes (colexicographic order), so a batch of tables is gathered by array arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError, LocalError
from common.marginals.kernels import add_subsets
from common.marginals.threads import run_in_threads, worker_count
from common.schema.codes import Codes
from common.schema.compilation import compiled

_MOST_SUBSETS = 1 << 28  # 2 GiB of counts
_BLOCK_WORDS = 1 << 10  # 65,536 rows: the columns of a block stay in the second-level cache


class BinarySubsets:
    """For every set of at most `order` binary attributes, how many rows have them all.

    Counting happens once, here; `tables` only assembles.
    """

    def __init__(self, codes: Codes, order: int, threads: int | None = None) -> None:
        if any(size != 2 for size in codes.sizes):
            raise LocalError(f"only attributes of two values have subsets to count: {codes.sizes}")
        if not 1 <= order <= codes.width:
            raise LocalError(f"order {order} is not in 1..{codes.width}, the number of attributes")
        self._width = codes.width
        self._order = order
        by_size = [math.comb(codes.width, m) for m in range(order + 1)]
        if sum(by_size) > _MOST_SUBSETS:
            raise InputError(
                f"{codes.width} attributes have {sum(by_size):,} subsets of at most {order}, and "
                f"at most {_MOST_SUBSETS:,} can be counted. Ask for tables of fewer attributes"
            )
        self._starts = np.cumsum([0, *by_size[:-1]], dtype=np.int64)
        # What an attribute adds to the rank of a set in which it is the (place + 1)-th smallest.
        self._ranks = np.array(
            [[math.comb(c, place + 1) for c in range(codes.width)] for place in range(order)],
            dtype=np.int64,
        )
        self._counts = np.zeros(sum(by_size), dtype=np.int64)
        self._count(codes, worker_count(threads))

    def _count(self, codes: Codes, workers: int) -> None:
        columns = packed(codes)
        kernel = compiled(add_subsets)
        for low in range(0, columns.shape[1], _BLOCK_WORDS):
            block = np.ascontiguousarray(columns[:, low : low + _BLOCK_WORDS])

            # Every set has one smallest attribute, so the threads write to different counts.
            def sets_from(first: int, block: NDArray[np.uint64] = block) -> None:
                kernel(block, first, self._ranks, self._starts, self._counts)

            run_in_threads(sets_from, range(self._width), workers)
        self._counts[0] = codes.rows

    def tables(self, sets: NDArray[np.integer[Any]] | Sequence[Sequence[int]]) -> NDArray[np.int64]:
        """Return the tables of N sets of m attributes each, as one (N, 2, ..., 2) array.

        A set is the positions of distinct attributes; the axes of its table follow their order.
        """
        attributes = np.asarray(sets, dtype=np.int64)
        if attributes.ndim != 2 or attributes.shape[1] > self._order:
            raise LocalError(
                f"expected N x m attributes with m at most {self._order}, got {attributes.shape}"
            )
        number, size = attributes.shape
        in_order = np.sort(attributes, axis=1)
        if attributes.size and (
            in_order.min() < 0
            or in_order.max() >= self._width
            or (in_order[:, 1:] == in_order[:, :-1]).any()
        ):
            raise LocalError(f"a set needs distinct attributes in 0..{self._width - 1}")
        cells = np.empty((1 << size, number), dtype=np.int64)
        for subset in range(1 << size):
            axes = [axis for axis in range(size) if subset >> (size - 1 - axis) & 1]
            cells[subset] = self._counts[self._places(in_order[:, axes])]
        halves = cells.reshape((2,) * size + (number,))
        for axis in range(size):
            lacking, having = np.moveaxis(halves, axis, 0)
            lacking -= having
        return self._as_asked(halves, attributes)

    def _places(self, in_order: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where the counts of the sets, one per line and ascending, lie."""
        size = in_order.shape[1]
        places = np.full(len(in_order), self._starts[size])
        for place in range(size):
            places += self._ranks[place][in_order[:, place]]
        return places

    def _as_asked(
        self, halves: NDArray[np.int64], attributes: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Turn tables over ascending attributes (2, ..., 2, N) into (N, 2, ..., 2) as asked."""
        number, size = attributes.shape
        tables = np.ascontiguousarray(np.moveaxis(halves, -1, 0))
        if (attributes[:, 1:] > attributes[:, :-1]).all():
            return tables
        # Axis a of a table asked for is axis `ranking[a]` of the ascending one: permute the bits
        # of the cell numbers, table by table.
        ranking = np.argsort(np.argsort(attributes, axis=1), axis=1)
        cells = np.arange(1 << size)
        source = np.zeros((number, 1 << size), dtype=np.int64)
        for axis in range(size):
            bit = cells >> (size - 1 - axis) & 1
            source |= bit << (size - 1 - ranking[:, axis, np.newaxis])
        flat = tables.reshape(number, 1 << size)
        return np.take_along_axis(flat, source, axis=1).reshape(tables.shape)


def packed(codes: Codes) -> NDArray[np.uint64]:
    """Return binary columns as attributes x words, 64 rows to a word, padded with zeros."""
    words = -(-codes.rows // 64)
    columns = np.zeros((codes.width, words * 8), dtype=np.uint8)
    for attribute, column in enumerate(codes.columns):
        bits = np.packbits(column, bitorder="little")
        columns[attribute, : len(bits)] = bits
    return columns.view(np.uint64)
