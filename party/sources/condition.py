"""Which rows of a file take part: the owner's condition, decided for every row by itself.

    consent = yes and (age >= 18 or not guardian is missing)
    "date of visit" >= 2024-01-01 and ward in (A1, A2, "ward 7")

A comparison looks at the text of one cell (`common.schema.words`). `=` holds for the same text, or
the same number however it is written; `<`, `<=`, `>` and `>=` compare with a number or a date, and
hold for no cell that is not one. An empty cell equals nothing and is `missing`. `!=` is the
opposite of `=`. Names and values with blanks or signs are put in quotation marks. Whether a row is
taken is a function of that row and the condition: no other row has a part in it, and no cell makes
it fail.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from common.errors import InputError
from common.schema.words import moment, number
from party.sources.cells import distinct

Mask = NDArray[np.bool_]
_Test = Callable[[bytes | None], bool]
_Node = Callable[[Mapping[str, pa.Array]], Mask]
_TOKEN = re.compile(
    r"""\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<sign><=|>=|!=|[=<>(),])"""
    r"""|(?P<word>[^\s"'<>=!(),]+))"""
)
_ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_MOST_DEPTH = 50


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    kind: str  # "quoted", "sign" or "word"; "end"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that was read.

    Attributes:
        text: as the owner wrote it.
        names: the columns it looks at.
    """

    text: str
    names: tuple[str, ...]
    _node: _Node

    @classmethod
    def parse(cls, text: str) -> Condition:
        """The condition in a text.

        Raises:
            InputError: naming the place that is not understood.
        """
        parser = _Parser(text)
        node = parser.either(0)
        parser.expect("end", "and, or, or the end")
        return cls(text, tuple(dict.fromkeys(parser.names)), node)

    def holds(self, columns: Mapping[str, pa.Array]) -> Mask:
        """Which rows it holds for.

        Args:
            columns: those of `names`, equally long.
        """
        return self._node(columns)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._at = 0
        self.names: list[str] = []

    def either(self, depth: int) -> _Node:
        if depth > _MOST_DEPTH:
            raise self._refused("fewer brackets")
        nodes = [self._both(depth)]
        while self._took("or"):
            nodes.append(self._both(depth))
        return lambda columns: np.logical_or.reduce([node(columns) for node in nodes])

    def _both(self, depth: int) -> _Node:
        nodes = [self._one(depth)]
        while self._took("and"):
            nodes.append(self._one(depth))
        return lambda columns: np.logical_and.reduce([node(columns) for node in nodes])

    def _one(self, depth: int) -> _Node:
        if self._took("not"):
            inner = self._one(depth + 1) if depth < _MOST_DEPTH else self.either(depth + 1)
            return lambda columns: ~inner(columns)
        if self._took("("):
            inner = self.either(depth + 1)
            self.expect(")", "a closing bracket")
            return inner
        name = self._value("the name of a column")
        self.names.append(name)
        test = self._test()
        return lambda columns: _decided(columns[name], test)

    def _test(self) -> _Test:
        """What a cell has to be, after the name of its column."""
        if self._took("="):
            return _equals(self._value("a value"))
        if self._took("!="):
            wanted = _equals(self._value("a value"))
            return lambda word: not wanted(word)
        for sign, order in _ORDERS.items():
            if self._took(sign):
                return self._ordered(order)
        if self._took("in"):
            return self._member()
        if self._took("is"):
            opposite = self._took("not")
            self.expect("missing", "missing")
            return lambda word: (word is None) != opposite
        raise self._refused("=, !=, <, <=, >, >=, in or is missing")

    def _member(self) -> _Test:
        self.expect("(", "an opening bracket")
        tests = [_equals(self._value("a value"))]
        while self._took(","):
            tests.append(_equals(self._value("a value")))
        self.expect(")", "a comma or a closing bracket")
        return lambda word: any(test(word) for test in tests)

    def _ordered(self, order: Callable[[float, float], bool]) -> _Test:
        value = self._value("a number or a date").encode()
        for read in (number, moment):
            bound = read(value)
            if bound is not None:
                return _compared(read, order, bound)
        self._at -= 1
        raise self._refused("a number or a date such as 2024-01-31")

    def _value(self, wanted: str) -> str:
        token = self._tokens[self._at]
        if token.kind not in ("quoted", "word"):
            raise self._refused(wanted)
        self._at += 1
        return token.text

    def _took(self, text: str) -> bool:
        token = self._tokens[self._at]
        found = token.kind != "quoted" and token.text == text
        self._at += found
        return found

    def expect(self, text: str, wanted: str) -> None:
        if not self._took(text):
            raise self._refused(wanted)

    def _refused(self, wanted: str) -> InputError:
        token = self._tokens[self._at]
        found = "the end" if token.kind == "end" else repr(token.text)
        return InputError(f"where: {found} is not understood in {self._text!r}. Write {wanted}")


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at = 0
    while text[at:].strip():
        found = _TOKEN.match(text, at)
        if found is None:
            raise InputError(f"where: {text[at:].strip()!r} is not understood. Close the quotation")
        quoted = found["double"] if found["double"] is not None else found["single"]
        if quoted is not None:
            tokens.append(_Token(quoted, "quoted"))
        else:
            tokens.append(
                _Token(found["sign"] or found["word"], "sign" if found["sign"] else "word")
            )
        at = found.end()
    return [*tokens, _Token("end", "end")]


def _decided(column: pa.Array, test: _Test) -> Mask:
    """The test of every cell, made once per distinct one."""
    places, words = distinct(column)
    held: Mask = np.array([test(word) for word in words], dtype=np.bool_)
    return held.take(places)


def _equals(value: str) -> _Test:
    text, wanted = value.encode(), number(value.encode())

    def test(word: bytes | None) -> bool:
        return word is not None and (
            word == text or (wanted is not None and number(word) == wanted)
        )

    return test


def _compared(
    read: Callable[[bytes], float | None], order: Callable[[float, float], bool], bound: float
) -> _Test:
    def test(word: bytes | None) -> bool:
        value = None if word is None else read(word)
        return value is not None and order(value, bound)

    return test
