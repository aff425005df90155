"""The language of conditions: what is written, before anything is looked up in a schema.

    condition  test, joined by `and`, `or`, `not` and parentheses; an empty one holds for every row
    test       NAME = VALUE (or ==) | NAME != VALUE | NAME < <= > >= VALUE
               NAME [not] in VALUE | NAME [not] in [VALUE]..[VALUE] | NAME [not] in (VALUE, ...)
               NAME is [not] missing

    age in 20..39 and sex = Female and country in Europe
    (income >= 50000 or income is missing) and not occupation in ('Farm worker', Clerk)

`not` binds first, then `and`, then `or`. A condition holds or does not: an empty cell satisfies
`!=`, `not` and `not in`. Ranges include both ends. Names and values with spaces, with any of
= < > , ( ) " ' or two dots, and those that are words of the language, are put in single or double
quotes; a quote inside is doubled. The words of the language may be capitalised.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, NoReturn, TypeAlias

from common.errors import InputError

Operator: TypeAlias = Literal["=", "in", "..", "<", "<=", ">", ">=", "missing"]

_TOKEN = re.compile(
    r"""\s*+(?:
        (?P<special>\((?:missing|other)\))
      | (?P<word>(?:[^\s"'=<>.,()!]++|\.(?!\.)|!(?!=))++)
      | (?P<symbol>\.\.|[<>]=?|[!=]?=|[(),])
      | (?P<quoted>"(?:[^"]++|"")*+"|'(?:[^']++|'')*+')
      | (?P<bad>\S)
    )""",
    re.VERBOSE,
)
_COMPARISONS: dict[str, Operator] = {
    "=": "=", "==": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">="
}  # fmt: skip
_WORDS = frozenset({"and", "or", "not", "in", "is"})
_DEEPEST = 64  # parentheses and `not`s inside of each other


class Token(NamedTuple):
    """A word, a quoted word or a symbol, and where it starts."""

    text: str
    start: int
    kind: Literal["word", "quoted", "symbol", "end"]

    def is_(self, word: str) -> bool:
        return self.kind == "word" and self.text.lower() == word

    def is_symbol(self, symbol: str) -> bool:
        return self.kind == "symbol" and self.text == symbol


class Predicate(NamedTuple):
    """What is asked of one attribute; `..` has two ends, either of which may be open."""

    name: Token
    operator: Operator
    first: Token | None = None
    last: Token | None = None


class Not(NamedTuple):
    """What must not hold, and where that is written."""

    part: Expression
    start: int


class Every(NamedTuple):
    """Parts that must all hold; none of them is no condition at all."""

    parts: tuple[Expression, ...]


class Either(NamedTuple):
    """Parts of which at least one must hold, and where the second of them starts."""

    parts: tuple[Expression, ...]
    start: int


Expression: TypeAlias = Predicate | Not | Every | Either


def refuse(query: str, start: int, problem: str) -> NoReturn:
    """Raise an error that points at the place."""
    raise InputError(f"{problem}\n  {query}\n  {' ' * start}^")


def choices(names: Iterable[str], limit: int = 12) -> str:
    """A list of allowed names, cut if it is long."""
    listed = list(names)
    more = f" and {len(listed) - limit:,} more" if len(listed) > limit else ""
    return ", ".join(listed[:limit]) + more


def predicates(expression: Expression) -> Iterator[Predicate]:
    """Every test of a condition, from left to right."""
    match expression:
        case Predicate():
            yield expression
        case Not(part=part):
            yield from predicates(part)
        case Every(parts=parts) | Either(parts=parts):
            for part in parts:
                yield from predicates(part)


def tokenise(query: str) -> list[Token]:
    """The words of a query and an end mark."""
    tokens = []
    for match in _TOKEN.finditer(query):
        kind = match.lastgroup or "bad"
        text, start = match[kind], match.start(kind)
        if kind in ("word", "special"):
            tokens.append(Token(text, start, "word"))
        elif kind == "symbol":
            tokens.append(Token(text, start, "symbol"))
        elif kind == "quoted":
            tokens.append(Token(text[1:-1].replace(text[0] * 2, text[0]), start, "quoted"))
        else:
            refuse(query, start, "a quote is opened here and never closed")
    tokens.append(Token("", len(query.rstrip()), "end"))
    return tokens


def parse(query: str) -> Expression:
    """The condition in a text; an error has a mark under the place that cannot be read."""
    return _Parser(query).whole()


class _Parser:
    """Reads tokens from left to right."""

    def __init__(self, query: str) -> None:
        self._query = query
        self._tokens = tokenise(query)
        self._at = 0
        self._depth = 0

    def whole(self) -> Expression:
        if self._at_end():
            return Every(())
        found = self._either()
        if not self._at_end():
            self._refuse("expected 'and', 'or' or the end of the condition here")
        return found

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _at_end(self) -> bool:
        return self._next.kind == "end"

    def _refuse(self, problem: str) -> NoReturn:
        refuse(self._query, self._next.start, problem)

    def _take(self) -> Token:
        token = self._next
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def _took(self, word: str) -> bool:
        found = self._next.is_(word) or self._next.is_symbol(word)
        if found:
            self._take()
        return found

    def _either(self) -> Expression:
        parts = [self._every()]
        start = self._next.start
        while self._took("or"):
            parts.append(self._every())
        return parts[0] if len(parts) == 1 else Either(tuple(parts), start)

    def _every(self) -> Expression:
        parts = [self._factor()]
        while self._took("and"):
            parts.append(self._factor())
        return parts[0] if len(parts) == 1 else Every(tuple(parts))

    def _factor(self) -> Expression:
        self._depth += 1
        if self._depth > _DEEPEST:
            self._refuse(f"more than {_DEEPEST} parentheses and 'not's inside of each other")
        start = self._next.start
        if self._took("not"):
            found: Expression = Not(self._factor(), start)
        elif self._took("("):
            found = self._either()
            if not self._took(")"):
                self._refuse("expected ')', 'and' or 'or' here")
        else:
            found = self._predicate()
        self._depth -= 1
        return found

    def _predicate(self) -> Expression:
        name = self._next
        if not _is_value(name):
            self._refuse("expected the name of an attribute here")
        self._take()
        operator = self._next
        if operator.kind == "symbol" and operator.text in _COMPARISONS:
            self._take()
            return Predicate(name, _COMPARISONS[operator.text], self._value(operator.text))
        if self._took("!="):
            return Not(Predicate(name, "=", self._value("!=")), operator.start)
        if self._took("is"):
            return self._missing(name)
        negated = self._took("not")
        if not self._took("in"):
            self._refuse("expected one of = != in 'not in' is < <= > >= here")
        found = self._members(name) if self._took("(") else self._range(name)
        return Not(found, operator.start) if negated else found

    def _value(self, operator: str) -> Token:
        if not _is_value(self._next):
            self._refuse(f"expected a value after {operator!r} here")
        return self._take()

    def _missing(self, name: Token) -> Expression:
        start = self._next.start
        negated = self._took("not")
        if not self._took("missing"):
            self._refuse("expected 'missing' or 'not missing' here; for a value write =")
        found = Predicate(name, "missing")
        return Not(found, start) if negated else found

    def _members(self, name: Token) -> Expression:
        """The list after `in (`; each member is a value, a group or a range."""
        parts = [self._range(name)]
        start = self._next.start
        while self._took(","):
            parts.append(self._range(name))
        if not self._took(")"):
            self._refuse("expected ',' or ')' here")
        return parts[0] if len(parts) == 1 else Either(tuple(parts), start)

    def _range(self, name: Token) -> Predicate:
        first = self._take() if _is_value(self._next) else None
        if not self._next.is_symbol(".."):
            if first is None:
                self._refuse("expected a value or a range like 20..39 here")
            return Predicate(name, "in", first)
        dots = self._take()
        # `and` and `or` go on with the condition: a value of that name is quoted.
        last = self._take() if _is_value(self._next) else None
        if first is None and last is None:
            refuse(self._query, dots.start, "a range needs at least one end, like 20.. or ..39")
        return Predicate(name, "..", first, last)


def _is_value(token: Token) -> bool:
    quoted = token.kind == "quoted"
    return quoted or (token.kind == "word" and token.text.lower() not in _WORDS)
