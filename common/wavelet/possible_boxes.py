"""Boxes of cells without what the rules of a schema make impossible.

The true count of an impossible cell is 0. A box of which every cell is impossible has the count 0,
without noise. A box that ends in impossible cells holds as many rows as the smaller box without
them: both noisy counts are unbiased and have a known variance. Which of the two has less noise
depends on the transforms; `common.wavelet.noisy_matrix` takes that one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.schema.rules import Possible
from common.wavelet.axis import Axis

Boxes = NDArray[np.intp]


@dataclass(frozen=True, eq=False, slots=True)
class PossibleBoxes:
    """The rules by the positions of cells.

    Attributes:
        rules: of each rule, its attributes, and whether each cell of their positions is possible.
        fixed: the attributes whose ranges must stay as they are: the leaves below one node.
    """

    rules: tuple[tuple[tuple[int, ...], NDArray[np.bool_]], ...]
    fixed: frozenset[int]

    @classmethod
    def of(cls, possible: Possible, axes: Sequence[Axis]) -> PossibleBoxes:
        """Look the rules up along the axes of a matrix."""
        rules = []
        for rule in possible.rules:
            table = rule.table
            for place, attribute in enumerate(rule.attributes):
                table = np.take(table, axes[attribute].leaf_codes, axis=place)
            rules.append((rule.attributes, table))
        fixed = (a for a, axis in enumerate(axes) if axis.kind == "nominal")
        return cls(tuple(rules), frozenset(fixed))

    def shrink(self, boxes: Boxes) -> Boxes:
        """Return each box without impossible cells at its ends; an empty one if all of them are."""
        shrunk = boxes.copy()
        for box in shrunk:
            while self._cut(box):
                pass
        return shrunk

    def _cut(self, box: Boxes) -> bool:
        """Cut impossible ends off one box, in place; whether there were any."""
        changed = False
        for attributes, table in self.rules:
            inside = table[tuple(slice(*box[a]) for a in attributes)]
            if inside.size and not inside.any():
                box[:, 1] = box[:, 0]
                return False
            for place, attribute in enumerate(attributes):
                if attribute in self.fixed or not inside.size:
                    continue
                others = tuple(axis for axis in range(inside.ndim) if axis != place)
                there = np.flatnonzero(inside.any(axis=others))
                low, high = box[attribute]
                ends = low + there[0], low + there[-1] + 1
                if ends != (low, high):
                    box[attribute] = ends
                    changed = True
                    break
            if changed:
                return True
        return False
