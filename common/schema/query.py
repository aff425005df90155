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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError
from common.schema.attribute import Domains

Operator: TypeAlias = Literal["=", "in", "..", "<", "<=", ">", ">=", "missing"]
TokenKind: TypeAlias = Literal["word", "quoted", "symbol", "end"]

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
_KINDS: dict[str, TokenKind] = {
    "special": "word", "word": "word", "symbol": "symbol", "quoted": "quoted", "bad": "end"
}  # fmt: skip
_COMPARISONS: dict[str, Operator] = {
    "=": "=", "==": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">="
}  # fmt: skip
_WORDS = frozenset({"and", "or", "not", "in", "is"})
_DEEPEST = 64  # parentheses and `not`s inside of each other


class Token(NamedTuple):
    """A word, a quoted word or a symbol, and where in its query it starts."""

    text: str
    kind: TokenKind
    query: str
    start: int

    def is_(self, word: str) -> bool:
        """Tell whether this is a word of the language, in any case, or a symbol."""
        return self.kind in ("word", "symbol") and self.text.lower() == word

    def error(self, problem: str) -> InputError:
        """Return an error that points at this place of the query."""
        return InputError(f"{problem}\n  {self.query}\n  {' ' * self.start}^")


class Predicate(NamedTuple):
    """A test of one attribute; `..` has two ends, either of which may be open."""

    name: Token
    operator: Operator
    first: Token | None = None
    last: Token | None = None


class Not(NamedTuple):
    """A part that must not hold, and the token that negates it."""

    part: Expression
    sign: Token


class Every(NamedTuple):
    """Parts that must all hold; without parts, every row satisfies it."""

    parts: tuple[Expression, ...]


class Either(NamedTuple):
    """Parts of which at least one must hold, and the token that joins the first two."""

    parts: tuple[Expression, ...]
    sign: Token


Expression: TypeAlias = Predicate | Not | Every | Either
Mask: TypeAlias = NDArray[np.bool_]


class Test(Protocol):
    """A test of every row by itself: of codes, or of cells as they are in a file."""

    def mask(self, rows: Any) -> Mask: ...  # noqa: ANN401  (of the kind that the test is of)


AnyTest = TypeVar("AnyTest", bound=Test)


@dataclass(frozen=True, slots=True)
class Join(Generic[AnyTest]):
    """Parts joined by `and` (`every`) or by `or`, as a whole negated or not."""

    parts: tuple[AnyTest | Join[AnyTest], ...]
    every: bool
    negated: bool = False

    def mask(self, rows: Any) -> Mask:  # noqa: ANN401
        """Return a truth value for each row; a single one where there are no parts."""
        join = np.logical_and if self.every else np.logical_or
        mask: Mask = np.array(self.every)
        for part in self.parts:
            mask = join(mask, part.mask(rows))
        return ~mask if self.negated else mask


def joined(expression: Expression, test: Callable[[Predicate], AnyTest]) -> AnyTest | Join[AnyTest]:
    """Return what decides a condition, made of what decides each of its tests."""
    match expression:
        case Predicate():
            return test(expression)
        case Not(part=part):
            return Join((joined(part, test),), every=True, negated=True)
        case Every(parts=parts) | Either(parts=parts):
            tests = tuple(joined(part, test) for part in parts)
            return Join(tests, every=isinstance(expression, Every))


def predicates(expression: Expression) -> Iterator[Predicate]:
    match expression:
        case Predicate():
            yield expression
        case Not(part=part):
            yield from predicates(part)
        case Every(parts=parts) | Either(parts=parts):
            for part in parts:
                yield from predicates(part)


def tokenise(query: str) -> list[Token]:
    tokens = []
    for match in _TOKEN.finditer(query):
        group = match.lastgroup or "bad"
        token = Token(match[group], _KINDS[group], query, match.start(group))
        if token.kind == "end":
            raise token.error("a quote is opened here and never closed")
        if token.kind == "quoted":
            quote = token.text[0]
            token = token._replace(text=token.text[1:-1].replace(quote * 2, quote))
        tokens.append(token)
    tokens.append(Token("", "end", query, len(query.rstrip())))
    return tokens


def parse(query: str) -> Expression:
    """Read a condition; an error has a mark under the place that cannot be read."""
    return _Parser(query).whole()


class _Parser:
    """Reads tokens from left to right."""

    def __init__(self, query: str) -> None:
        self._tokens = tokenise(query)
        self._at = 0
        self._depth = 0

    def whole(self) -> Expression:
        if self._at_end():
            return Every(())
        expression = self._either()
        if not self._at_end():
            raise self._next.error("expected 'and', 'or' or the end of the condition here")
        return expression

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _at_end(self) -> bool:
        return self._next.kind == "end"

    def _take(self) -> Token:
        token = self._next
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def _took(self, word: str) -> bool:
        there = self._next.is_(word)
        if there:
            self._take()
        return there

    def _either(self) -> Expression:
        parts, sign = [self._every()], self._next
        while self._took("or"):
            parts.append(self._every())
        return parts[0] if len(parts) == 1 else Either(tuple(parts), sign)

    def _every(self) -> Expression:
        parts = [self._factor()]
        while self._took("and"):
            parts.append(self._factor())
        return parts[0] if len(parts) == 1 else Every(tuple(parts))

    def _factor(self) -> Expression:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._next.error(
                f"more than {_DEEPEST} parentheses and 'not's inside of each other"
            )
        sign = self._next
        if self._took("not"):
            expression: Expression = Not(self._factor(), sign)
        elif self._took("("):
            expression = self._either()
            if not self._took(")"):
                raise self._next.error("expected ')', 'and' or 'or' here")
        else:
            expression = self._predicate()
        self._depth -= 1
        return expression

    def _predicate(self) -> Expression:
        name = self._next
        if not _is_value(name):
            raise self._next.error("expected the name of an attribute here")
        self._take()
        operator = self._next
        if operator.kind == "symbol" and operator.text in _COMPARISONS:
            self._take()
            return Predicate(name, _COMPARISONS[operator.text], self._value(operator.text))
        if self._took("!="):
            return Not(Predicate(name, "=", self._value("!=")), operator)
        if self._took("is"):
            return self._missing(name)
        negated = self._took("not")
        if not self._took("in"):
            raise self._next.error("expected one of = != in 'not in' is < <= > >= here")
        expression = self._members(name) if self._took("(") else self._range(name)
        return Not(expression, operator) if negated else expression

    def _value(self, operator: str) -> Token:
        if not _is_value(self._next):
            raise self._next.error(f"expected a value after {operator!r} here")
        return self._take()

    def _missing(self, name: Token) -> Expression:
        sign = self._next
        negated = self._took("not")
        if not self._took("missing"):
            raise self._next.error("expected 'missing' or 'not missing' here. For a value write =")
        predicate = Predicate(name, "missing")
        return Not(predicate, sign) if negated else predicate

    def _members(self, name: Token) -> Expression:
        """Read the list after `in (`; each member is a value, a group or a range."""
        parts, sign = [self._range(name)], self._next
        while self._took(","):
            parts.append(self._range(name))
        if not self._took(")"):
            raise self._next.error("expected ',' or ')' here")
        return parts[0] if len(parts) == 1 else Either(tuple(parts), sign)

    def _range(self, name: Token) -> Predicate:
        first = self._take() if _is_value(self._next) else None
        if not self._next.is_(".."):
            if first is None:
                raise self._next.error("expected a value or a range like 20..39 here")
            return Predicate(name, "in", first)
        dots = self._take()
        # `and` and `or` go on with the condition: a value of that name is quoted.
        last = self._take() if _is_value(self._next) else None
        if first is None and last is None:
            raise dots.error("a range needs at least one end, like 20.. or ..39")
        return Predicate(name, "..", first, last)


def _is_value(token: Token) -> bool:
    quoted = token.kind == "quoted"
    return quoted or (token.kind == "word" and token.text.lower() not in _WORDS)


_PLUS = re.compile(r"\+(?=(?:[^`]*`[^`]*`)*[^`]*$)")  # outside of backticks


@dataclass(frozen=True, slots=True)
class Formula:
    """A model of one column by others."""

    outcome: str
    terms: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.outcome, *self.terms)


def parse_formula(text: str, schema: Domains) -> Formula:
    """Read a formula of columns of the schema, each once; other signs stand in backticks."""
    left, tilde, right = text.partition("~")
    formula = Formula(bare_name(left), tuple(map(bare_name, _PLUS.split(right))))
    if not tilde or not all(formula.columns):
        raise InputError(f"model {text!r}: write it like 'income ~ age + sex'")
    for name in formula.columns:
        schema.position(name)
    if len(set(formula.columns)) < len(formula.columns):
        raise InputError(f"model {text!r}: a column is there twice. Name it once")
    return formula


def bare_name(text: str) -> str:
    return text.strip().strip("`")
