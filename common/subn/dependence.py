"""How far every pair of attributes is from independence, as a sum that costs little.

Each party counts, for every pair, half the L1 distance between its own table of the pair (values in
groups) and its rows times the product of the PUBLISHED margins. A replaced row moves such a
distance by at most 1, so all pairs together have a sensitivity of C(d, 2), however many cells their
tables have. The reference is the same for all parties: if their tables differ, that is dependence
between attribute and party, and does not look like dependence between attributes only.

Integers throughout: distances are rounded down after exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isqrt

import numpy as np

from common.marginals import count
from common.schema.codes import Codes
from common.subn.grouping import without_noise_floor
from common.subn.steps import Attributes, Counts, PartyRows

Groups = tuple[int, ...]  # the group of each value of an attribute

_UNIT = 1 << 10  # square roots are taken in steps of this fraction


def group_weights(histogram: Counts, groups: Groups, rows: int) -> tuple[int, ...]:
    """A noisy margin as non-negative weights of groups; equal ones if nothing is left of it."""
    left = without_noise_floor(histogram, rows)
    weights = np.zeros(max(groups) + 1, dtype=np.int64)
    np.add.at(weights, np.array(groups, dtype=np.intp), left)
    return tuple(weights.tolist()) if weights.any() else (1,) * len(weights)


@dataclass(frozen=True, slots=True)
class DependenceScores:
    """Every pair's distance from independence, in rows.

    Attributes:
        groups: for every attribute, the group of each of its values.
        weights: for every attribute, non-negative public weights of its groups, not all zero.
    """

    groups: tuple[Groups, ...]
    weights: tuple[tuple[int, ...], ...]

    @property
    def pairs(self) -> list[Attributes]:
        """In the order of the answer."""
        return list(combinations(range(len(self.groups)), 2))

    @property
    def count(self) -> int:
        """How many tables: one for each pair."""
        return self.cells

    @property
    def cells(self) -> int:
        """One number per pair."""
        return len(self.groups) * (len(self.groups) - 1) // 2

    def limit(self, rows: int) -> int:
        """Two tables of as many rows are at most all rows apart."""
        return rows

    def answer(self, data: PartyRows) -> Counts:
        """The party's exact distances, rounded down."""
        columns = [
            np.array(own, dtype=np.int64)[column]
            for own, column in zip(self.groups, data.codes().columns, strict=True)
        ]
        codes = Codes.from_columns(columns, tuple(len(own) for own in self.weights))
        tables = count(codes, self.pairs)
        return np.array(
            [
                _distance(table, self.weights[a], self.weights[b], data.rows)
                for (a, b), table in zip(self.pairs, tables, strict=True)
            ],
            dtype=np.int64,
        )

    def in_excess(self, total: Counts, rows: int, parties: int) -> list[int]:
        """The summed distances less what independent attributes would show, by sampling alone.

        A cell that expects p of `rows` rows differs from it by sqrt(2 p (1 - p) rows / pi) on
        average, times the square root of the number of parties if each compares for itself.
        """
        return [
            int(distance) - _by_chance(self.weights[a], self.weights[b], rows * parties)
            for (a, b), distance in zip(self.pairs, total, strict=True)
        ]

    def describe(self) -> str:
        """The request in full."""
        return f"distances of all pairs in groups {self.groups} from margins {self.weights}"


def _distance(table: Counts, first: Sequence[int], second: Sequence[int], rows: int) -> int:
    """floor(half the L1 distance); Python's integers, because the products pass 64 bits."""
    scale = sum(first) * sum(second)
    counts: list[list[int]] = table.tolist()
    apart = sum(
        abs(counts[i][j] * scale - rows * one * other)
        for i, one in enumerate(first)
        for j, other in enumerate(second)
    )
    return apart // (2 * scale)


def _by_chance(first: Sequence[int], second: Sequence[int], rows: int) -> int:
    scale = sum(first) * sum(second)
    roots = sum(
        isqrt(rows * one * other * (scale - one * other) * 2 * _UNIT**2 * 113 // (355 * scale**2))
        for one in first
        for other in second
    )
    return roots // (2 * _UNIT)
