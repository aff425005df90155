"""Tables of counts over sets of attributes: the one door to every row.

`count` answers a list of attribute sets with one int64 array each. Counts are additive over rows,
so a `Tally` gives the same answer for a table that arrives in pieces. Small requests take one
`numpy.bincount` each; large ones one compiled pass over the rows, in blocks that stay in the cache,
with every core on rows (or, for large tables, on sets) of its own; many tables of binary attributes
are assembled from the counts of their subsets.

    >>> ages_by_sex, total = count(codes, [(0, 4), ()])
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.errors import LocalError
from common.marginals.binary import BinarySubsets
from common.marginals.covering import CACHED_CELLS, AttributeSet, cover
from common.marginals.kernels import add_block, add_small
from common.marginals.tables import cell_count, project
from common.marginals.threads import run_in_threads, worker_count
from common.schema.codes import NO_GROUPS, CodeColumn, Codes, Groups, code_dtype
from common.schema.compilation import compiled

Counts = NDArray[np.int64]

_BLOCK_ROWS = (
    1 << 15
)  # 32 or 64 KiB per column: the columns of a block stay in the second-level cache
_COMPILED_FROM = 1 << 25  # rows x sets; below, bincount is done before numba would be loaded
_SUBSETS_PER_TABLE = 16  # 64 rows to a word: a subset is counted that much faster than a table
_PRIVATE_CELLS = 1 << 20  # 8 MiB of totals per thread; beyond, threads share out the sets instead
_ONE_EACH = np.zeros(0, dtype=np.int64)  # no weights, for the kernel


def count(
    codes: Codes,
    attribute_sets: Sequence[Sequence[int]],
    *,
    groups: Groups = NO_GROUPS,
    weights: NDArray[np.integer[Any]] | None = None,
    threads: int | None = None,
) -> list[Counts]:
    """The contingency table of every attribute set.

    Args:
        codes: The rows.
        attribute_sets: Positions of distinct attributes; the empty set asks for the row total.
        groups: Of attributes that are counted by groups of values, each value's group.
        weights: How many rows each row stands for (not negative), as where a database groups its
            rows; one each when not given.
        threads: How many threads count; one per core when not given. The answer is the same.

    Returns:
        For each set an int64 array of shape `[codes.sizes[j] for j in the set]`, axes as given;
        with groups, their number in place of a size.

    Raises:
        InputError: A table would be too large to count.
        LocalError: A set or a weight makes no sense.
    """
    codes = codes.in_groups(groups)
    sets = checked_sets(attribute_sets, codes.sizes)
    exact_weights = None if weights is None else checked_weights(weights, codes.rows)
    if codes.rows * len(sets) < _COMPILED_FROM:
        return [_one_table(codes, each, exact_weights) for each in sets]
    if exact_weights is None and _bits_are_fewer(codes, sets):
        return _binary_tables(codes, sets, threads)
    tally = Tally(codes.sizes, sets)
    tally.add(codes, weights=exact_weights, threads=threads)
    return tally.tables()


def checked_sets(
    attribute_sets: Sequence[Sequence[int]], sizes: Sequence[int]
) -> list[AttributeSet]:
    """The sets as tuples; refuses unknown and repeated attributes and tables too large."""
    sets = [tuple(int(attribute) for attribute in each) for each in attribute_sets]
    for each in set(sets):
        if len(set(each)) != len(each) or not all(0 <= a < len(sizes) for a in each):
            raise LocalError(
                f"attribute set {each}: expected distinct positions in 0..{len(sizes) - 1}"
            )
        cell_count([sizes[a] for a in each], f"the table of attributes {each}")
    return sets


def checked_weights(weights: NDArray[np.integer[Any]], rows: int) -> Counts:
    """The weights as int64; refuses negative ones and a total that int64 does not hold."""
    if weights.shape != (rows,) or not np.issubdtype(weights.dtype, np.integer):
        raise LocalError(
            f"expected {rows} integer weights, got {weights.dtype} of shape {weights.shape}"
        )
    if rows and int(weights.min()) < 0:
        raise LocalError("a weight is negative; a row stands for zero or more rows")
    largest = int(weights.max()) if rows else 0
    if largest * rows >= 1 << 63 and sum(map(int, weights)) >= 1 << 63:
        raise LocalError("the weights add up to 2^63 or more, which int64 counts cannot hold")
    return np.ascontiguousarray(weights, dtype=np.int64)


def _one_table(codes: Codes, attributes: AttributeSet, weights: Counts | None) -> Counts:
    """One table by mixed-radix codes and `numpy.bincount`."""
    if not attributes:
        return np.array(codes.rows if weights is None else weights.sum(), dtype=np.int64)
    shape = [codes.sizes[a] for a in attributes]
    cells = cell_count(shape)
    cell = codes.columns[attributes[0]].astype(np.intp)
    for attribute in attributes[1:]:
        cell *= codes.sizes[attribute]
        cell += codes.columns[attribute]
    if weights is None:
        return np.bincount(cell, minlength=cells).astype(np.int64, copy=False).reshape(shape)
    totals = np.zeros(cells, dtype=np.int64)
    np.add.at(totals, cell, weights)  # bincount would add weights as floats, exact to 2^53 only
    return totals.reshape(shape)


def _bits_are_fewer(codes: Codes, sets: Sequence[AttributeSet]) -> bool:
    """Whether counting all subsets of binary attributes is less work than the sets themselves."""
    used = {attribute for each in sets for attribute in each}
    if not used or any(codes.sizes[a] != 2 for a in used):
        return False
    order = max(map(len, sets))
    subsets = sum(math.comb(len(used), size) for size in range(order + 1))
    return subsets <= _SUBSETS_PER_TABLE * len(sets)


def _binary_tables(codes: Codes, sets: Sequence[AttributeSet], threads: int | None) -> list[Counts]:
    """All tables from one count of the subsets of the attributes used."""
    used = sorted({attribute for each in sets for attribute in each})
    subsets = BinarySubsets(codes.select(used), max(map(len, sets)), threads)
    column_of = {attribute: column for column, attribute in enumerate(used)}
    places: dict[int, list[int]] = {}
    for place, each in enumerate(sets):
        places.setdefault(len(each), []).append(place)
    tables: dict[int, Counts] = {}
    for size, same_size in places.items():
        columns = [[column_of[a] for a in sets[place]] for place in same_size]
        batch = subsets.tables(np.array(columns, dtype=np.int64).reshape(len(columns), size))
        tables.update(zip(same_size, map(np.array, batch), strict=True))
    return [tables[place] for place in range(len(sets))]


class Tally:
    """Running totals of a fixed request, to which rows are added."""

    def __init__(self, sizes: Sequence[int], sets: Sequence[AttributeSet]) -> None:
        self._sizes = tuple(sizes)
        self._sets = tuple(sets)
        self._homes = cover(self._sets, self._sizes)
        self._layout = _Layout(sorted(set(self._homes.values())), self._sizes)
        self._totals = np.zeros(self._layout.cells, dtype=np.int64)
        self._rows = 0

    @property
    def fits_every_thread(self) -> bool:
        """Whether the totals are few enough for every thread to have its own."""
        return self._layout.cells <= _PRIVATE_CELLS

    def add(
        self, codes: Codes, *, weights: Counts | None = None, threads: int | None = None
    ) -> None:
        """Count the rows of one more table of the same domains."""
        if codes.sizes != self._sizes:
            raise LocalError("the chunks of one table must have the same domains")
        workers = worker_count(threads)
        self._rows += codes.rows if weights is None else int(weights.sum())
        if self.fits_every_thread:
            self._add_by_rows(codes, weights, workers)
        else:
            self._add_by_sets(codes, weights, workers)

    def empty(self) -> Tally:
        """A tally of the same request, without rows."""
        fresh = copy.copy(self)
        fresh._totals = np.zeros_like(self._totals)
        fresh._rows = 0
        return fresh

    def merge(self, other: Tally) -> None:
        """Take over the totals of another tally of the same request."""
        if (other._sizes, other._sets) != (self._sizes, self._sets):
            raise LocalError("only tallies of the same request can be added up")
        self._totals += other._totals
        self._rows += other._rows

    def tables(self) -> list[Counts]:
        return [self._table(each) for each in self._sets]

    def _table(self, attributes: AttributeSet) -> Counts:
        if not attributes:
            return np.array(self._rows, dtype=np.int64)
        home = self._homes[tuple(sorted(attributes))]
        start, stop = self._layout.span(home)
        whole = self._totals[start:stop].reshape([self._sizes[a] for a in home])
        return project(whole, [home.index(a) for a in attributes])

    def _add_by_rows(self, codes: Codes, weights: Counts | None, workers: int) -> None:
        """Each thread counts a share of the rows into totals of its own."""
        blocks = -(-codes.rows // _BLOCK_ROWS)
        workers = max(1, min(workers, blocks))
        shares = [
            range(blocks * w // workers * _BLOCK_ROWS, blocks * (w + 1) // workers * _BLOCK_ROWS)
            for w in range(workers)
        ]
        totals = [self._totals, *(np.zeros_like(self._totals) for _ in shares[1:])]
        run_in_threads(
            lambda worker: self._layout.add(codes, weights, shares[worker], totals[worker]),
            range(workers),
            workers,
        )
        for private in totals[1:]:
            self._totals += private

    def _add_by_sets(self, codes: Codes, weights: Counts | None, workers: int) -> None:
        """Each thread counts all rows into a share of the tables: no totals are held twice."""
        parts = self._layout.parts(workers)
        run_in_threads(
            lambda part: parts[part].add(codes, weights, range(codes.rows), self._totals),
            range(len(parts)),
            workers,
        )


class _Layout:
    """Where the cells of several tables lie in one vector, in the form the kernels read."""

    def __init__(self, sets: Sequence[AttributeSet], sizes: Sequence[int], start: int = 0) -> None:
        self._sets = tuple(sets)
        self._sizes = tuple(sizes)
        cells = [cell_count([sizes[a] for a in each]) for each in sets]
        self._offsets = np.cumsum([start, *cells], dtype=np.int64)
        self._small = np.flatnonzero(np.diff(self._offsets) <= CACHED_CELLS)
        self._large = np.flatnonzero(np.diff(self._offsets) > CACHED_CELLS)
        self._place = {each: place for place, each in enumerate(self._sets)}
        self._used = sorted({a for each in sets for a in each})
        row_of = {a: row for row, a in enumerate(self._used)}
        self._members = np.array([row_of[a] for each in sets for a in each], dtype=np.int64)
        self._radices = np.array([sizes[a] for each in sets for a in each], dtype=np.int64)
        self._bounds = np.cumsum([0, *map(len, sets)], dtype=np.int64)

    @property
    def cells(self) -> int:
        return int(self._offsets[-1] - self._offsets[0])

    def span(self, attributes: AttributeSet) -> tuple[int, int]:
        place = self._place[attributes]
        return int(self._offsets[place]), int(self._offsets[place + 1])

    def parts(self, count: int) -> list[_Layout]:
        """At most `count` layouts that share out the sets, over the same vector of totals."""
        count = max(1, min(count, len(self._sets)))
        cuts = [len(self._sets) * part // count for part in range(count + 1)]
        return [
            _Layout(self._sets[low:high], self._sizes, start=int(self._offsets[low]))
            for low, high in itertools.pairwise(cuts)
        ]

    def add(self, codes: Codes, weights: Counts | None, rows: range, totals: Counts) -> None:
        """Count some rows into `totals`."""
        if not self._sets:
            return
        layout = (self._members, self._radices, self._bounds, self._offsets, totals)
        small, large = self._small, self._large
        if weights is not None:
            small, large = small[:0], np.concatenate([small, large])
        dtype = code_dtype(max(self._sizes[a] for a in self._used))
        buffer: CodeColumn = np.empty(len(self._used) * _BLOCK_ROWS, dtype=dtype)
        stop = min(rows.stop, codes.rows)
        for low in range(rows.start, stop, _BLOCK_ROWS):
            high = min(low + _BLOCK_ROWS, stop)
            # Contiguous also where the last block is short, so that one compilation serves all.
            block = buffer[: len(self._used) * (high - low)].reshape(len(self._used), -1)
            for row, attribute in enumerate(self._used):
                block[row] = codes.columns[attribute][low:high]
            if len(small):
                compiled(add_small)(block, small, *layout)
            if len(large):
                each = _ONE_EACH if weights is None else weights[low:high]
                compiled(add_block)(block, each, large, *layout)
