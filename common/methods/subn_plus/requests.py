"""What subn+ asks of rows: tables, agreements and contrasts of attributes in groups of values.

Neighbouring values of an attribute are joined into few groups of similar weight, in integer
arithmetic: every party derives the groups from the published noisy counts and compares, so machines
must not differ in the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from common.crypto.framing import frame
from common.methods.designs.nocd import Pair
from common.methods.subn_plus.dependence import Departure
from common.methods.subn_plus.losses import Moments
from common.privacy import sensitivity
from common.privacy.sensitivity import CONTRAST_UNIT, Sensitivity, contrast_shift
from common.study.requests import (
    Attributes,
    Counts,
    PartyRows,
    Request,
    TableShape,
    split_tables,
)

Groups = tuple[int, ...]  # the group of each value of an attribute
Weights = Sequence[Sequence[int]]  # of both halves of every attribute


def without_noise_floor(counts: Counts, rows: int) -> Counts:
    """Return non-negative counts of at most `rows` in total: one amount is taken off every cell."""
    low, high = -1, max(int(counts.max(initial=0)), 0)
    while high - low > 1:  # the least amount, at least 0, that leaves no more than `rows`
        middle = (low + high) // 2
        if int(np.maximum(counts - middle, 0).sum()) <= rows:
            high = middle
        else:
            low = middle
    return np.maximum(counts - high, 0)


def halves(counts: Counts, rows: int) -> Groups:
    """Cut the values into two runs of neighbours whose weights differ least.

    The noisy counts stand for `rows` rows.
    """
    up_to = np.cumsum(without_noise_floor(counts, rows))
    off = np.abs(2 * up_to[:-1] - up_to[-1])
    cut = 1 + int(off.argmin()) if off.size else 1
    return (0,) * cut + (1,) * (len(counts) - cut)


def even_groups(counts: Counts, rows: int, *, groups: int, join_rare: bool = False) -> Groups:
    """Cut the values into at most `groups` runs of neighbours of about equal weight.

    A value that outweighs several groups makes them one, so an attribute with one frequent value
    has few groups: rare ones would show little but noise. At least two, if there are two values.
    The noisy counts stand for `rows` rows. Where there are no more values than groups, each is a
    group, unless rare ones are to be joined even then.
    """
    if len(counts) <= groups and (not join_rare or len(counts) < 3):
        return tuple(range(len(counts)))
    weights = without_noise_floor(counts, rows)
    up_to = np.cumsum(weights)
    middles, total = 2 * up_to - weights, max(2 * int(up_to[-1]), 1)
    places = np.minimum(middles * groups // total, groups - 1)
    distinct, numbers = np.unique(places, return_inverse=True)
    return tuple(numbers.tolist()) if len(distinct) > 1 else halves(counts, rows)


def groups_within(cut: Groups, counts: Counts, rows: int, *, groups: int) -> Groups:
    """Cut both halves of an attribute into even groups, at most so many in all, or its values."""
    if len(counts) <= groups:
        return tuple(range(len(counts)))
    if groups < 4:
        return cut
    place = cut.index(1)
    first, second = (
        even_groups(part, rows, groups=groups // 2) for part in (counts[:place], counts[place:])
    )
    return (*first, *(max(first) + 1 + group for group in second))


def group_weights(histogram: Counts, groups: Groups, rows: int) -> tuple[int, ...]:
    """Return a noisy margin as weights of groups; equal ones if nothing is left of it."""
    left = without_noise_floor(histogram, rows)
    weights = np.zeros(max(groups) + 1, dtype=np.int64)
    np.add.at(weights, np.array(groups, dtype=np.intp), left)
    return tuple(weights.tolist()) if weights.any() else (1,) * len(weights)


@dataclass(frozen=True)
class GroupedTables:
    """The contingency tables of some attribute sets, every attribute seen in groups of values.

    Attributes:
        sets: the attributes of each table.
        groups: for every attribute of the study, the group of each of its values.
    """

    sets: tuple[Attributes, ...]
    groups: tuple[Groups, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of groups of every attribute."""
        return tuple(max(group_of) + 1 for group_of in self.groups)

    @cached_property
    def shown(self) -> tuple[TableShape, ...]:
        sizes, grouped = self.sizes, [self.map_of(a) is not None for a in range(len(self.groups))]
        return tuple(
            TableShape(
                variables, tuple(sizes[a] for a in variables), tuple(grouped[a] for a in variables)
            )
            for variables in self.sets
        )

    @property
    def tables(self) -> tuple[TableShape, ...]:
        return self.shown

    @property
    def unit(self) -> int:
        return 1

    @property
    def links(self) -> tuple[Attributes, ...]:
        return self.sets

    @cached_property
    def cells(self) -> int:
        return sum(table.cells for table in self.shown)

    @property
    def canonical(self) -> bytes:
        sets, groups = (frame(map(frame, lists)) for lists in (self.sets, self.groups))
        return frame(("tables of groups", sets, groups))

    def limit(self, rows: int) -> int:
        """Return the rows: a cell counts at most all of them."""
        return rows

    def answer(self, data: PartyRows) -> Counts:
        groups = {
            a: group_of
            for a, group_of in enumerate(self.groups)
            if group_of != tuple(range(len(group_of)))
        }
        return np.concatenate([table.reshape(-1) for table in data.count(self.sets, groups)])

    def map_of(self, attribute: int) -> NDArray[np.intp] | None:
        """Return the attribute's groups as an array; None if it keeps all its values."""
        group_of = self.groups[attribute]
        return (
            None if group_of == tuple(range(len(group_of))) else np.array(group_of, dtype=np.intp)
        )


@dataclass(frozen=True)
class TablesTogether:
    """Tables in groups that differ from table to table, one after the other in one sum.

    All parts have one unit.
    """

    parts: tuple[Request, ...]

    @property
    def unit(self) -> int:
        return self.parts[0].unit if self.parts else 1

    @cached_property
    def shown(self) -> tuple[TableShape, ...]:
        return tuple(table for part in self.parts for table in part.shown)

    @property
    def tables(self) -> tuple[TableShape, ...]:
        return self.shown

    @property
    def links(self) -> tuple[Attributes, ...]:
        return tuple(link for part in self.parts for link in part.links)

    @property
    def cells(self) -> int:
        return sum(part.cells for part in self.parts)

    @property
    def canonical(self) -> bytes:
        return frame(("tables together", *(part.canonical for part in self.parts)))

    def limit(self, rows: int) -> int:
        """Return the largest limit of the parts."""
        return max((part.limit(rows) for part in self.parts), default=rows)

    def answer(self, data: PartyRows) -> Counts:
        return np.concatenate([part.answer(data) for part in self.parts])


@dataclass(frozen=True)
class Contrasts(GroupedTables):
    """What sets of attributes show beside their margins; all sets have as many attributes.

    These are the cheapest tables under Gaussian-like noise. A row is a vector for each attribute: 8
    in its group of values, 0 in the others, less 8 / q for q groups. The contrast of a set of
    attributes is the sum over the rows of the outer product of their vectors. It holds what a table
    of the set holds, but for what smaller sets show better; and a replaced row moves all pairs of d
    attributes in q groups by (1 - 1 / q) d in the L2 norm where their tables move by d, all triples
    in two groups by half as much as their tables. The exact norms are
    `common.privacy.sensitivity.contrasts`. In the L1 norm contrasts move more than tables.

    [Kairouz21] has the setting: sums of vectors of bounded L2 norm under distributed discrete
    noise.

    [Kairouz21] Kairouz, Liu, Steinke: The distributed discrete Gaussian mechanism.
    """

    @property
    def tables(self) -> tuple[TableShape, ...]:
        """Return no table: contrasts make those that are shown, with the margins of other sums."""
        return ()

    @property
    def unit(self) -> int:
        """Return what a row adds to the cell that it is in, before the centre is taken off."""
        return int(CONTRAST_UNIT**self.order)

    @property
    def order(self) -> int:
        """The number of attributes of each set."""
        return len(self.sets[0])

    @property
    def canonical(self) -> bytes:
        return frame(("contrasts", CONTRAST_UNIT, super().canonical))

    def limit(self, rows: int) -> int:
        """Return the limit: no coordinate of a row's vector is larger than 8."""
        return rows * self.unit

    def answer(self, data: PartyRows) -> Counts:
        tables = self.split(super().answer(data))
        return np.concatenate([contrast(table).reshape(-1) for table in tables])

    def squares(self, data: PartyRows) -> Counts:
        """Return the sums over the rows of the squares of what each adds."""
        tables = self.split(super().answer(data))
        return np.concatenate([squares(table).reshape(-1) for table in tables])

    def split(self, answer: Counts) -> list[Counts]:
        """Return one array for each set."""
        return split_tables(self.shown, answer)


def contrast(table: Counts) -> Counts:
    """Return the contrast of a set, from its table."""
    for axis, groups in enumerate(table.shape):
        table = CONTRAST_UNIT * table - contrast_shift(groups) * table.sum(axis=axis, keepdims=True)
    return table


def squares(table: Counts) -> Counts:
    """Return the sums of squares of a set, from its table."""
    for axis, groups in enumerate(table.shape):
        shift = contrast_shift(groups)
        inside, outside = (CONTRAST_UNIT - shift) ** 2, shift**2
        table = (inside - outside) * table + outside * table.sum(axis=axis, keepdims=True)
    return table


@dataclass(frozen=True, slots=True)
class Agreements:
    """For every pair of attributes, the rows in which both are in their first or second half.

    This is the cheapest look at every pair: the margins of the halves are known, so one number
    makes the whole table of the pair. A replaced row that changes sides in k of d attributes moves
    the k (d - k) counts of the pairs of which exactly one changed: where both did, they agree or
    differ as before. All counts together have an L1 sensitivity of d^2 / 4, where tables of the
    pairs would have d (d - 1). NOCD's views are between the two, and show more than pairs: they are
    better for more than two groups, and for bits most of whose combinations never occur
    (docs/research/subn-notes.md).

    Attributes:
        halves: of each value of every attribute, 0 or 1. An attribute of one value has no halves
            and is in no pair.
        alone: whether the rows in the first half of each attribute are counted, too, after the
            pairs, because the margins are not known yet. That is the attribute's agreement with one
            that is always in its first half: one more attribute.
        chosen: the pairs that are counted, if not all are.
    """

    halves: tuple[Groups, ...]
    alone: bool = False
    chosen: tuple[Pair, ...] = ()

    tables: ClassVar[Sequence[TableShape]] = ()
    unit: ClassVar[int] = 2  # a row that agrees moves every cell by half

    @property
    def cut(self) -> tuple[int, ...]:
        """The attributes that have two halves."""
        return tuple(attribute for attribute, half_of in enumerate(self.halves) if max(half_of) > 0)

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The pairs, in the order of their counts."""
        return self.chosen or tuple(combinations(self.cut, 2))

    @property
    def shown(self) -> Sequence[TableShape]:
        return GroupedTables(self.pairs, self.halves).shown

    @property
    def links(self) -> tuple[Pair, ...]:
        return self.pairs

    @property
    def cells(self) -> int:
        return len(self.pairs) + self.alone * len(self.cut)

    @property
    def sensitivity(self) -> Sensitivity:
        if self.chosen:
            return sensitivity.chosen_agreements(self.cells)
        return sensitivity.agreements(len(self.cut) + self.alone)

    def limit(self, rows: int) -> int:
        """Return the rows: at most all of them agree."""
        return rows

    def answer(self, data: PartyRows) -> Counts:
        sets = (*self.pairs, *(((a,) for a in self.cut) if self.alone else ()))
        request = GroupedTables(sets, self.halves)
        tables = split_tables(request.shown, request.answer(data))
        return np.array([np.trace(table) if table.ndim == 2 else table[0] for table in tables])

    @property
    def canonical(self) -> bytes:
        chosen = (frame(map(frame, self.chosen)),) if self.chosen else ()
        return frame(("agreements of halves", int(self.alone), *map(frame, self.halves), *chosen))

    def weights(self, answer: Counts, rows: int) -> Weights:
        """Return the weights of both halves, from the counts of the attributes alone."""
        first = dict(zip(self.cut, answer[len(self.pairs) :].tolist(), strict=True))
        in_first = {a: min(max(number, 0), rows) for a, number in first.items()}
        return [
            (in_first.get(a, rows), rows - in_first.get(a, rows)) for a in range(len(self.halves))
        ]

    def departures(
        self,
        counts: Sequence[int | Fraction],
        weights: Weights,
        variances: Sequence[Fraction],
        rows: int,
    ) -> dict[Pair, Departure]:
        """Return how far every pair is from independence, exactly.

        With p and q of the rows in the first halves of two attributes, p q + (1 - p) (1 - q) of
        them agree by chance. An error in p moves that by 2 q - 1 times as much.

        There is a noisy count of every pair, with the variance of its noise. The weights of both
        halves come from the published margins, or from the answer.
        """
        by_pair = {}
        for (a, b), count, variance in zip(self.pairs, counts, variances, strict=True):
            first, second = (
                Fraction(weights[attribute][0], sum(weights[attribute])) for attribute in (a, b)
            )
            excess = count - rows * (first * second + (1 - first) * (1 - second))
            errors = [(2 * p - 1) ** 2 if self.alone else Fraction(0) for p in (second, first)]
            parts = 1 + sum(errors)
            shared = errors[0] / parts, errors[1] / parts
            noise = variance * parts
            by_pair[a, b] = Departure(excess**2 - noise, noise, (2, 2), 2 * abs(excess), shared)
        return by_pair

    def moments(
        self, counts: Sequence[float], variance: float, rows: int, looks: tuple[float, ...] = ()
    ) -> Moments:
        """Return the pairs' counts, `looks` times as precise, as `Contrasts` of halves.

        A row's contrast of a pair is 1/4 in two cells and -1/4 in the others if it agrees, and the
        reverse if not. One number makes all four cells: together they have four times its squared
        error, in quarters of 2 / rows, so that each counts as if it had the number's variance.
        """
        signs = np.array([[1.0, -1.0], [-1.0, 1.0]]) / (4 * rows)
        return Moments(
            self.cut,
            tuple(np.array(self.halves[a], dtype=np.intp) for a in self.cut),
            [(2 * count - rows) * signs for count in counts],
            variance / rows**2,
            looks,
        )
