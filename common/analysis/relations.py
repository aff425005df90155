"""Pairs of columns: which are related in the synthetic rows.

A picture of all dependences in some rows would show some that were not measured: only those count
that are significant (`common.bayes.contingency`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from common.bayes.contingency import cramers_v, significant
from common.marginals import count
from common.schema import Codes
from common.schema.linked import LinkedCodes

_FEW = 3  # with fewer attributes it is nothing unusual that they are independent


@dataclass(frozen=True, slots=True)
class Relations:
    """What the rows show."""

    strength: NDArray[np.float64]  # Cramer's V where it is significant; 0 for other pairs
    pairs: int
    related: int  # how many of them are significant
    alone: tuple[str, ...]  # the attributes that are related to no other
    of_people: bool = False  # whether the rows are people, whose events are not in it

    def caution(self) -> str | None:
        """Say which attributes the rows relate to no other."""
        width = len(self.strength)
        if width < _FEW or not self.alone:
            return None
        names, whose = ", ".join(self.alone), " of people" if self.of_people else ""
        return (
            f"No relations: {len(self.alone)} of {width} columns{whose} ({names}) without a "
            f"significant relation to any other column{whose} in these rows. Either noise hid such "
            "relations, or there are none. Use these columns one at a time. More rows, a larger "
            "epsilon or fewer columns would help."
        )


def relations(names: Sequence[str], codes: Codes) -> Relations:
    """Test every pair of attributes."""
    strength = dependence(codes, significant_only=True)
    partners = (strength > 0).sum(axis=1) - 1
    return Relations(
        strength=strength,
        pairs=math.comb(codes.width, 2),
        related=int(partners.sum()) // 2,
        alone=tuple(name for name, others in zip(names, partners, strict=True) if others == 0),
        of_people=isinstance(codes, LinkedCodes),
    )


def dependence(codes: Codes, *, significant_only: bool = False) -> NDArray[np.float64]:
    """Compute Cramer's V of every pair: 0 where independent, 1 where one determines the other."""
    pairs = list(combinations(range(codes.width), 2))
    result = np.eye(codes.width)
    for (i, j), counts in zip(pairs, count(codes, pairs), strict=True):
        if not significant_only or significant(counts, among=len(pairs)):
            result[i, j] = result[j, i] = cramers_v(counts)
    return result
