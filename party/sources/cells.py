"""The text of cells: which rows of a file take part, and which cells get other texts.

Both are the owner's own settings, and look at the text of each distinct cell of a column
(`common.schema.words`). A condition is decided for every row by itself:

    consent = yes and (age >= 18 or not guardian is missing)
    "date of visit" >= 2024-01-01 and ward in (A1, A2, "ward 7")

It is written in the language of `common.schema.query`, in the file's own names and codes. `=` holds
for the same text, or the same number however it is written; `<`, `<=`, `>`, `>=` and ranges compare
with a number or a date, and hold for no other cell. An empty cell equals nothing and is `missing`.
Whether a row is taken is a function of that row and the condition: no other row has a part in it,
and no cell makes it fail.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from common.errors import InputError, located
from common.schema import query as syntax
from common.schema.columns import arrow_column, distinct, has_text
from common.schema.words import moment, number

Mask = NDArray[np.bool_]
Cells = Mapping[str, pa.Array]  # columns by name
_Test = Callable[[bytes | None], bool]
_ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@dataclass(frozen=True)
class Recoding:
    """Other texts for some cells of a column; the other cells keep theirs.

    A cell is meant by its text, or by any text of the same number. The empty text is the empty
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
        """Return the text that stands for a cell."""
        text = self._exact.get(word or b"")
        if text is None and word is not None:
            value = number(word) if self._numbers else None
            text = word if value is None else self._numbers.get(value, word)
        return text or None

    def applied(self, column: pa.ChunkedArray) -> pa.Array:
        """Return the column with its cells replaced; a type that has no text stays unchanged."""
        array = arrow_column(column)
        if not has_text(array.type) and not pa.types.is_null(array.type):
            return array
        places, words = distinct(array)
        values = pa.array([self.of(word) for word in words], type=pa.binary()).view(pa.string())
        return pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), values)


@dataclass(frozen=True, slots=True)
class CellCondition:
    """A condition that was read."""

    text: str
    names: tuple[str, ...]
    _root: CellTest | syntax.Join[CellTest]

    @classmethod
    def parse(cls, text: str) -> CellCondition:
        """Read a condition; InputError shows the place that is not understood."""
        with located("where"):
            expression = syntax.parse(text)
            names = [test.name.text for test in syntax.predicates(expression)]
            if not names:
                raise InputError("it is empty. Leave it out to take all rows")
            root = syntax.joined(expression, lambda test: CellTest(test.name.text, _test(test)))
        return cls(text, tuple(dict.fromkeys(names)), root)

    def holds(self, columns: Cells) -> Mask:
        """Return for every row whether the condition holds."""
        return self._root.mask(columns)


@dataclass(frozen=True, slots=True)
class CellTest:
    """A test of the cells of one column, made once per distinct cell."""

    name: str
    holds: Callable[[bytes | None], bool]

    def mask(self, rows: Cells) -> Mask:
        places, words = distinct(rows[self.name])
        mask: Mask = np.array([self.holds(word) for word in words], dtype=np.bool_)
        return mask.take(places)


def _test(predicate: syntax.Predicate) -> _Test:
    """Return the test that a predicate makes of a cell's text."""
    first, last = predicate.first, predicate.last
    match predicate.operator:
        case "missing":
            return lambda word: word is None
        case "..":
            ends = [(">=", first), ("<=", last)]
            tests = [_ordered(sign, end) for sign, end in ends if end is not None]
            return lambda word: all(test(word) for test in tests)
        case "=" | "in":
            assert first is not None  # noqa: S101  # the parser gives these a value
            return _equals(first.text)
        case sign:
            assert first is not None  # noqa: S101
            return _ordered(sign, first)


def _equals(value: str) -> _Test:
    text, numeric = value.encode(), number(value.encode())

    def test(word: bytes | None) -> bool:
        return word is not None and (
            word == text or (numeric is not None and number(word) == numeric)
        )

    return test


def _ordered(sign: str, end: syntax.Token) -> _Test:
    """Return the comparison of a cell with a number or a date."""
    order = _ORDERS[sign]
    read = number if number(end.text.encode()) is not None else moment
    bound = read(end.text.encode())
    if bound is None:
        raise end.error("expected a number or a date such as 2024-01-31 here")

    def test(word: bytes | None) -> bool:
        value = None if word is None else read(word)
        return value is not None and order(value, bound)

    return test
