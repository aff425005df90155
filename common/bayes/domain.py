"""What is public about the attributes: how many values each has, and how those may be grouped.

A `View` is one attribute at one level of its hierarchy: level 0 keeps every value, each further
level merges values into fewer groups. Children of a network always stand at level 0; parents may be
generalised. All views of a table together form the *expanded* table, which is what is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from common.errors import LocalError
from common.schema.codes import CodeColumn, Codes, code_dtype
from common.schema.hierarchy import Hierarchy

LevelMap = NDArray[np.intp]  # group of every value


class View(NamedTuple):
    """One attribute, generalised to one level of its hierarchy (0 = not at all)."""

    attribute: int
    level: int = 0


@dataclass(frozen=True, eq=False)
class Domain:
    """The level maps of every attribute, finest first; level 0 is the identity.

    Every level is a partition of the attribute's values, coarser than and nested in the level
    before it. Public knowledge, never learnt from the rows.
    """

    levels: tuple[tuple[LevelMap, ...], ...]

    def __post_init__(self) -> None:
        """Refuse levels that are not nested partitions of strictly decreasing size."""
        for attribute, maps in enumerate(self.levels):
            if not maps or not np.array_equal(maps[0], np.arange(len(maps[0]))):
                raise LocalError(f"attribute {attribute}: level 0 must keep every value apart")
            for finer, coarser in pairwise(maps):
                _check_nested(attribute, finer, coarser)

    @cached_property
    def level_sizes(self) -> tuple[tuple[int, ...], ...]:
        """The number of groups of each level, by attribute."""
        return tuple(tuple(int(m.max()) + 1 for m in maps) for maps in self.levels)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(levels[0] for levels in self.level_sizes)

    @classmethod
    def flat(cls, sizes: Sequence[int]) -> Domain:
        return cls(tuple((np.arange(size),) for size in sizes))

    @classmethod
    def of(cls, hierarchies: Sequence[Hierarchy]) -> Domain:
        return cls(tuple(hierarchy.levels for hierarchy in hierarchies))

    @property
    def width(self) -> int:
        return len(self.levels)

    def without_levels(self) -> Domain:
        return Domain(tuple(maps[:1] for maps in self.levels))

    def height(self, attribute: int) -> int:
        return len(self.levels[attribute])

    def size(self, view: View) -> int:
        return self.level_sizes[view.attribute][view.level]

    def shape(self, views: Sequence[View]) -> tuple[int, ...]:
        return tuple(self.size(view) for view in views)

    @property
    def views(self) -> list[View]:
        """Every view, attribute by attribute, finest first: the columns of the expanded table."""
        return [View(a, level) for a, maps in enumerate(self.levels) for level in range(len(maps))]

    def regroup(self, fine: View, coarse: View) -> LevelMap:
        """Return the map from the groups of one view to those of a coarser one of its attribute."""
        if fine.attribute != coarse.attribute or fine.level > coarse.level:
            raise LocalError(f"{coarse} is not a generalisation of {fine}")
        maps = self.levels[fine.attribute]
        groups = np.empty(self.size(fine), dtype=np.intp)
        groups[maps[fine.level]] = maps[coarse.level]
        return groups

    def expand(self, codes: Codes) -> Codes:
        """Return every attribute at every level: one column per view, in the order of `views`."""
        if codes.sizes != self.sizes:
            raise LocalError(f"the rows have domains {codes.sizes}, not {self.sizes}")
        columns: list[CodeColumn] = []
        for view in self.views:
            column = codes.columns[view.attribute]
            if view.level:
                groups = self.levels[view.attribute][view.level]
                column = np.ascontiguousarray(groups[column], dtype=code_dtype(self.size(view)))
            columns.append(column)
        return Codes(tuple(columns), self.shape(self.views))


def _check_nested(attribute: int, finer: LevelMap, coarser: LevelMap) -> None:
    """Refuse a group of the finer level that is not inside one group of the coarser level."""
    fine_size, coarse_size = int(finer.max()) + 1, int(coarser.max()) + 1
    group_of = np.full(fine_size, -1)
    group_of[finer] = coarser
    if not np.array_equal(group_of[finer], coarser) or (group_of < 0).any():
        raise LocalError(f"attribute {attribute}: a level is not nested in the one below it")
    if coarse_size >= fine_size or len(np.unique(coarser)) != coarse_size:
        raise LocalError(f"attribute {attribute}: each level must have fewer groups, none empty")
