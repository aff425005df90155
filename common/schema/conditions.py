"""Conditions on rows, like "age >= 65 and not smoker = true", compiled by a schema.

    condition = parse("age in 20..39 or income is missing", schema)
    condition.attributes       # ("age", "income")
    condition.mask(codes)      # a truth value for each row

`common.schema.query` describes the language. A condition says something about codes, so it holds
for real rows, synthetic rows and rules of a schema alike. A range that cuts through a bin is
refused: the rows of a bin are known together only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from common.schema import query as syntax
from common.schema.attribute import Attribute
from common.schema.codes import Codes
from common.schema.vocabulary import AttributeVocabulary, unknown_attribute

if TYPE_CHECKING:  # so that a schema may have conditions of its own
    from common.schema.schema import Schema

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class CodeTest:
    """Which codes of one attribute are allowed."""

    attribute: int
    allowed: Mask

    def mask(self, codes: Codes) -> Mask:
        """The rows whose code is allowed."""
        return self.allowed[codes.columns[self.attribute]]


@dataclass(frozen=True, slots=True)
class Join:
    """Parts that must all hold, or of which one must; or parts of which not all may hold."""

    parts: tuple[CodeTest | Join, ...]
    every: bool
    negated: bool = False

    def mask(self, codes: Codes) -> Mask:
        """The rows for which it holds."""
        start = np.full(codes.rows, self.every)
        join = np.logical_and if self.every else np.logical_or
        found: Mask = reduce(join, (part.mask(codes) for part in self.parts), start)
        return ~found if self.negated else found


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that a row of a schema satisfies or does not."""

    text: str
    attributes: tuple[str, ...]  # names, in the order of the schema
    root: CodeTest | Join

    def mask(self, codes: Codes) -> Mask:
        """A truth value for each row; the codes have all columns of the schema."""
        return self.root.mask(codes)

    def matching(self, codes: Codes) -> int:
        """How many rows satisfy the condition."""
        return int(self.mask(codes).sum())

    def allowed(self, schema: Schema) -> Mask:
        """Which codes satisfy a condition that is about a single attribute."""
        place = schema.position(self.attributes[0])
        size = schema.sizes[place]
        columns = [np.zeros(size, dtype=np.int64)] * len(schema.sizes)
        columns[place] = np.arange(size)
        return self.mask(Codes.from_columns(columns, schema.sizes))


def parse(text: str, schema: Schema) -> Condition:
    """Compile a condition; an empty one holds for every row. Errors point at the place."""
    expression = syntax.parse(text)
    words = {
        name: (place, AttributeVocabulary(attribute, _positions(attribute)))
        for place, (name, attribute) in enumerate(zip(schema.names, schema.attributes, strict=True))
        if name in {each.name.text for each in syntax.predicates(expression)}
    }
    compiler = _Compiler(text, schema.names, words)
    root = compiler.compile(expression)
    used = tuple(name for name in schema.names if name in words)
    return Condition(text, used, root)


@dataclass(frozen=True, slots=True)
class _Compiler:
    """Looks the words of a text up."""

    text: str
    names: tuple[str, ...]
    words: dict[str, tuple[int, AttributeVocabulary]]

    def compile(self, expression: syntax.Expression) -> CodeTest | Join:
        match expression:
            case syntax.Predicate():
                return self._test(expression)
            case syntax.Not(part=part):
                return Join((self.compile(part),), every=True, negated=True)
            case syntax.Every(parts=parts):
                return Join(self._all(parts), every=True)
            case syntax.Either(parts=parts):
                return Join(self._all(parts), every=False)

    def _all(self, parts: Iterable[syntax.Expression]) -> tuple[CodeTest | Join, ...]:
        return tuple(self.compile(part) for part in parts)

    def _test(self, predicate: syntax.Predicate) -> CodeTest:
        known = self.words.get(predicate.name.text)
        if known is None:
            unknown_attribute(self.text, predicate.name, self.names)
        place, vocabulary = known
        low, high = vocabulary.resolve(predicate, self.text)
        positions = _positions(vocabulary.attribute)
        allowed = np.zeros(vocabulary.attribute.size, dtype=np.bool_)
        allowed[positions[low:high]] = True
        return CodeTest(place, allowed)


def _positions(attribute: Attribute) -> NDArray[np.intp]:
    """The codes in the order in which values and groups are intervals."""
    if attribute.ordered:
        return np.arange(attribute.size)
    return np.array(attribute.hierarchy.root.codes(), dtype=np.intp)
