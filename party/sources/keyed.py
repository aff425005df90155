"""Rows with what joins them to a person and what orders them: of people, and of their events.

Who a row is leaves this module as 64 bits of a keyed hash. Two identifiers are the same if their
texts are, so the number 17 of one table is the text 17 of another.

Events are sorted by their cell of the column `order` (`common.schema.linked`). Between equal cells
the place in the file decides. A database gives its rows in any order it likes, so there a keyed
hash of the person and of the event's codes decides. Either way, which events count follows from a
person's own events.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from common.errors import InputError
from common.schema import Codes, Schema
from common.schema.columns import distinct
from common.schema.encoder import RowNumbers, numbers_after
from common.schema.linked import OrderKeys, check_order, order_keys
from common.tables.reader import Chosen, TableReader, as_table, with_fallback
from party.sources.fingerprint import row_words

Hashes = NDArray[np.uint64]
NO_ONE = 0  # in place of the hash of an empty cell
NO_ORDER = np.dtype("S1")
_ODD = np.uint64(0x9E3779B97F4A7C15)
_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The columns that join and order rows, in the study's names, and the secret of the hashes."""

    person: str
    order: str = ""  # empty: events are as their table has them
    secret: bytes
    in_order: bool  # whether the table always gives its rows in the same order

    @property
    def columns(self) -> list[str]:
        return [self.person, *([self.order] if self.order else [])]

    def check(self, columns: Sequence[str], *, where: str) -> None:
        """Refuse a table without these columns."""
        if self.person not in columns:
            raise InputError(f"{where}: source.person: there is no column {self.person!r}")
        if self.order:
            check_order(self.order, columns)

    def hashes(self, column: pa.ChunkedArray | pa.Array) -> Hashes:
        """Return the hash of every row's person."""
        places, texts = distinct(column)
        hashes = np.array([self._hash(text) for text in texts], dtype=np.uint64)
        return hashes[places]

    def _hash(self, text: bytes | None) -> int:
        if text is None:
            return NO_ONE
        digest = hashlib.blake2b(text, key=self.secret, digest_size=8).digest()
        return int.from_bytes(digest, "little") or 1


@dataclass(frozen=True, slots=True)
class KeyedRows:
    """Some rows of a table as codes, each with its person and what it is sorted by."""

    codes: Codes
    people: Hashes
    order: OrderKeys
    ties: Hashes


def keyed(
    table: pa.Table,
    schema: Schema,
    keys: Keys,
    *,
    where: str,
    before: int,
    row_numbers: RowNumbers = list,
) -> KeyedRows:
    """Encode rows; `before` is how many of the table came before them."""
    codes = schema.encode(table.select(list(schema.names)), where=where, row_numbers=row_numbers)
    people = keys.hashes(table.column(keys.person))
    order = np.zeros(codes.rows, dtype=NO_ORDER)
    if keys.order:
        order = order_keys(table.column(keys.order))
    if keys.in_order:
        ties = np.arange(before, before + codes.rows, dtype=np.uint64)
    else:
        ties = row_words(codes, people * _ODD)
    return KeyedRows(codes, people, order, ties)


def keyed_names(schema: Schema, keys: Keys) -> list[str]:
    """Return the columns that are read: the attributes, and those of the keys."""
    return list(dict.fromkeys([*schema.names, *keys.columns]))


class KeyedTable(Protocol):
    """A table of which rows are read with their keys."""

    @property
    def where(self) -> str: ...

    @property
    def as_of(self) -> dt.date | None: ...

    def mark(self) -> str | None:
        """Return something that changes whenever the table does; None if only rows tell."""

    def rows(self) -> Iterator[KeyedRows]:
        """Yield all rows, a chunk at a time, each time anew."""

    def attempt(self, read: Callable[[], _Read]) -> _Read:
        """Read something of the table, in another way if one fails."""


@dataclass(frozen=True, slots=True)
class KeyedReader:
    """A `KeyedTable` over any reader."""

    reader: TableReader
    schema: Schema
    keys: Keys

    def __post_init__(self) -> None:
        """Refuse a table that lacks a column."""
        self.schema.check_columns(self.reader.names, where=self.where)
        self.keys.check(self.reader.names, where=self.where)

    @property
    def where(self) -> str:
        return self.reader.where

    @property
    def as_of(self) -> dt.date | None:
        return self.reader.as_of

    def mark(self) -> str | None:
        return self.reader.mark()

    def attempt(self, read: Callable[[], _Read]) -> _Read:
        return with_fallback(self.reader, read)

    def rows(self) -> Iterator[KeyedRows]:
        names = keyed_names(self.schema, self.keys)
        before = 0
        for part in self.reader.parts(names):
            passed = part.first_row
            for rows in part.read():
                table = as_table(rows, names)
                numbers = numbers_after(passed, self.reader.row_numbers)
                passed += rows.read if isinstance(rows, Chosen) else table.num_rows
                if isinstance(rows, Chosen):
                    numbers = rows.numbers(numbers)
                if table.num_rows:
                    yield keyed(
                        table, self.schema, self.keys,
                        where=self.where, before=before, row_numbers=numbers,
                    )  # fmt: skip
                before += table.num_rows


def read_people(reader: TableReader, keys: Keys) -> list[Hashes]:
    """Read who is in a table, and nothing else."""
    keys.check(reader.names, where=reader.where)

    def read() -> list[Hashes]:
        names = [keys.person]
        return [
            keys.hashes(as_table(rows, names).column(0))
            for part in reader.parts(names)
            for rows in part.read()
        ]

    return with_fallback(reader, read)
