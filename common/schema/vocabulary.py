"""From the words of a query to intervals of positions, by the public schema.

Numbers and dates are asked for in their own units. A count is known per bin only, so a range that
cuts through a bin has no answer from the release: it is refused, and the error names the ends that
would do. Guessing a share of a bin would add an error no interval could tell of.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from common.schema.attribute import MISSING_LABEL, Attribute, from_number, to_number
from common.schema.binning import Binning
from common.schema.hierarchy import Node
from common.schema.query import (
    Either,
    Every,
    Expression,
    Not,
    Predicate,
    Token,
    choices,
    parse,
    refuse,
)
from common.schema.toml import suggest

Interval = tuple[int, int]
_DAY_S = 86_400


class AttributeVocabulary:
    """What can be said about one attribute, whose axis has these codes at its positions."""

    def __init__(self, attribute: Attribute, leaf_codes: NDArray[np.intp]) -> None:
        self.attribute = attribute
        position = np.empty(attribute.size, dtype=np.intp)
        position[leaf_codes] = np.arange(attribute.size)
        self.values: dict[str, Interval] = {
            label: (int(p), int(p) + 1) for label, p in zip(attribute.labels, position, strict=True)
        }
        self.groups: dict[str, Interval] = {}
        if attribute.tree is not None:
            # With special codes beside it, the tree's own root is not a node of the hierarchy.
            whole = attribute.size == attribute.value_count
            for node in (attribute.tree,) if whole else attribute.tree.children:
                self._collect(node, position)
        domain = attribute.domain
        if isinstance(domain, Binning):
            firsts, lasts = domain.first, domain.last
            if not domain.whole:  # an edge belongs to one side only, but means the same cut
                firsts, lasts = np.array(domain.edges[:-1]), np.array(domain.edges[1:])
            self._starts = {number: bin_ for bin_, number in enumerate(firsts.tolist())}
            self._ends = {number: bin_ + 1 for bin_, number in enumerate(lasts.tolist())}

    def _collect(self, node: Node, position: NDArray[np.intp]) -> None:
        """Name the groups whose leaves are neighbours; along a hierarchy all are."""
        if node.is_leaf:
            return
        places = position[node.codes()]
        low, high = int(places.min()), int(places.max()) + 1
        if node.label and high - low == len(places):
            self.groups.setdefault(node.label, (low, high))
        for child in node.children:
            self._collect(child, position)

    def resolve(self, predicate: Predicate, query: str) -> Interval:
        """The positions a predicate allows; InputError where it cuts a bin in two."""
        operator, first, last = predicate.operator, predicate.first, predicate.last
        if operator == "missing":
            return self._missing(predicate.name, query)
        if operator in ("=", "in") and first is not None:
            return self._one(first, query, prefer_group=operator == "in")
        at = predicate.name.start
        if not self.attribute.ordered:
            refuse(
                query,
                at,
                f"{self.attribute.name!r} has no order to take a range of; ask for one value or "
                f"group: {choices([*self.groups, *self.values])}",
            )
        if operator == "..":
            low = self._start(first, query) if first else 0
            high = self._end(last, query) if last else self.attribute.value_count
        elif first is None:  # pragma: no cover  (the parser always gives comparisons a value)
            raise AssertionError
        elif operator in (">", ">="):
            low = self._start(first, query, after=operator == ">")
            high = self.attribute.value_count
        else:
            low, high = 0, self._end(first, query, before=operator == "<")
        if low >= high:
            refuse(query, at, f"no value of {self.attribute.name!r} is in this range")
        return low, high

    def _missing(self, name: Token, query: str) -> Interval:
        if not self.attribute.missing:
            refuse(query, name.start, f"the schema lets no cell of {name.text!r} be empty")
        return self.values[MISSING_LABEL]

    def _one(self, token: Token, query: str, *, prefer_group: bool) -> Interval:
        """A group, a value, or the bin that holds exactly one number."""
        lookups = (self.groups, self.values) if prefer_group else (self.values, self.groups)
        for names in lookups:
            if token.text in names:
                return names[token.text]
        if isinstance(self.attribute.domain, Binning):
            low = self._start(token, query)
            high = self._end(token, query)
            if low < high:
                return low, high
        return self._unknown(token, query)

    def _unknown(self, token: Token, query: str) -> Interval:
        refuse(
            query,
            token.start,
            f"{self.attribute.name!r} has no value {token.text!r}"
            f"{suggest(token.text, [*self.groups, *self.values])}; there are "
            f"{choices([*self.groups, *self.values])}",
        )

    def _start(self, token: Token, query: str, *, after: bool = False) -> int:
        """The first position of a range from here on (or from after here on)."""
        domain = self.attribute.domain
        if not isinstance(domain, Binning):
            return self._listed(token, query) + after
        number = self._number(token, query, last=after)
        if after and domain.whole:
            number += 1
        if number in self._starts:
            return self._starts[number]
        if number < domain.low and not self.attribute.other:
            return 0
        return self._cut(token, number, query)

    def _end(self, token: Token, query: str, *, before: bool = False) -> int:
        """One past the last position of a range up to here (or up to before here)."""
        domain = self.attribute.domain
        if not isinstance(domain, Binning):
            return self._listed(token, query) + (not before)
        number = self._number(token, query, last=not before)
        if before and domain.whole:
            number -= 1
        if number in self._ends:
            return self._ends[number]
        if number > domain.high and not self.attribute.other:
            return domain.count
        return self._cut(token, number, query)

    def _listed(self, token: Token, query: str) -> int:
        """The position of a listed value of an ordered attribute; special codes have no order."""
        interval = self.values.get(token.text)
        if interval is None or interval[0] >= self.attribute.value_count:
            return self._unknown(token, query)[0]
        return interval[0]

    def _number(self, token: Token, query: str, *, last: bool) -> float:
        """A number, date or time as the bins count it; with `last`, of a day its last second."""
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
            refuse(query, token.start, f"{self.attribute.name!r} is asked for like {example} here")

    def _cut(self, token: Token, number: float, query: str) -> int:
        """Refuse an end that is not the end of a bin, and name the bins around it."""
        domain, name = self.attribute.domain, self.attribute.name
        assert isinstance(domain, Binning)  # noqa: S101  (for the type checker)
        low, high = (from_number(self.attribute.kind, end) for end in (domain.low, domain.high))
        if not domain.low <= number <= domain.high:
            refuse(query, token.start, f"{name!r} goes from {low} to {high} only")
        bin_ = int(np.searchsorted(np.array(domain.edges), number, side="right")) - 1
        bin_ = min(bin_, domain.count - 1)
        around = range(max(0, bin_ - 1), min(domain.count, bin_ + 2))
        bins = ", ".join(self.attribute.labels[b] for b in around)
        refuse(
            query,
            token.start,
            f"{token.text} cuts through a bin of {name!r}, whose rows are only known together; "
            f"start and end a range with bins. The bins around it: {bins}",
        )


class Vocabulary:
    """What can be asked of a release whose axes have these codes at their positions."""

    def __init__(
        self, attributes: Sequence[Attribute], leaf_codes: Sequence[NDArray[np.intp]]
    ) -> None:
        self._attributes = {
            attribute.name: (number, AttributeVocabulary(attribute, order))
            for number, (attribute, order) in enumerate(zip(attributes, leaf_codes, strict=True))
        }
        self._full = [(0, attribute.size) for attribute in attributes]

    def compile(self, queries: Sequence[str]) -> NDArray[np.intp]:
        """The box of each query: shape (queries, attributes, 2), first and one past the last."""
        boxes = np.array([self._box(query) for query in queries], dtype=np.intp)
        return boxes.reshape(len(queries), len(self._full), 2)

    def _box(self, query: str) -> list[Interval]:
        box = list(self._full)
        for predicate in _conjunction(parse(query), query):
            known = self._attributes.get(predicate.name.text)
            if known is None:
                unknown_attribute(query, predicate.name, self._attributes)
            number, vocabulary = known
            low, high = vocabulary.resolve(predicate, query)
            box[number] = max(low, box[number][0]), min(high, box[number][1])
            if box[number][0] >= box[number][1]:
                refuse(query, predicate.name.start, "no row can satisfy this and what is before it")
        return box


def unknown_attribute(query: str, name: Token, known: Iterable[str]) -> NoReturn:
    """Refuse a name that the schema does not have."""
    names = list(known)
    refuse(
        query,
        name.start,
        f"there is no attribute {name.text!r}{suggest(name.text, names)}; there are "
        f"{choices(names)}",
    )


def _conjunction(expression: Expression, query: str) -> Iterator[Predicate]:
    """The tests of a condition that is one box; others are refused."""
    match expression:
        case Predicate():
            yield expression
        case Every(parts=parts):
            for part in parts:
                yield from _conjunction(part, query)
        case Not(start=start) | Either(start=start):
            refuse(query, start, "a range count joins its tests by 'and' only")
