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
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from common.errors import InputError, PolicyError
from common.marginals import count, count_streams
from common.marginals.threads import map_in_threads, worker_count
from common.schema import Codes, Schema
from common.schema.codes import NO_GROUPS, Groups, concatenate, shown_sizes
from common.schema.linked import concatenate_linked
from common.tables.reader import Part, TableReader, encoded, with_fallback
from party.sources.fingerprint import RowDigest

HELD_BYTES = 1 << 28


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Which table a source gives."""

    rows: int
    digest: str  # the same for the same rows in any order, wherever they come from; a secret
    as_of: dt.date | None  # the date of the data, where it is known; of several tables, the oldest
    newest: dt.date | None = None  # the date of the newest of several tables, if it differs
    note: str = ""  # what became of the owner's rows; for the owner only
    simulated: bool = False  # whether no owner has these rows: answers about them cost nothing


class Source(ABC):
    """A party's rows in the study's domains. They never leave the party."""

    _snapshot: Snapshot  # taken when the source is opened

    @property
    def snapshot(self) -> Snapshot:
        return self._snapshot

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self._snapshot.rows

    @property
    def digest(self) -> str:
        """Stands for the rows; a secret."""
        return self._snapshot.digest

    @abstractmethod
    def chunks(self) -> Iterator[Codes]:
        """Yield all rows, a chunk at a time, each time anew.

        Raises:
            PolicyError: after the last chunk at the latest, if the table is not the one of the
                snapshot.
        """

    @abstractmethod
    def count(
        self, sets: Sequence[Sequence[int]], groups: Groups = NO_GROUPS
    ) -> list[NDArray[np.int64]]:
        """Return the contingency table of every attribute set, axes as given.

        `groups` are of values: attributes that are in it are counted by groups.
        """

    def codes(self) -> Codes:
        """Return all rows at once."""
        chunks = list(self.chunks())
        return chunks[0] if len(chunks) == 1 else concatenate_linked(chunks)


def data_changed(where: str) -> PolicyError:
    """Explain why a source answers no more: it is not the table of its snapshot."""
    return PolicyError(
        f"{where}: the data changed during the study, and answers about two different tables "
        "protect neither. Restore the data as it was, or give the study up"
    )


class TableSource(Source):
    """A source over any reader; opening it reads the table once."""

    def __init__(
        self, reader: TableReader, schema: Schema, *, held_bytes: int = HELD_BYTES
    ) -> None:
        self._reader = reader
        self._schema = schema
        self._everything = tuple(range(len(schema.attributes)))
        self._codes: Codes | None = None
        with_fallback(reader, lambda: self._open(held_bytes))

    def _open(self, held_bytes: int) -> None:
        """Read everything once: take the snapshot, and hold the codes while they fit."""
        self._mark = self._reader.mark()
        schema = self._columns(self._everything)
        digest = RowDigest(schema.sizes)
        in_memory: list[Codes] | None = []
        size = 0

        def read(part: Part) -> list[Codes]:
            chunks = digest.following(encoded(part, schema, self._reader))
            # Those of a part that is under way when the limit is passed are dropped later.
            return [chunk for chunk in chunks if in_memory is not None]

        for codes in map_in_threads(read, self._reader.parts(schema.names), worker_count(None)):
            size += sum(chunk.nbytes for chunk in codes)
            in_memory = None if in_memory is None or size > held_bytes else in_memory + codes
        if digest.rows == 0:
            raise InputError(f"{self._reader.where}: the table has no rows")
        if self._mark != self._reader.mark():
            raise InputError(
                f"{self._reader.where}: the table was written to while it was being read. "
                "Try again when that is done"
            )
        self._codes = concatenate(in_memory) if in_memory is not None else None
        self._snapshot = Snapshot(
            rows=digest.rows, digest=digest.hexdigest(), as_of=self._reader.as_of
        )

    def chunks(self) -> Iterator[Codes]:
        if self._codes is not None:
            yield self._codes
            return
        schema = self._columns(self._everything)
        with self._watching(schema) as digest:

            def read(part: Part) -> list[Codes]:
                return list(digest.following(encoded(part, schema, self._reader)))

            parts = self._reader.parts(schema.names)
            for chunks in map_in_threads(read, parts, worker_count(None)):
                yield from chunks

    def count(
        self, sets: Sequence[Sequence[int]], groups: Groups = NO_GROUPS
    ) -> list[NDArray[np.int64]]:
        if self._codes is not None:
            return count(self._codes.showing(sets), sets, groups=groups)
        # A column has to be read to count rows, so the first attribute always is. Without a mark
        # only the digest tells that the table is the same, and that needs every column.
        width = len(self._everything)
        positions = tuple(
            sorted({0, *(variable % width for variables in sets for variable in variables)})
        )
        few = self._mark is not None and not self._schema.rules
        reading = positions if few else self._everything
        place = {position: at for at, position in enumerate(reading)}
        place |= {width + position: len(reading) + at for position, at in place.items()}
        inside = [[place[variable] for variable in variables] for variables in sets]
        grouped = {
            place[position]: group_of for position, group_of in groups.items() if position in place
        }
        schema = self._columns(reading)
        with self._watching(schema) as digest:
            streams = (
                partial(self._shown, digest.following(encoded(part, schema, self._reader)), inside)
                for part in self._reader.parts(schema.names)
            )
            sizes = shown_sizes(schema.sizes, inside)
            return count_streams(streams, sizes, inside, groups=grouped)

    @staticmethod
    def _shown(chunks: Iterator[Codes], sets: Sequence[Sequence[int]]) -> Iterator[Codes]:
        return (chunk.showing(sets) for chunk in chunks)

    @contextmanager
    def _watching(self, schema: Schema) -> Iterator[RowDigest]:
        """Refuse at the end of the block if what was read is not the table of the snapshot."""
        # A mark tells that the table is the same; without one every cell must be looked at.
        digest = RowDigest(schema.sizes, rows_only=self._mark is not None)
        self._check_mark()
        try:
            yield digest
        except (pa.ArrowInvalid, InputError) as error:
            # It was readable when it was opened. Either it changed, or its place is out of reach.
            self._check_mark()
            raise InputError(
                f"{self._reader.where}: the table cannot be read any more: {error}"
            ) from error
        self._check_mark()
        if digest.rows != self.rows or (
            self._mark is None and digest.hexdigest() != self._snapshot.digest
        ):
            raise data_changed(self._reader.where)

    def _check_mark(self) -> None:
        if self._reader.mark() != self._mark:
            raise data_changed(self._reader.where)

    def _columns(self, positions: Sequence[int]) -> Schema:
        """Return the schema of the attributes that are read; rules take all attributes."""
        if len(positions) == len(self._everything):
            return replace(self._schema, ignore=())
        return Schema(tuple(self._schema.attributes[position] for position in positions))


class JoinedSource(Source):
    """A `Source` of several tables of one owner, one below the other."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = tuple(sources)
        snapshots = [source.snapshot for source in self._sources]
        dates = sorted({snapshot.as_of for snapshot in snapshots if snapshot.as_of is not None})
        known = bool(dates) and all(snapshot.as_of is not None for snapshot in snapshots)
        # The same for the same tables in any order.
        content = "parley tables 1\n" + "\n".join(sorted(snapshot.digest for snapshot in snapshots))
        self._snapshot = Snapshot(
            rows=sum(snapshot.rows for snapshot in snapshots),
            digest=hashlib.sha256(content.encode()).hexdigest(),
            as_of=dates[0] if known else None,
            newest=dates[-1] if known and len(dates) > 1 else None,
            note=". ".join(snapshot.note for snapshot in snapshots if snapshot.note),
        )

    def chunks(self) -> Iterator[Codes]:
        for source in self._sources:
            yield from source.chunks()

    def count(
        self, sets: Sequence[Sequence[int]], groups: Groups = NO_GROUPS
    ) -> list[NDArray[np.int64]]:
        counted = [source.count(sets, groups) for source in self._sources]
        return [
            np.sum(np.stack(tables), axis=0, dtype=np.int64)
            for tables in zip(*counted, strict=True)
        ]
