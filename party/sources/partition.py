"""The code that runs where a partition of a table is: it encodes, digests and counts its rows.

Everything here is plain functions of batches, without Spark. The counts of the partitions add up,
cell by cell, to those of the whole table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from common.errors import LocalError
from common.marginals.counting import Tally, checked_sets
from common.schema import Codes, Schema
from common.schema.codes import NO_GROUPS, CodeColumn, Groups, grouped_sizes, shown_sizes
from common.schema.linked import ORDER_KEY
from common.tables.reader import CHUNK_ROWS, merged
from party.sources.fingerprint import RowDigest
from party.sources.keyed import NO_ORDER, KeyedRows, Keys, keyed, keyed_names

CELLS = pa.schema([("cell", pa.int64()), ("count", pa.int64())])
_ROWS = -1  # not cells, but numbers that add up like counts: the rows, and halves of the digest
_FIRST_HALF = -2
_HALF = 1 << 32


@dataclass(frozen=True, slots=True)
class PartitionCounter:
    """A request, in a form that travels to the partitions."""

    schema: Schema
    sets: tuple[tuple[int, ...], ...]
    groups: Groups = field(default_factory=dict)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the cells of one partition that are not zero, one table after the other."""
        digest = RowDigest(self.schema.sizes)
        sizes = grouped_sizes(shown_sizes(self.schema.sizes, self.sets), self.groups)
        tally = Tally(sizes, checked_sets(self.sets, sizes))
        for codes in _encoded(self.schema, batches):
            digest.add(codes)
            # One thread: the other cores have other partitions.
            tally.add(codes.showing(self.sets).in_groups(self.groups), threads=1)
        counts = np.concatenate(
            [np.zeros(0, dtype=np.int64), *(table.ravel() for table in tally.tables())]
        )
        cells = np.flatnonzero(counts)
        halves = [half for total in digest.sums for half in divmod(total, _HALF)]
        marks = [_ROWS, *range(_FIRST_HALF, _FIRST_HALF - len(halves), -1)]
        yield pa.record_batch(
            [
                pa.array(np.concatenate([marks, cells]), type=pa.int64()),
                pa.array(np.concatenate([[digest.rows, *halves], counts[cells]]), type=pa.int64()),
            ],
            schema=CELLS,
        )


def gathered(
    cells: pa.Table,
    sizes: tuple[int, ...],
    sets: Sequence[Sequence[int]],
    groups: Groups = NO_GROUPS,
) -> tuple[RowDigest, list[NDArray[np.int64]]]:
    """Return the digest of all rows, and the tables, from the sums over the partitions."""
    places = cells.column("cell").to_numpy()
    counts = cells.column("count").to_numpy()
    widths = grouped_sizes(shown_sizes(sizes, sets), groups)
    shapes = [tuple(widths[a] for a in variables) for variables in sets]
    ends = np.cumsum([0, *(math.prod(shape) for shape in shapes)])
    flat = np.zeros(int(ends[-1]), dtype=np.int64)
    inside = places >= 0
    flat[places[inside]] = counts[inside]
    marks = dict(zip(places[~inside].tolist(), counts[~inside].tolist(), strict=True))
    digest = RowDigest(sizes)
    digest.rows = marks.get(_ROWS, 0)
    digest.sums = [
        (marks.get(_FIRST_HALF - 2 * at, 0) * _HALF + marks.get(_FIRST_HALF - 2 * at - 1, 0))
        % (1 << 64)
        for at in range(len(digest.sums))
    ]
    tables = [
        flat[start:stop].reshape(shape)
        for start, stop, shape in zip(ends[:-1], ends[1:], shapes, strict=True)
    ]
    return digest, tables


@dataclass(frozen=True, slots=True)
class PartitionEncoder:
    """The rows of a partition as codes, one byte string per column and chunk.

    With keys, each row has its person and what it is sorted by as well. Without a schema, the
    person of every row alone.
    """

    schema: Schema | None
    keys: Keys | None = None

    @property
    def names(self) -> list[str]:
        """The columns of a batch: the attributes in order, and then those of the keys."""
        if self.schema is None:
            return [self.keys.person] if self.keys else []
        return keyed_names(self.schema, self.keys) if self.keys else list(self.schema.names)

    @property
    def width(self) -> int:
        """The number of byte strings of a chunk."""
        if self.schema is None:
            return 1
        return len(self.schema.names) + (0 if self.keys is None else 3)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in merged(batches, CHUNK_ROWS):
            arrays = self._arrays(table.rename_columns(self.names))
            yield pa.record_batch(
                [pa.array([array.tobytes()], type=pa.binary()) for array in arrays],
                names=packed_names(len(arrays)),
            )

    def _arrays(self, table: pa.Table) -> Sequence[NDArray[np.generic]]:
        if self.schema is None:
            return [] if self.keys is None else [self.keys.hashes(table.column(0))]
        schema, where = replace(self.schema, ignore=()), "a partition"
        if self.keys is None:
            return schema.encode(table, where=where).columns
        rows = keyed(table, schema, self.keys, where=where, before=0)
        return [*rows.codes.columns, rows.people, rows.order, rows.ties]


def unpacked_keys(row: Sequence[bytes | bytearray], schema: Schema, keys: Keys) -> KeyedRows:
    """Return the rows of a chunk, with their keys, from the byte strings of its arrays."""
    *codes, people, order, ties = map(bytes, row)
    return KeyedRows(
        unpacked(codes, schema),
        np.frombuffer(people, dtype=np.uint64),
        np.frombuffer(order, dtype=ORDER_KEY if keys.order else NO_ORDER),
        np.frombuffer(ties, dtype=np.uint64),
    )


def packed_names(width: int) -> list[str]:
    """Name columns by position, in what goes into a partition and what an encoder gives."""
    return [f"c{position}" for position in range(width)]


def unpacked(row: Sequence[bytes | bytearray], schema: Schema) -> Codes:
    """Return a chunk from the byte strings of its columns."""
    if len(row) != len(schema.attributes):
        raise LocalError(f"{len(row)} columns are not the {len(schema.attributes)} of the schema")
    columns: list[CodeColumn] = [
        np.frombuffer(bytes(packed), dtype=attribute.code_type)
        for packed, attribute in zip(row, schema.attributes, strict=True)
    ]
    return Codes(tuple(columns), schema.sizes)


def _encoded(schema: Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[Codes]:
    """Encode columns that are the attributes in order, whatever their names."""
    for table in merged(batches, CHUNK_ROWS):
        named = table.rename_columns(list(schema.names))
        yield schema.encode(named, where="a partition")
