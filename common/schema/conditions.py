"""Conditions on rows, like "age >= 65 and not smoker = true", compiled by a schema.

    condition = parse("age in 20..39 or income is missing", schema)
    condition.attributes       # ("age", "income")
    condition.mask(codes)      # a truth value for each row

`common.schema.query` describes the language. A condition is about codes, so it holds for real rows,
synthetic rows and rules of a schema alike. Numbers and dates are asked for in their own units. The
rows of a bin are only known together, so a range that cuts through a bin is refused, and the error
names the ends that would do. Guessing a proportion of a bin would add an error that no interval
could tell of.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError
from common.schema import query as syntax
from common.schema.attribute import MISSING_LABEL, Attribute, Domains, from_number, to_number
from common.schema.binning import Binning
from common.schema.codes import Codes
from common.schema.hierarchy import Node
from common.schema.limits import MOST_RULE_CELLS, check_most
from common.schema.query import (
    Either,
    Every,
    Expression,
    Join,
    Mask,
    Not,
    Predicate,
    Token,
    joined,
)
from common.schema.toml import suggest

Interval = tuple[int, int]
_DAY_S = 86_400
_MOST_NAMED = 12  # names in an error


@dataclass(frozen=True, slots=True)
class CodeTest:
    """Which codes of one attribute are allowed."""

    attribute: int
    allowed: Mask

    def mask(self, codes: Codes) -> Mask:
        return self.allowed[codes.columns[self.attribute]]


Part: TypeAlias = CodeTest | Join[CodeTest]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that a row of a schema satisfies or does not."""

    text: str
    attributes: tuple[str, ...]  # names, in the order of the schema
    root: Part

    def mask(self, codes: Codes) -> Mask:
        """Return a truth value for each row; the codes have all columns of the schema."""
        return np.broadcast_to(self.root.mask(codes), codes.rows)

    def matching(self, codes: Codes) -> int:
        return int(self.mask(codes).sum())


def parse(text: str, schema: Domains) -> Condition:
    """Compile a condition; an empty one holds for every row. Errors point at the place."""
    root = joined(syntax.parse(text), Vocabulary(schema.attributes).test)
    used = sorted(set(_attributes(root)))
    return Condition(text, tuple(schema.names[place] for place in used), root)


@dataclass(frozen=True, eq=False, slots=True)
class CellWeights:
    """A weight of at least 0 for every cell of the table of some attributes."""

    attributes: tuple[int, ...]  # their positions in the schema, each once
    table: NDArray[np.float64]  # an axis for each of them

    def of(self, codes: Codes) -> NDArray[np.float64]:
        weights: NDArray[np.float64] = self.table[tuple(codes.columns[a] for a in self.attributes)]
        return weights


def weights_of(condition: Condition, sizes: Sequence[int]) -> list[CellWeights]:
    """Return a condition as weights: 1 where it holds, 0 where it does not."""
    return [CellWeights(*cells_of(part, sizes)) for part in _conjuncts(condition.root)]


def cells_of(part: Part, sizes: Sequence[int]) -> tuple[tuple[int, ...], NDArray[np.float64]]:
    """Return the attributes of a part of a condition, and 1 in the cells where it holds."""
    attributes = tuple(sorted(set(_attributes(part))))
    shape = tuple(sizes[a] for a in attributes)
    check_most("condition: cells of its attributes together", prod(shape), most=MOST_RULE_CELLS)
    columns = [np.zeros(prod(shape), dtype=np.intp)] * len(sizes)
    for a, values in zip(attributes, np.indices(shape).reshape(len(shape), -1), strict=True):
        columns[a] = values
    holds: Mask = part.mask(Codes.from_columns(columns, sizes))
    return attributes, holds.astype(np.float64).reshape(shape)


def _conjuncts(part: Part) -> Iterator[Part]:
    if isinstance(part, Join) and part.every and not part.negated:
        for conjunct in part.parts:
            yield from _conjuncts(conjunct)
    else:
        yield part


def _attributes(part: Part) -> Iterator[int]:
    if isinstance(part, CodeTest):
        yield part.attribute
    else:
        for inner in part.parts:
            yield from _attributes(inner)


class Vocabulary:
    """What a query may say about some attributes."""

    def __init__(self, attributes: Sequence[Attribute]) -> None:
        self._attributes = attributes
        self._places = {attribute.name: place for place, attribute in enumerate(attributes)}
        self._known: dict[int, AttributeVocabulary] = {}

    def look_up(self, name: Token) -> tuple[int, AttributeVocabulary]:
        """Return the position of an attribute, and what may be said about it."""
        place = self._places.get(name.text)
        if place is None:
            raise name.error(
                f"there is no attribute {name.text!r}{suggest(name.text, self._places)}; there are "
                f"{_listed(self._places)}"
            )
        if place not in self._known:
            self._known[place] = AttributeVocabulary(self._attributes[place])
        return place, self._known[place]

    def test(self, predicate: Predicate) -> CodeTest:
        place, words = self.look_up(predicate.name)
        low, high = words.resolve(predicate)
        allowed = np.zeros(words.attribute.size, dtype=np.bool_)
        allowed[words.codes[low:high]] = True
        return CodeTest(place, allowed)

    def boxes(self, queries: Sequence[str]) -> NDArray[np.intp]:
        """Return the box of each query: shape (queries, attributes, 2), first and one past last."""
        boxes = np.array([self._box(query) for query in queries], dtype=np.intp)
        return boxes.reshape(len(queries), len(self._attributes), 2)

    def _box(self, query: str) -> list[Interval]:
        box = [(0, attribute.size) for attribute in self._attributes]
        for predicate in _conjunction(syntax.parse(query)):
            place, words = self.look_up(predicate.name)
            low, high = words.resolve(predicate)
            box[place] = max(low, box[place][0]), min(high, box[place][1])
            if box[place][0] >= box[place][1]:
                raise predicate.name.error("no row can satisfy this and what is before it")
        return box


def _conjunction(expression: Expression) -> Iterator[Predicate]:
    """Yield the tests of a condition that is one box; refuse any other."""
    match expression:
        case Predicate():
            yield expression
        case Every(parts=parts):
            for part in parts:
                yield from _conjunction(part)
        case Not(sign=sign) | Either(sign=sign):
            raise sign.error("a range count joins its tests by 'and' only")


class AttributeVocabulary:
    """What a query may say about one attribute, as intervals of positions.

    Values and groups are intervals in the order of the codes where the attribute is ordered, else
    in the order of the leaves of its hierarchy.
    """

    def __init__(self, attribute: Attribute) -> None:
        self.attribute = attribute
        leaves = range(attribute.size) if attribute.ordered else attribute.hierarchy.root.codes()
        self.codes = np.array(leaves, dtype=np.intp)  # the code at each position
        position = np.argsort(self.codes)
        self._values: dict[str, Interval] = {
            label: (int(p), int(p) + 1) for label, p in zip(attribute.labels, position, strict=True)
        }
        self._groups: dict[str, Interval] = {}
        if attribute.tree is not None:
            # With special codes beside it, the tree's own root is not a node of the hierarchy.
            whole = attribute.size == attribute.value_count
            for node in (attribute.tree,) if whole else attribute.tree.children:
                self._name_groups(node, position)
        domain = attribute.domain
        if isinstance(domain, Binning):
            firsts, lasts = domain.first, domain.last
            if not domain.whole:  # an edge belongs to one side only, but means the same cut
                firsts, lasts = np.array(domain.edges[:-1]), np.array(domain.edges[1:])
            self._starts = {number: place for place, number in enumerate(firsts.tolist())}
            self._ends = {number: place for place, number in enumerate(lasts.tolist(), start=1)}
            points = np.flatnonzero((domain.spans == 0) & (not domain.whole))
            # A real number that is a bin of its own: behind it is another cut than before it.
            numbers = domain.centre(points).tolist()
            self._behind: dict[float, int] = dict(zip(numbers, (points + 1).tolist(), strict=True))

    def _name_groups(self, node: Node, position: NDArray[np.intp]) -> None:
        """Name the groups whose leaves are neighbours; along a hierarchy all are."""
        if node.is_leaf:
            return
        places = position[node.codes()]
        low, high = int(places.min()), int(places.max()) + 1
        if node.label and high - low == len(places):
            self._groups.setdefault(node.label, (low, high))
        for child in node.children:
            self._name_groups(child, position)

    def resolve(self, predicate: Predicate) -> Interval:
        """Return the positions that a test allows; refuse one that cuts a bin in two."""
        name, operator, first, last = predicate
        if operator == "missing":
            if not self.attribute.missing:
                raise name.error(f"the schema lets no cell of {name.text!r} be empty")
            return self._values[MISSING_LABEL]
        if operator in ("=", "in") and first is not None:
            return self._one(first, prefer_group=operator == "in")
        if not self.attribute.ordered:
            raise name.error(
                f"{self.attribute.name!r} has no order to take a range of. Ask for one value or "
                f"group: {_listed([*self._groups, *self._values])}"
            )
        if operator in ("<", "<="):
            first, last = None, first
        low = self._start(first, after=operator == ">") if first else 0
        high = self._end(last, before=operator == "<") if last else self.attribute.value_count
        if low >= high:
            raise name.error(f"no value of {self.attribute.name!r} is in this range")
        return low, high

    def _one(self, token: Token, *, prefer_group: bool) -> Interval:
        """Return a group, a value, or the bin that holds exactly one number."""
        lookups = (self._groups, self._values) if prefer_group else (self._values, self._groups)
        for names in lookups:
            if token.text in names:
                return names[token.text]
        if isinstance(self.attribute.domain, Binning):
            low, high = self._start(token), self._end(token)
            if low < high:
                return low, high
        raise self._unknown(token)

    def _unknown(self, token: Token) -> InputError:
        known = [*self._groups, *self._values]
        return token.error(
            f"{self.attribute.name!r} has no value {token.text!r}{suggest(token.text, known)}; "
            f"there are {_listed(known)}"
        )

    def _start(self, token: Token, *, after: bool = False) -> int:
        """Return the first position of a range that begins at (or after) a value."""
        domain = self.attribute.domain
        if not isinstance(domain, Binning):
            return self._place(token) + after
        number = self._number(token, last=after)
        if after and number in self._behind:
            return self._behind[number]
        if after and domain.whole:
            number += 1
        if number in self._starts:
            return self._starts[number]
        if number < domain.low and not self.attribute.other:
            return 0
        raise self._cut(domain, token, number)

    def _end(self, token: Token, *, before: bool = False) -> int:
        """Return one past the last position of a range that ends at (or before) a value."""
        domain = self.attribute.domain
        if not isinstance(domain, Binning):
            return self._place(token) + (not before)
        number = self._number(token, last=not before)
        if not before and number in self._behind:
            return self._behind[number]
        if before and domain.whole:
            number -= 1
        if number in self._ends:
            return self._ends[number]
        if number > domain.high and not self.attribute.other:
            return domain.count
        raise self._cut(domain, token, number)

    def _place(self, token: Token) -> int:
        """Return the position of a listed value of an ordered attribute."""
        interval = self._values.get(token.text)
        if interval is None or interval[0] >= self.attribute.value_count:  # special: without order
            raise self._unknown(token)
        return interval[0]

    def _number(self, token: Token, *, last: bool) -> float:
        """Return a number, date or time as the bins count it; with `last`, a day's last second."""
        kind = self.attribute.kind
        try:
            if kind == "integer":
                return int(token.text)
            if kind == "real":
                return float(token.text)
            if kind == "date":
                return to_number(kind, dt.date.fromisoformat(token.text))
            whole_day = last and len(token.text) == len("2024-01-31")
            number = to_number(kind, dt.datetime.fromisoformat(token.text))
            return number + _DAY_S - 1 if whole_day else number
        except ValueError:
            examples = {"integer": "20", "real": "0.5", "date": "2024-01-31"}
            example = examples.get(kind, "2024-01-31T12:00:00")
            raise token.error(f"{self.attribute.name!r} is asked for like {example} here") from None

    def _cut(self, domain: Binning, token: Token, number: float) -> InputError:
        """Return the error for an end that is not the end of a bin; it names the bins around it."""
        name = self.attribute.name
        low, high = (from_number(self.attribute.kind, end) for end in (domain.low, domain.high))
        if not domain.low <= number <= domain.high:
            return token.error(f"{name!r} goes from {low} to {high} only")
        place = int(np.searchsorted(np.array(domain.edges), number, side="right")) - 1
        place = min(place, domain.count - 1)
        around = range(max(0, place - 1), min(domain.count, place + 2))
        return token.error(
            f"{token.text} cuts through a bin of {name!r}, whose rows are only known together. "
            "Start and end a range with bins. The bins around it: "
            + ", ".join(self.attribute.labels[code] for code in around)
        )


def _listed(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _MOST_NAMED:,} more" if len(listed) > _MOST_NAMED else ""
    return ", ".join(listed[:_MOST_NAMED]) + more
