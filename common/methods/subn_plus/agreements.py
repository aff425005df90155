"""How often two attributes are in the same half: the cheapest look at every pair.

Each attribute's values are cut into two halves. For every pair of attributes one number is counted:
the rows in which both are in their first half, or both in their second. The margins of the halves
are known, so this number makes the whole table of the pair.

A replaced row that changes sides in k of d attributes moves the k (d - k) counts of the pairs of
which exactly one changed: where both did, they agree or differ as before. All counts together have
an L1 sensitivity of d^2 / 4, where tables of the pairs would have d (d - 1). NOCD's views are
between the two, and show more than pairs: they are better for more than two groups, and for bits
most of whose combinations never occur (docs/research/subn-notes.md).

Where the margins are not known yet, the rows in each attribute's first half are counted, too. That
is its agreement with an attribute that is always in its first half: one more attribute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import ClassVar

import numpy as np

from common.crypto.framing import frame
from common.methods.subn_plus.dependence import Departure, Pair
from common.methods.subn_plus.grouping import GroupedTables
from common.methods.subn_plus.moment_loss import Moments
from common.privacy import sensitivity
from common.privacy.sensitivity import Sensitivity
from common.study.requests import Counts, PartyRows, TableShape, split_tables

Weights = Sequence[Sequence[int]]  # of both halves of every attribute

_SHAPE = (2, 2)


@dataclass(frozen=True, slots=True)
class Agreements:
    """For every pair of attributes, the rows in which both are in their first or second half.

    Attributes:
        halves: of each value of every attribute, 0 or 1. An attribute of one value has no halves
            and is in no pair.
        alone: whether the rows in the first half of each attribute are counted, too, after the
            pairs.
    """

    halves: tuple[tuple[int, ...], ...]
    alone: bool = False

    tables: ClassVar[Sequence[TableShape]] = ()
    unit: ClassVar[int] = 2  # a row that agrees moves every cell by half

    @property
    def cut(self) -> tuple[int, ...]:
        """The attributes that have two halves."""
        return tuple(attribute for attribute, own in enumerate(self.halves) if max(own) > 0)

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The pairs, in the order of their counts."""
        return tuple(combinations(self.cut, 2))

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
        """One number for a pair, and perhaps for an attribute."""
        return len(self.pairs) + self.alone * len(self.cut)

    @property
    def sensitivity(self) -> Sensitivity:
        """Of all counts together."""
        return sensitivity.agreements(len(self.cut) + self.alone)

    def limit(self, rows: int) -> int:
        """At most all rows agree."""
        return rows

    def answer(self, data: PartyRows) -> Counts:
        """The exact counts."""
        sets = (*self.pairs, *(((a,) for a in self.cut) if self.alone else ()))
        request = GroupedTables(sets, self.halves)
        tables = split_tables(request.tables, request.answer(data))
        return np.array([np.trace(own) if own.ndim == 2 else own[0] for own in tables])

    @property
    def canonical(self) -> bytes:
        """The halves."""
        return frame(("agreements of halves", int(self.alone), *map(frame, self.halves)))

    def weights(self, answer: Counts, rows: int) -> Weights:
        """Of both halves, from the counts of the attributes alone."""
        first = dict(zip(self.cut, answer[len(self.pairs) :].tolist(), strict=True))
        kept = {a: min(max(own, 0), rows) for a, own in first.items()}
        return [(kept.get(a, rows), rows - kept.get(a, rows)) for a in range(len(self.halves))]

    def departures(
        self, answer: Counts, weights: Weights, variance: Fraction, rows: int
    ) -> dict[Pair, Departure]:
        """How far every pair is from independence, exactly.

        With p and q of the rows in the first halves of two attributes, p q + (1 - p) (1 - q) of
        them agree by chance. An error in p moves that by 2 q - 1 times as much.

        Args:
            answer: noisy counts.
            weights: of both halves, from the published margins, or from the answer.
            variance: of the noise in one count.
            rows: how many rows are counted.
        """
        found = {}
        for (a, b), count in zip(self.pairs, answer[: len(self.pairs)].tolist(), strict=True):
            first, second = (Fraction(weights[own][0], sum(weights[own])) for own in (a, b))
            excess = count - rows * (first * second + (1 - first) * (1 - second))
            shared = (2 * first - 1) ** 2 + (2 * second - 1) ** 2 if self.alone else 0
            noise = variance * (1 + shared)
            found[a, b] = Departure(excess**2 - noise, noise, _SHAPE)
        return found

    def moments(self, answer: Counts, variance: float, rows: int) -> Moments:
        """The pairs' counts as contrasts of halves (`common.methods.subn_plus.contrasts`).

        A row's contrast of a pair is 1/4 in two cells and -1/4 in the others if it agrees, and the
        reverse if not. One number makes all four cells: together they have four times its squared
        error, in quarters of 2 / rows, so that each counts as if it had the number's variance.
        """
        signs = np.array([[1.0, -1.0], [-1.0, 1.0]]) / (4 * rows)
        return Moments(
            self.cut,
            tuple(np.array(self.halves[a], dtype=np.intp) for a in self.cut),
            [(2 * int(count) - rows) * signs for count in answer[: len(self.pairs)]],
            variance / rows**2,
        )
