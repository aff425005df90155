"""Weights of the joint values of a few attributes: a condition on rows as a table of 0 and 1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from common.schema.codes import Codes
from common.schema.conditions import CodeTest, Condition, Join, Mask
from common.schema.limits import MOST_RULE_CELLS, check_most


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
