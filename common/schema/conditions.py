"""Conditions on rows, like "age >= 65 and not smoker = true", compiled by a schema.

    condition = parse("age in 20..39 or income is missing", schema)
    condition.attributes       # ("age", "income")
    condition.mask(codes)      # a truth value for each row

`common.schema.query` describes the language. A condition says something about codes, so it holds
for real rows, synthetic rows and rules of a schema alike. A range that cuts through a bin is
refused: the rows of a bin are known together only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from common.schema import query as syntax
from common.schema.attribute import Attribute
from common.schema.codes import Codes
from common.schema.limits import MOST_RULE_CELLS, check_most
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
        return self.allowed[codes.columns[self.attribute]]


@dataclass(frozen=True, slots=True)
class Join:
    """Parts that must all hold, or of which one must; or parts of which not all may hold."""

    parts: tuple[CodeTest | Join, ...]
    every: bool
    negated: bool = False

    def mask(self, codes: Codes) -> Mask:
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
        return int(self.mask(codes).sum())


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


@dataclass(frozen=True, eq=False, slots=True)
class CellWeights:
    """A weight of at least 0 for every cell of the table of some attributes."""

    attributes: tuple[int, ...]  # their positions in the schema, each once
    table: NDArray[np.float64]  # an axis for each of them

    def of(self, codes: Codes) -> NDArray[np.float64]:
        """Return the weight of every row."""
        found: NDArray[np.float64] = self.table[tuple(codes.columns[a] for a in self.attributes)]
        return found


def weights_of(condition: Condition, sizes: Sequence[int]) -> list[CellWeights]:
    """Return a condition as weights: 1 where it holds, 0 where it does not."""
    return [CellWeights(*cells_of(part, sizes)) for part in _conjuncts(condition.root)]


def cells_of(
    part: CodeTest | Join, sizes: Sequence[int]
) -> tuple[tuple[int, ...], NDArray[np.float64]]:
    """Return the attributes of a part of a condition, and 1 in the cells where it holds."""
    attributes = tuple(sorted(set(_attributes(part))))
    shape = tuple(sizes[a] for a in attributes)
    check_most("condition: cells of its attributes together", prod(shape), MOST_RULE_CELLS)
    columns = [np.zeros(prod(shape), dtype=np.intp)] * len(sizes)
    for a, values in zip(attributes, np.indices(shape).reshape(len(shape), -1), strict=True):
        columns[a] = values
    holds: Mask = part.mask(Codes.from_columns(columns, sizes))
    return attributes, holds.astype(np.float64).reshape(shape)


def _conjuncts(part: CodeTest | Join) -> Iterator[CodeTest | Join]:
    if isinstance(part, Join) and part.every and not part.negated:
        for each in part.parts:
            yield from _conjuncts(each)
    else:
        yield part


def _attributes(part: CodeTest | Join) -> Iterator[int]:
    if isinstance(part, CodeTest):
        yield part.attribute
    else:
        for each in part.parts:
            yield from _attributes(each)
