"""From codes back to values: Arrow columns for files, and the data frame that people read.

A missing cell is empty. A cell coded `other` is "(other)" in a text column and empty in a column
that cannot hold text. The type of a column depends on the schema alone, never on the rows: integers
that may be empty are nullable integers in every data frame.

Numbers and dates come from inside their bin, along the slope of the bins around it
(`Binning.slopes`). Where the mean of their places is known, for classes of neighbouring bins (0 is
the smallest number of a bin, 1 the largest), the places t in [0, 1) that follow the slope are moved
to

    log(1 + t (exp(k) - 1)) / k

which for places that are equally likely is an exponential density, and keeps their order. One k for
each class is found by bisection, so that the numbers of the class have their mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from common.errors import LocalError
from common.schema.attribute import OTHER_LABEL, Attribute, Domains, Listed
from common.schema.binning import Binning, sloped
from common.schema.codes import PLACES, CodeColumn, Codes
from common.schema.rules import Possible

if TYPE_CHECKING:
    import pandas as pd


Floats = NDArray[np.float64]
_STEEPEST = 500.0  # exponents: nearly all of a bin's numbers are then at one of its ends
_HALVINGS = 40
_GRID = 1 << 14  # places of all bins together, by which means are computed
_LEAST_GRID = 32  # places of a bin
_ALMOST_ONE = 1 - 2.0**-53


@dataclass(frozen=True, slots=True)
class Inside:
    """The mean places of an attribute's numbers."""

    classes: tuple[int, ...]  # of each bin; a negative one if nothing is known of it
    means: tuple[float, ...]  # of each class, from 0 to 1

    def as_json(self) -> dict[str, object]:
        return {"classes": list(self.classes), "means": list(self.means)}


def places_of(
    domain: Binning,
    codes: NDArray[np.integer[Any]],
    uniforms: Floats,
    inside: Inside | None = None,
) -> Floats:
    """Return where in their bins numbers are, from uniforms in [0, 1).

    Slopes and exponents follow from the codes and from what is known: they cost no budget. Codes
    beyond the bins are those of empty cells and other values.
    """
    counts = np.bincount(codes, minlength=domain.count)[: domain.count].astype(np.float64)
    slopes = domain.slopes(counts)
    bins = np.minimum(codes, domain.count - 1)
    places = sloped(slopes[bins], uniforms)
    if inside is None:
        return places
    return _tilted(exponents(domain, counts, slopes, inside)[bins], places)


def exponents(domain: Binning, counts: Floats, slopes: Floats, inside: Inside) -> Floats:
    """Return the exponent of every bin, with which the numbers of a class have its mean."""
    grid = max(_LEAST_GRID, _GRID // domain.count)
    along = sloped(slopes[:, None], (np.arange(grid) + 0.5)[None, :] / grid)
    classes = np.array(inside.classes)
    known = (classes >= 0) & (domain.spans > 0)
    number = np.where(known, classes, 0)
    weights = np.where(known, np.maximum(counts, 1e-9) * domain.spans, 0.0)
    totals = np.maximum(np.bincount(number, weights, len(inside.means)), 1e-300)
    goals = np.array(inside.means)
    low, high = np.full(len(goals), -_STEEPEST), np.full(len(goals), _STEEPEST)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        reached = domain.parts(_tilted(middle[number][:, None], along)).mean(axis=1)
        means = np.bincount(number, weights * reached, len(goals)) / totals
        low, high = np.where(means < goals, middle, low), np.where(means < goals, high, middle)
    return np.where(known, ((low + high) / 2)[number], 0.0)


def _tilted(exponent: Floats, places: Floats) -> Floats:
    """Move places along an exponential density; an exponent of 0 leaves them."""
    flat = np.abs(exponent) < 1e-9
    k = np.where(flat, 1.0, exponent)
    # The same from either end: exp() of a large exponent would overflow.
    near = np.where(k > 0, 1 - places, places)
    size = np.abs(k)
    moved = -np.log1p(-near * -np.expm1(-size)) / size
    result = np.where(flat, places, np.where(k > 0, 1 - moved, moved))
    return np.asarray(np.clip(result, 0.0, _ALMOST_ONE), np.float64)


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
