"""What a party computes from its own rows for a sum: tables of counts, or numbers made of them.

A sum is published as little-endian signed integers, each as wide as the largest needs: each party
receives each result, so in a study of many turns these are most of the bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from common.crypto.framing import frame
from common.errors import RemoteProtocolError
from common.marginals import count
from common.schema.codes import NO_GROUPS, Codes, Groups, binarise

Attributes = tuple[int, ...]
Counts = NDArray[np.int64]
LARGEST_PRODUCT = 1 << 62  # of integers whose products are computed in 64 bits


class PartyRows(Protocol):
    """A party's rows. They never leave the party; steps see them through here only."""

    @property
    def rows(self) -> int:
        """The number of rows."""

    def count(self, sets: Sequence[Attributes], groups: Groups = NO_GROUPS) -> list[Counts]:
        """Count the contingency table of every attribute set, some attributes in groups.

        Of d attributes, variable d + a stands for the places of attribute a's numbers in its bins
        (`common.schema.codes`).
        """

    def codes(self) -> Codes:
        """Return all rows, for mechanisms that need more than counts."""

    def chunks(self) -> Iterator[Codes]:
        """Yield all rows, a chunk at a time; of people with events, people with theirs."""


class OwnersRows(PartyRows, Protocol):
    """All rows of a party, which its owner can commit to."""

    @property
    def digest(self) -> str:
        """Stands for the rows, in the study's domains. A secret."""


@dataclass(frozen=True)
class RowsInMemory:
    """Encoded rows as a step may see them."""

    table: Codes

    @property
    def rows(self) -> int:
        return self.table.rows

    @property
    def digest(self) -> str:
        content = hashlib.sha256(f"parley codes 1 {self.table.sizes} {self.rows}".encode())
        for column in self.table.arrays:
            content.update(np.ascontiguousarray(column, dtype="<i8").tobytes())
        return content.hexdigest()

    def count(self, sets: Sequence[Attributes], groups: Groups = NO_GROUPS) -> list[Counts]:
        return count(self.table.showing(sets), sets, groups=groups)

    def codes(self) -> Codes:
        return self.table

    def chunks(self) -> Iterator[Codes]:
        yield self.table


def rows_in_bits(data: PartyRows) -> RowsInMemory:
    """Return a party's rows with every attribute as bits, most significant first."""
    return RowsInMemory(binarise(data.codes()))


@dataclass(frozen=True, slots=True)
class TableShape:
    """One table of an answer."""

    variables: Attributes  # what it counts by: attributes, or bits of attributes
    shape: tuple[int, ...]  # how many values or groups each of them has
    grouped: tuple[bool, ...]  # for each of them, whether its values are seen in groups only
    in_bits: bool = False  # whether the variables are bits of the attributes

    @property
    def cells(self) -> int:
        return prod(self.shape)


def scaled(counts: Counts, *, top: int, bottom: int) -> Counts:
    """Return counts * top / bottom, rounded to the nearest integers, exactly."""
    largest = int(np.abs(counts).max(initial=0))
    wide = counts if 2 * (largest + 1) * top < LARGEST_PRODUCT else counts.astype(object)
    return np.asarray((2 * wide * top + bottom) // (2 * bottom), dtype=np.int64)


def split_tables(shapes: Sequence[TableShape], vector: Counts) -> list[Counts]:
    ends = np.cumsum([shape.cells for shape in shapes])
    parts = np.split(vector, ends[:-1]) if shapes else []
    return [part.reshape(shape.shape) for part, shape in zip(parts, shapes, strict=True)]


class Request(Protocol):
    """What a party computes from its own rows for a sum."""

    @property
    def tables(self) -> Sequence[TableShape]:
        """The tables that the vector consists of; none if its numbers are no tables."""

    @property
    def shown(self) -> Sequence[TableShape]:
        """The tables that the vector tells: its own, or those that it makes with their margins."""

    @property
    def unit(self) -> int:
        """The divisor that turns noise of the vector into that of a cell of a shown table."""

    @property
    def links(self) -> Sequence[Attributes]:
        """The sets of variables that are counted together."""

    @property
    def cells(self) -> int:
        """The number of integers in the vector."""

    @property
    def canonical(self) -> bytes:
        """The request as unambiguous bytes."""

    def limit(self, rows: int) -> int:
        """Return the largest absolute value of a cell for a party of this many rows."""

    def answer(self, data: PartyRows) -> Counts:
        """Count, exactly; shape (cells,). The counts never leave the party without noise."""


@dataclass(frozen=True)
class TableRequest:
    """The contingency tables of some sets of variables, one after the other."""

    sets: tuple[Attributes, ...]
    sizes: tuple[int, ...]  # the domain size of every variable of the study
    # The variables are the bits of the attributes, not the attributes themselves.
    in_bits: bool = False

    unit: ClassVar[int] = 1

    @property
    def shown(self) -> Sequence[TableShape]:
        return self.tables

    @cached_property
    def tables(self) -> tuple[TableShape, ...]:
        return tuple(
            TableShape(
                attributes,
                tuple(self.sizes[a] for a in attributes),
                (False,) * len(attributes),
                in_bits=self.in_bits,
            )
            for attributes in self.sets
        )

    @property
    def links(self) -> tuple[Attributes, ...]:
        return self.sets

    @cached_property
    def cells(self) -> int:
        return sum(table.cells for table in self.tables)

    @property
    def canonical(self) -> bytes:
        return frame(("tables", int(self.in_bits), frame(self.sizes), *map(frame, self.sets)))

    def limit(self, rows: int) -> int:
        """Return the rows: a cell counts at most all of them."""
        return rows

    def answer(self, data: PartyRows) -> Counts:
        rows = rows_in_bits(data) if self.in_bits else data
        return np.concatenate([table.reshape(-1) for table in rows.count(self.sets)])


def encode_cells(total: NDArray[np.int64]) -> bytes:
    largest = max(int(total.max(initial=0)), -1 - int(total.min(initial=0)))
    width = largest.bit_length() // 8 + 1
    return total.astype("<i8").view(np.uint8).reshape(-1, 8)[:, :width].tobytes()


def read_cells(data: bytes, cells: int) -> NDArray[np.int64]:
    """Read a published sum; RemoteProtocolError if `encode_cells` would write it otherwise."""
    width, rest = divmod(len(data), cells)
    if rest or not 1 <= width <= 8:
        raise RemoteProtocolError(f"a sum of {cells} cells has {len(data)} bytes")
    wide = np.zeros((cells, 8), np.uint8)
    wide[:, 8 - width :] = np.frombuffer(data, np.uint8).reshape(cells, width)
    total = np.asarray(wide.view("<i8")[:, 0] >> 8 * (8 - width), dtype=np.int64)
    if encode_cells(total) != data:
        raise RemoteProtocolError(f"a sum of {cells} cells is not written as short as it can be")
    return total
