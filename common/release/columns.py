"""The columns of a table: remembered of the input, so that synthetic rows come back in its shape.

Remembered are the names in their order, and which columns were categoricals. Types are not: whoever
reads a file, pandas or Arrow, infers them from the cells, so they tell about cells. An empty cell
makes 64-bit integers floats, one 0.5 makes a column of whole numbers one of fractions, one cell
that is no date makes text of all dates. Published with a release, that would be a fact about a row
that no budget paid for. So the schema decides the type of every column. The categories of a
categorical are a list of values, often of just those that occur: the schema's take their place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa

from common.schema import Schema
from common.schema.attribute import Listed

_BY_SCHEMA = "by schema"
_CATEGORY = "category"
_ORDERED = "category, ordered"
KINDS = frozenset({_BY_SCHEMA, _CATEGORY, _ORDERED})


@dataclass(frozen=True)
class Columns:
    """The names of the columns, in order, and which of them are categoricals."""

    kinds: Mapping[str, str]  # "category", "category, ordered" or "by schema", by column

    @classmethod
    def of(cls, table: pd.DataFrame | pa.Table, schema: Schema) -> Columns:
        """Those of a table that the schema names; the others are the owner's own matter."""
        if isinstance(table, pa.Table):
            # Dictionaries are how a column was stored, not what it holds.
            kinds = dict.fromkeys(table.column_names, _BY_SCHEMA)
        else:
            kinds = {str(name): _kind(column) for name, column in table.items()}
        return cls({name: kind for name, kind in kinds.items() if name in schema.names})

    @classmethod
    def by_schema(cls, schema: Schema) -> Columns:
        """Return the columns of a table not seen here: the schema's, in its order."""
        return cls(dict.fromkeys(schema.names, _BY_SCHEMA))

    @classmethod
    def of_json(cls, document: Mapping[str, Any]) -> Columns:
        """Return the columns of a model, by its model.json."""
        return cls({str(name): str(kind) for name, kind in document["columns"].items()})

    def shape(self, table: pd.DataFrame, schema: Schema) -> pd.DataFrame:
        """A decoded table in this order, with these categoricals."""
        return pd.DataFrame(
            {
                name: self._shaped(table[name], schema)
                for name in self.kinds
                if name in table.columns
            }
        )

    def _shaped(self, column: pd.Series[Any], schema: Schema) -> pd.Series[Any]:
        kind = self.kinds[str(column.name)]
        if kind not in (_CATEGORY, _ORDERED):
            return column
        domain = schema.attributes[schema.position(str(column.name))].domain
        categories = None
        if isinstance(domain, Listed):  # and after them what else occurs: "(other)"
            others = (v for v in column.dropna().unique() if v not in domain.values)
            categories = [*domain.values, *others]
        return column.astype(pd.CategoricalDtype(categories, ordered=kind == _ORDERED))


def _kind(column: pd.Series[Any]) -> str:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return _ORDERED if column.dtype.ordered else _CATEGORY
    return _BY_SCHEMA
