"""An owner's table in the study's names and codes: columns renamed, cells recoded, rows chosen.

All three are the owner's own settings: no study has a part in them, and none of them is published.
Each is decided cell by cell and row by row, so two tables that differ in one row give two shaped
tables that differ in at most that row.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa

from common.errors import InputError
from common.schema import Schema
from common.tables.reader import Chosen, ColumnPieces, Part, Rows, TableReader, as_table
from party.sources.cells import CellCondition, Recoding


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What is done with a table before it is encoded."""

    # From the study's names to the table's own, where they differ.
    columns: Mapping[str, str] = field(default_factory=dict)
    recode: Mapping[str, Recoding] = field(default_factory=dict)  # by the study's names
    # Which rows take part, in the table's own names and codes; None for all.
    where: CellCondition | None = None

    def __bool__(self) -> bool:
        return bool(self.columns or self.recode or self.where)

    def in_own_names(self, schema: Schema | None) -> Schema | None:
        """Return the study's schema with the table's names, as the reader expects them."""
        if schema is None or not self.columns:
            return schema
        attributes = schema.attributes
        return Schema(tuple(replace(a, name=self.own_name(a.name)) for a in attributes))

    def own_name(self, name: str) -> str:
        """Return the table's name of a column that the study names."""
        return self.columns.get(name, name)

    def study_name(self, column: str) -> str:
        """Return the study's name of a column of the table; the table's if the study has none."""
        return next((name for name, renamed in self.columns.items() if renamed == column), column)

    def study_names(self, names: Sequence[str]) -> list[str]:
        """Return the study's names of the table's columns, without columns that one stands for."""
        looked_at = self.where.names if self.where else ()
        for key, columns in (("columns", self.columns.values()), ("where", looked_at)):
            absent = [name for name in columns if name not in names]
            if absent:
                raise InputError(
                    f"source.{key}: the table has no column {absent[0]!r}. It has: "
                    f"{', '.join(names[:20])}{', ...' if len(names) > 20 else ''}"
                )
        renamed = self.columns.values()
        return [self.study_name(n) for n in names if n in renamed or n not in self.columns]


class ShapedReader(TableReader):
    """A `TableReader` that gives another one's table in its shape."""

    def __init__(self, reader: TableReader, shape: Shape) -> None:
        self._reader = reader
        self._shape = shape
        self._names = shape.study_names(reader.names)

    @property
    def where(self) -> str:
        condition = self._shape.where
        return f"{self._reader.where}{f' where {condition.text}' if condition else ''}"

    @property
    def as_of(self) -> dt.date | None:
        return self._reader.as_of

    def mark(self) -> str | None:
        return self._reader.mark()

    def parts(self, names: Sequence[str]) -> Iterator[Part]:
        columns = [self._shape.own_name(name) for name in names]
        condition = self._shape.where
        further = [n for n in condition.names if n not in columns] if condition else []
        for part in self._reader.parts([*columns, *further]):
            yield Part(part.first_row, partial(self._shaped, part, names, further))

    def _shaped(self, part: Part, names: Sequence[str], further: list[str]) -> Iterator[Rows]:
        shape = self._shape
        recoded = any(name in shape.recode for name in names)
        for rows in part.read():
            if isinstance(rows, ColumnPieces) and not recoded and shape.where is None:
                yield rows
                continue
            table = as_table(rows, [*(shape.own_name(name) for name in names), *further])
            positions = None
            if shape.where is not None:
                looked_at = {name: table.column(name) for name in shape.where.names}
                positions = np.flatnonzero(shape.where.holds(looked_at))
            shaped = self._recoded({name: table.column(shape.own_name(name)) for name in names})
            yield (
                shaped
                if positions is None
                else Chosen(shaped.take(positions), positions, table.num_rows)
            )

    def read_slowly(self) -> bool:
        return self._reader.read_slowly()

    def explain(self, error: pa.ArrowInvalid) -> InputError:
        return self._reader.explain(error)

    def row_numbers(self, positions: Sequence[int]) -> Sequence[int]:
        """Return the numbers of the table, which count the rows that are not chosen."""
        return self._reader.row_numbers(positions)

    def _recoded(self, columns: Mapping[str, pa.ChunkedArray]) -> pa.Table:
        recode = self._shape.recode
        return pa.table(
            {
                n: recode[n].applied(column) if n in recode else column
                for n, column in columns.items()
            }
        )
