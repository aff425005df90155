"""Few tables where the dependence is: which families of attributes to count, and how finely.

The noise in a sum grows with the number of its tables, so pairs that show no dependence are not
asked for. The strongest pairs form a forest; an attribute gets more than one parent only where the
larger table still fits the cells that the budget can bear. All decisions are made on integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np

from common.marginals import count
from common.schema.codes import Codes
from common.subn.dependence import Groups
from common.subn.steps import Attributes, Counts, PartyRows

MOST_PARENTS = 3
GROUPS_WITH_PARENTS = 5  # a further parent must leave every attribute this many groups


@dataclass(frozen=True, slots=True)
class Family:
    """A table over a child and its parents, each seen in groups of values.

    Attributes:
        attributes: the child, then its parents.
        groups: the group of each value, attribute by attribute.
    """

    attributes: Attributes
    groups: tuple[Groups, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """How many groups every attribute of the family has."""
        return tuple(max(own) + 1 for own in self.groups)


@dataclass(frozen=True, slots=True)
class FamilyTables:
    """The contingency tables of some families, one after the other."""

    families: tuple[Family, ...]

    @property
    def count(self) -> int:
        """How many tables."""
        return len(self.families)

    @property
    def cells(self) -> int:
        """All tables' cells together."""
        return sum(prod(family.shape) for family in self.families)

    def limit(self, rows: int) -> int:
        """A cell counts at most all rows."""
        return rows

    def answer(self, data: PartyRows) -> Counts:
        """The exact counts."""
        codes = data.codes()
        return np.concatenate([_count(family, codes) for family in self.families])

    def tables(self, vector: Counts) -> list[Counts]:
        """A sum of answers, cut into tables of their proper shapes."""
        shapes = [family.shape for family in self.families]
        parts = np.split(vector, np.cumsum([prod(shape) for shape in shapes])[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]

    def describe(self) -> str:
        """The request in full."""
        return f"tables of {self.families}"


def _count(family: Family, codes: Codes) -> Counts:
    columns = [
        np.array(own, dtype=np.int64)[codes.columns[attribute]]
        for attribute, own in zip(family.attributes, family.groups, strict=True)
    ]
    grouped = Codes.from_columns(columns, family.shape)
    return count(grouped, [tuple(range(len(columns)))])[0].reshape(-1)


def choose_families(
    scores: Sequence[int], sizes: Sequence[int], *, least: int, cells: int
) -> tuple[Attributes, ...]:
    """Children with their parents, parents' own families first; at least the strongest pair.

    Prim's algorithm on the scores, from the strongest pair. An attribute whose best link to what is
    there falls short of `least` starts a tree of its own. Further parents come from a family that
    holds the earlier ones, show twice `least`, and leave a table of no more than `cells`.

    Args:
        scores: of every pair, in the order of `itertools.combinations`.
        sizes: the domain size of every attribute.
        least: the score that a pair must show.
        cells: how many cells a table may have.
    """
    score: dict[tuple[int, int], int] = {}
    for (a, b), value in zip(combinations(range(len(sizes)), 2), scores, strict=True):
        score[a, b] = score[b, a] = value
    first, second = min(score, key=lambda pair: (-score[pair], pair))
    placed = [first, second]
    families: list[Attributes] = [(second, first)]
    while len(placed) < len(sizes):
        links = [(c, p) for c in range(len(sizes)) if c not in placed for p in placed]
        child, parent = min(links, key=lambda pair: (-score[pair], pair))
        placed.append(child)
        if score[child, parent] < least:
            continue
        family = [child, parent]
        while len(family) <= MOST_PARENTS:
            more = {
                other
                for known in families
                if set(family[1:]) <= set(known)
                for other in known
                if other not in family
                and score[child, other] >= 2 * least
                and prod(min(sizes[a], GROUPS_WITH_PARENTS) for a in (*family, other)) <= cells
            }
            if not more:
                break
            family.append(min(more, key=lambda other: (-score[child, other], other)))
        families.append(tuple(family))
    return tuple(families)


def groups_that_fit(sizes: Sequence[int], cells: int) -> int:
    """The most groups per attribute, at least 2, with which a table has no more than `cells`."""
    groups = 2
    while groups < max(sizes) and prod(min(size, groups + 1) for size in sizes) <= cells:
        groups += 1
    return groups
