"""Intervals from the published sums alone, whatever the model did.

A published table of two columns tells how many rows are in each of its cells, but for noise of a
known law. So the rows of a release are weighted until they agree with the tables of all pairs that
a statistic uses (raking); the statistic of the weighted rows is the *direct* estimate. Its spread
is that of as many repetitions as there are replicates: the noise of each table is drawn again from
its law, the real rows are drawn again, and the single columns are those of a replicate.

A table in groups does not tell which values of two groups meet. What it hides has bounds. Inside
every group the values of one column are put in the order of the other column, or against it: no
table with these cells and these single columns has a larger, or a smaller, mean product
(`arranged`). The direct interval allows for a part of that, 1.5 / q for q groups, as relations
seldom change more inside a group than between groups; and more, up to all of it, where the groups
themselves are in order, as then their values will be, too. It reaches by the spread beyond it. A
pair that was never counted together is a table of one cell, of which all is allowed for: the whole
range that the single columns allow, the bounds of Frechet and Hoeffding.

Groups are joined until most cells have more rows than noise. Cells that fall below zero would bias
an estimate, and rare values at the ends of a column would make most of its noise.

A statistic of three columns or more rests on the published table that holds all of them, if there
is one that is as clear as those of pairs; else on the tables of its pairs. The pairs are arranged
one after the other, and what they hide adds up. That bounds a statistic to first order; what only a
table of three columns tells is not in tables of pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.analysis.replicates import Replicates, coded, shuffled
from common.analysis.statistics import Group, Numbers, Statistic
from common.marginals import count
from common.methods.subn_plus.requests import even_groups
from common.privacy.randomness import SeededRandomSource, uniforms
from common.release.measured import MeasuredTable
from common.schema import Attribute, Codes, Schema
from common.schema.codes import concatenate

Places = NDArray[np.intp]
Key = tuple[str, Group]  # of a value of a statistic
_STANDING_OUT = 0.75  # of the cells of a table, to be used as finely as that
_MOST_GROUPS = 24  # of a column
HIDDEN = 1.5  # over the number of groups, of what they can hide
_MOST_ROWS = 20_000  # of the weighted table
_APART = 0.01  # the weight of a row of independent columns: every cell has some rows
_RAKED = 12  # times that all tables are met one after the other
_MOST_DRAWN = 1_000_000  # real rows that are drawn again; more scatter as little
_ENDS_OF = 4  # replicates whose single columns tell what is possible
_NO_ENDS = (-math.inf, math.inf)
_MOST_VALUES = 24  # of a column without an order, that are each put first
_AS_CLEAR = 1.5  # times the reach of the least clear pair, up to which a joint table is used


@dataclass(frozen=True, slots=True)
class Direct:
    """A direct estimate, its spread, and the range of what groups hide."""

    centre: float
    spread: float  # by noise and sampling
    least: float  # of the arrangements of what groups hide
    greatest: float
    ends: tuple[float, float] = _NO_ENDS  # what the single columns of two allow at all


@dataclass(frozen=True, eq=False)
class KnownTable:
    """What is known of two columns or more: rows by group, as proportions."""

    attributes: tuple[int, ...]
    groups: tuple[Places, ...]  # of each value of each column
    table: Numbers
    noise: MeasuredTable | None = None  # the published table behind it; None if there is none
    joined: tuple[Places, ...] = ()  # of each group of the published table
    off: Numbers = field(default_factory=lambda: np.zeros((1, 1)))  # by how much rows differ

    @property
    def hides(self) -> float:
        """The part of what its groups can hide that is allowed for; 0 if each is one value.

        Groups are taken to differ less inside than from each other, so that q of them hide at most
        1.5 / q of what is possible: as much as they hide of a normal pair's correlation of up to
        0.7. One group hides all.
        """
        few = [group_of.max() + 1 for group_of in self.groups if len(group_of) > group_of.max() + 1]
        return min(1.0, HIDDEN / int(min(few))) if few else 0.0

    def hides_along(self, sign: float) -> float:
        """Return the same for values in order (1.0) or against it (-1.0), if the groups are so.

        Groups in even numbers of rows hide at most r^(q / 3) of the order of a pair of normal
        copula, r being the rank correlation of the groups, also of lognormal columns.
        """
        least = min(int(group_of.max()) + 1 for group_of in self.groups)
        ranks = np.multiply.outer(*(scores(_margin(self.table, axis).ravel()) for axis in (0, 1)))
        order = sign * float((ranks * self.table).sum() / max(float(self.table.sum()), 1e-12))
        return max(self.hides, min(1.0, max(0.0, order)) ** (least / 3)) if self.hides else 0.0

    def pairs(self) -> Iterator[KnownTable]:
        """Yield its pairs, without cells below zero."""
        for one, other in combinations(range(len(self.attributes)), 2):
            attributes = (self.attributes[one], self.attributes[other])
            others = tuple(axis for axis in range(self.table.ndim) if axis not in (one, other))
            table = np.maximum(self.table, 0.0).sum(axis=others)
            yield KnownTable(attributes, (self.groups[one], self.groups[other]), table)

    def reach(self) -> float:
        """Return about how far noise and groups move a correlation, to compare tables."""
        few = [int(group_of.max()) + 1 for group_of in self.groups]
        noise = 0.0 if self.noise is None else self.noise.deviation * math.sqrt(self.noise.cells)
        rows = 1 if self.noise is None else self.noise.rows
        return 2 * noise / rows + 1.8 * self.hides / min(few)

    def noise_of(self, weights: Numbers) -> float:
        """Return the deviation of the noise in a weighted sum of its cells."""
        table, spread = self.noise, weights[np.ix_(*self.joined)]
        assert table is not None and table.residuals is not None  # noqa: S101, PT018
        if table.residuals.size == 1:
            weight = abs(float((spread * _of_set(table, self.attributes, np.ones(1))).sum()))
        else:
            cells = table.cells / spread.size  # of the published table, in one of these
            weight = math.sqrt(cells * float((_centred(spread) ** 2).sum()))
        return table.deviation * weight / table.rows

    def again(self, source: SeededRandomSource) -> Numbers:
        """Return the table with its noise and its rows drawn once more."""
        if self.noise is None:
            return self.table
        drawn = _drawn(self.noise, source)
        noise = _joined(_of_set(self.noise, self.attributes, drawn), self.joined) / self.noise.rows
        flat = np.maximum(self.table, 0).ravel()
        rows = min(self.noise.rows, _MOST_DRAWN)
        ladder = np.cumsum(flat / flat.sum())
        places = np.searchsorted(ladder, uniforms(rows, source), side="right")
        counts = np.bincount(np.minimum(places, flat.size - 1), minlength=flat.size)
        sampled = (counts / rows - flat / flat.sum()).reshape(self.table.shape)
        return self.table + noise + _centred(sampled)


@dataclass(frozen=True, eq=False)
class DirectIntervals:
    """Computes direct intervals of a release."""

    measured: tuple[MeasuredTable, ...]  # compared with the released rows
    replicates: Replicates

    @property
    def schema(self) -> Schema:
        return self.replicates.schema

    @cached_property
    def _tables(self) -> dict[tuple[int, ...], KnownTable]:
        return {}

    def table(self, columns: tuple[int, ...]) -> KnownTable:
        """Return what is known of some columns: by the published table with the least noise."""
        if columns not in self._tables:
            tables = [table for table in self.measured if table.usable(columns)]
            known = [self._known(columns, table) for table in tables]
            self._tables[columns] = min(known, key=KnownTable.reach, default=self._unknown(columns))
        return self._tables[columns]

    def tables_for(self, statistic: Statistic) -> list[KnownTable]:
        """Return the table of all columns of a statistic, or the tables of its pairs."""
        places = tuple(sorted(self.schema.position(name) for name in statistic.attributes))
        tables = [self.table(pair) for pair in combinations(places, 2)]
        if len(places) > 2 and not statistic.pairwise:
            joint, least_clear = self.table(places), max(table.reach() for table in tables)
            if joint.noise is not None and joint.reach() <= _AS_CLEAR * least_clear:
                return [joint]
        return tables

    def _unknown(self, columns: tuple[int, ...]) -> KnownTable:
        whole = tuple(np.zeros(self.schema.sizes[a], np.intp) for a in columns)
        return KnownTable(columns, whole, np.ones((1,) * len(columns)))

    def _known(self, columns: tuple[int, ...], best: MeasuredTable) -> KnownTable:
        fine_groups = [
            np.asarray(best.groups.get(a, range(self.schema.sizes[a])), np.intp) for a in columns
        ]
        groups = {a: values.tolist() for a, values in zip(columns, fine_groups, strict=True)}
        (counts,) = count(self.replicates.released, [columns], groups=groups)
        drawn = counts / self.replicates.released.rows
        assert best.residuals is not None  # noqa: S101  (a usable table has them)
        off = _of_set(best, columns, best.residuals) / best.rows
        joined = _joined_groups(best, drawn)
        groupings = tuple(few[fine] for few, fine in zip(joined, fine_groups, strict=True))
        table, off = _joined(drawn + off, joined), _joined(off, joined)
        return KnownTable(columns, groupings, table, best, joined, off)

    def of(self, statistic: Statistic) -> dict[Key, Direct]:
        """Compute the direct estimates of a statistic of several columns, each with its range."""
        tables = self.tables_for(statistic)
        base = _thinned(self.replicates.reference)
        rows = weighted(base, tables, [known.table for known in tables])
        centres = statistic.of(coded(self.replicates, rows, "1"))
        again = []
        for number, replicate in enumerate(self.replicates.tables, start=1):
            source = SeededRandomSource(f"direct/{number}")
            drawn = weighted(_thinned(replicate), tables, [known.again(source) for known in tables])
            again.append(statistic.of(coded(self.replicates, drawn, str(number))))
        low, high = self._hidden(statistic, rows, tables, centres)
        ends = self._ends(statistic, tables)
        estimates = {}
        for key, centre in centres.items():
            values = np.array([redrawn.get(key, np.nan) for redrawn in again])
            values = values[np.isfinite(values)]
            if math.isfinite(centre) and len(values) > 1:
                spread = float(values.std(ddof=1)) * math.sqrt(1 + 1 / len(values))
                reach = centre - low[key], centre + high[key]
                estimates[key] = Direct(centre, spread, *reach, ends.get(key, _NO_ENDS))
        return estimates

    def _ends(
        self, statistic: Statistic, tables: Sequence[KnownTable]
    ) -> dict[Key, tuple[float, float]]:
        """Return the extremes of a statistic of two columns that has no known bounds.

        They are values of tables, so that a correlation is never beyond 1.
        """
        if len(statistic.attributes) > 2 or math.isfinite(statistic.bounds[0]):
            return {}
        unknown = self._unknown(tables[0].attributes)
        values = [
            statistic.of(coded(self.replicates, arrangement, "1"))
            for rows in (self.replicates.reference, *self.replicates.tables[:_ENDS_OF])
            for _, arrangement in self._arrangements(_thinned(rows), unknown, alone=True)
        ]
        extremes = {}
        for key in {key for by_key in values for key in by_key}:
            numbers = np.array([by_key.get(key, np.nan) for by_key in values])
            numbers = numbers[np.isfinite(numbers)]
            if numbers.size:
                extremes[key] = float(numbers.min()), float(numbers.max())
        return extremes

    def _hidden(
        self,
        statistic: Statistic,
        rows: Codes,
        tables: Sequence[KnownTable],
        centres: Mapping[Key, float],
    ) -> tuple[dict[Key, float], dict[Key, float]]:
        """Return how far arrangements go below and above the centre; pairs add up."""
        low, high = dict.fromkeys(centres, 0.0), dict.fromkeys(centres, 0.0)
        alone = len(statistic.attributes) == 2
        for pair_table in (pair for table in tables for pair in table.pairs()):
            if not pair_table.hides:
                continue
            values = [
                (part, statistic.of(coded(self.replicates, arrangement, "1")))
                for part, arrangement in self._arrangements(rows, pair_table, alone=alone)
            ]
            for key, centre in centres.items():
                numbers = np.array([part * (of.get(key, np.nan) - centre) for part, of in values])
                off = numbers[np.isfinite(numbers)].tolist()
                low[key] += max(-min(off, default=0.0), 0.0)
                high[key] += max(max(off, default=0.0), 0.0)
        return low, high

    def _arrangements(
        self, rows: Codes, pair: KnownTable, *, alone: bool
    ) -> Iterator[tuple[float, Codes]]:
        """Yield the rows with a pair as much in order, and as much against it, as can be.

        With each comes the part of it that is allowed for.

        A column without an order has one for each of its values, which comes last. With three
        columns or more, two columns without an order are not both arranged by every value.
        """
        first, second = (list(_orders(self.schema.attributes[a])) for a in pair.attributes)
        in_order = all(self.schema.attributes[a].ordered for a in pair.attributes)
        for one, other in product(range(len(first)), range(len(second))):
            if alone or one == 0 or other == 0:
                for sign in (1.0, -1.0):
                    part = pair.hides_along(sign) if in_order and one == other == 0 else pair.hides
                    yield part, arranged(rows, pair, (first[one], sign * second[other]))


def weighted(base: Codes, tables: Sequence[KnownTable], targets: Sequence[Numbers]) -> Codes:
    """Return rows that agree with all tables: those of the base, some of them several times.

    A table's own margins are replaced by those of the base, cells below zero by none. Some rows of
    independent columns are added, so that no cell is without rows.
    """
    rows = concatenate([base, shuffled(base)])
    weights = np.repeat([1.0, _APART], base.rows)
    cells, goals = [], []
    for known, target in zip(tables, targets, strict=True):
        places = [
            few[rows.columns[a]] for a, few in zip(known.attributes, known.groups, strict=True)
        ]
        cell = np.ravel_multi_index(places, target.shape)
        now = np.bincount(cell[: base.rows], minlength=target.size).reshape(target.shape)
        cells.append(cell)
        goals.append(possible(target, now / base.rows).ravel())
    for _ in range(_RAKED if len(tables) > 1 else 1):
        for cell, goal in zip(cells, goals, strict=True):
            sums = np.bincount(cell, weights, minlength=goal.size)
            weights = weights * (goal / np.where(sums > 0, sums, 1.0))[cell]
    ladder = np.cumsum(weights)
    steps = (np.arange(base.rows) + 0.5) / base.rows * ladder[-1]
    return rows.take(np.minimum(np.searchsorted(ladder, steps), rows.rows - 1))


def possible(table: Numbers, near: Numbers) -> Numbers:
    """Return a table without cells below zero that has the margins of another."""
    margins = [_margin(near, axis) for axis in range(near.ndim)]
    apart = margins[0]
    for margin in margins[1:]:
        apart = apart * margin
    result = np.maximum(table, 1e-9 * apart)
    for _ in range(_RAKED):
        for axis, margin in enumerate(margins):
            sums = _margin(result, axis)
            result = result * (margin / np.where(sums > 0, sums, 1.0))
    return np.asarray(result, np.float64)


def _margin(table: Numbers, axis: int) -> Numbers:
    others = tuple(other for other in range(table.ndim) if other != axis)
    return np.asarray(table.sum(axis=others, keepdims=True), np.float64)


def scores(shares: Numbers) -> Numbers:
    """Return the middle ranks of groups, with a mean of 0 and a deviation of 1."""
    shares = shares / max(float(shares.sum()), 1e-12)
    ranks = np.cumsum(shares) - shares / 2
    ranks = ranks - float(shares @ ranks)
    return np.asarray(ranks / max(math.sqrt(float(shares @ ranks**2)), 1e-12), np.float64)


def arranged(rows: Codes, pair: KnownTable, orders: tuple[Numbers, Numbers]) -> Codes:
    """Return the rows with two columns in one order, as far as the cells of their table allow.

    Among the rows of a group of the first column, its values are dealt out in the order of the
    second, and then the other way round. Every cell keeps its rows, every column its values.
    """
    columns = list(rows.columns)
    for this, that in ((0, 1), (1, 0)):
        a, b = pair.attributes[this], pair.attributes[that]
        group = pair.groups[this][columns[a]]
        to = np.lexsort((orders[that][columns[b]], group))
        values = np.lexsort((orders[this][columns[a]], group))
        dealt = np.empty_like(columns[a])
        dealt[to] = columns[a][values]
        columns[a] = dealt
    return Codes.from_columns(columns, rows.sizes)


def _orders(attribute: Attribute) -> Iterator[Numbers]:
    """Yield a number for each code: in its order, or 1 for one value and 0 for the others."""
    if attribute.ordered or attribute.size <= 2:
        numbers = np.arange(attribute.size, dtype=np.float64)
        numbers[attribute.value_count :] = (attribute.value_count - 1) / 2  # empty cells: between
        yield numbers
        if attribute.ordered and attribute.size == attribute.value_count:
            return
        yield (np.arange(attribute.size) >= attribute.value_count).astype(np.float64)
        return
    for code in range(min(attribute.size, _MOST_VALUES)):
        yield (np.arange(attribute.size) == code).astype(np.float64)


def _joined_groups(best: MeasuredTable, drawn: Numbers) -> tuple[Places, ...]:
    """Return as many groups of all columns of a table as stand out of its noise.

    They do if three of four cells have as many rows, were the columns independent, as the deviation
    of their noise. Two groups are the fewest.
    """
    margins = [_margin(drawn, axis).ravel() * best.rows for axis in range(drawn.ndim)]
    counts = [np.rint(margin).astype(np.int64) for margin in margins]
    variance = best.deviation**2 * best.cells / drawn.size
    for most in range(min(max(drawn.shape), _MOST_GROUPS), 1, -1):
        groups = [
            np.array(even_groups(column, best.rows, groups=most), np.intp) for column in counts
        ]
        noise = np.sqrt(variance * _outer([np.bincount(group_of) for group_of in groups]))
        weights = [
            np.bincount(group_of, margin) for group_of, margin in zip(groups, margins, strict=True)
        ]
        rows = _outer(weights) / best.rows ** (drawn.ndim - 1)
        if most == 2 or np.mean(rows >= noise) >= _STANDING_OUT:
            break
    return tuple(groups)


def _outer(vectors: Sequence[NDArray[Any]]) -> Numbers:
    return np.asarray(reduce(np.multiply.outer, vectors), np.float64)


def _of_set(table: MeasuredTable, columns: tuple[int, ...], numbers: Numbers) -> Numbers:
    """Return the numbers of a table, or what it tells, by some columns' groups, without margins.

    The rows have the margins already, of all that was measured. How often two halves agree is one
    number, and makes the four cells of their table.
    """
    axes = [table.attributes.index(a) for a in columns]
    if numbers.size == 1:
        return float(numbers[0]) * np.array([[1.0, -1.0], [-1.0, 1.0]])
    shaped = np.asarray(numbers, np.float64).reshape(table.shape)
    others = tuple(axis for axis in range(shaped.ndim) if axis not in axes)
    summed = shaped.sum(axis=others)
    return _centred(np.transpose(summed, np.argsort(np.argsort(axes))))


def _centred(table: Numbers) -> Numbers:
    """Return a table less what its single columns tell."""
    result = table
    for axis in range(table.ndim):
        others = tuple(other for other in range(table.ndim) if other != axis)
        result = result - table.mean(axis=others, keepdims=True)
    return np.asarray(result + (table.ndim - 1) * table.mean(), np.float64)


def _joined(table: Numbers, groups: Sequence[Places]) -> Numbers:
    sizes = [int(group_of.max()) + 1 for group_of in groups]
    cells = np.ravel_multi_index(np.ix_(*groups), sizes)
    sums = np.bincount(cells.ravel(), table.ravel(), minlength=math.prod(sizes))
    return np.asarray(sums.reshape(sizes), np.float64)


def _drawn(table: MeasuredTable, source: SeededRandomSource) -> Numbers:
    """Draw the noise of a table once more: by its law, of its deviation."""
    assert table.law is not None and table.residuals is not None  # noqa: S101, PT018
    noise = table.law.draw(table.residuals.size, source)
    return np.asarray(noise * (table.deviation / math.sqrt(table.law.variance())), np.float64)


def _thinned(codes: Codes) -> Codes:
    """Return at most so many rows, evenly spaced."""
    if codes.rows <= _MOST_ROWS:
        return codes
    return codes.take((np.arange(_MOST_ROWS) * codes.rows // _MOST_ROWS).astype(np.intp))
