"""How often two attributes are in the same half: the cheapest look at every pair.

Each attribute's values are cut into two halves. For every pair of attributes one number is counted:
the rows in which both are in their first half, or both in their second. The margins of the halves
are known, so this number makes the whole table of the pair.

A replaced row that changes sides in k of d attributes moves the k (d - k) counts of the pairs of
which exactly one changed: where both did, they agree or differ as before. All counts together have
an L1 sensitivity of d^2 / 4, where tables of the pairs would have d (d - 1). NOCD's views are
between the two, and show more than pairs: they are better for more than two groups, and for bits
most of whose combinations never occur (docs/research/subn-notes.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import ClassVar

import numpy as np

from common.crypto.framing import frame
from common.methods.subn_plus.dependence import Departure, Pair
from common.methods.subn_plus.grouping import GroupedTables
from common.methods.subn_plus.table_loss import Measurement
from common.study.requests import Counts, PartyRows, TableShape, split_tables

Weights = Sequence[Sequence[int]]  # of both halves of every attribute

_SHAPE = (2, 2)


@dataclass(frozen=True, slots=True)
class Agreements:
    """For every pair of attributes, the rows in which both are in their first or second half.

    Attributes:
        halves: of each value of every attribute, 0 or 1. An attribute of one value has no halves
            and is in no pair.
    """

    halves: tuple[tuple[int, ...], ...]

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The pairs, in the order of their counts."""
        cut = (attribute for attribute, own in enumerate(self.halves) if max(own) > 0)
        return tuple(combinations(cut, 2))

    tables: ClassVar[Sequence[TableShape]] = ()
    unit: ClassVar[int] = 2  # a row that agrees moves every cell by half

    @property
    def shown(self) -> Sequence[TableShape]:
        """A table of halves for each pair: its margins are known."""
        return GroupedTables(self.pairs, self.halves).tables

    @property
    def links(self) -> tuple[Pair, ...]:
        """The pairs."""
        return self.pairs

    @property
    def cells(self) -> int:
        """One number for a pair."""
        return len(self.pairs)

    def limit(self, rows: int) -> int:
        """At most all rows agree."""
        return rows

    def answer(self, data: PartyRows) -> Counts:
        """The exact counts."""
        request = GroupedTables(self.pairs, self.halves)
        tables = split_tables(request.tables, request.answer(data))
        return np.array([np.trace(table) for table in tables])

    @property
    def canonical(self) -> bytes:
        """The halves."""
        return frame(("agreements of halves", *map(frame, self.halves)))

    def departures(
        self, agreed: Counts, weights: Weights, variance: Fraction, rows: int
    ) -> dict[Pair, Departure]:
        """How far every pair is from independence, exactly.

        Args:
            agreed: noisy counts.
            weights: of both halves, from the published margins.
            variance: of the noise in one count.
            rows: how many rows are counted.
        """
        return {
            pair: Departure(excess**2 - variance, variance, _SHAPE)
            for pair, excess in self._excesses(agreed, weights, rows)
        }

    def measurements(
        self, agreed: Counts, weights: Weights, variance: float, rows: int
    ) -> list[Measurement]:
        """Every pair as a table of halves with the published margins.

        Such a table is moved by half of what the agreements exceed independence by, in all four
        cells: its squared error is that of the count.
        """
        maps = GroupedTables(self.pairs, self.halves)
        found = []
        for pair, excess in self._excesses(agreed, weights, rows):
            first, second = (np.array(weights[a]) / sum(weights[a]) for a in pair)
            moved = float(excess) / 2
            table = rows * np.outer(first, second) + moved * np.array([[1, -1], [-1, 1]])
            found.append(Measurement(pair, tuple(maps.map_of(a) for a in pair), table, variance))
        return found

    def _excesses(
        self, agreed: Counts, weights: Weights, rows: int
    ) -> Iterator[tuple[Pair, Fraction]]:
        """By how much more rows agree than would if the two were independent."""
        for (a, b), count in zip(self.pairs, agreed, strict=True):
            together = sum(one * other for one, other in zip(weights[a], weights[b], strict=True))
            alone = Fraction(rows * together, sum(weights[a]) * sum(weights[b]))
            yield (a, b), int(count) - alone
