"""A table in parts that can be read apart from one another, so that every core reads its own.

A reader hands out parts in order. What must be done in order (parsing a CSV file, taking rows from
a database) is done when a part is handed out; what need not (decoding a row group) is done by
the reader of the part, usually a thread that then encodes and counts the rows as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from common.schema import Codes, Schema
from common.schema.encoder import RowNumbers, numbers_after

CHUNK_ROWS = 1 << 17  # about as many are encoded at a time
_SURELY_LARGE = 1 << 20  # so many rows take as long to encode as numba takes to load


@dataclass(frozen=True, slots=True)
class Part:
    """Consecutive rows of a table.

    Attributes:
        first_row: the position of the first of them in the table.
        read: gives the rows, in order; called once, from any thread.
    """

    first_row: int
    read: Callable[[], Iterable[pa.Table | Columns | Chosen]]


@dataclass(frozen=True, slots=True)
class Columns:
    """Rows that are decoded while they are encoded: a column's values never leave the cache.

    Attributes:
        rows: how many there are.
        pieces: of every column, in the order of the schema; to be taken once, in that order.
    """

    rows: int
    pieces: Iterable[Iterable[pa.Array]]


@dataclass(frozen=True, slots=True)
class Chosen:
    """Some of the rows that were read.

    Attributes:
        table: those that were chosen; there may be none.
        positions: where they were among the rows that were read.
        read: how many were.
    """

    table: pa.Table
    positions: NDArray[np.int64]
    read: int

    def numbers(self, row_numbers: RowNumbers) -> RowNumbers:
        """From positions among the chosen rows to row numbers."""
        return lambda places: row_numbers(self.positions[list(places)].tolist())


def encoded(
    part: Part, schema: Schema, where: str, row_numbers: RowNumbers, *, compiled: bool = True
) -> Iterator[Codes]:
    """The rows of a part as codes.

    Args:
        part: read to its end.
        schema: of its columns.
        where: the place, for errors.
        row_numbers: turns positions in the table into its rows, for errors.
        compiled: whether to encode by machine code from the first row on; otherwise from the
            millionth, when the table is known to be large.

    Raises:
        InputError: naming the place, the row and the cell that the schema refuses.
    """
    before = part.first_row
    for rows in part.read():
        quick = compiled or before >= _SURELY_LARGE
        numbers = numbers_after(before, row_numbers)
        if isinstance(rows, Chosen):
            before += rows.read
            if rows.table.num_rows:
                chosen = rows.numbers(numbers)
                yield schema.encode(rows.table, where=where, row_numbers=chosen, compiled=quick)
        elif isinstance(rows, Columns):
            before += rows.rows
            yield schema.encode_pieces(
                rows.pieces, where=where, row_numbers=numbers, compiled=quick
            )
        else:
            before += rows.num_rows
            yield schema.encode(rows, where=where, row_numbers=numbers, compiled=quick)


def parts_of_stream(batches: Iterable[pa.RecordBatch]) -> Iterator[Part]:
    """Parts of a table that has to be read from its beginning to its end."""
    before = 0
    for table in merged(batches, CHUNK_ROWS):
        yield Part(before, _Ready(table))
        before += table.num_rows


@dataclass(frozen=True, slots=True)
class _Ready:
    table: pa.Table

    def __call__(self) -> tuple[pa.Table]:
        return (self.table,)


def merged(batches: Iterable[pa.RecordBatch], least_rows: int) -> Iterator[pa.Table]:
    """Batches put together until they are worth a pass of the encoder; empty ones dropped."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
            rows += batch.num_rows
        if rows >= least_rows:
            yield _one_table(waiting)
            waiting, rows = [], 0
    if waiting:
        yield _one_table(waiting)


def _one_table(batches: list[pa.RecordBatch]) -> pa.Table:
    table = pa.Table.from_batches(batches)
    return table if len(batches) == 1 else table.unify_dictionaries()
