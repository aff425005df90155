"""The language of range counts: what is written, before anything is looked up in a schema.

    query      a conjunction of predicates, or nothing at all
    predicate  NAME = VALUE | NAME in VALUE | NAME in [VALUE]..[VALUE] | NAME < <= > >= VALUE

    age in 20..39 and sex = Female and country in Europe
    income >= 50000 and occupation = 'Farm worker'

Ranges include both ends. Names and values with spaces, or with any of = < > " ' or two dots, are
put in single or double quotes; a quote inside is doubled. `and` and `in` may be capitalised.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple, NoReturn, TypeAlias

from common.errors import InputError

Operator: TypeAlias = Literal["=", "in", "..", "<", "<=", ">", ">="]

_TOKEN = re.compile(
    r"""\s*+(?:
        (?P<word>(?:[^\s"'=<>.]++|\.(?!\.))++)
      | (?P<symbol>\.\.|[<>]=?|=)
      | (?P<quoted>"(?:[^"]++|"")*+"|'(?:[^']++|'')*+')
      | (?P<bad>\S)
    )""",
    re.VERBOSE,
)
_COMPARISONS: dict[str, Operator] = {"=": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


class Token(NamedTuple):
    """A word, a quoted word or a symbol, and where it starts."""

    text: str
    start: int
    kind: Literal["word", "quoted", "symbol", "end"]


class Predicate(NamedTuple):
    """What is asked of one attribute; `..` has two ends, either of which may be open."""

    name: Token
    operator: Operator
    first: Token | None
    last: Token | None = None


def refuse(query: str, start: int, problem: str) -> NoReturn:
    """Raise an error that points at the place."""
    raise InputError(f"{problem}\n  {query}\n  {' ' * start}^")


def choices(names: Iterable[str], limit: int = 12) -> str:
    """A list of allowed names, cut if it is long."""
    listed = list(names)
    more = f" and {len(listed) - limit:,} more" if len(listed) > limit else ""
    return ", ".join(listed[:limit]) + more


def tokenise(query: str) -> list[Token]:
    """The words of a query and an end mark."""
    tokens = []
    for match in _TOKEN.finditer(query):
        kind = match.lastgroup or "bad"
        text, start = match[kind], match.start(kind)
        if kind == "word":
            tokens.append(Token(text, start, "word"))
        elif kind == "symbol":
            tokens.append(Token(text, start, "symbol"))
        elif kind == "quoted":
            tokens.append(Token(text[1:-1].replace(text[0] * 2, text[0]), start, "quoted"))
        else:
            refuse(query, start, "a quote is opened here and never closed")
    tokens.append(Token("", len(query.rstrip()), "end"))
    return tokens


def parse(query: str) -> list[Predicate]:
    """The predicates of a query; none for an empty one, which counts everything.

    Raises:
        InputError: with a mark under the place that cannot be read.
    """
    tokens = tokenise(query)
    predicates: list[Predicate] = []
    at = 0
    while tokens[at].kind != "end":
        if predicates:
            if not _is_and(tokens[at]):
                refuse(query, tokens[at].start, "expected 'and' or the end of the query here")
            at += 1
        predicate, at = _predicate(query, tokens, at)
        predicates.append(predicate)
    return predicates


def _predicate(query: str, tokens: list[Token], at: int) -> tuple[Predicate, int]:
    """The predicate that starts at a token, and the token after it."""
    name, operator = tokens[at], tokens[min(at + 1, len(tokens) - 1)]
    if name.kind not in ("word", "quoted"):
        refuse(query, name.start, "expected the name of an attribute here")
    at += 2
    if operator.kind == "symbol" and operator.text in _COMPARISONS:
        if not _is_value(tokens[at]):
            refuse(query, tokens[at].start, f"expected a value after {operator.text!r} here")
        return Predicate(name, _COMPARISONS[operator.text], tokens[at]), at + 1
    if operator.kind != "word" or operator.text.lower() != "in":
        refuse(query, operator.start, "expected one of = in < <= > >= here")
    first = last = None
    if _is_value(tokens[at]):
        first = tokens[at]
        at += 1
    if tokens[at].kind != "symbol" or tokens[at].text != "..":
        if first is None:
            refuse(query, tokens[at].start, "expected a value or a range like 20..39 here")
        return Predicate(name, "in", first), at
    at += 1
    # `and` goes on with the query: a value of that name is quoted.
    if _is_value(tokens[at]) and not _is_and(tokens[at]):
        last = tokens[at]
        at += 1
    if first is None and last is None:
        refuse(query, tokens[at - 1].start, "a range needs at least one end, like 20.. or ..39")
    return Predicate(name, "..", first, last), at


def _is_and(token: Token) -> bool:
    return token.kind == "word" and token.text.lower() == "and"


def _is_value(token: Token) -> bool:
    return token.kind in ("word", "quoted")
