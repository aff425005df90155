"""How far noise alone moves the columns and the pairs of columns of a release: one line for each.

A method may count a column several times, in tables of its own and in tables with others. What is
reported is the table that tells most: the one out of which the column, or the pair, can be summed
with the least noise. A model that is fitted to all tables together is at least as close.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

from common.release.diagnostics import Measured, noise_distance

_DROWNED = 1 / 3
_MOST_NAMED = 6


@dataclass(frozen=True, slots=True)
class ExpectedError:
    """What noise does to the distribution of a column, or of a pair of columns."""

    attributes: tuple[int, ...]  # one position in the schema, or two
    cells: int  # of their table
    deviation: float  # the standard deviation of the noise in a count, in rows
    distance: float  # the expected total variation distance to the exact distribution, at most 1
    grouped: bool = False  # whether values were counted in groups

    @property
    def rank(self) -> tuple[bool, float, float]:
        """Less for the table that tells more."""
        return self.grouped, self.distance, self.deviation

    def named(self, names: Sequence[str]) -> str:
        return " and ".join(names[attribute] for attribute in self.attributes)


def expected_errors(tables: Iterable[Measured], order: int) -> list[ExpectedError]:
    """The least error of every column (order 1) or pair of columns (order 2) that was counted.

    A column that was only counted in groups of its values, or in bits, is left out: how its rows
    fall to the values of a group is no question of noise.
    """
    best: dict[tuple[int, ...], ExpectedError] = {}
    for table in tables:
        for error in _within(table, order):
            known = best.get(error.attributes)
            if known is None or error.rank < known.rank:
                best[error.attributes] = error
    found = (best[key] for key in sorted(best))
    return [error for error in found if order > 1 or not error.grouped]


def noise_by_name(tables: Iterable[Measured], names: Sequence[str]) -> dict[str, float]:
    """The deviation of the count of one value of each column that was counted value by value."""
    return {error.named(names): error.deviation for error in expected_errors(tables, 1)}


def _within(table: Measured, order: int) -> Iterator[ExpectedError]:
    """The errors of all sets of so many attributes that can be summed out of a table."""
    if table.in_bits or (not table.summable and len(table.attributes) != order):
        return
    for axes in combinations(range(len(table.attributes)), order):
        cells = prod(table.shape[axis] for axis in axes)
        deviation = table.deviation * math.sqrt(table.cells / cells)
        distance = noise_distance(cells * deviation, table.rows)
        grouped = any(table.grouped[axis] for axis in axes)
        attributes = tuple(sorted(table.attributes[axis] for axis in axes))
        yield ExpectedError(attributes, cells, deviation, distance, grouped)


def caution(errors: Sequence[ExpectedError], names: Sequence[str]) -> str | None:
    """What users of the release must know first: that some columns are noise. None if all is well.

    Noise that moves a third of the rows of a column leaves little of what it was to tell.
    """
    drowned = [error.named(names) for error in errors if error.distance > _DROWNED]
    if not drowned:
        return None
    named = "; ".join(drowned[:_MOST_NAMED]) + ("; ..." if len(drowned) > _MOST_NAMED else "")
    return (
        f"Mostly noise: in {len(drowned)} of {len(errors)} columns ({named}) noise alone is "
        "expected to move more than a third of the rows. More rows, a larger epsilon, or fewer "
        "bins and values would help."
    )
