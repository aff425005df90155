"""Which rows of a file take part: the owner's condition, decided for every row by itself.

    consent = yes and (age >= 18 or not guardian is missing)
    "date of visit" >= 2024-01-01 and ward in (A1, A2, "ward 7")

It is written in the language of `common.schema.query`, in the file's own names and codes, and looks
at the text of each cell (`common.schema.words`). `=` holds for the same text, or the same number
however it is written; `<`, `<=`, `>`, `>=` and ranges compare with a number or a date, and hold for
no cell that is not one. An empty cell equals nothing and is `missing`. Whether a row is taken is a
function of that row and the condition: no other row has a part in it, and no cell makes it fail.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from common.errors import InputError
from common.schema import query as syntax
from common.schema.words import moment, number
from party.sources.cells import distinct

Mask = NDArray[np.bool_]
_Test = Callable[[bytes | None], bool]
_ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that was read."""

    text: str
    names: tuple[str, ...]
    _root: syntax.Expression

    @classmethod
    def parse(cls, text: str) -> Condition:
        """The condition in a text.

        Raises:
            InputError: showing the place that is not understood.
        """
        try:
            root = syntax.parse(text)
            tests = list(syntax.predicates(root))
            if not tests:
                raise InputError("it is empty. Leave it out to take all rows")
            for test in tests:
                _test(test)
        except InputError as error:
            raise InputError(f"where: {error}") from None
        return cls(text, tuple(dict.fromkeys(test.name.text for test in tests)), root)

    def holds(self, columns: Mapping[str, pa.Array]) -> Mask:
        """Which rows it holds for."""
        return self._mask(self._root, columns)

    def _mask(self, part: syntax.Expression, columns: Mapping[str, pa.Array]) -> Mask:
        match part:
            case syntax.Predicate(name=name):
                places, words = distinct(columns[name.text])
                test = _test(part)  # made once per distinct cell
                held: Mask = np.array([test(word) for word in words], dtype=np.bool_)
                return held.take(places)
            case syntax.Not(part=inner):
                return ~self._mask(inner, columns)
            case syntax.Every(parts=parts):
                return reduce(operator.and_, (self._mask(each, columns) for each in parts))
            case syntax.Either(parts=parts):
                return reduce(operator.or_, (self._mask(each, columns) for each in parts))


def _test(predicate: syntax.Predicate) -> _Test:
    """What a cell has to be."""
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
    text, wanted = value.encode(), number(value.encode())

    def test(word: bytes | None) -> bool:
        return word is not None and (
            word == text or (wanted is not None and number(word) == wanted)
        )

    return test


def _ordered(sign: str, end: syntax.Token) -> _Test:
    """A comparison with a number or a date."""
    read = next((each for each in (number, moment) if each(end.text.encode()) is not None), None)
    bound = None if read is None else read(end.text.encode())
    if read is None or bound is None:
        raise end.error("expected a number or a date such as 2024-01-31 here")
    return _compared(read, _ORDERS[sign], bound)


def _compared(
    read: Callable[[bytes], float | None], order: Callable[[float, float], bool], bound: float
) -> _Test:
    def test(word: bytes | None) -> bool:
        value = None if word is None else read(word)
        return value is not None and order(value, bound)

    return test
