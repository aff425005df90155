"""From a column of values to codes, without a Python loop over the rows.

The code of a cell is a function of that cell and the schema alone. It does not depend on any other
cell of the column, the batch or the file, nor on whether the rows come at once or in chunks, from a
file, a database or a data frame. So two tables that differ in one raw row have codes that differ in
that row only, which is what the sensitivities of docs/proofs.md rest on. `common.schema.words`
defines what a cell means to each kind of attribute.

Every column goes through Arrow, which reads pandas and numpy memory in place and hashes strings
fast; a dictionary-encoded (categorical) column is encoded once per distinct value.

A column becomes three vectors: codes, which cells are empty, which cells are outside the domain.
`_settle` then gives the last two the codes that the schema declares, or raises. Its messages show
cells: they are for the owner's own terminal, and never leave it.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from common.errors import InputError, located
from common.schema.attribute import Attribute, Listed
from common.schema.binning import Binning
from common.schema.codes import MIDDLE, CodeColumn, code_dtype
from common.schema.columns import (
    Mask,
    arrow_column,
    as_bytes,
    as_text,
    either,
    excluding,
    is_number,
    is_text,
    null_mask,
    plain,
    real_numbers,
    text_array,
    whole_numbers,
)
from common.schema.words import boolean, member_of, number

RowNumbers = Callable[[Sequence[int]], Sequence[int]]
SHOWN = 5  # offending cells named in an error
_ZONE = re.compile(r":[0-9.]+(?:Z|[+-][0-9]{2}:?[0-9]{2})'?$")


@dataclass(frozen=True, slots=True)
class Encoded:
    """Codes of the values; where `empty` or `outside` is set, the code means nothing yet."""

    codes: NDArray[Any]
    empty: Mask | None = None
    outside: Mask | None = None
    places: CodeColumn | None = None  # of numbers in their bins


def encode_column(
    attribute: Attribute, column: object, *, where: str, row_numbers: RowNumbers
) -> tuple[CodeColumn, CodeColumn | None]:
    """Return the codes of a column, a pandas Series or an Arrow array, chunked or not.

    Numbers have places in their bins, too (`common.schema.codes`), None for every other column.

    Errors name the table (`where`) and the first cells that the schema refuses, by the row numbers
    that its owner knows.
    """
    with located(f"{where}: attribute {attribute.name!r}"):
        array = arrow_column(column)
        return _settle(attribute, encode_array(attribute, array), array, row_numbers)


def encode_array(attribute: Attribute, array: pa.Array) -> Encoded:
    """Return the codes of an array, before empty cells and cells outside get theirs."""
    array = emptied(attribute, arrow_column(array))
    if pa.types.is_null(array.type):
        nothing = np.zeros(len(array), dtype=np.uint8)
        return Encoded(nothing, empty=np.ones(len(array), dtype=bool))
    if pa.types.is_dictionary(array.type):
        return _encode_dictionary(attribute, array)
    empty = null_mask(array)
    if isinstance(attribute.domain, Binning):
        encoded = _encode_binned(attribute, attribute.domain, array, empty)
    elif attribute.kind == "boolean":
        encoded = _encode_booleans(array, empty)
    elif attribute.textual:
        encoded = _encode_words(attribute.domain, array, empty)
    else:
        encoded = _encode_integers(attribute.domain, array, empty)
    if encoded.outside is None or not is_text(array.type):
        return encoded
    # A text of no characters is an empty cell too; it is never a value.
    blanks = plain(pc.binary_length(array), 1) == 0
    return Encoded(
        encoded.codes, either(encoded.empty, blanks), encoded.outside & ~blanks, encoded.places
    )


def emptied(attribute: Attribute, array: pa.Array) -> pa.Array:
    """Return the array with null for every cell that holds a code for a missing value.

    A cell holds a code if it is that text, or the same number.
    """
    if not attribute.missing_codes or pa.types.is_null(array.type):
        return array
    if pa.types.is_dictionary(array.type):
        return array  # the values of a dictionary are looked at where they are encoded
    codes = [code.encode() for code in attribute.missing_codes]
    numbers = {read for code in codes if (read := number(code)) is not None}
    numeric = is_number(array.type)
    cells = (array if numeric else as_text(array)).dictionary_encode()
    distinct = cells.dictionary
    words = [member_of(n) or b"" for n in distinct.to_pylist()] if numeric else as_bytes(distinct)
    missing = [word in codes or number(word) in numbers for word in words]
    coded = pa.array(missing, pa.bool_()).take(cells.indices).fill_null(pa.scalar(value=False))
    return pc.if_else(coded, pa.scalar(None, array.type), array)


def _encode_dictionary(attribute: Attribute, array: pa.DictionaryArray) -> Encoded:
    """Encode the distinct values, then look the rows up."""
    words = encode_array(attribute, array.dictionary)
    empty = null_mask(array)
    rows = plain(array.indices, 0)
    if len(array.dictionary) == 0:
        return Encoded(np.zeros(len(array), dtype=np.uint8), empty=empty)
    empty = either(empty, None if words.empty is None else words.empty[rows])
    outside = None if words.outside is None else words.outside[rows]
    places = None if words.places is None else words.places.take(rows)
    return Encoded(words.codes.take(rows), empty, excluding(outside, empty), places)


def _encode_words(domain: Listed, array: pa.Array, empty: Mask | None) -> Encoded:
    if is_number(array.type):
        return _encode_numbers(domain, array, empty)
    texts = as_text(array)
    places = pc.index_in(texts, value_set=text_array(domain.values).cast(texts.type))
    if domain.by_number and places.null_count > texts.null_count:
        places = _same_numbers(domain, texts, places)
    codes = plain(places, 0).astype(code_dtype(domain.count))
    unlisted = places.null_count > array.null_count
    return Encoded(codes, empty, excluding(null_mask(places), empty) if unlisted else None)


def _same_numbers(domain: Listed, texts: pa.Array, places: pa.Array) -> pa.Array:
    """Add the places of texts that are not listed, but are another text of a listed number."""
    unknown = pc.and_(pc.is_null(places), pc.is_valid(texts))
    rest = texts.filter(unknown).dictionary_encode()
    numbers = [number(word) for word in as_bytes(rest.dictionary)]
    of_numbers = [None if value is None else domain.by_number.get(value) for value in numbers]
    return pc.replace_with_mask(
        places, unknown, pa.array(of_numbers, type=places.type).take(rest.indices)
    )


def _encode_numbers(domain: Listed, array: pa.Array, empty: Mask | None) -> Encoded:
    """Encode numbers among listed texts: a number has the code of the text that is the number."""
    numbers: NDArray[Any]
    keys: dict[Any, int]
    if pa.types.is_integer(array.type):
        numbers = plain(array, 0)
        limits = np.iinfo(numbers.dtype)
        fits = {n: code for n, code in domain.by_number.items() if limits.min <= n <= limits.max}
        keys = {n: code for n, code in fits.items() if isinstance(n, int)}
    else:
        numbers, empty, _ = real_numbers(array, empty)
        keys = {float(n): code for n, code in domain.by_number.items() if float(n) == n}
    codes, unknown = _among(keys, numbers, domain.count)
    return Encoded(codes, empty, excluding(unknown, empty))


def _among(listed: Mapping[Any, int], numbers: NDArray[Any], count: int) -> tuple[CodeColumn, Mask]:
    """Return the codes of numbers that are listed, and which numbers are not."""
    if not listed:
        return np.zeros(len(numbers), code_dtype(count)), np.ones(len(numbers), np.bool_)
    values = np.array(sorted(listed), dtype=numbers.dtype)
    codes: CodeColumn = np.array([listed[number] for number in sorted(listed)], code_dtype(count))
    nearest = np.minimum(np.searchsorted(values, numbers), len(values) - 1)
    return codes.take(nearest), values.take(nearest) != numbers


def _encode_booleans(array: pa.Array, empty: Mask | None) -> Encoded:
    if pa.types.is_boolean(array.type):
        return Encoded(plain(array, 0).view(np.uint8), empty)
    if is_number(array.type):
        numbers, empty, _ = real_numbers(array, empty)
        return Encoded(numbers == 1, empty, excluding((numbers != 0) & (numbers != 1), empty))
    text = as_text(array).dictionary_encode()
    words = [boolean(word) for word in as_bytes(text.dictionary)]
    codes = np.array([*(-1 if w is None else w for w in words), -1], dtype=np.int8).take(
        plain(text.indices, len(words))
    )
    return Encoded(np.maximum(codes, 0).view(np.uint8), empty, excluding(codes < 0, empty))


def _encode_integers(domain: Listed, array: pa.Array, empty: Mask | None) -> Encoded:
    numbers, empty, outside = whole_numbers("integer", array, empty)
    listed = {value: code for code, value in enumerate(domain.values)}
    codes, unknown = _among(listed, numbers, domain.count)
    return Encoded(codes, empty, excluding(either(unknown, outside), empty))


def _encode_binned(
    attribute: Attribute, domain: Binning, array: pa.Array, empty: Mask | None
) -> Encoded:
    numbers: NDArray[Any]
    if domain.whole:
        numbers, empty, wrong = whole_numbers(attribute.kind, array, empty)
    else:
        numbers, empty, wrong = real_numbers(array, empty)
    absent = either(empty, wrong)
    if absent is not None:  # cells without a number must not look like numbers out of range
        numbers = np.where(absent, numbers.dtype.type(domain.low), numbers)
    codes, outside = domain.assign(numbers)
    wrong = either(wrong, None if attribute.clips else outside)
    return Encoded(codes, empty, wrong, domain.places(numbers, codes))


def _settle(
    attribute: Attribute, encoded: Encoded, array: pa.Array, row_numbers: RowNumbers
) -> tuple[CodeColumn, CodeColumn | None]:
    """Give empty cells and cells outside the domain their codes, or refuse them."""
    codes, places = encoded.codes.astype(attribute.code_type, copy=False), encoded.places
    if places is None and isinstance(attribute.domain, Binning):  # every cell is empty
        places = np.full(len(codes), MIDDLE, dtype=np.uint8)
    for mask, code, refuse in (
        (encoded.empty, attribute.empty_code, _empty_cells),
        (encoded.outside, attribute.other_code, _outside_cells),
    ):
        if mask is None or not mask.any():
            continue
        if code is None:
            raise refuse(attribute, array, mask, row_numbers)
        codes = np.where(mask, attribute.code_type(code), codes)
        places = None if places is None else np.where(mask, np.uint8(MIDDLE), places)
    return np.ascontiguousarray(codes), places


def numbers_after(before: int, row_numbers: RowNumbers) -> RowNumbers:
    """Return the row numbers of a piece of a table that `before` rows precede."""
    return lambda positions: row_numbers([before + position for position in positions])


def _empty_cells(
    attribute: Attribute, array: pa.Array, mask: Mask, row_numbers: RowNumbers
) -> InputError:
    first = np.flatnonzero(mask)[:SHOWN].tolist()
    rows = ", ".join(f"{number:,}" for number in row_numbers(first))
    return InputError(
        f"{_cells(mask)} empty (row {rows}{_more(mask)}). "
        "Fill them, or allow them with missing = true in the schema"
    )


def _outside_cells(
    attribute: Attribute, array: pa.Array, mask: Mask, row_numbers: RowNumbers
) -> InputError:
    first = np.flatnonzero(mask)[:SHOWN].tolist()
    shown = [_shown(attribute, array[position]) for position in first]
    cells = [f"row {row:,}: {cell}" for cell, row in zip(shown, row_numbers(first), strict=True)]
    if attribute.kind in ("date", "datetime") and any(map(_ZONE.search, shown)):
        return InputError(
            f"{_cells(mask)} of a time zone: {'; '.join(cells)}{_more(mask)}. The schema's dates "
            "have none: convert the column to the agreed zone, then drop the zone"
        )
    if isinstance(attribute.domain, Binning):
        remedy = "other = true (a category of its own) or clip = true (the nearest end)"
    else:
        remedy = "other = true (a category of its own)"
    return InputError(
        f"{_cells(mask)} outside the domain {describe(attribute)}: {'; '.join(cells)}"
        f"{_more(mask)}. Correct them, or allow them in the schema with {remedy}"
    )


def describe(attribute: Attribute) -> str:
    """Describe the domain in a few words."""
    if isinstance(attribute.domain, Binning):
        low, high = attribute.labels[0], attribute.labels[attribute.value_count - 1]
        if attribute.kind == "real":
            return f"{attribute.domain.low}..{attribute.domain.high}"
        return f"{low.partition('..')[0]}..{high.rpartition('..')[2]} ({attribute.kind})"
    listed = ", ".join(map(_quoted, attribute.labels[: min(8, attribute.value_count)]))
    count = attribute.value_count
    return f"{listed}, ... ({count:,} values)" if count > 8 else listed


def _quoted(value: str) -> str:
    """Put a value in quotation marks where it could be taken for something else."""
    plain = value.isprintable() and "," not in value and value.strip() == value
    return value if plain else repr(value)


def _shown(attribute: Attribute, cell: pa.Scalar) -> str:
    """Show a cell of any type; numbers have no quotation marks, also where they were texts."""
    try:
        value = cell.as_py()
    except (UnicodeDecodeError, ValueError, OverflowError):  # not UTF-8; a moment beyond the years
        value = cell.as_buffer().to_pybytes() if hasattr(cell, "as_buffer") else cell.value
    if isinstance(value, dt.date):
        return str(value)
    numeric = isinstance(value, str) and number(value.encode(errors="replace")) is not None
    if numeric and not attribute.textual:
        return str(value).strip()
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _cells(mask: Mask) -> str:
    count = int(mask.sum())
    return f"{count:,} cells are" if count > 1 else "1 cell is"


def _more(mask: Mask) -> str:
    return ", ..." if int(mask.sum()) > SHOWN else ""
