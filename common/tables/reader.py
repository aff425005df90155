"""Readers of tables: raw values from one place, in parts that threads can read apart.

A reader hands out parts in order. What must happen in order (parsing a CSV file, taking rows from a
database) happens when a part is handed out. What need not (decoding a row group) happens when the
part is read, usually by a thread that then encodes and counts its rows.

Values are not interpreted here: the encoder of a schema says what a cell means.
"""

from __future__ import annotations

import datetime as dt
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from common.errors import InputError
from common.schema import Codes, Schema
from common.schema.encoder import RowNumbers, numbers_after

CHUNK_ROWS = 1 << 17  # about as many are encoded at a time
_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class ColumnPieces:
    """Rows that are decoded while they are encoded: a column's values never leave the cache."""

    rows: int
    # Of every column, in the order of the schema; to be taken once, in that order.
    pieces: Iterable[Iterable[pa.Array]]


@dataclass(frozen=True, slots=True)
class Chosen:
    """Some of the rows that were read."""

    table: pa.Table  # the chosen rows; there may be none
    positions: NDArray[np.int64]  # where they were among the rows that were read
    read: int  # how many rows were read

    def numbers(self, row_numbers: RowNumbers) -> RowNumbers:
        """Turn positions among the chosen rows into row numbers."""
        return lambda places: row_numbers(self.positions[list(places)].tolist())


Rows: TypeAlias = pa.Table | ColumnPieces | Chosen


@dataclass(frozen=True, slots=True)
class Part:
    """Consecutive rows of a table."""

    first_row: int  # the position in the table of the part's first row
    read: Callable[[], Iterable[Rows]]  # gives the rows, in order; called once, from any thread


class TableReader(ABC):
    """Raw values from one place.

    What is not abstract fits most places: one way to read, rows that count from 1.
    """

    _names: Sequence[str]
    _as_of: dt.date | None

    @property
    @abstractmethod
    def where(self) -> str:
        """The place, as it may stand in an error."""

    @property
    def as_of(self) -> dt.date | None:
        """The date the data is of, if it is known."""
        return self._as_of

    @property
    def names(self) -> Sequence[str]:
        return self._names

    def mark(self) -> str | None:
        """Return something cheap that changes whenever the table does; None if only rows tell."""
        return None

    @abstractmethod
    def parts(self, names: Sequence[str]) -> Iterator[Part]:
        """Yield the columns of these names, in parts of any size.

        Of a part, or here, a `pyarrow.ArrowInvalid` says that the place cannot be read in this way;
        see `read_slowly`.
        """

    def read_slowly(self) -> bool:
        """Switch to a slower way to read the same cells; False if there is none.

        InputError if the schema is strict, and the rows are not those of a table.
        """
        return False

    def table(self, names: Sequence[str]) -> pa.Table:
        return with_fallback(self, lambda: self._table(names))

    def _table(self, names: Sequence[str]) -> pa.Table:
        pieces = [as_table(rows, names) for part in self.parts(names) for rows in part.read()]
        if not pieces:
            return pa.table({name: pa.nulls(0) for name in names})
        return pa.concat_tables(pieces).unify_dictionaries()

    @abstractmethod
    def explain(self, error: pa.ArrowInvalid) -> InputError:
        """Say what is wrong with a table that cannot be parsed."""

    def row_numbers(self, positions: Sequence[int]) -> Sequence[int]:
        """Return the numbers by which the owner finds rows, for errors."""
        return [position + 1 for position in positions]


def as_table(rows: Rows, names: Sequence[str]) -> pa.Table:
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, Chosen):
        return rows.table
    pieces = [pa.chunked_array(list(column)) for column in rows.pieces]
    return pa.table(pieces, names=list(names)).unify_dictionaries()


def check_readable(reader: TableReader, *, may_be_empty: bool) -> None:
    """Read every column once, and look at nothing; InputError if that fails."""
    twice = [name for name, times in Counter(reader.names).items() if times > 1]
    if twice:
        raise InputError(f"{reader.where}: duplicate column {twice[0]!r}. Rename one of the two")
    rows = with_fallback(reader, lambda: sum(map(_rows_of, reader.parts(reader.names))))
    if rows == 0 and not may_be_empty:
        raise InputError(f"{reader.where}: the table has no rows")


def _rows_of(part: Part) -> int:
    rows = 0
    for piece in part.read():
        if not isinstance(piece, ColumnPieces):
            rows += (piece.table if isinstance(piece, Chosen) else piece).num_rows
            continue
        rows += piece.rows
        for column in piece.pieces:
            deque(column, maxlen=0)
    return rows


def with_fallback(reader: TableReader, read: Callable[[], _Read]) -> _Read:
    try:
        try:
            return read()
        except pa.ArrowInvalid:
            if not reader.read_slowly():
                raise
            return read()
    except pa.ArrowInvalid as error:
        raise reader.explain(error) from None


def encoded(part: Part, schema: Schema, reader: TableReader) -> Iterator[Codes]:
    """Yield the rows of a part as codes; InputError names the row and the cell refused."""
    before, where = part.first_row, reader.where
    for rows in part.read():
        numbers = numbers_after(before, reader.row_numbers)
        if isinstance(rows, Chosen):
            before += rows.read
            if rows.table.num_rows:
                chosen = rows.numbers(numbers)
                yield schema.encode(rows.table, where=where, row_numbers=chosen)
        elif isinstance(rows, ColumnPieces):
            before += rows.rows
            yield schema.encode_pieces(rows.pieces, where=where, row_numbers=numbers)
        else:
            before += rows.num_rows
            yield schema.encode(rows, where=where, row_numbers=numbers)


def parts_of_stream(batches: Iterable[pa.RecordBatch]) -> Iterator[Part]:
    """Yield the parts of a table that has to be read from its beginning to its end."""
    before = 0
    for table in merged(batches, CHUNK_ROWS):
        yield Part(before, partial(iter, (table,)))
        before += table.num_rows


def merged(batches: Iterable[pa.RecordBatch], least_rows: int) -> Iterator[pa.Table]:
    """Join batches until they are worth a pass of the encoder; drop empty ones."""
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
