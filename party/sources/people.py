"""People, not rows: at most k rows of a person take part, and always as many rows as were agreed.

The promise of a study with `rows_per_person` is to a person, whatever rows the person has. So
nothing that others see may depend on how many there are:

* Of a person's rows, the k of the smallest keyed hashes are kept. A hash is of the person and the
  row, so the order of the table does not matter, and the key is a secret of this node that was
  drawn before it saw the rows.
* The public number of rows is the agreed one. Of more rows than that, those of the smallest hashes
  of all are kept; fewer are filled up with rows that are public: a fixed sequence that follows from
  the study.
* The study names that number, and a node opens its rows before its owner has approved the study. So
  the public rows repeat one block, and are counted as often as it is repeated: neither memory nor
  time grows with their number.

If all rows of one person are replaced, at most k kept rows go and at most k come. The smallest n of
a set change by at most max(k, k) = k rows then, and so does a set that is filled up from a fixed
sequence: docs/proofs.md has the proof, and a test tries it.

Rows whose person is empty count as one person's. A table without rows is a table like any other:
whether a person is its only one must not show, so all of its agreed rows are public ones.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from common.errors import InputError
from common.marginals import count
from common.schema import Codes, Schema
from common.schema.codes import NO_GROUPS, Groups, concatenate
from common.schema.linked import no_codes
from common.schema.rules import Possible
from common.schema.words import member_of
from common.tables.reader import Chosen, ColumnPieces, Part, TableReader, with_fallback
from common.wording import many
from party.sources.fingerprint import RowDigest
from party.sources.source import Snapshot, Source

_HALF = 16
_BLOCK_CELLS = 1 << 20  # of the public rows, before they repeat


@dataclass(frozen=True, slots=True, kw_only=True)
class PeopleLimit:
    """What a study and its party agreed about people."""

    rows: int  # how many take part, as the study says: public
    per_person: int  # the most of one person
    key: bytes  # of the hashes that choose; a secret of the node
    filler: bytes  # what the public rows follow from


@dataclass(frozen=True, slots=True)
class PeopleTable:
    """A table and the column that says whose row a row is."""

    reader: TableReader
    person: str

    def read(self, schema: Schema) -> tuple[list[Codes], list[bytes]]:
        """Return the rows, and whose each of them is."""
        return with_fallback(self.reader, lambda: self._read(schema))

    def _read(self, schema: Schema) -> tuple[list[Codes], list[bytes]]:
        reader = self.reader
        if self.person not in reader.names:
            raise InputError(f"{reader.where}: source.person: there is no column {self.person!r}")
        parts, people = list[Codes](), list[bytes]()
        for part in reader.parts([*schema.names, self.person]):
            for codes, persons in self._encoded(part, schema):
                parts.append(codes)
                people += persons
        return parts, people

    def _encoded(self, part: Part, schema: Schema) -> Iterator[tuple[Codes, list[bytes]]]:
        where = self.reader.where
        for rows in part.read():
            if isinstance(rows, ColumnPieces):
                columns = [list(pieces) for pieces in rows.pieces]
                codes = schema.encode_pieces(columns[:-1], where=where, row_numbers=list)
                yield codes, _words(columns[-1])
                continue
            cells = rows.table if isinstance(rows, Chosen) else rows
            if cells.num_rows:
                codes = schema.encode(cells.select(list(schema.names)), where=where)
                yield codes, _words(cells.column(self.person).chunks)


class PublicRows:
    """The first so many rows of a sequence that follows from the study: one block, repeated.

    More of them begin like fewer.
    """

    def __init__(self, rows: int, schema: Schema, filler: bytes) -> None:
        width = len(schema.sizes)
        whole = min(rows, max(1, _BLOCK_CELLS // width))
        self._block = _possible(_drawn(whole, schema.sizes, filler), schema.possible)
        self._times, rest = divmod(rows, max(1, whole))
        self._rest = self._block.take(slice(rest))

    def chunks(self) -> Iterator[Codes]:
        yield from repeat(self._block, self._times)
        yield self._rest

    def count(self, sets: Sequence[Sequence[int]], groups: Groups) -> list[NDArray[np.int64]]:
        blocks, rest = (
            count(rows.showing(sets), sets, groups=groups) for rows in (self._block, self._rest)
        )
        return [self._times * one + more for one, more in zip(blocks, rest, strict=True)]

    def digest(self) -> RowDigest:
        digest = RowDigest(self._block.sizes)
        digest.add(self._block)
        digest.repeat(self._times)
        digest.add(self._rest)
        return digest


def _drawn(rows: int, sizes: Sequence[int], filler: bytes) -> Codes:
    """Return rows of values that look random, row after row."""
    words = hashlib.shake_256(b"parley public rows 1\0" + filler).digest(4 * rows * len(sizes))
    cells = np.frombuffer(words, dtype="<u4").reshape(rows, len(sizes))
    columns = [cells[:, place] % np.uint32(size) for place, size in enumerate(sizes)]
    return Codes.from_columns(columns, sizes)


def _possible(codes: Codes, possible: Possible) -> Codes:
    """Give the schema's example of a possible row to every row that breaks a rule."""
    bad = ~possible.holds(codes)
    columns = list(codes.columns)
    for attribute, code in possible.example.items():
        columns[attribute] = np.where(bad, columns[attribute].dtype.type(code), columns[attribute])
    return Codes(tuple(columns), codes.sizes)


class PeopleSource(Source):
    """A `Source` of the rows that are kept, held in memory, and of public rows."""

    def __init__(
        self,
        tables: Sequence[PeopleTable],
        schema: Schema,
        limit: PeopleLimit,
        *,
        as_of: dt.date | None,
    ) -> None:
        parts, people = list[Codes](), list[bytes]()
        for table in tables:
            codes, persons = table.read(schema)
            parts += codes
            people += persons
        rows = concatenate([no_codes(schema), *parts])
        self._rows = rows.take(chosen(rows, people, limit))
        dropped, added = rows.rows - self._rows.rows, limit.rows - self._rows.rows
        self._public = PublicRows(added, schema, limit.filler)
        digest = self._public.digest()
        digest.add(self._rows)
        self._snapshot = Snapshot(
            rows=limit.rows,
            digest=digest.hexdigest(),
            as_of=as_of,
            note=(
                f"{many(rows.rows, 'row')} of {many(len(set(people)), 'person')}: "
                f"{many(dropped, 'row')} dropped (at most {limit.per_person} of a person, "
                f"{limit.rows:,} in all), {many(added, 'public row')} added"
            ),
        )

    def chunks(self) -> Iterator[Codes]:
        yield self._rows
        yield from self._public.chunks()

    def count(
        self, sets: Sequence[Sequence[int]], groups: Groups = NO_GROUPS
    ) -> list[NDArray[np.int64]]:
        counts = count(self._rows.showing(sets), sets, groups=groups)
        public = self._public.count(sets, groups)
        return [table + more for table, more in zip(counts, public, strict=True)]


def chosen(rows: Codes, people: Sequence[bytes], limit: PeopleLimit) -> NDArray[np.intp]:
    """Return the positions of the rows that are kept: `per_person` of each, `rows` of all."""
    cells = np.stack([column.astype("<u2") for column in rows.columns], axis=1)
    hashes = [
        hashlib.blake2b(row.tobytes(), key=_key_of(person, limit)).digest()
        for row, person in zip(cells, people, strict=True)
    ]
    within = _places(rows)  # of rows that are equal but for them, so that no order matters
    order = sorted(range(rows.rows), key=lambda at: (people[at], hashes[at][:_HALF], within[at]))
    positions, before, rows_of_person = list[int](), None, 0
    for at in order:
        rows_of_person = rows_of_person + 1 if people[at] == before else 1
        before = people[at]
        if rows_of_person <= limit.per_person:
            positions.append(at)
    positions.sort(key=lambda at: (hashes[at][_HALF:], within[at]))
    return np.array(positions[: limit.rows], dtype=np.intp)


def _places(rows: Codes) -> list[bytes]:
    columns = [column for column in rows.places if column is not None]
    return [row.tobytes() for row in np.stack(columns, axis=1)] if columns else [b""] * rows.rows


def _key_of(person: bytes, limit: PeopleLimit) -> bytes:
    return hashlib.blake2b(person, key=limit.key, digest_size=32).digest()


def _words(pieces: Iterable[pa.Array]) -> list[bytes]:
    return [member_of(value) or b"" for piece in pieces for value in piece.to_pylist()]
