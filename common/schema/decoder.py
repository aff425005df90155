"""From codes back to values: Arrow columns for files, and the data frame that people read.

Numbers and dates come from inside their bin, along the slope of the bins around it and by what is
known of their places in it (`common.schema.inside`). A missing cell is empty. A cell coded `other`
is "(other)" in a text column and empty in a column that cannot hold text. The type of a column
depends on the schema alone, never on the rows: integers that may be empty are nullable integers in
every data frame.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from common.errors import LocalError
from common.schema.attribute import OTHER_LABEL, Attribute, Listed
from common.schema.codes import PLACES, CodeColumn, Codes
from common.schema.domains import Domains
from common.schema.inside import Inside, places_of
from common.schema.rules import Possible

if TYPE_CHECKING:
    import pandas as pd


Insides = Mapping[int, Inside]  # by attribute
NOTHING_KNOWN: Insides = MappingProxyType({})


class RuledDomains(Domains, Protocol):
    """Domains, and which rows are possible."""

    @property
    def possible(self) -> Possible: ...


class WordSource(Protocol):
    """A random source, as far as decoding needs one."""

    def words(self, count: int) -> NDArray[np.uint64]:
        """Draw the next `count` uniform 64-bit words."""


def decode_to_arrow(
    schema: RuledDomains, codes: Codes, source: WordSource, inside: Insides = NOTHING_KNOWN
) -> pa.Table:
    """Return the codes as a table of values that have these codes, and places if there are any.

    Dates are `date32`, datetimes `timestamp[s]`, text a dictionary, which is how Parquet stores it.
    """
    if codes.sizes != schema.sizes:
        raise LocalError(f"codes of domains {codes.sizes} are not of this schema {schema.sizes}")
    places = codes.places or (None,) * codes.width
    columns = [
        decode_column(attribute, column, source, inside.get(position), within)
        for position, (attribute, column, within) in enumerate(
            zip(schema.attributes, codes.columns, places, strict=True)
        )
    ]
    for first, second, together in schema.possible.swaps(codes):
        one, other = columns[first], columns[second]
        wrong = pc.and_(pa.array(together), pc.fill_null(pc.greater(one, other), fill_value=False))
        columns[first] = pc.if_else(wrong, other, one)
        columns[second] = pc.if_else(wrong, one, other)
    return pa.table(columns, names=list(schema.names))


def decode_to_pandas(
    schema: RuledDomains, codes: Codes, source: WordSource, inside: Insides = NOTHING_KNOWN
) -> pd.DataFrame:
    """Return the codes as a data frame of values; dates are datetimes at midnight."""
    import pandas as pd

    table = decode_to_arrow(schema, codes, source, inside)
    nullable: dict[Any, Any] = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    columns = {}
    for attribute, column in zip(schema.attributes, table.columns, strict=True):
        gaps = attribute.size > attribute.value_count
        columns[attribute.name] = _for_pandas(column).to_pandas(
            types_mapper=nullable.get if gaps else None
        )
    return pd.DataFrame(columns)


def _for_pandas(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column in a type that pandas has, too: no dictionary, no date."""
    if pa.types.is_dictionary(column.type):
        return column.cast(pa.string())
    return column.cast(pa.timestamp("s")) if pa.types.is_date(column.type) else column


def decode_column(
    attribute: Attribute,
    codes: CodeColumn,
    source: WordSource,
    inside: Inside | None = None,
    places: CodeColumn | None = None,
) -> pa.Array:
    """Return the values of a column of codes.

    `places` says where in its bin each number is; without it, `inside` where they are on average.
    """
    domain = attribute.domain
    if isinstance(domain, Listed) and attribute.textual:
        words = [str(value) for value in domain.values] + [OTHER_LABEL] * attribute.other
        indices = pa.array(codes, mask=_gaps(codes, len(words), attribute.size))
        return pa.DictionaryArray.from_arrays(indices, pa.array(words, type=pa.string()))
    gaps = _gaps(codes, attribute.value_count, attribute.size)
    if isinstance(domain, Listed):
        fillers = [domain.values[0]] * (attribute.size - domain.count)
        return pa.array(np.array([*domain.values, *fillers]).take(codes), mask=gaps)
    bins = np.minimum(codes, domain.count - 1)
    if places is None:
        # 53 random bits per cell; the words of special cells are drawn and not used.
        uniforms = (source.words(len(codes)) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        fractions = places_of(domain, codes, uniforms, inside)
    else:
        fractions = (places + 0.5) / PLACES  # the middle of what has this place
    numbers = domain.draw(bins, fractions)
    if attribute.kind == "date":
        return pa.array(numbers.astype(np.int32), mask=gaps).view(pa.date32())
    array = pa.array(numbers, mask=gaps)
    return array.view(pa.timestamp("s")) if attribute.kind == "datetime" else array


def _gaps(codes: CodeColumn, values: int, size: int) -> NDArray[np.bool_] | None:
    """Tell which cells are empty; None where none can be."""
    return None if values == size else codes >= values
