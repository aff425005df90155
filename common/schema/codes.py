"""Encoded rows: one small unsigned integer per cell, stored column by column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.errors import LocalError

CodeColumn = NDArray[np.unsignedinteger[Any]]  # uint8 or uint16, see code_dtype
Groups = Mapping[int, Sequence[int]]  # of attributes seen in groups: the group of each value
NO_GROUPS: Groups = MappingProxyType({})


def code_dtype(size: int) -> type[np.uint8] | type[np.uint16]:
    """The narrowest type that holds the codes 0..size-1."""
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

    @classmethod
    def from_columns(
        cls, columns: Sequence[NDArray[np.integer[Any]]], sizes: Sequence[int]
    ) -> Codes:
        """Codes from integer columns of any type; refuses values outside the domains."""
        narrow: list[CodeColumn] = []
        for position, (column, size) in enumerate(zip(columns, sizes, strict=True)):
            if len(column) and (int(column.min()) < 0 or int(column.max()) >= size):
                raise LocalError(f"column {position}: codes must be in 0..{size - 1}")
            narrow.append(np.ascontiguousarray(column, dtype=code_dtype(size)))
        return cls(tuple(narrow), tuple(int(size) for size in sizes))

    @property
    def rows(self) -> int:
        """The number of rows (0 for a table without columns)."""
        return len(self.columns[0]) if self.columns else 0

    @property
    def width(self) -> int:
        return len(self.columns)

    def select(self, positions: Sequence[int]) -> Codes:
        """The named columns, in the order given, without copying."""
        return Codes(
            tuple(self.columns[p] for p in positions), tuple(self.sizes[p] for p in positions)
        )

    def in_groups(self, groups: Groups) -> Codes:
        """The rows with the values of some attributes replaced by their groups."""
        if not groups:
            return self
        columns, sizes = list(self.columns), grouped_sizes(self.sizes, groups)
        for a, own in groups.items():
            narrow: CodeColumn = np.array(own).astype(code_dtype(sizes[a]))
            columns[a] = narrow[columns[a]]
        return Codes(tuple(columns), sizes)

    def take(self, rows: NDArray[np.integer[Any]] | slice) -> Codes:
        return Codes(tuple(np.ascontiguousarray(c[rows]) for c in self.columns), self.sizes)


def grouped_sizes(sizes: Sequence[int], groups: Groups) -> tuple[int, ...]:
    """The number of groups of every attribute; of one without groups, its domain size."""
    return tuple(max(groups[a]) + 1 if a in groups else size for a, size in enumerate(sizes))


def concatenate(tables: Sequence[Codes]) -> Codes:
    """The rows of several tables of the same domains, one table after the other."""
    if not tables or any(table.sizes != tables[0].sizes for table in tables):
        raise LocalError("only tables of the same domains can be concatenated")
    columns = tuple(
        np.concatenate([table.columns[j] for table in tables]) for j in range(tables[0].width)
    )
    return Codes(columns, tables[0].sizes)
