"""An owner's table in the study's names and codes: columns renamed, cells recoded, rows chosen.

All three are the owner's own settings: no study has a part in them, and none of them is published.
Each is decided cell by cell and row by row, so two tables that differ in one row give two shaped
tables that differ in at most that row.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa

from common.errors import InputError
from common.schema import Schema
from party.sources.cells import Recoding
from party.sources.condition import Condition
from party.sources.grouping import Grouping
from party.sources.parts import Chosen, Columns, Part
from party.sources.source import TableReader


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What is done with a table before it is encoded.

    Attributes:
        columns: from the study's names to the table's, where they differ.
        recode: by the study's name of a column.
        where: which rows take part, in the table's own names and codes; None for all.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    recode: Mapping[str, Recoding] = field(default_factory=dict)
    where: Condition | None = None

    def __bool__(self) -> bool:
        return bool(self.columns or self.recode or self.where)

    def inner(self, schema: Schema | None) -> Schema | None:
        """The study's schema with the table's names, as the reader expects them."""
        if schema is None or not self.columns:
            return schema
        attributes = schema.attributes
        return Schema(tuple(replace(a, name=self.inside(a.name)) for a in attributes))

    def inside(self, name: str) -> str:
        """The table's name of a column."""
        return self.columns.get(name, name)

    def called(self, inside: str) -> str:
        """The study's name of a column of the table, or its own."""
        return next((name for name, own in self.columns.items() if own == inside), inside)

    def outside(self, names: Sequence[str]) -> list[str]:
        """The study's names of the table's columns; a column that another one stands for is gone.

        Raises:
            InputError: a column that is to be renamed, or looked at, is not there.
        """
        looked_at = self.where.names if self.where else ()
        for key, wanted in (("columns", self.columns.values()), ("where", looked_at)):
            absent = [name for name in wanted if name not in names]
            if absent:
                raise InputError(
                    f"source.{key}: the table has no column {absent[0]!r}. It has: "
                    f"{', '.join(names[:20])}{', ...' if len(names) > 20 else ''}"
                )
        called = {inside: outside for outside, inside in self.columns.items()}
        return [called.get(n, n) for n in names if n in called or n not in self.columns]


class ShapedReader:
    """A `TableReader` that gives another one's table in its shape."""

    def __init__(self, reader: TableReader, shape: Shape) -> None:
        self._reader = reader
        self._shape = shape
        self._names = shape.outside(reader.names)

    @property
    def where(self) -> str:
        """The place, and which of its rows."""
        condition = self._shape.where
        return f"{self._reader.where}{f' where {condition.text}' if condition else ''}"

    @property
    def as_of(self) -> dt.date | None:
        return self._reader.as_of

    @property
    def names(self) -> Sequence[str]:
        return self._names

    def mark(self) -> str | None:
        return self._reader.mark()

    def grouping(self) -> Grouping | None:
        """The place's own way to count, in the study's names and codes; none if rows are chosen."""
        grouping = self._reader.grouping()
        if grouping is None or self._shape.where is not None:
            return None
        return _ShapedGrouping(grouping, self._shape)

    def parts(self, names: Sequence[str]) -> Iterator[Part]:
        inside = [self._shape.inside(name) for name in names]
        condition = self._shape.where
        further = [n for n in condition.names if n not in inside] if condition else []
        for part in self._reader.parts([*inside, *further]):
            yield Part(part.first_row, partial(self._shaped, part.read, names, further))

    def _shaped(
        self,
        read: Callable[[], Iterable[pa.Table | Columns | Chosen]],
        names: Sequence[str],
        further: list[str],
    ) -> Iterator[pa.Table | Columns | Chosen]:
        shape = self._shape
        recoded = any(name in shape.recode for name in names)
        for rows in read():
            if isinstance(rows, Columns) and not recoded and shape.where is None:
                yield rows
                continue
            inside = [*(shape.inside(name) for name in names), *further]
            table = _table(rows, inside)
            kept = None
            if shape.where is not None:
                looked_at = {name: table.column(name) for name in shape.where.names}
                kept = np.flatnonzero(shape.where.holds(looked_at))
            columns = {name: table.column(shape.inside(name)) for name in names}
            shaped = _recoded(columns, shape.recode)
            yield shaped if kept is None else Chosen(shaped.take(kept), kept, table.num_rows)

    def read_slowly(self) -> bool:
        return self._reader.read_slowly()

    def explain(self, error: pa.ArrowInvalid) -> InputError:
        return self._reader.explain(error)

    def row_numbers(self, positions: Sequence[int]) -> Sequence[int]:
        """As in the table, with the rows that are not chosen."""
        return self._reader.row_numbers(positions)


class _ShapedGrouping:
    """A database that counts, in the study's names and codes."""

    def __init__(self, grouping: Grouping, shape: Shape) -> None:
        self._grouping = grouping
        self._shape = shape

    def fingerprint(self) -> str:
        return self._grouping.fingerprint()

    def groups(self, sets: Sequence[Sequence[str]]) -> tuple[str, list[pa.Table]]:
        """See `Grouping`; groups that become the same by recoding stay apart, and are added up."""
        inside = [[self._shape.inside(name) for name in names] for names in sets]
        found, tables = self._grouping.groups(inside)
        return found, [
            _recoded(
                dict(zip([*names, *table.column_names[len(names) :]], table.columns, strict=True)),
                self._shape.recode,
            )
            for names, table in zip(sets, tables, strict=True)
        ]


def _recoded(columns: Mapping[str, pa.ChunkedArray], recode: Mapping[str, Recoding]) -> pa.Table:
    return pa.table(
        {n: recode[n].applied(column) if n in recode else column for n, column in columns.items()}
    )


def _table(rows: pa.Table | Columns | Chosen, names: Sequence[str]) -> pa.Table:
    """Rows in whatever form a reader gives them."""
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, Chosen):
        return rows.table
    pieces = [pa.chunked_array(list(column)) for column in rows.pieces]
    return pa.table(pieces, names=list(names)).unify_dictionaries()
