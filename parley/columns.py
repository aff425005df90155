"""The types of a table's columns: remembered of the input, so that synthetic rows come back alike.

Only types are kept, never cells. The categories of a pandas categorical are a list of values, and
often of just those that occur, so they are forgotten: the schema's values take their place.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa

from common.schema import Schema
from common.schema.attribute import Listed
from common.schema.decoder import shape_like

_CATEGORY = "category"
_ORDERED = "category, ordered"
_OBJECTS: dict[str, Any] = {"text": "", "date": dt.date(1970, 1, 1), "object": None}


@dataclass(frozen=True)
class ColumnTypes:
    """The names and types of the columns, in order; types as the text that pandas reads back.

    Attributes:
        types: by column. Objects are "text", "date" or "object", after the cells they hold.
    """

    types: Mapping[str, str]

    @classmethod
    def of(cls, table: pd.DataFrame | pa.Table) -> ColumnTypes:
        """Those of a table."""
        if isinstance(table, pa.Table):
            table = _decoded(table.schema).empty_table().to_pandas(types_mapper=pd.ArrowDtype)
        return cls({str(name): _name(column) for name, column in table.items()})

    def shape(self, table: pd.DataFrame, schema: Schema) -> pd.DataFrame:
        """The table in this order and these types, as far as they can hold its values."""
        return pd.DataFrame(
            {
                name: self._shaped(table[name], schema)
                for name in self.types
                if name in table.columns
            }
        )

    def _shaped(self, column: pd.Series[Any], schema: Schema) -> pd.Series[Any]:
        name = str(column.name)
        written = self.types[name]
        if written in _OBJECTS:
            return shape_like(column, pd.Series([_OBJECTS[written]], dtype=object))
        if written in (_CATEGORY, _ORDERED):
            domain = schema.attributes[schema.position(name)].domain
            categories = list(domain.values) if isinstance(domain, Listed) else None
            target: Any = pd.CategoricalDtype(categories, ordered=written == _ORDERED)
            return (
                column.astype(target)
                if categories is None
                else shape_like(column, pd.Series([], dtype=target))
            )
        try:
            target = pd.api.types.pandas_dtype(written)
        except (TypeError, NotImplementedError):  # a type with parameters that text cannot carry
            return column
        return shape_like(column, pd.Series([], dtype=target))


def _decoded(schema: pa.Schema) -> pa.Schema:
    """Dictionaries are how a column was stored, not what it holds."""
    return pa.schema(
        [
            field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
            for field in schema
        ]
    )


def _name(column: pd.Series[Any]) -> str:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return _ORDERED if column.dtype.ordered else _CATEGORY
    if column.dtype == object:
        cells = column.dropna()
        first = cells.iloc[0] if len(cells) else None
        return "text" if isinstance(first, str) else "date" if type(first) is dt.date else "object"
    return str(column.dtype)
