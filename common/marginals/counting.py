"""Tables of counts over sets of attributes: the one door to every row.

`count` answers a list of attribute sets with one int64 array each. Counts are additive over rows,
so a `Tally` gives the same answer for a table that arrives in pieces, and `count_streams` for rows
that are made while they are counted. Small requests take one `numpy.bincount` each; large ones one
compiled pass over the rows, in blocks that stay in the cache, with every core on rows (or, for
large tables, on sets) of its own; many tables of binary attributes are assembled from the counts of
their subsets.

    >>> ages_by_sex, total = count(codes, [(0, 4), ()])
"""

from __future__ import annotations

import copy
import itertools
import math
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.errors import LocalError
from common.marginals.binary import BinarySubsets
from common.marginals.kernels import add_block, add_small
from common.marginals.tables import CACHED_CELLS, AttributeSet, cell_count, cover, project
from common.marginals.threads import map_in_threads, run_in_threads, worker_count
from common.schema.codes import NO_GROUPS, CodeColumn, Codes, Groups, code_dtype, grouped_sizes
from common.schema.compilation import can_compile, compiled

Counts = NDArray[np.int64]
Stream = Callable[[], Iterable[Codes]]  # a part of a table that one thread can produce alone

_BLOCK_ROWS = 1 << 15  # 32 or 64 KiB per column: a block stays in the second-level cache
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
    """Return the contingency table of every attribute set; refuse one that is too large.

    The table of a set has shape `[codes.sizes[j] for j in the set]`, axes as given; the empty set
    asks for the row total. `groups` has the group of each value, for attributes that are counted by
    groups of values, `weights` how many rows each row stands for.
    """
    codes = codes.in_groups(groups)
    sets = checked_sets(attribute_sets, codes.sizes)
    exact_weights = None if weights is None else checked_weights(weights, codes.rows)
    if codes.rows * len(sets) < _COMPILED_FROM or not can_compile():
        return [_one_table(codes, attributes, exact_weights) for attributes in sets]
    if exact_weights is None and _bits_are_fewer(codes, sets):
        return _binary_tables(codes, sets, threads)
    tally = Tally(codes.sizes, sets)
    tally.add(codes, weights=exact_weights, threads=threads)
    return tally.tables()


def checked_sets(
    attribute_sets: Sequence[Sequence[int]], sizes: Sequence[int]
) -> list[AttributeSet]:
    """Return the sets as tuples; refuse unknown and repeated attributes and large tables."""
    sets = [tuple(int(attribute) for attribute in positions) for positions in attribute_sets]
    for positions in set(sets):
        if len(set(positions)) != len(positions) or not all(0 <= a < len(sizes) for a in positions):
            raise LocalError(
                f"attribute set {positions}: expected distinct positions in 0..{len(sizes) - 1}"
            )
        cell_count([sizes[a] for a in positions], f"the table of attributes {positions}")
    return sets


def checked_weights(weights: NDArray[np.integer[Any]], rows: int) -> Counts:
    """Return the weights as int64; refuse negative ones and a total beyond int64."""
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
    """Count one table by mixed-radix codes and `numpy.bincount`."""
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
    """Tell whether counting all subsets of binary attributes is less work than the sets."""
    used = {attribute for attributes in sets for attribute in attributes}
    if not used or any(codes.sizes[a] != 2 for a in used):
        return False
    order = max(map(len, sets))
    subsets = sum(math.comb(len(used), size) for size in range(order + 1))
    return subsets <= _SUBSETS_PER_TABLE * len(sets)


def _binary_tables(codes: Codes, sets: Sequence[AttributeSet], threads: int | None) -> list[Counts]:
    """Assemble all tables from one count of the subsets of the attributes used."""
    used = sorted({attribute for attributes in sets for attribute in attributes})
    subsets = BinarySubsets(codes.select(used), max(map(len, sets)), threads)
    column_of = {attribute: column for column, attribute in enumerate(used)}
    places: dict[int, list[int]] = {}
    for place, attributes in enumerate(sets):
        places.setdefault(len(attributes), []).append(place)
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
        return [self._table(attributes) for attributes in self._sets]

    def _table(self, attributes: AttributeSet) -> Counts:
        if not attributes:
            return np.array(self._rows, dtype=np.int64)
        home = self._homes[tuple(sorted(attributes))]
        start, stop = self._layout.span(home)
        whole = self._totals[start:stop].reshape([self._sizes[a] for a in home])
        return project(whole, [home.index(a) for a in attributes])

    def _add_by_rows(self, codes: Codes, weights: Counts | None, workers: int) -> None:
        """Let each thread count some of the rows into totals of its own."""
        blocks = -(-codes.rows // _BLOCK_ROWS)
        workers = max(1, min(workers, blocks))
        spans = [
            range(blocks * w // workers * _BLOCK_ROWS, blocks * (w + 1) // workers * _BLOCK_ROWS)
            for w in range(workers)
        ]
        totals = [self._totals, *(np.zeros_like(self._totals) for _ in spans[1:])]
        run_in_threads(
            lambda worker: self._layout.add(codes, weights, spans[worker], totals[worker]),
            range(workers),
            workers,
        )
        for private in totals[1:]:
            self._totals += private

    def _add_by_sets(self, codes: Codes, weights: Counts | None, workers: int) -> None:
        """Let each thread count all rows into some of the tables: no totals are held twice."""
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
        cells = [cell_count([sizes[a] for a in attributes]) for attributes in sets]
        self._offsets = np.cumsum([start, *cells], dtype=np.int64)
        self._small = np.flatnonzero(np.diff(self._offsets) <= CACHED_CELLS)
        self._large = np.flatnonzero(np.diff(self._offsets) > CACHED_CELLS)
        self._place = {attributes: place for place, attributes in enumerate(self._sets)}
        self._used = sorted({a for attributes in sets for a in attributes})
        row_of = {a: row for row, a in enumerate(self._used)}
        self._members = np.array(
            [row_of[a] for attributes in sets for a in attributes], dtype=np.int64
        )
        self._radices = np.array(
            [sizes[a] for attributes in sets for a in attributes], dtype=np.int64
        )
        self._bounds = np.cumsum([0, *map(len, sets)], dtype=np.int64)

    @property
    def cells(self) -> int:
        return int(self._offsets[-1] - self._offsets[0])

    def span(self, attributes: AttributeSet) -> tuple[int, int]:
        place = self._place[attributes]
        return int(self._offsets[place]), int(self._offsets[place + 1])

    def parts(self, count: int) -> list[_Layout]:
        """Divide the sets among at most `count` layouts over the same vector of totals."""
        count = max(1, min(count, len(self._sets)))
        cuts = [len(self._sets) * part // count for part in range(count + 1)]
        return [
            _Layout(self._sets[low:high], self._sizes, start=int(self._offsets[low]))
            for low, high in itertools.pairwise(cuts)
        ]

    def add(self, codes: Codes, weights: Counts | None, rows: range, totals: Counts) -> None:
        if not self._sets:
            return
        if not can_compile():
            self._add_plainly(codes, weights, rows, totals)
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
                weight = _ONE_EACH if weights is None else weights[low:high]
                compiled(add_block)(block, weight, large, *layout)

    def _add_plainly(
        self, codes: Codes, weights: Counts | None, rows: range, totals: Counts
    ) -> None:
        """Count without a compiler, table by table."""
        part = slice(rows.start, min(rows.stop, codes.rows))
        block, of_block = codes.take(part), None if weights is None else weights[part]
        for attributes in self._sets:
            low, high = self.span(attributes)
            totals[low:high] += _one_table(block, attributes, of_block).ravel()


def count_streams(
    streams: Iterable[Stream],
    sizes: Sequence[int],
    attribute_sets: Sequence[Sequence[int]],
    *,
    groups: Groups = NO_GROUPS,
    threads: int | None = None,
) -> list[Counts]:
    """`count` all the rows of all streams, such as the row groups of a file.

    Streams are taken one by one in the caller's thread, and run in any. The thread that decodes a
    chunk also counts it, while it is in its cache, into totals of its own; the totals are added up
    at the end. Requests too large for that have one set of totals, to which the chunks are added
    one after the other, by all threads.
    """
    workers = worker_count(threads)
    sizes = grouped_sizes(sizes, groups)
    whole = Tally(sizes, checked_sets(attribute_sets, sizes))
    if whole.fits_every_thread:
        _count_apart(streams, groups, whole, workers)
    else:
        for chunks in map_in_threads(lambda stream: list(stream()), streams, workers):
            for chunk in chunks:
                whole.add(chunk.in_groups(groups), threads=workers)
    return whole.tables()


def _count_apart(streams: Iterable[Stream], groups: Groups, whole: Tally, workers: int) -> None:
    idle: list[Tally] = []
    every: list[Tally] = []
    lock = threading.Lock()

    def run(stream: Stream) -> None:
        with lock:
            if not idle:
                every.append(whole.empty())
                idle.append(every[-1])
            tally = idle.pop()
        for chunk in stream():
            tally.add(chunk.in_groups(groups), threads=1)
        with lock:
            idle.append(tally)

    for _ in map_in_threads(run, streams, workers):
        pass
    for tally in every:
        whole.merge(tally)
