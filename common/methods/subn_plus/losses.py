"""The squared error of a mixture against noisy tables and noisy contrasts, and its gradient.

    sum over tables of |model counts - noisy counts|^2 / (2 variance)

A mixture is an array of columns (atoms, classes), all attributes' values one below the other.
`Sights` adds up the values of a group, for every grouping that some table or contrast sees; both
losses are functions of these sums.

`TableLoss`: a wide study has thousands of small tables. One by one they cost some twenty calls of
numpy each and step; so tables of one shape are put side by side and handled together, in batches
that fit the processor's cache. A table's attributes are cut into two halves: its model is then one
matrix product of the halves' outer products, several times faster than an outer product over all.

`MomentLoss`: the contrasts of all pairs, or of all triples, of grouped attributes are a moment of
one vector per row: all attributes' vectors, one after the other. The mixture's moment of order two
is sum_c w_c g_c g_c^T, g_c being the class's mean vector: one matrix product for all pairs
together, and one for all triples with the same middle attribute, whatever the number of sets.
Blocks of attributes that share a column of the mixture are left out: given the class they are not
independent.

Numbers are of double precision throughout. A fit repeats hundreds of steps, and a difference in
the last digits grows by up to seven digits on the way: doubles leave 1e-9, which lets a reader
with another processor verify a model; single precision would leave nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from math import prod

import numpy as np
from numpy.typing import NDArray

from common.errors import LocalError
from common.privacy.sensitivity import CONTRAST_UNIT, contrast_shift

Floats = NDArray[np.float64]
Grouping = NDArray[np.intp]  # the group of each value, groups 0..g-1

_TINY = 1e-12
_BATCH_CELLS = 1 << 12  # of the larger halves of a batch's tables, per class


@dataclass(frozen=True, slots=True)
class Measurement:
    """A noisy table of counts over some attributes, each seen through a grouping of its values.

    `groupings[i]` belongs to `attributes[i]`, None for its own values; `counts` has one axis per
    attribute; `variance` is that of the noise in one cell.
    """

    attributes: tuple[int, ...]
    groupings: tuple[Grouping | None, ...]
    counts: Floats
    variance: float

    def __post_init__(self) -> None:
        """Refuse a table that does not have one axis per attribute, or noise without variance."""
        if not len(self.attributes) == len(self.groupings) == self.counts.ndim:
            raise LocalError(
                f"a table of {self.counts.ndim} dimensions for attributes {self.attributes} "
                f"with {len(self.groupings)} groupings"
            )
        if not self.variance > 0:
            raise LocalError(f"a noisy table has a positive variance, not {self.variance}")


class Scratch:
    """Arrays that every step fills again: to ask for fresh memory costs more than to fill it."""

    def __init__(self) -> None:
        self._arrays: dict[str, Floats] = {}

    def __call__(self, name: str, *shape: int) -> Floats:
        """Return the array of this name, with what is left in it, in any shape."""
        array = self._arrays.get(name)
        if array is None or array.size < prod(shape):
            array = self._arrays[name] = np.empty(prod(shape))
        return array[: prod(shape)].reshape(shape)


class Sights:
    """Columns as tables and contrasts see them: sums over groups of atoms, one below the other.

    Args:
        starts: where each column's atoms begin, and how many there are in all.
    """

    def __init__(self, starts: Sequence[int]) -> None:
        self._spans = [slice(*span) for span in pairwise(starts)]
        self._rows = 0
        self._atoms: list[tuple[slice, slice]] = []  # rows that show single atoms, and these
        self._groups: dict[int, list[tuple[slice, Grouping]]] = {}
        self._scratch = Scratch()

    def add(self, column: int, grouping: Grouping) -> slice:
        """Return the rows that will show the groups of the column's atoms."""
        span = self._spans[column]
        rows = slice(self._rows, self._rows + int(grouping.max()) + 1)
        self._rows = rows.stop
        if np.array_equal(grouping, np.arange(span.stop - span.start)):
            self._atoms.append((rows, span))
        else:
            self._groups.setdefault(column, []).append((rows, grouping))
        return rows

    @cached_property
    def _sums(self) -> list[tuple[slice, Grouping, Floats]]:
        """Of every column with groups: its atoms, the rows of all groups, and who is in them."""
        return [
            (
                self._spans[column],
                np.concatenate([np.arange(rows.start, rows.stop) for rows, _ in groups]),
                np.concatenate(
                    [np.eye(rows.stop - rows.start)[:, group_of] for rows, group_of in groups]
                ),
            )
            for column, groups in self._groups.items()
        ]

    def of(self, columns: Floats) -> Floats:
        """Return what is seen of columns (atoms, classes)."""
        classes = columns.shape[1]
        group_odds = self._scratch("seen", self._rows, classes)
        for rows, span in self._atoms:
            group_odds[rows] = columns[span]
        for span, places, members in self._sums:
            sums = self._scratch("sums", len(places), classes)
            group_odds[places] = np.matmul(members, columns[span], out=sums)
        return group_odds

    def flat(self, classes: int) -> Floats:
        """Return zeros for the derivatives by what is seen."""
        slopes = self._scratch("slopes", self._rows, classes)
        slopes[:] = 0
        return slopes

    def pull_back(self, group_slopes: Floats, slopes: Floats) -> None:
        """Add the derivatives by what is seen to the derivatives by the columns."""
        for rows, span in self._atoms:
            slopes[span] += group_slopes[rows]
        for span, places, members in self._sums:
            of_groups = self._scratch("sums", len(places), slopes.shape[1])
            np.take(group_slopes, places, axis=0, out=of_groups)
            shared = self._scratch("shared", *slopes[span].shape)
            slopes[span] += np.matmul(members.T, of_groups, out=shared)


class TableLoss:
    """All noisy tables' part of the loss.

    Args:
        measurements: tables of columns, seen through groupings of their atoms.
        rows: the number of rows of the table that is modelled.
        sights: where the loss says what it wants to see.
    """

    def __init__(self, measurements: Sequence[Measurement], rows: int, sights: Sights) -> None:
        places: dict[tuple[int, bytes], slice] = {}
        alike: dict[tuple[int, ...], list[tuple[Measurement, list[int]]]] = {}
        for table in measurements:
            begins = []
            for attribute, grouping in zip(table.attributes, table.groupings, strict=True):
                if grouping is None:
                    raise LocalError("a table of the loss is seen through atoms")
                name = (attribute, grouping.tobytes())
                if name not in places:
                    places[name] = sights.add(attribute, grouping)
                begins.append(places[name].start)
            alike.setdefault(table.counts.shape, []).append((table, begins))
        scratch = Scratch()
        self._batches = [
            _Batch(tables[start : start + room], rows, scratch)
            for shape, tables in alike.items()
            for room in [max(_BATCH_CELLS // prod(shape[: _half(shape)]), 1)]
            for start in range(0, len(tables), room)
        ]

    def add_gradient(
        self, weights: Floats, group_odds: Floats, slopes: Floats, weight_slopes: Floats
    ) -> None:
        """Add the derivatives by what is seen, over the weights, and by the weights."""
        for batch in self._batches:
            batch.add_gradient(weights, group_odds, slopes, weight_slopes)


class _Batch:
    """Some tables of the same shape, each with the first row of every attribute's sight."""

    def __init__(
        self, tables: Sequence[tuple[Measurement, list[int]]], rows: int, scratch: Scratch
    ) -> None:
        self._scratch = scratch
        shape = tables[0][0].counts.shape
        half = _half(shape)
        self._halves = (range(half), range(half, len(shape)))
        left = prod(shape[:half])
        self._targets = np.stack([table.counts.reshape(left, -1) / rows for table, _ in tables])
        self._precision = np.array([rows * rows / table.variance for table, _ in tables])[
            :, None, None
        ]
        begins = np.array([begins for _, begins in tables])
        self._places = [begins[:, i, None] + np.arange(width) for i, width in enumerate(shape)]
        # For adding up by place: tables in the order of their places, and where each place begins.
        self._orders = [np.argsort(begin, kind="stable") for begin in begins.T]
        self._runs = [
            np.unique(begin[order], return_index=True)[1]
            for begin, order in zip(begins.T, self._orders, strict=True)
        ]

    def add_gradient(
        self, weights: Floats, group_odds: Floats, slopes: Floats, weight_slopes: Floats
    ) -> None:
        scratch, classes = self._scratch, len(weights)
        factors = [
            np.take(group_odds, places, axis=0, out=scratch(f"factor {i}", *places.shape, classes))
            for i, places in enumerate(self._places)
        ]
        left, right = (self._outer(half, factors) for half in self._halves)
        weighted = np.multiply(left, weights, out=scratch("weighted", *left.shape))
        error = scratch("error", *self._targets.shape)
        np.matmul(weighted, right.transpose(0, 2, 1), out=error)
        error -= self._targets
        error *= self._precision
        left_slopes = np.matmul(error, right, out=scratch("weighted", *left.shape))
        weight_slopes += np.einsum("tvc,tvc->c", left_slopes, left)
        self._add(self._halves[0], factors, left, left_slopes, slopes)
        right_slopes = scratch("weighted", *right.shape)
        np.matmul(error.transpose(0, 2, 1), left, out=right_slopes)
        self._add(self._halves[1], factors, right, right_slopes, slopes)

    def _outer(self, half: range, factors: Sequence[Floats]) -> Floats:
        """Multiply (tables, a, classes) by (tables, b, classes) to (tables, a*b, classes)."""
        outer = factors[half[0]]
        for i in half[1:]:
            tables, values, classes = outer.shape
            product = self._scratch(f"outer {i}", tables, values, factors[i].shape[1], classes)
            np.multiply(outer[:, :, None], factors[i][:, None], out=product)
            outer = product.reshape(tables, -1, classes)
        return outer

    def _add(
        self,
        half: range,
        factors: Sequence[Floats],
        outer: Floats,
        by_outer: Floats,
        slopes: Floats,
    ) -> None:
        """Add derivatives by an outer product to those by what is seen; the former are lost."""
        if len(half) > 1:
            by_outer *= outer
        shaped = by_outer.reshape(len(by_outer), *(factors[i].shape[1] for i in half), -1)
        for axis, i in enumerate(half):
            part = by_outer
            if len(half) > 1:
                part = shaped.sum(axis=tuple(o + 1 for o in range(len(half)) if o != axis))
                part /= np.maximum(factors[i], _TINY)
            order, runs = self._orders[i], self._runs[i]
            ordered = np.take(part, order, axis=0, out=self._scratch("ordered", *part.shape))
            slopes[self._places[i][order[runs]]] += np.add.reduceat(ordered, runs)


def _half(shape: Sequence[int]) -> int:
    return (len(shape) + 1) // 2


@dataclass(frozen=True, slots=True)
class Moments:
    """Noisy contrasts of all sets of two or three attributes.

    Attributes:
        columns: the column of the mixture that each attribute is in.
        groupings: of each attribute, the group of each cell of its column.
        contrasts: per row, an array for each set, in the order of `itertools.combinations`.
        variance: of the noise in one number of them.
        looks: of each pair, by how much it is more precise than that; empty if none is.
    """

    columns: tuple[int, ...]
    groupings: tuple[Grouping, ...]
    contrasts: Sequence[Floats]
    variance: float
    looks: tuple[float, ...] = ()

    @property
    def precisions(self) -> Sequence[float]:
        """The precision of each set, in units of the inverse of the variance."""
        return self.looks or (1.0,) * len(self.contrasts)

    @property
    def order(self) -> int:
        """The number of attributes of a set."""
        return self.contrasts[0].ndim

    @property
    def widths(self) -> list[int]:
        """The number of groups of each attribute."""
        return [int(grouping.max()) + 1 for grouping in self.groupings]


class MomentLoss:
    """The part of the loss that one order has.

    Args:
        moments: as measured.
        groupings: of each attribute, the group of each atom of its column.
        sights: where the loss says what it wants to see.
        trees: the tree of each column; only columns of different trees count.
    """

    def __init__(
        self,
        moments: Moments,
        groupings: Sequence[Grouping],
        sights: Sights,
        trees: Sequence[int],
    ) -> None:
        widths = moments.widths
        self._precision = 1 / moments.variance
        self._starts = [0, *np.cumsum(widths).tolist()]
        self._shifts = np.repeat(
            [contrast_shift(width) / CONTRAST_UNIT for width in widths], widths
        )[:, None]
        rows = [sights.add(*pair) for pair in zip(moments.columns, groupings, strict=True)]
        self._rows = slice(rows[0].start, rows[-1].stop)
        of_groups = np.repeat([trees[column] for column in moments.columns], widths)
        if moments.order == 2:
            self._blocks = [self._pair_block(moments, of_groups)]
        else:
            self._blocks = self._triple_blocks(moments, of_groups)
        self._order = moments.order
        self._scratch = Scratch()

    def add_gradient(
        self, weights: Floats, group_odds: Floats, slopes: Floats, weight_slopes: Floats
    ) -> None:
        """Add the derivatives by what is seen, over the weights, and by the weights."""
        group_odds = group_odds[self._rows]
        contrasts = np.subtract(
            group_odds, self._shifts, out=self._scratch("contrasts", *group_odds.shape)
        )
        if self._order == 2:
            self._add_pairs(weights, contrasts, slopes[self._rows], weight_slopes)
        else:
            self._add_triples(weights, contrasts, slopes[self._rows], weight_slopes)

    def _pair_block(self, moments: Moments, trees: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """Return all pairs as one symmetric matrix, and which of its entries count."""
        matrix = np.zeros((self._starts[-1],) * 2)
        spans = [slice(a, b) for a, b in pairwise(self._starts)]
        tables = iter(moments.contrasts)
        for i, first in enumerate(spans):
            for second in spans[i + 1 :]:
                matrix[first, second] = next(tables)
        counts = (trees[:, None] != trees[None, :]) * self._precision
        for (first, second), times in zip(combinations(spans, 2), moments.looks, strict=False):
            counts[first, second] *= times
            counts[second, first] *= times
        return matrix + matrix.T, counts

    def _add_pairs(
        self, weights: Floats, contrasts: Floats, slopes: Floats, weight_slopes: Floats
    ) -> None:
        ((target, counts),) = self._blocks
        root = np.multiply(
            contrasts, np.sqrt(weights), out=self._scratch("weighted", *contrasts.shape)
        )
        error = self._scratch("error", *target.shape)
        np.matmul(root, root.T, out=error)  # half the work of a product of two different matrices
        error -= target
        error *= counts
        slope = np.matmul(error, contrasts, out=root)
        slopes += slope
        weight_slopes += np.einsum("dc,dc->c", slope, contrasts) / 2

    def _triple_blocks(
        self, moments: Moments, trees: NDArray[np.intp]
    ) -> list[tuple[Floats, Floats]]:
        """Return, per middle attribute, (its groups, all groups before) times all groups after."""
        number, starts = len(moments.columns), self._starts
        arrays = dict(zip(combinations(range(number), 3), moments.contrasts, strict=True))
        blocks = []
        for j in range(1, number - 1):
            middle, before, after = trees[starts[j]], trees[: starts[j]], trees[starts[j + 1] :]
            target = np.concatenate(
                [
                    np.concatenate([arrays[i, j, k] for k in range(j + 1, number)], axis=2)
                    for i in range(j)
                ]
            ).transpose(1, 0, 2)
            counts = (before != middle)[:, None] & (after != middle) & (before[:, None] != after)
            shape = (-1, len(after))
            precision = np.asarray(self._precision)
            if not counts.all():
                precision = np.broadcast_to(counts * precision, target.shape).reshape(shape)
            blocks.append((target.reshape(shape), precision))
        return blocks

    def _add_triples(
        self, weights: Floats, contrasts: Floats, slopes: Floats, weight_slopes: Floats
    ) -> None:
        scratch, classes = self._scratch, len(weights)
        weighted = np.multiply(contrasts, weights, out=scratch("weighted", *contrasts.shape))
        for j, (target, counts) in enumerate(self._blocks, start=1):
            middle, after = slice(*self._starts[j : j + 2]), slice(self._starts[j + 1], None)
            here, there, right = contrasts[middle], contrasts[: middle.start], contrasts[after]
            both = scratch("both", len(here), len(there), classes)
            left = np.multiply(here[:, None], there, out=both).reshape(-1, classes)
            error = np.matmul(left, weighted[after].T, out=scratch("error", *target.shape))
            error -= target
            error *= counts
            slopes[after] += np.matmul(error.T, left, out=scratch("right", *right.shape))
            slope = np.matmul(error, right, out=left).reshape(both.shape)
            slopes[: middle.start] += np.einsum("ijc,ic->jc", slope, here)
            by_middle = np.einsum("ijc,jc->ic", slope, there)
            slopes[middle] += by_middle
            weight_slopes += np.einsum("ic,ic->c", by_middle, here)
