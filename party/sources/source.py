"""A party's rows as the rest of the program sees them: counted, streamed, and never changing.

A study's answers must all be about the same table. So a source is read once when it is opened, and
its `Snapshot` (row count and digest) is taken; the journal pins the digest for the study. A table
that fits is held in memory as codes, one or two bytes a cell. A larger one is read again for every
request, a part of it on every core, and checked while it is: if it is not the same table any more,
the request is refused before its counts are used for anything.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from common.errors import InputError, PolicyError
from common.marginals import count, count_streams, project
from common.marginals.threads import map_in_threads, worker_count
from common.schema import Codes, Schema
from common.schema.codes import NO_GROUPS, Groups, concatenate
from party.sources.fingerprint import SharedDigest
from party.sources.grouping import Grouping, counted, is_cheaper
from party.sources.parts import Chosen, Columns, Part, encoded

HELD_BYTES = 1 << 28
_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Which table a source gives.

    Attributes:
        rows: how many rows it has.
        digest: the same for the same rows in any order, wherever they come from. A secret.
        as_of: the date the data is of, where one is known; of several tables, of the oldest.
        newest: the date of the newest of several tables, where it is another.
        note: what became of the owner's rows. For the owner only.
    """

    rows: int
    digest: str
    as_of: dt.date | None
    newest: dt.date | None = None
    note: str = ""


class Source(Protocol):
    """A party's rows in the study's domains. They never leave the party."""

    @property
    def snapshot(self) -> Snapshot:
        """Which table this is."""

    @property
    def rows(self) -> int:
        """How many rows there are."""

    def chunks(self) -> Iterator[Codes]:
        """All rows, a chunk at a time, each time anew.

        Raises:
            PolicyError: after the last chunk at the latest, if the table is not the one of the
                snapshot.
        """

    def count(
        self, sets: Sequence[Sequence[int]], groups: Groups = NO_GROUPS
    ) -> list[NDArray[np.int64]]:
        """The contingency table of every attribute set, some attributes in groups of values."""

    def codes(self) -> Codes:
        """All rows at once."""


class SnapshotSource:
    """What every source has in common: the snapshot that it took when it was opened."""

    _snapshot: Snapshot

    @property
    def snapshot(self) -> Snapshot:
        return self._snapshot

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self._snapshot.rows


def data_changed(where: str) -> PolicyError:
    """Why a source answers no more: it is not the table of its snapshot."""
    return PolicyError(
        f"{where}: the data changed during the study, and answers about two different tables "
        "protect neither. Restore the data as it was, or give the study up"
    )


class TableReader(Protocol):
    """Raw values from one place; not kept, not interpreted."""

    @property
    def where(self) -> str:
        """The place, as it may stand in an error."""

    @property
    def as_of(self) -> dt.date | None:
        """The date the data is of, if it is known."""

    @property
    def names(self) -> Sequence[str]:
        """Of all columns there are."""

    def mark(self) -> str | None:
        """Something cheap that changes whenever the table does; None if there is no such thing."""

    def grouping(self) -> Grouping | None:
        """The place's own way to count, if it has one."""

    def parts(self, names: Sequence[str]) -> Iterator[Part]:
        """The columns of these names, in parts of any size.

        Raises:
            InputError: the place cannot be read.
            pyarrow.ArrowInvalid: it cannot be read in this way; see `read_slowly`. Both may come
                from a part as well.
        """

    def read_slowly(self) -> bool:
        """From now on read the same cells in a way that takes more; False if there is none.

        Raises:
            InputError: the schema is strict, and the rows are not those of a table.
        """

    def explain(self, error: pa.ArrowInvalid) -> InputError:
        """What is wrong with a table that cannot be parsed."""

    def row_numbers(self, positions: Sequence[int]) -> Sequence[int]:
        """Rows as their owner finds them, for errors."""


class PlainReader:
    """What most readers have in common: one way to read, rows that count from 1, no counting."""

    _names: Sequence[str]

    @property
    def names(self) -> Sequence[str]:
        """Of the columns there are."""
        return self._names

    def grouping(self) -> Grouping | None:
        return None

    def read_slowly(self) -> bool:
        """There is one way to read it."""
        return False

    def row_numbers(self, positions: Sequence[int]) -> Sequence[int]:
        """Rows count from 1."""
        return [position + 1 for position in positions]


def check_readable(reader: TableReader) -> None:
    """Read every column once, and look at nothing.

    Raises:
        InputError: the table cannot be read, or has no rows, or two columns of the same name.
    """
    twice = [name for name, times in Counter(reader.names).items() if times > 1]
    if twice:
        raise InputError(f"{reader.where}: duplicate column {twice[0]!r}; names are unique")
    if in_some_way(reader, lambda: sum(map(_rows_of, reader.parts(reader.names)))) == 0:
        raise InputError(f"{reader.where}: the table has no rows")


def _rows_of(part: Part) -> int:
    rows = 0
    for piece in part.read():
        if not isinstance(piece, Columns):
            rows += (piece.table if isinstance(piece, Chosen) else piece).num_rows
            continue
        rows += piece.rows
        for column in piece.pieces:
            deque(column, maxlen=0)
    return rows


def in_some_way(reader: TableReader, read: Callable[[], _Read]) -> _Read:
    """What reading gives, slowly if it has to be."""
    try:
        try:
            return read()
        except pa.ArrowInvalid:
            if not reader.read_slowly():
                raise
            return read()
    except pa.ArrowInvalid as error:
        raise reader.explain(error) from None


class TableSource(SnapshotSource):
    """A source over any reader; opening it reads the table once.

    Raises:
        InputError: the table cannot be read, or is not of the schema; row and cell are named.
    """

    def __init__(
        self, reader: TableReader, schema: Schema, *, held_bytes: int = HELD_BYTES
    ) -> None:
        self._reader = reader
        self._schema = schema
        self._everything = tuple(range(len(schema.attributes)))
        self._held: Codes | None = None
        self._fingerprint: str | None = None  # of a database that can count, once it is known
        in_some_way(reader, lambda: self._open(held_bytes))

    def _open(self, held_bytes: int) -> None:
        """Read everything once: take the snapshot, and hold the codes while they fit."""
        self._mark = self._reader.mark()
        schema = self._columns(self._everything)
        digest = SharedDigest(schema.sizes)
        held: list[Codes] | None = []
        size = 0

        def read(part: Part) -> list[Codes]:
            chunks = digest.following(self._encoded(schema, part, compiled=False))
            # Those of a part that is under way when the limit is passed are dropped later.
            return [chunk for chunk in chunks if held is not None]

        for kept in map_in_threads(read, self._reader.parts(schema.names), worker_count(None)):
            size += sum(column.nbytes for chunk in kept for column in chunk.columns)
            held = None if held is None or size > held_bytes else held + kept
        if digest.rows == 0:
            raise InputError(f"{self._reader.where}: the table has no rows")
        if self._mark != self._reader.mark():
            raise InputError(
                f"{self._reader.where}: the table was written to while it was being read; "
                "try again when that is done"
            )
        self._held = concatenate(held) if held is not None else None
        self._snapshot = Snapshot(
            rows=digest.rows, digest=digest.hexdigest(), as_of=self._reader.as_of
        )

    def chunks(self) -> Iterator[Codes]:
        """All rows, a chunk at a time; see `Source`."""
        if self._held is not None:
            yield self._held
            return
        schema = self._columns(self._everything)
        with self._watching(schema) as digest:

            def read(part: Part) -> list[Codes]:
                return list(digest.following(self._encoded(schema, part)))

            parts = self._reader.parts(schema.names)
            for chunks in map_in_threads(read, parts, worker_count(None)):
                yield from chunks

    def count(
        self, sets: Sequence[Sequence[int]], groups: Groups = NO_GROUPS
    ) -> list[NDArray[np.int64]]:
        """The contingency table of every attribute set, axes as given; reads only what it needs."""
        if self._held is not None:
            return count(self._held, sets, groups=groups)
        if groups:
            return self._count_rows(sets, groups)
        grouping = self._reader.grouping()
        # Whether a row breaks a rule takes all of its columns.
        if self._schema.rules or grouping is None or not is_cheaper(self._schema, sets, self.rows):
            return self._count_rows(sets)
        if self._fingerprint is not None:
            return self._count_groups(grouping, self._fingerprint, sets)
        # Which fingerprint the table of the snapshot has is learnt along with one look at all rows.
        before = grouping.fingerprint()
        tables = self._count_rows(sets)
        if grouping.fingerprint() == before:
            self._fingerprint = before
        return tables

    def _count_groups(
        self, grouping: Grouping, fingerprint: str, sets: Sequence[Sequence[int]]
    ) -> list[NDArray[np.int64]]:
        """The same, counted where the rows are."""
        wanted = sorted({tuple(sorted(each)) for each in sets})
        names = [[self._schema.names[position] for position in each] for each in wanted]
        found, groups = grouping.groups(names)
        if found != fingerprint:
            raise data_changed(self._reader.where)
        tables = {
            each: counted(table, self._schema, each, self._reader.where)
            for each, table in zip(wanted, groups, strict=True)
        }
        return [
            project(tables[tuple(sorted(each))], [sorted(each).index(a) for a in each])
            for each in sets
        ]

    def _count_rows(
        self, sets: Sequence[Sequence[int]], groups: Groups = NO_GROUPS
    ) -> list[NDArray[np.int64]]:
        # A column has to be read to count rows, so the first attribute always is. Without a mark
        # only the digest tells that the table is the same, and that needs every column.
        needed = tuple(sorted({0, *(position for each in sets for position in each)}))
        few = self._mark is not None and not self._schema.rules
        reading = needed if few else self._everything
        place = {position: at for at, position in enumerate(reading)}
        inside = [[place[position] for position in each] for each in sets]
        grouped = {place[position]: own for position, own in groups.items() if position in place}
        schema = self._columns(reading)
        with self._watching(schema) as digest:
            streams = (
                partial(digest.following, self._encoded(schema, part))
                for part in self._reader.parts(schema.names)
            )
            return count_streams(streams, schema.sizes, inside, groups=grouped)

    def codes(self) -> Codes:
        return self._held if self._held is not None else concatenate(list(self.chunks()))

    @contextmanager
    def _watching(self, schema: Schema) -> Iterator[SharedDigest]:
        """What is read inside is the table of the snapshot; no other leaves the block."""
        # A mark tells that the table is the same; without one every cell must be looked at.
        digest = SharedDigest(schema.sizes, rows_only=self._mark is not None)
        self._check_mark()
        try:
            yield digest
        except (pa.ArrowInvalid, InputError) as error:
            # It was readable when it was opened. Either it changed, or its place is out of reach.
            self._check_mark()
            raise InputError(f"{self._reader.where}: cannot be read any more: {error}") from error
        self._check_mark()
        if digest.rows != self.rows or (
            self._mark is None and digest.hexdigest() != self._snapshot.digest
        ):
            raise data_changed(self._reader.where)

    def _check_mark(self) -> None:
        if self._reader.mark() != self._mark:
            raise data_changed(self._reader.where)

    def _columns(self, positions: Sequence[int]) -> Schema:
        """The attributes that are read, and no column to ignore; rules take all attributes."""
        if len(positions) == len(self._everything):
            return replace(self._schema, ignore=())
        return Schema(tuple(self._schema.attributes[position] for position in positions))

    def _encoded(self, schema: Schema, part: Part, *, compiled: bool = True) -> Iterator[Codes]:
        reader = self._reader
        return encoded(part, schema, reader.where, reader.row_numbers, compiled=compiled)


class JoinedSource(SnapshotSource):
    """A `Source` of several tables of one owner, one below the other."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = tuple(sources)
        snapshots = [source.snapshot for source in self._sources]
        dates = sorted({each.as_of for each in snapshots if each.as_of is not None})
        known = bool(dates) and all(each.as_of is not None for each in snapshots)
        # The same for the same tables in any order.
        content = "parley tables 1\n" + "\n".join(sorted(each.digest for each in snapshots))
        self._snapshot = Snapshot(
            rows=sum(each.rows for each in snapshots),
            digest=hashlib.sha256(content.encode()).hexdigest(),
            as_of=dates[0] if known else None,
            newest=dates[-1] if known and len(dates) > 1 else None,
        )

    def chunks(self) -> Iterator[Codes]:
        for source in self._sources:
            yield from source.chunks()

    def count(
        self, sets: Sequence[Sequence[int]], groups: Groups = NO_GROUPS
    ) -> list[NDArray[np.int64]]:
        """The contingency table of every attribute set: the sum of those of the tables."""
        counted = [source.count(sets, groups) for source in self._sources]
        return [
            np.sum(np.stack(tables), axis=0, dtype=np.int64)
            for tables in zip(*counted, strict=True)
        ]

    def codes(self) -> Codes:
        return concatenate([source.codes() for source in self._sources])
