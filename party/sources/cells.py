"""The distinct cells of a column as texts: what conditions and recodings look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from common.schema.columns import arrow_column, as_text, is_number, is_text, plain
from common.schema.words import number, word_of


def distinct(column: pa.Array | pa.ChunkedArray) -> tuple[NDArray[np.int64], list[bytes | None]]:
    """For every row the place of its cell among the texts, and the texts; None: an empty cell.

    Cells of a type that has no text (a list, a time with a zone) are as if empty.
    """
    array = arrow_column(column)
    if pa.types.is_null(array.type) or not has_text(array.type):
        return np.zeros(len(array), dtype=np.int64), [None]
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    words = _words(arrow_column(array.dictionary))
    places = plain(array.indices.cast(pa.int64()), len(words))
    return places, [*words, None]


def has_text(kind: pa.DataType) -> bool:
    """Whether the cells of a column of this type have a text."""
    if pa.types.is_dictionary(kind):
        return has_text(kind.value_type)
    naive = pa.types.is_timestamp(kind) and kind.tz is None
    simple = is_text(kind) or is_number(kind) or pa.types.is_boolean(kind)
    return bool(simple or naive or pa.types.is_date(kind) or pa.types.is_time(kind))


def _words(values: pa.Array) -> list[bytes | None]:
    if is_number(values.type):
        return [word_of(value) for value in values.to_pylist()]
    texts = as_text(values)
    kind = pa.large_binary() if pa.types.is_large_string(texts.type) else pa.binary()
    return [word or None for word in texts.view(kind).to_pylist()]


@dataclass(frozen=True)
class Recoding:
    """Other texts for some cells of a column; the rest stay as they are.

    A cell is meant by its text, or by any text of the same number; the empty text is the empty
    cell, on either side.
    """

    texts: Mapping[str, str]

    @cached_property
    def _numbers(self) -> dict[float, bytes]:
        read = {number(old.encode()): new.encode() for old, new in self.texts.items()}
        return {value: new for value, new in read.items() if value is not None}

    @cached_property
    def _exact(self) -> dict[bytes, bytes]:
        return {old.encode(): new.encode() for old, new in self.texts.items()}

    def of(self, word: bytes | None) -> bytes | None:
        """The text that stands for a cell."""
        found = self._exact.get(word or b"")
        if found is None and word is not None:
            value = number(word) if self._numbers else None
            found = word if value is None else self._numbers.get(value, word)
        return found or None

    def applied(self, column: pa.ChunkedArray) -> pa.Array:
        """The column with its cells replaced; one of a type that has no text, as it is."""
        array = arrow_column(column)
        if not has_text(array.type) and not pa.types.is_null(array.type):
            return array
        places, words = distinct(array)
        values = pa.array([self.of(word) for word in words], type=pa.binary()).view(pa.string())
        return pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), values)
