"""Columns as Arrow arrays, and what their cells hold: text, a number, days or seconds.

What a cell holds follows from that cell alone: from its text, by the grammars of
`common.schema.words`. Arrow's own parsers are used where all texts of a column are of a form that
Arrow and the grammar read alike; then it does not matter which of the two read a cell. The other
columns are read distinct text by distinct text. Typed numbers, booleans and dates are not made into
text first, but mean what their text would mean.

Every reader returns the values together with two masks (None where no cell is set): the cells that
are empty, and the cells that are not of the kind asked for. Text is handled as bytes, and need not
be UTF-8.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from common.schema import words

if TYPE_CHECKING:
    import pandas as pd

Mask = NDArray[np.bool_]
SECONDS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
# Made of these bytes, or of bytes below the letters, a text that Arrow reads is read alike by the
# grammar: no hexadecimal, no nan(1). What Arrow does not read is left to the grammar.
_ALIKE = np.isin(np.arange(256), np.frombuffer(b"0123456789+-.eE:T \t\n\r\f\v", dtype=np.uint8))
_TRAILING_ZEROS = r"\.0+$|(\.[0-9]*[1-9])0+$"
_NOT_AN_ARRAY = (
    pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError,
    UnicodeEncodeError, OverflowError, TypeError, ValueError,
)  # fmt: skip
_ONE_TYPE = (bool, int, float)  # Python's, which Arrow holds as they are


class SupportsArrow(Protocol):
    """A table that hands its columns over, whatever library made it, as Polars' tables do."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return its columns, see the Arrow PyCapsule interface."""


def named_columns(table: pd.DataFrame | pa.Table | pa.RecordBatch) -> list[tuple[str, object]]:
    """Return the columns of a table of pandas or Arrow, each with its name."""
    if isinstance(table, pa.Table | pa.RecordBatch):
        return list(zip(table.column_names, table.columns, strict=True))
    return [(str(name), table.iloc[:, place]) for place, name in enumerate(table.columns)]


def arrow_column(column: object) -> pa.Array:
    """Return any column as one Arrow array; copy nothing where the memory allows it."""
    if isinstance(column, pa.ChunkedArray):
        return arrow_column(column.combine_chunks() if column.num_chunks != 1 else column.chunk(0))
    if isinstance(column, pa.Array):
        return _plain_layout(column)
    return _pandas_column(column)


def _pandas_column(column: Any) -> pa.Array:  # noqa: ANN401  (pandas is loaded late)
    import pandas as pd

    kind = getattr(column, "dtype", None)
    if isinstance(kind, pd.CategoricalDtype):
        return _categorical(column.array)
    if kind is not None and kind != np.dtype(object):
        with contextlib.suppress(*_NOT_AN_ARRAY):
            array = pa.array(column, from_pandas=True)
            if _is_plain(array.type):
                return arrow_column(array)
    return _objects(np.asarray(column, dtype=object))


def _plain_layout(array: pa.Array) -> pa.Array:
    """Return the array in a layout that Arrow's functions know: text is `(large_)string`."""
    if isinstance(array, pa.ExtensionArray):
        return _plain_layout(array.storage)
    kind = array.type
    if pa.types.is_run_end_encoded(kind):
        return _plain_layout(pc.run_end_decode(array))
    if pa.types.is_string_view(kind):
        return array.cast(pa.large_string())
    if pa.types.is_binary_view(kind):
        return array.cast(pa.large_binary()).view(pa.large_string())
    if pa.types.is_fixed_size_binary(kind):
        return array.cast(pa.binary()).view(pa.string())
    if pa.types.is_large_binary(kind):
        return array.view(pa.large_string())
    return array.view(pa.string()) if pa.types.is_binary(kind) else array


def _is_plain(kind: pa.DataType) -> bool:
    """Tell whether cells of a type of pandas are read as Arrow holds them."""
    if pa.types.is_dictionary(kind):
        return _is_plain(kind.value_type)
    naive = pa.types.is_timestamp(kind) and kind.tz is None
    simple = is_number(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind)
    text = is_text(kind) or pa.types.is_string_view(kind) or pa.types.is_binary(kind)
    return bool(text or simple or naive or pa.types.is_date(kind))


def _categorical(column: Any) -> pa.DictionaryArray:  # noqa: ANN401
    values = arrow_column(column.categories)
    values = values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
    return pa.DictionaryArray.from_arrays(column.codes, values, from_pandas=True)


def _objects(column: NDArray[Any]) -> pa.Array:
    """Turn objects of any types into an array: texts if all are, else the text of each."""
    with contextlib.suppress(*_NOT_AN_ARRAY):
        return arrow_column(pa.array(column, type=pa.string(), from_pandas=True))
    kinds = set(map(type, column)) - {type(None)}
    if len(kinds) == 1 and kinds < set(_ONE_TYPE):
        with contextlib.suppress(*_NOT_AN_ARRAY):  # an integer of more than 64 bits
            return arrow_column(pa.array(column, from_pandas=True))
    array = pa.array([words.member_of(value) for value in column], type=pa.binary())
    return _plain_layout(array).dictionary_encode()


def real_numbers(
    array: pa.Array, empty: Mask | None
) -> tuple[NDArray[np.float64], Mask | None, Mask | None]:
    """Return the numbers of a column, which cells are empty, which are not numbers."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if is_text(array.type):
        array, empty, wrong = _parsed(array, empty, pa.float64(), words.real)
    elif is_number(array.type):
        array, wrong = pc.cast(array, pa.float64(), safe=False), None
    else:
        return np.zeros(len(array)), empty, excluding(np.ones(len(array), dtype=bool), empty)
    numbers = plain(array, 0.0)
    # A NaN makes the sum NaN; so does infinity minus infinity, which costs only the second look.
    with np.errstate(invalid="ignore", over="ignore"):
        suspicious = np.isnan(numbers.sum())
    if suspicious:
        nan = np.isnan(numbers)
        empty = nan if empty is None else empty | nan
    return numbers, empty, excluding(wrong, empty)


def whole_numbers(
    kind: str, array: pa.Array, empty: Mask | None
) -> tuple[NDArray[np.int64], Mask | None, Mask | None]:
    """Return the numbers (days, seconds) of a column, which cells are empty, which have none."""
    if kind in ("date", "datetime"):
        return _moments(kind, array, empty)
    if is_text(array.type):
        array, empty, wrong = _parsed(array, empty, pa.int64(), words.whole)
        return plain(array, 0), empty, wrong
    if pa.types.is_integer(array.type):
        numbers = plain(array, 0)
        if numbers.dtype == np.uint64:  # beyond int64 is beyond every range
            numbers = np.minimum(numbers, np.uint64(2**63 - 1))
        return numbers.astype(np.int64, copy=False), empty, None
    reals, empty, other = real_numbers(array, empty)
    wrong = excluding(either(other, reals != np.floor(reals)), empty)
    # Beyond 2^62 a double is beyond every range, and must not overflow the cast.
    numbers = np.clip(np.nan_to_num(reals), -(2.0**62), 2.0**62).astype(np.int64)
    return numbers, empty, wrong


def _moments(
    kind: str, array: pa.Array, empty: Mask | None
) -> tuple[NDArray[np.int64], Mask | None, Mask | None]:
    """Return days or seconds since 1970, rounded down, and both masks."""
    wrong = None
    if is_number(array.type):
        numbers, empty, wrong = whole_numbers("integer", array, empty)
        array = pc.cast(pa.array(numbers, mask=either(empty, wrong)), pa.string())
    if is_text(array.type):
        array, empty, other = _parsed(array, empty, pa.timestamp("us"), words.moment)
        wrong = either(wrong, other)
    if pa.types.is_date(array.type):
        array = pc.cast(
            array, pa.timestamp("ms" if pa.types.is_date64(array.type) else "s"), safe=False
        )
    elif not pa.types.is_timestamp(array.type) or array.type.tz is not None:
        nothing = np.zeros(len(array), dtype=np.int64)
        return nothing, empty, excluding(np.ones(len(array), dtype=bool), empty)
    per_second = SECONDS[array.type.unit]
    numbers = plain(array.view(pa.int64()), 0)
    divisor = per_second * (86_400 if kind == "date" else 1)
    return numbers // divisor if divisor > 1 else numbers, empty, excluding(wrong, empty)


def _parsed(
    array: pa.Array,
    empty: Mask | None,
    target: pa.DataType,
    parse: Callable[[bytes], float | None],
) -> tuple[pa.Array, Mask | None, Mask | None]:
    """Read text as numbers or moments (null where it is neither), and both masks.

    Moments are timestamps in microseconds; `parse` gives their seconds, or NaN for an empty cell.
    """
    lengths = pc.binary_length(array)
    if pc.min(lengths).as_py() == 0:
        array = pc.if_else(pc.equal(lengths, 0), pa.scalar(None, array.type), array)
        empty = either(empty, null_mask(array))
    for trim in (False, True) if _read_alike(array) else ():
        with contextlib.suppress(pa.ArrowInvalid):
            cells = pc.ascii_trim_whitespace(array) if trim else array
            return pc.cast(cells, target), empty, None
    return _parsed_words(array, empty, target, parse)


def _parsed_words(
    array: pa.Array,
    empty: Mask | None,
    target: pa.DataType,
    parse: Callable[[bytes], float | None],
) -> tuple[pa.Array, Mask | None, Mask | None]:
    """Read text as `_parsed` does, distinct text by distinct text."""
    texts = array.dictionary_encode()
    numbers = [parse(word) for word in as_bytes(texts.dictionary)]
    unknown = np.array([value is not None and value != value for value in numbers], dtype=bool)
    per_unit = 1_000_000 if pa.types.is_timestamp(target) else 1
    values = [None if value is None or value != value else value * per_unit for value in numbers]
    parsed = pa.array(values, type=target).take(texts.indices)
    if unknown.any():
        empty = either(empty, unknown.take(plain(texts.indices, 0)) & ~_nulls(array))
    return parsed, empty, excluding(null_mask(parsed), empty)


def _read_alike(array: pa.Array) -> bool:
    """Tell whether every text is made of bytes that Arrow and the grammar read alike."""
    _, places, content = array.buffers()
    if content is None:
        return False
    width = np.int64 if pa.types.is_large_string(array.type) else np.int32
    ends = np.frombuffer(places, dtype=width)[[array.offset, array.offset + len(array)]]
    content = np.frombuffer(content, dtype=np.uint8)[ends[0] : ends[1]]
    # Digits, signs, points, colons and blanks are below the letters: no exponent, no T.
    return bool(content.max(initial=0) <= ord(":") or _ALIKE.take(content).all())


def as_text(array: pa.Array) -> pa.Array:
    """Return the texts of a column that does not hold numbers; null for types without text."""
    kind = array.type
    if is_text(kind):
        return array
    if pa.types.is_boolean(kind):
        return pc.if_else(array, pa.scalar("True"), pa.scalar("False"))
    if pa.types.is_date(kind):
        return pc.cast(array, pa.string())
    if pa.types.is_time(kind) or (pa.types.is_timestamp(kind) and kind.tz is None):
        return pc.replace_substring_regex(pc.cast(array, pa.string()), _TRAILING_ZEROS, r"\1")
    return pa.nulls(len(array), pa.string())


def as_bytes(array: pa.Array) -> list[bytes]:
    large = pa.types.is_large_string(array.type)
    texts: list[bytes] = array.view(pa.large_binary() if large else pa.binary()).to_pylist()
    return texts


def distinct(column: pa.Array | pa.ChunkedArray) -> tuple[NDArray[np.int64], list[bytes | None]]:
    """Return for every row the place of its cell among the texts, and the texts.

    An empty cell is None, and so is a cell of a type that has no text (a list, a time with a zone).
    """
    array = arrow_column(column)
    if pa.types.is_null(array.type) or not has_text(array.type):
        return np.zeros(len(array), dtype=np.int64), [None]
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    texts = _cell_words(arrow_column(array.dictionary))
    places = plain(array.indices.cast(pa.int64()), len(texts))
    return places, [*texts, None]


def has_text(kind: pa.DataType) -> bool:
    """Tell whether cells of a type have texts; those of lists and of times with a zone do not."""
    if pa.types.is_dictionary(kind):
        return has_text(kind.value_type)
    naive = pa.types.is_timestamp(kind) and kind.tz is None
    simple = is_text(kind) or is_number(kind) or pa.types.is_boolean(kind)
    return bool(simple or naive or pa.types.is_date(kind) or pa.types.is_time(kind))


def _cell_words(values: pa.Array) -> list[bytes | None]:
    if is_number(values.type):
        return [words.member_of(value) for value in values.to_pylist()]
    texts = as_text(values)
    kind = pa.large_binary() if pa.types.is_large_string(texts.type) else pa.binary()
    return [word or None for word in texts.view(kind).to_pylist()]


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def plain(array: pa.Array, filler: float) -> NDArray[Any]:
    """Return the numbers or truth values in Arrow's memory, read-only, with a filler for null.

    `to_numpy` and `fill_null` would load pandas first, which takes a node longer than to read a
    small table.
    """
    if pa.types.is_boolean(array.type):  # bits in Arrow, bytes in numpy
        return plain(array.cast(pa.uint8()), filler).view(np.bool_)
    buffers = [None, array.buffers()[1]]
    filled = pa.Array.from_buffers(array.type, len(array), buffers, offset=array.offset)
    values: NDArray[Any] = np.from_dlpack(filled)
    if array.null_count == 0:
        return values
    return np.where(plain(array.is_null(), 0), values.dtype.type(filler), values)


def text_array(texts: Sequence[object]) -> pa.StringArray:
    """Return texts as an array; `pa.array` would load pandas first."""
    words = [str(text).encode() for text in texts]
    ends = np.cumsum([0, *map(len, words)], dtype=np.int32)
    buffers = (pa.py_buffer(ends), pa.py_buffer(b"".join(words)))
    return pa.StringArray.from_buffers(len(words), *buffers)


def null_mask(array: pa.Array) -> Mask | None:
    """Tell which cells are null; None if none is."""
    return None if array.null_count == 0 else _nulls(array)


def _nulls(array: pa.Array) -> Mask:
    return plain(array.is_null(), 0)


def either(first: Mask | None, second: Mask | None) -> Mask | None:
    if first is None:
        return second
    return first if second is None else first | second


def excluding(mask: Mask | None, excepted: Mask | None) -> Mask | None:
    return mask if mask is None or excepted is None else mask & ~excepted
