"""Encoding many rows: the columns that files are made of, straight from Arrow's memory.

A `QuickColumn` knows the types that large tables come in (dictionaries of anything, whole numbers,
dates and times, real numbers) and gives the codes that `encode_column` would give, in one compiled
pass. For every other type, and for a column with a cell that the schema refuses, it gives None: the
encoder then gets the column, and says what is wrong with it. So there is one set of rules.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from common.schema.attribute import Attribute, Listed
from common.schema.binning import Binning
from common.schema.codes import CodeColumn
from common.schema.columns import SECONDS
from common.schema.compilation import compiled
from common.schema.encoder import Encoded, emptied, encode_array
from common.schema.kernels import REFUSED, into_bins, look_up

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
        self._numbers = _whole_number_table(attribute)
        # The dictionary met last, and its table: the row groups of a file often have the same one.
        self._words: tuple[pa.Array, NDArray[np.uint32]] | None = None

    def codes(self, array: pa.Array) -> CodeColumn | None:
        """The codes of a column; None if the encoder has to look at it."""
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
        """The whole numbers (days, seconds) of a column that holds nothing else."""
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

    def _word_table(self, words: pa.Array) -> NDArray[np.uint32]:
        known = self._words
        if known is not None and known[0].equals(words):
            return known[1]
        codes = self._settled(encode_array(self._attribute, words))
        table = _with_ends(codes, REFUSED, REFUSED)
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


def _whole_number_table(attribute: Attribute) -> tuple[int, NDArray[np.uint32]] | None:
    """The smallest number of the domain, and the codes from one below it to one above the largest.

    None for domains of other things, and for ranges too wide for a table.
    """
    domain, other = attribute.domain, _or_refused(attribute.other_code)
    if isinstance(domain, Binning):
        if not domain.whole or not _fits(int(domain.low), int(domain.high)):
            return None
        widths = domain.last - domain.first + 1
        table = np.repeat(np.arange(domain.count, dtype=np.uint32), widths)
        ends = (0, domain.count - 1) if attribute.clips else (other, other)
        return int(domain.low), _with_ends(table, *ends)
    if domain.textual or attribute.kind == "boolean":
        return None
    return _listed_table(domain, other)


def _listed_table(domain: Listed, other: int) -> tuple[int, NDArray[np.uint32]] | None:
    values = np.array(domain.values, dtype=np.int64)
    low, high = int(values.min()), int(values.max())
    if not _fits(low, high):
        return None
    table = np.full(high - low + 1, other, dtype=np.uint32)
    table[values - low] = np.arange(domain.count)
    return low, _with_ends(table, other, other)


def _fits(low: int, high: int) -> bool:
    return high - low < _TABLE_LIMIT and -_FARTHEST <= low <= _FARTHEST


def _with_ends(table: NDArray[np.uint32], below: int, above: int) -> NDArray[np.uint32]:
    return np.concatenate([[below], table, [above]]).astype(np.uint32)


def _values(array: pa.Array) -> NDArray[Any] | None:
    """The numbers as they lie in memory, whatever is under null cells; None for other types."""
    dtype = _NUMBERS.get(array.type)
    if dtype is None:
        return None
    held: NDArray[Any] = np.frombuffer(array.buffers()[1], dtype=dtype)
    return held[array.offset : array.offset + len(array)]


def _validity(array: pa.Array) -> tuple[NDArray[np.uint8], int]:
    """Arrow's bitmap of the cells that are not null, and the bit of the first."""
    if array.null_count == 0:
        return _ALL_VALID, 0
    return np.frombuffer(array.buffers()[0], dtype=np.uint8), array.offset
