"""Columns as Arrow arrays, and what a cell holds: text, a number, days or seconds.

Text that should be a number or a date is parsed by Arrow; only if a cell cannot be parsed, value by
distinct value, to find out which. Every reader returns the values together with two masks (None
where no cell is set): the cells that are empty, and the cells that are not of the kind asked for.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from common.errors import InputError

Mask = NDArray[np.bool_]
SECONDS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def arrow_column(column: object) -> pa.Array:
    """Any column as one Arrow array; nothing is copied where the memory allows it."""
    if isinstance(column, pa.ChunkedArray):
        return arrow_column(column.combine_chunks() if column.num_chunks != 1 else column.chunk(0))
    if isinstance(column, pa.Array):
        # Few of Arrow's functions know the newer layout of text.
        return column.cast(pa.large_string()) if pa.types.is_string_view(column.type) else column
    try:
        array = pa.array(column, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        import pandas as pd

        # Mixed types in one column: every distinct object as text, which is how a file holds it.
        codes, distinct = pd.factorize(np.asarray(column, dtype=object))
        words = pa.array([str(value) for value in distinct], type=pa.string())
        array = pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), words)
    return arrow_column(array)


def real_numbers(
    array: pa.Array, empty: Mask | None
) -> tuple[NDArray[np.float64], Mask | None, Mask | None]:
    """The numbers of a column, which cells are empty, which are not numbers."""
    if is_text(array.type):
        array, wrong = _parsed(array, pa.float64(), _real)
    elif pa.types.is_boolean(array.type) or pa.types.is_temporal(array.type):
        raise InputError(f"the column holds {array.type}, not numbers")
    else:
        array, wrong = pc.cast(array, pa.float64(), safe=False), None
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
    """The numbers (days, seconds) of a column, which cells are empty, which have none."""
    if kind in ("date", "datetime"):
        return _moments(kind, array, empty)
    if is_text(array.type):
        array, wrong = _parsed(array, pa.int64(), _whole)
        return plain(array, 0), empty, excluding(wrong, empty)
    if pa.types.is_integer(array.type):
        numbers = plain(array, 0)
        if numbers.dtype == np.uint64:  # beyond int64 is beyond every range
            numbers = np.minimum(numbers, np.uint64(2**63 - 1))
        return numbers.astype(np.int64, copy=False), empty, None
    reals, empty, _ = real_numbers(array, empty)
    wrong = (reals != np.floor(reals)) if empty is None else (reals != np.floor(reals)) & ~empty
    # Beyond 2^62 a double is beyond every range, and must not overflow the cast.
    numbers = np.clip(np.nan_to_num(reals), -(2.0**62), 2.0**62).astype(np.int64)
    return numbers, empty, wrong


def _moments(
    kind: str, array: pa.Array, empty: Mask | None
) -> tuple[NDArray[np.int64], Mask | None, Mask | None]:
    """Days or seconds since 1970, rounded down."""
    wrong = None
    if is_text(array.type):
        array, wrong = _parsed(array, pa.timestamp("us"), _moment)
    if pa.types.is_timestamp(array.type):
        if array.type.tz is not None:
            raise InputError(
                f"the column has the time zone {array.type.tz}; the schema's dates have none: "
                "convert the column to the agreed zone, then drop the zone"
            )
        per_second = SECONDS[array.type.unit]
    elif pa.types.is_date(array.type):
        array, per_second = pc.cast(array, pa.timestamp("s")), 1
    else:
        raise InputError(f"the column holds {array.type}, not dates")
    ticks = array.fill_null(pa.scalar(0, array.type)).to_numpy(zero_copy_only=False)
    divisor = per_second * (86_400 if kind == "date" else 1)
    numbers = ticks.view(np.int64)
    return numbers // divisor if divisor > 1 else numbers, empty, excluding(wrong, empty)


def _parsed(
    array: pa.Array, target: pa.DataType, parse: Callable[[str], Any]
) -> tuple[pa.Array, Mask | None]:
    """Text as numbers or moments (null where it is neither), and which cells are neither."""
    try:
        return pc.cast(pc.utf8_trim_whitespace(array), target), None
    except pa.ArrowInvalid:
        pass
    text = array.dictionary_encode()
    words = pa.array([parse(word) for word in text.dictionary.to_pylist()], type=target)
    parsed = words.take(text.indices)
    return parsed, null_mask(parsed)


def _real(text: str) -> float | None:
    """A number; None if it is not one."""
    try:
        return float(text)
    except ValueError:
        return None


def _whole(text: str) -> int | None:
    """A whole number, also written as 12.0; None if it is not one or is beyond every range."""
    try:
        number = float(text)
    except ValueError:
        return None
    return int(number) if abs(number) < 2.0**62 and number == int(number) else None


def _moment(text: str) -> dt.datetime | None:
    """A date or datetime without a zone; None if it is not one."""
    try:
        moment = dt.datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return moment if moment.tzinfo is None else None


def as_text(array: pa.Array) -> pa.Array:
    """A column as the text a file would hold."""
    if is_text(array.type):
        return array
    if pa.types.is_boolean(array.type):  # as pandas writes them
        return pc.if_else(array, pa.scalar("True"), pa.scalar("False"))
    if pa.types.is_floating(array.type):
        # Integers with gaps arrive from pandas as floats: 3.0 is the value 3.
        array = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
        with contextlib.suppress(pa.ArrowInvalid):
            array = pc.cast(array, pa.int64())
    return pc.cast(array, pa.string())


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type holds text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def plain(array: pa.Array, instead: float) -> NDArray[Any]:
    """The values as they lie in memory, with something else for null; copied only if one is."""
    filled = array if array.null_count == 0 else array.fill_null(instead)
    values: NDArray[Any] = filled.to_numpy(zero_copy_only=False)
    return values


def null_mask(array: pa.Array) -> Mask | None:
    """Which cells are null; None if none is."""
    if array.null_count == 0:
        return None
    mask: Mask = array.is_null().to_numpy(zero_copy_only=False)
    return mask


def either(first: Mask | None, second: Mask | None) -> Mask | None:
    """The cells set in one of the masks."""
    if first is None:
        return second
    return first if second is None else first | second


def excluding(mask: Mask | None, excepted: Mask | None) -> Mask | None:
    """The cells set in the first mask and not in the second."""
    return mask if mask is None or excepted is None else mask & ~excepted
