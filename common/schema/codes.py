"""Encoded rows: one small unsigned integer per cell, stored column by column; and rows as bits.

Beside its code, the bin, a number has a place in the bin: 0 at the smallest number of the bin, 254
at the largest. A cell without a place (a text, an empty cell, a row that was drawn from a model)
counts as the middle, 127. Places are counted as further columns, `placed`, by steps that ask for
them; whatever else works on codes does not see them.

The binary and Gray encodings are those of PrivBayes' binary path [Zhang17, Sec. 5.1]. An attribute
of size l becomes ceil(log2 l) binary attributes, the most significant bit first. The natural code
of i is i; the Gray code is i xor (i >> 1), whose neighbours differ in a single bit. Where l is not
a power of two some bit patterns stand for no value: `debinarise` tells which rows have one, and
those rows must be drawn again. The paper's other two encodings need no code: vanilla is the codes,
hierarchical is the codes with `Attribute.hierarchy.levels`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.errors import LocalError

CodeColumn = NDArray[np.unsignedinteger[Any]]  # uint8 or uint16, see code_dtype
Groups = Mapping[int, Sequence[int]]  # of attributes seen in groups: the group of each value
NO_GROUPS: Groups = MappingProxyType({})
Places = tuple[CodeColumn | None, ...]  # of each column, uint8; None where no cell has one
PLACES = 255  # in a bin
MIDDLE = PLACES // 2


def code_dtype(size: int) -> type[np.uint8] | type[np.uint16]:
    """Return the narrowest type that holds the codes 0..size-1."""
    if not 1 <= size <= 1 << 16:
        raise LocalError(f"a domain has 1 to 65,536 values, not {size:,}")
    return np.uint8 if size <= 1 << 8 else np.uint16


@dataclass(frozen=True, slots=True)
class Codes:
    """A table of codes: `columns[j]` holds codes below `sizes[j]`, all columns equally long.

    The columns are contiguous and read-only by convention. Codes are checked once, here, because
    every kernel downstream indexes arrays with them unchecked.
    """

    columns: tuple[CodeColumn, ...]
    sizes: tuple[int, ...]
    places: Places = field(default=(), kw_only=True)  # none at all, or one entry for each column

    def __post_init__(self) -> None:
        """Refuse ragged tables, foreign types and codes outside their domain."""
        if len(self.columns) != len(self.sizes):
            raise LocalError(f"{len(self.columns)} columns but {len(self.sizes)} domain sizes")
        for position, (column, size) in enumerate(zip(self.columns, self.sizes, strict=True)):
            if column.ndim != 1 or column.dtype != code_dtype(size):
                raise LocalError(
                    f"column {position}: expected a vector of {code_dtype(size).__name__}, "
                    f"got {column.dtype} of shape {column.shape}"
                )
            if len(column) != len(self.columns[0]):
                raise LocalError(f"column {position} has {len(column)} rows, not {self.rows}")
            if len(column) and int(column.max()) >= size:
                raise LocalError(f"column {position}: code {int(column.max())} is not below {size}")
        for place in self.places:
            if place is not None and (len(place) != self.rows or place.dtype != np.uint8):
                raise LocalError("a column of places is not one byte for each row")

    @classmethod
    def from_columns(
        cls, columns: Sequence[NDArray[np.integer[Any]]], sizes: Sequence[int]
    ) -> Codes:
        """Take integer columns of any type; refuse values outside the domains."""
        narrow: list[CodeColumn] = []
        for position, (column, size) in enumerate(zip(columns, sizes, strict=True)):
            if len(column) and (int(column.min()) < 0 or int(column.max()) >= size):
                raise LocalError(f"column {position}: codes must be in 0..{size - 1}")
            narrow.append(np.ascontiguousarray(column, dtype=code_dtype(size)))
        return cls(tuple(narrow), tuple(int(size) for size in sizes))

    @property
    def rows(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    @property
    def nbytes(self) -> int:
        arrays = (*self.columns, *self.places)
        return sum(column.nbytes for column in arrays if column is not None)

    @property
    def width(self) -> int:
        return len(self.columns)

    @property
    def arrays(self) -> tuple[NDArray[np.integer[Any]], ...]:
        """All numbers that the table consists of, for a digest."""
        return self.columns

    def select(self, positions: Sequence[int]) -> Codes:
        """Return some columns, in the order given, without copying."""
        return Codes(
            tuple(self.columns[p] for p in positions),
            tuple(self.sizes[p] for p in positions),
            places=tuple(self.places[p] for p in positions if self.places),
        )

    @property
    def placed(self) -> Codes:
        """All columns, and then the places of each of them as further columns."""
        middle = np.full(self.rows, MIDDLE, dtype=np.uint8)
        places = self.places or (None,) * self.width
        columns = tuple(middle if place is None else place for place in places)
        return Codes((*self.columns, *columns), (*self.sizes, *(PLACES,) * self.width))

    def showing(self, sets: Sequence[Sequence[int]]) -> Codes:
        """Return the columns that these sets of variables are about: places only if one is."""
        return self.placed if shows_places(sets, self.width) else self

    def in_groups(self, groups: Groups) -> Codes:
        if not groups:
            return self
        columns, sizes = list(self.columns), grouped_sizes(self.sizes, groups)
        for a, group_of in groups.items():
            narrow: CodeColumn = np.array(group_of).astype(code_dtype(sizes[a]))
            columns[a] = narrow[columns[a]]
        return Codes(tuple(columns), sizes, places=self.places)

    def take(self, rows: NDArray[np.integer[Any]] | slice) -> Codes:
        places = (
            None if column is None else np.ascontiguousarray(column[rows]) for column in self.places
        )
        columns = (np.ascontiguousarray(column[rows]) for column in self.columns)
        return Codes(tuple(columns), self.sizes, places=tuple(places))


def grouped_sizes(sizes: Sequence[int], groups: Groups) -> tuple[int, ...]:
    """Return the number of groups of every attribute; without groups, its domain size."""
    return tuple(max(groups[a]) + 1 if a in groups else size for a, size in enumerate(sizes))


def shows_places(sets: Sequence[Sequence[int]], width: int) -> bool:
    """Return whether a variable stands for places: number width + a for those of column a."""
    return any(variable >= width for variables in sets for variable in variables)


def shown_sizes(sizes: Sequence[int], sets: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return the sizes of the columns that these sets of variables are about."""
    more = len(sizes) if shows_places(sets, len(sizes)) else 0
    return (*sizes, *(PLACES,) * more)


def concatenate(tables: Sequence[Codes]) -> Codes:
    """Put the rows of several tables of equal domains into one table, in order."""
    if not tables or any(table.sizes != tables[0].sizes for table in tables):
        raise LocalError("only tables of the same domains can be concatenated")
    columns = zip(*(table.columns for table in tables), strict=True)
    return Codes(
        tuple(np.concatenate(pieces) for pieces in columns),
        tables[0].sizes,
        places=_joined_places(tables),
    )


def _joined_places(tables: Sequence[Codes]) -> Places:
    """Put the places of tables one below the other; rows without places are in the middle."""
    if not any(table.places for table in tables):
        return ()

    def column(position: int) -> CodeColumn | None:
        parts = [table.places[position] if table.places else None for table in tables]
        if all(places is None for places in parts):
            return None
        return np.concatenate(
            [
                np.full(table.rows, MIDDLE, np.uint8) if places is None else places
                for table, places in zip(tables, parts, strict=True)
            ]
        )

    return tuple(map(column, range(tables[0].width)))


def bit_count(size: int) -> int:
    """Return the bits that an attribute of this size becomes; 1 for a constant."""
    return max(1, (size - 1).bit_length())


def bit_positions(sizes: Sequence[int]) -> list[range]:
    """Return which binary attributes each attribute becomes."""
    starts = np.cumsum([0, *(bit_count(size) for size in sizes)]).tolist()
    return [range(start, end) for start, end in itertools.pairwise(starts)]


def binarise(codes: Codes, *, gray: bool = False) -> Codes:
    """Return every attribute as bits, most significant first; `gray` chooses the Gray code."""
    bits: list[NDArray[np.uint8]] = []
    for column, size in zip(codes.columns, codes.sizes, strict=True):
        word = column ^ (column >> 1) if gray else column
        shifts = reversed(range(bit_count(size)))
        bits.extend(((word >> shift) & 1).astype(np.uint8) for shift in shifts)
    return Codes(tuple(bits), (2,) * len(bits))


def debinarise(
    bits: Codes, sizes: Sequence[int], *, gray: bool = False
) -> tuple[tuple[CodeColumn, ...], NDArray[np.bool_]]:
    """Return the columns that the bits stand for, and the rows all of whose patterns are values.

    A pattern that stands for no value becomes the code 0.
    """
    spans = bit_positions(sizes)
    if bits.width != sum(len(span) for span in spans) or set(bits.sizes) - {2}:
        raise LocalError(f"{bits.width} bits do not make attributes of sizes {tuple(sizes)}")
    valid = np.ones(bits.rows, dtype=np.bool_)
    columns: list[CodeColumn] = []
    one = np.uint16(1)
    for size, span in zip(sizes, spans, strict=True):
        word = np.zeros(bits.rows, dtype=np.uint16)
        for position in span:
            bit = bits.columns[position].astype(np.uint16)
            # A Gray bit tells whether the bit of the number differs from the bit above it.
            word = (word << one) | (bit ^ (word & one) if gray else bit)
        known = word < size
        valid &= known
        columns.append(np.where(known, word, 0).astype(code_dtype(size)))
    return tuple(columns), valid
