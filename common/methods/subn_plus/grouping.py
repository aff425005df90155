"""Coarser domains: neighbouring values of an attribute joined into few groups of similar weight.

Integer arithmetic throughout: every party derives the groups from the published noisy counts and
compares, so machines must not differ in the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from common.crypto.framing import frame
from common.study.requests import Attributes, Counts, PartyRows, TableShape


def without_noise_floor(counts: Counts, rows: int) -> Counts:
    """Non-negative counts of at most `rows` in total: one amount is taken off every cell."""
    low, high = -1, max(int(counts.max(initial=0)), 0)
    while high - low > 1:  # the least amount, at least 0, that leaves no more than `rows`
        middle = (low + high) // 2
        if int(np.maximum(counts - middle, 0).sum()) <= rows:
            high = middle
        else:
            low = middle
    return np.maximum(counts - high, 0)


def halves(counts: Counts, rows: int) -> tuple[int, ...]:
    """The half of each value: two runs of neighbouring values whose weights differ least.

    Args:
        counts: noisy counts of the attribute's values.
        rows: how many rows they stand for.
    """
    up_to = np.cumsum(without_noise_floor(counts, rows))
    off = np.abs(2 * up_to[:-1] - up_to[-1])
    cut = 1 + int(off.argmin()) if off.size else 1
    return (0,) * cut + (1,) * (len(counts) - cut)


def even_groups(counts: Counts, rows: int, groups: int) -> tuple[int, ...]:
    """The group of each value: runs of neighbouring values of about one part in `groups` each.

    A value that outweighs several groups makes them one, so an attribute with one frequent value
    has few groups: rare ones would show little but noise. At least two, if there are two values.

    Args:
        counts: noisy counts of the attribute's values.
        rows: how many rows they stand for.
        groups: the most groups.
    """
    if len(counts) <= groups:
        return tuple(range(len(counts)))
    weights = without_noise_floor(counts, rows)
    up_to = np.cumsum(weights)
    middles, total = 2 * up_to - weights, max(2 * int(up_to[-1]), 1)
    places = np.minimum(middles * groups // total, groups - 1)
    found, numbers = np.unique(places, return_inverse=True)
    return tuple(numbers.tolist()) if len(found) > 1 else halves(counts, rows)


@dataclass(frozen=True)
class GroupedTables:
    """The contingency tables of some attribute sets, every attribute seen in groups of values.

    Attributes:
        sets: the attributes of each table.
        groups: for every attribute of the study, the group of each of its values.
    """

    sets: tuple[Attributes, ...]
    groups: tuple[tuple[int, ...], ...]

    unit: ClassVar[int] = 1

    @property
    def shown(self) -> Sequence[TableShape]:
        """The tables."""
        return self.tables

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many groups every attribute has."""
        return tuple(max(own) + 1 for own in self.groups)

    @cached_property
    def tables(self) -> tuple[TableShape, ...]:
        """A table for each set."""
        sizes, grouped = self.sizes, [self.map_of(a) is not None for a in range(len(self.groups))]
        return tuple(
            TableShape(own, tuple(sizes[a] for a in own), tuple(grouped[a] for a in own))
            for own in self.sets
        )

    @property
    def links(self) -> tuple[Attributes, ...]:
        """The sets."""
        return self.sets

    @cached_property
    def cells(self) -> int:
        """All tables' cells together."""
        return sum(table.cells for table in self.tables)

    @property
    def canonical(self) -> bytes:
        """The sets and the groups."""
        sets, groups = (frame(map(frame, each)) for each in (self.sets, self.groups))
        return frame(("tables of groups", sets, groups))

    def limit(self, rows: int) -> int:
        """A cell counts at most all rows."""
        return rows

    def answer(self, data: PartyRows) -> Counts:
        """The exact counts."""
        groups = {a: own for a, own in enumerate(self.groups) if own != tuple(range(len(own)))}
        return np.concatenate([table.reshape(-1) for table in data.count(self.sets, groups)])

    def map_of(self, attribute: int) -> NDArray[np.intp] | None:
        """The attribute's groups as an array; None if it keeps all its values."""
        own = self.groups[attribute]
        return None if own == tuple(range(len(own))) else np.array(own, dtype=np.intp)
