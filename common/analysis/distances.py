"""Total variation distances of marginals: half the L1 distance of two tables' distributions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from common.marginals import count
from common.schema import Codes

MEANING = (
    "Distances are total variation: the proportion of rows that would have to change. "
    "0 is perfect, 1 is disjoint."
)
MOST_MARGINALS = 3_000


@dataclass(frozen=True, slots=True)
class Distances:
    """Total variation distances of the marginals of one order."""

    order: int
    average: float
    worst: float
    worst_attributes: tuple[str, ...]
    compared: int
    existing: int

    def words(self, what: str) -> str:
        """Say how far marginals are apart."""
        return (
            f"{what}: average distance {self.average:.4f}, worst {self.worst:.4f} "
            f"({', '.join(self.worst_attributes)}), {self.compared:,} of {self.existing:,} compared"
        )


def marginal_sets(width: int, *, order: int) -> list[tuple[int, ...]]:
    """Return all attribute sets of the order, or an evenly spaced `MOST_MARGINALS` of them."""
    return _spaced(list(combinations(range(width), order)))


def _spaced(sets: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    if len(sets) <= MOST_MARGINALS:
        return list(sets)
    return [sets[i] for i in np.linspace(0, len(sets) - 1, MOST_MARGINALS).astype(int)]


def total_variation(real: Codes, synthetic: Codes, sets: Sequence[Sequence[int]]) -> list[float]:
    """Return half the L1 distance of the two tables' distributions, per attribute set."""
    pairs = zip(count(real, sets), count(synthetic, sets), strict=True)
    return [float(np.abs(a / real.rows - b / synthetic.rows).sum() / 2) for a, b in pairs]


def distances_of(
    real: Codes, synthetic: Codes, names: Sequence[str], sets: Sequence[tuple[int, ...]]
) -> Distances:
    """Compare the marginals of attribute sets of one order, at most `MOST_MARGINALS` of them."""
    compared = _spaced(sets)
    values = total_variation(real, synthetic, compared)
    worst = int(np.argmax(values))
    return Distances(
        order=len(compared[worst]),
        average=float(np.mean(values)),
        worst=values[worst],
        worst_attributes=tuple(names[p] for p in compared[worst]),
        compared=len(compared),
        existing=len(sets),
    )
