"""Encoding many rows: the columns that files are made of, straight from Arrow's memory.

A `QuickColumn` knows the types that large tables come in (dictionaries of anything, whole numbers,
dates and times, real numbers) and gives the codes that `encode_column` would give, in one compiled
pass. For every other type, and for a column with a cell that the schema refuses, it gives None: the
encoder then encodes the column, or reports what is wrong. So there is one set of rules.

The kernels (see `common.schema.compilation`) tell a null cell by Arrow's bitmap of valid cells: one
bit a row, from bit `first_bit` on; an empty bitmap means that no cell is null. They fill `codes`,
and return whether every cell is allowed.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from common.schema.attribute import Attribute
from common.schema.binning import Binning
from common.schema.codes import CodeColumn
from common.schema.columns import SECONDS
from common.schema.compilation import compiled
from common.schema.encoder import Encoded, emptied, encode_array

REFUSED = 1 << 16  # one more than the largest code: a cell that the schema does not allow
_TABLE_LIMIT = 1 << 16  # whole numbers spread over less than this are looked up
_FARTHEST = 1 << 62  # and no farther from zero; see the kernel
_ALL_VALID = np.zeros(0, dtype=np.uint8)
_NUMBERS = {
    pa.from_numpy_dtype(name): np.dtype(name)
    for name in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "f4", "f8")
}


class QuickColumn:
    """One attribute, made ready for many rows. Threads may share it."""

    def __init__(self, attribute: Attribute) -> None:
        self._attribute = attribute
        self._empty = _or_refused(attribute.empty_code)
        self._other = _or_refused(attribute.other_code)
        # The dictionary met last, and its table: the row groups of a file often have the same one.
        self._words: tuple[pa.Array, NDArray[np.uint32]] | None = None

    def codes(self, array: pa.Array) -> CodeColumn | None:
        """Return the codes of a column; None if the encoder has to look at it."""
        if pa.types.is_dictionary(array.type):
            values = _values(array.indices)
            if values is None:
                return None
            return self._looked_up(values, 0, self._word_table(array.dictionary), array.indices)
        domain = self._attribute.domain
        array = emptied(self._attribute, array)
        if isinstance(domain, Binning) and not domain.whole:
            values = _values(array)
            return None if values is None else self._binned(values, domain, array)
        values = self._whole_numbers(array)
        if values is None:
            return None
        if self._numbers is not None:
            return self._looked_up(values, *self._numbers, array)
        return self._binned(values, domain, array) if isinstance(domain, Binning) else None

    def _whole_numbers(self, array: pa.Array) -> NDArray[np.signedinteger[Any]] | None:
        """Return the whole numbers (days, seconds) of a column that holds nothing else."""
        kind = self._attribute.kind
        if kind not in ("date", "datetime"):
            return _values(array) if pa.types.is_integer(array.type) else None
        if kind == "date" and array.type == pa.date32():
            return _values(array.view(pa.int32()))
        if not pa.types.is_timestamp(array.type) or array.type.tz is not None:
            return None
        ticks = _values(array.view(pa.int64()))
        divisor = SECONDS[array.type.unit] * (86_400 if kind == "date" else 1)
        return ticks if ticks is None or divisor == 1 else ticks // divisor

    @cached_property
    def _numbers(self) -> tuple[int, NDArray[np.uint32]] | None:
        """The smallest number of the domain, and the codes from one below it to one above the last.

        None for domains of other things, and for ranges too wide for a table.
        """
        domain = self._attribute.domain
        if isinstance(domain, Binning):
            low, high, whole = int(domain.low), int(domain.high), domain.whole
        elif self._attribute.textual or self._attribute.kind == "boolean":
            return None
        else:
            values = [int(value) for value in domain.values]
            low, high, whole = min(values), max(values), True
        if not whole or high - low >= _TABLE_LIMIT or not -_FARTHEST <= low <= _FARTHEST:
            return None
        every = np.arange(low - 1, high + 2, dtype=np.int64)
        # `pa.array` would load pandas first, which takes a node longer than this table.
        numbers = pa.Array.from_buffers(pa.int64(), len(every), [None, pa.py_buffer(every)])
        if self._attribute.kind == "date":
            numbers = numbers.cast(pa.int32()).view(pa.date32())
        elif self._attribute.kind == "datetime":
            numbers = numbers.view(pa.timestamp("s"))
        # Codes for missing values are taken out of a column before it is looked up.
        bare = replace(self._attribute, missing_codes=())
        return low, self._settled(encode_array(bare, numbers))

    def _word_table(self, words: pa.Array) -> NDArray[np.uint32]:
        known = self._words
        if known is not None and known[0].equals(words):
            return known[1]
        codes = self._settled(encode_array(self._attribute, words))
        table = np.concatenate([[REFUSED], codes, [REFUSED]]).astype(np.uint32)
        if len(words) < _TABLE_LIMIT:
            self._words = (words, table)
        return table

    def _settled(self, encoded: Encoded) -> NDArray[np.uint32]:
        codes = encoded.codes.astype(np.uint32)
        for mask, code in ((encoded.empty, self._empty), (encoded.outside, self._other)):
            if mask is not None:
                codes[mask] = code
        return codes

    def _looked_up(
        self, values: NDArray[Any], low: int, table: NDArray[np.uint32], array: pa.Array
    ) -> CodeColumn | None:
        if values.dtype not in (np.int32, np.int64):  # the two that the kernel is compiled for
            values = values.astype(np.int64)
        codes: CodeColumn = np.empty(len(values), dtype=self._attribute.code_type)
        allowed = compiled(look_up)(values, low, table, self._empty, *_validity(array), codes)
        return codes if allowed else None

    def _binned(self, values: NDArray[Any], domain: Binning, array: pa.Array) -> CodeColumn | None:
        ends = (0, domain.count - 1) if self._attribute.clips else (self._other, self._other)
        specials = np.array([*ends, self._empty], dtype=np.uint32)
        span = domain.high - domain.low
        per_unit = domain.count / span if domain.equal and span else 0.0
        codes: CodeColumn = np.empty(len(values), dtype=self._attribute.code_type)
        values = values.astype(domain.first.dtype, copy=False)
        allowed = compiled(into_bins)(
            values, domain.first, domain.last, per_unit, specials, *_validity(array), codes
        )
        return codes if allowed else None


def _or_refused(code: int | None) -> int:
    return REFUSED if code is None else code


def _values(array: pa.Array) -> NDArray[Any] | None:
    """Return the numbers in Arrow's memory, arbitrary under null cells; None for other types."""
    dtype = _NUMBERS.get(array.type)
    if dtype is None:
        return None
    held: NDArray[Any] = np.frombuffer(array.buffers()[1], dtype=dtype)
    return held[array.offset : array.offset + len(array)]


def _validity(array: pa.Array) -> tuple[NDArray[np.uint8], int]:
    """Return Arrow's bitmap of the cells that are not null, and the bit of the first."""
    if array.null_count == 0:
        return _ALL_VALID, 0
    return np.frombuffer(array.buffers()[0], dtype=np.uint8), array.offset


def look_up(
    values: NDArray[np.signedinteger[Any]],
    low: int,
    table: NDArray[np.uint32],
    null_code: int,
    validity: NDArray[np.uint8],
    first_bit: int,
    codes: CodeColumn,
) -> bool:
    """Look codes up in a table: its first entry is for all values below `low`, its last above.

    `low` is at most 2^62 from zero, so that differences from it can be told apart in 64 bits.
    """
    below = np.int64(low) - 1
    last = np.uint64(len(table) - 1)
    seen = np.uint32(0)
    if len(validity) == 0 and table[0] == table[last]:
        for row in range(len(values)):
            # As an unsigned number, what is below is far above: one comparison finds both.
            place = np.uint64(np.int64(values[row])) - np.uint64(below)
            code = table[min(place, last)]
            seen |= code
            codes[row] = code
        return bool(seen < REFUSED)
    for row in range(len(values)):
        bit = np.uint64(first_bit + row)
        code = np.uint32(null_code)
        if len(validity) == 0 or (validity[bit >> np.uint64(3)] >> (bit & np.uint64(7))) & 1:
            value = min(max(np.int64(values[row]), below), below + np.int64(last))
            code = table[np.uint64(value - below)]
        seen |= code
        codes[row] = code
    return bool(seen < REFUSED)


def into_bins(
    numbers: NDArray[np.float64] | NDArray[np.int64],
    first: NDArray[np.float64] | NDArray[np.int64],
    last: NDArray[np.float64] | NDArray[np.int64],
    bins_per_unit: float,
    special_codes: NDArray[np.uint32],
    validity: NDArray[np.uint8],
    first_bit: int,
    codes: CodeColumn,
) -> bool:
    """Find the bins of numbers, by the smallest and largest of every bin; NaN is an empty cell.

    Of equal bins, `bins_per_unit` gives a guess that is at most one bin off; it is 0 to search. The
    special codes are those of a number below the range, of one above, and of an empty cell.
    """
    bins = len(first)
    low, high = first[0], last[bins - 1]
    below, above, empty = special_codes[0], special_codes[1], special_codes[2]
    seen = np.uint32(0)
    for row in range(len(numbers)):
        number = numbers[row]
        bit = np.uint64(first_bit + row)
        if len(validity) and not (validity[bit >> np.uint64(3)] >> (bit & np.uint64(7))) & 1:
            code = empty
        elif number < low:
            code = below
        elif number > high:
            code = above
        elif not number >= low:  # NaN
            code = empty
        elif bins_per_unit > 0:
            guess = min(np.uint64((number - low) * bins_per_unit), np.uint64(bins - 1))
            code = np.uint32(guess)
            if number < first[guess]:
                code -= np.uint32(1)
            elif number > last[guess]:
                code += np.uint32(1)
        else:
            start, stop = 0, bins  # the last bin that starts at the number or before is in here
            while stop - start > 1:
                middle = (start + stop) // 2
                if first[middle] <= number:
                    start = middle
                else:
                    stop = middle
            code = np.uint32(start)
        seen |= code
        codes[row] = code
    return bool(seen < REFUSED)
