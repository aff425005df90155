"""The squared error of a mixture against noisy tables and noisy contrasts, and its gradient.

    sum over tables of |model counts - noisy counts|^2 / (2 variance)

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
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations, pairwise
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from common.errors import LocalError
from common.privacy.sensitivity import CONTRAST_UNIT, contrast_shift

if TYPE_CHECKING:
    from scipy.sparse import csr_array

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


class TableLoss:
    """All noisy tables' part of the loss."""

    def __init__(self, measurements: Sequence[Measurement], rows: int) -> None:
        self._sights = _Sights(measurements)
        alike: dict[tuple[int, ...], list[Measurement]] = {}
        for table in measurements:
            alike.setdefault(table.counts.shape, []).append(table)
        self._batches = [
            _Batch(tables[start : start + room], self._sights, rows)
            for shape, tables in alike.items()
            for room in [max(_BATCH_CELLS // prod(shape[: _half(shape)]), 1)]
            for start in range(0, len(tables), room)
        ]

    def add_gradient(
        self, weights: Floats, columns: Sequence[Floats], slopes: list[Floats], weight_slope: Floats
    ) -> None:
        """Add the derivatives by the logarithms of columns and weights."""
        seen = self._sights.of(columns)
        seen_slopes = {width: np.zeros_like(stacked) for width, stacked in seen.items()}
        for batch in self._batches:
            batch.add_gradient(weights, seen, seen_slopes, weight_slope)
        self._sights.pull_back(columns, seen, seen_slopes, slopes)


class _Sights:
    """Every attribute in every grouping that a table shows it in, side by side by width."""

    def __init__(self, measurements: Sequence[Measurement]) -> None:
        self._places: dict[tuple[int, bytes | None], tuple[int, int]] = {}
        self._members: dict[int, list[tuple[int, Floats | None]]] = {}
        for table in measurements:
            for axis, attribute in enumerate(table.attributes):
                grouping, width = table.groupings[axis], table.counts.shape[axis]
                name = _name(attribute, grouping)
                if name not in self._places:
                    members = self._members.setdefault(width, [])
                    self._places[name] = (width, len(members))
                    members.append(
                        (attribute, None if grouping is None else np.eye(width)[grouping])
                    )

    def place(self, attribute: int, grouping: Grouping | None) -> int:
        """Return the place of the attribute in this grouping among those of its width."""
        return self._places[_name(attribute, grouping)][1]

    def of(self, columns: Sequence[Floats]) -> dict[int, Floats]:
        """Return the columns as the tables see them: per width, (sights, classes, width)."""
        return {
            width: np.stack(
                [columns[a] if groups is None else columns[a] @ groups for a, groups in members]
            )
            for width, members in self._members.items()
        }

    def pull_back(
        self,
        columns: Sequence[Floats],
        seen: dict[int, Floats],
        seen_slopes: dict[int, Floats],
        slopes: list[Floats],
    ) -> None:
        """Add the slopes of what is seen to the slopes of the columns' own values."""
        for width, members in self._members.items():
            for place, (attribute, groups) in enumerate(members):
                own = seen_slopes[width][place]
                if groups is not None:
                    share = own / np.maximum(seen[width][place], _TINY)
                    own = columns[attribute] * (share @ groups.T)
                slopes[attribute] += own


class _Batch:
    """Some tables of the same shape."""

    def __init__(self, tables: Sequence[Measurement], sights: _Sights, rows: int) -> None:
        shape = tables[0].counts.shape
        half = _half(shape)
        self._widths, self._halves = shape, (range(half), range(half, len(shape)))
        left = prod(shape[:half])
        self._targets = np.stack([table.counts.reshape(left, -1) / rows for table in tables])
        self._precision = np.array([rows * rows / table.variance for table in tables])[
            :, None, None
        ]
        self._places = np.array(
            [
                [sights.place(*pair) for pair in zip(t.attributes, t.groupings, strict=True)]
                for t in tables
            ]
        )
        # For adding up by place: tables in the order of their places, and where each place begins.
        self._order = np.argsort(self._places, axis=0, kind="stable")
        self._starts = [
            np.unique(self._places[order, axis], return_index=True)
            for axis, order in enumerate(self._order.T)
        ]

    def add_gradient(
        self,
        weights: Floats,
        seen: dict[int, Floats],
        seen_slopes: dict[int, Floats],
        weight_slope: Floats,
    ) -> None:
        factors = [seen[width][self._places[:, axis]] for axis, width in enumerate(self._widths)]
        left, right = (self._outer(weights, [factors[i] for i in half]) for half in self._halves)
        weighted = weights[:, None] * left
        error = self._precision * (weighted.transpose(0, 2, 1) @ right - self._targets)
        left_slope = weighted * (right @ error.transpose(0, 2, 1))
        right_slope = weights[:, None] * right * (left @ error)
        weight_slope += left_slope.sum(axis=(0, 2))
        for half, slope in zip(self._halves, (left_slope, right_slope), strict=True):
            shaped = slope.reshape(*slope.shape[:2], *(self._widths[i] for i in half))
            for axis, i in enumerate(half):
                others = tuple(o + 2 for o in range(len(half)) if o != axis)
                own = shaped.sum(axis=others)[self._order[:, i]]
                places, starts = self._starts[i]
                seen_slopes[self._widths[i]][places] += np.add.reduceat(own, starts, axis=0)

    def _outer(self, weights: Floats, factors: Sequence[Floats]) -> Floats:
        """Multiply (tables, classes, a) by (tables, classes, b) to (tables, classes, a*b)."""
        one = np.ones((len(self._places), len(weights), 1))
        return reduce(
            lambda u, v: (u[:, :, :, None] * v[:, :, None, :]).reshape(*u.shape[:2], -1),
            factors,
            one,
        )


def _half(shape: Sequence[int]) -> int:
    return (len(shape) + 1) // 2


def _name(attribute: int, grouping: Grouping | None) -> tuple[int, bytes | None]:
    return attribute, None if grouping is None else grouping.tobytes()


@dataclass(frozen=True, slots=True)
class Moments:
    """Noisy contrasts of all sets of two or three attributes.

    Attributes:
        columns: the column of the mixture that each attribute is in.
        groupings: of each attribute, the group of each cell of its column.
        contrasts: per row, an array for each set, in the order of `itertools.combinations`.
        variance: of the noise in one number of them.
    """

    columns: tuple[int, ...]
    groupings: tuple[Grouping, ...]
    contrasts: Sequence[Floats]
    variance: float

    @property
    def order(self) -> int:
        """The number of attributes of a set."""
        return self.contrasts[0].ndim

    @property
    def widths(self) -> list[int]:
        """The number of groups of each attribute."""
        return [int(own.max()) + 1 for own in self.groupings]


class MomentLoss:
    """The part of the loss that one order has.

    Args:
        moments: as measured.
        groupings: of each attribute, the group of each atom of its column.
        starts: where each column's atoms begin, and how many there are in all.
    """

    def __init__(
        self, moments: Moments, groupings: Sequence[Grouping], starts: Sequence[int]
    ) -> None:
        widths = moments.widths
        self._precision = 1 / moments.variance
        self._starts = [0, *np.cumsum(widths).tolist()]
        self._shifts = np.repeat(
            [contrast_shift(width) / CONTRAST_UNIT for width in widths], widths
        )[:, None]
        self._groups = _membership(moments, groupings, starts, self._starts)
        self._atoms = self._groups.T.tocsr()
        own = np.repeat(moments.columns, widths)
        if moments.order == 2:
            self._blocks = [self._pair_block(moments, own)]
        else:
            self._blocks = self._triple_blocks(moments, own)
        self._order = moments.order

    def add_gradient(
        self, weights: Floats, columns: Floats, slopes: Floats, weight_slopes: Floats
    ) -> None:
        """Add the derivatives with respect to all atoms (atoms, classes), and to the weights."""
        seen = self._groups @ columns - self._shifts
        own = np.zeros_like(seen)
        if self._order == 2:
            self._add_pairs(weights, seen, own, weight_slopes)
        else:
            self._add_triples(weights, seen, own, weight_slopes)
        slopes += self._atoms @ (own * weights)

    def _pair_block(self, moments: Moments, own: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """Return all pairs as one symmetric matrix, and which of its entries count."""
        found = np.zeros((self._starts[-1],) * 2)
        spans = [slice(a, b) for a, b in pairwise(self._starts)]
        tables = iter(moments.contrasts)
        for i, first in enumerate(spans):
            for second in spans[i + 1 :]:
                found[first, second] = next(tables)
        counts = (own[:, None] != own[None, :]) * self._precision
        return found + found.T, counts

    def _add_pairs(
        self, weights: Floats, seen: Floats, slopes: Floats, weight_slopes: Floats
    ) -> None:
        ((target, counts),) = self._blocks
        root = seen * np.sqrt(weights)
        error = root @ root.T  # half the work of a product of two different matrices
        error -= target
        error *= counts
        slope = error @ seen
        slopes += slope
        weight_slopes += np.einsum("dc,dc->c", slope, seen) / 2

    def _triple_blocks(
        self, moments: Moments, own: NDArray[np.intp]
    ) -> list[tuple[Floats, Floats]]:
        """Return, per middle attribute, (its groups, all groups before) times all groups after."""
        number, starts = len(moments.columns), self._starts
        arrays = dict(zip(combinations(range(number), 3), moments.contrasts, strict=True))
        blocks = []
        for j in range(1, number - 1):
            middle, before, after = own[starts[j]], own[: starts[j]], own[starts[j + 1] :]
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
        self, weights: Floats, seen: Floats, slopes: Floats, weight_slopes: Floats
    ) -> None:
        for j, (target, counts) in enumerate(self._blocks, start=1):
            middle, after = slice(*self._starts[j : j + 2]), slice(self._starts[j + 1], None)
            here, there, right = seen[middle], seen[: middle.start], seen[after]
            both = here[:, None] * there
            left = both.reshape(-1, len(weights))
            error = left @ (weights * right).T
            error -= target
            error *= counts
            slopes[after] += error.T @ left
            slope = (error @ right).reshape(both.shape)
            slopes[: middle.start] += np.einsum("ijc,ic->jc", slope, here)
            own = np.einsum("ijc,jc->ic", slope, there)
            slopes[middle] += own
            weight_slopes += np.einsum("ic,ic->c", own, here)


def _membership(
    moments: Moments, groupings: Sequence[Grouping], starts: Sequence[int], ends: Sequence[int]
) -> csr_array:
    """Return which atoms each group of each attribute has, as a matrix (groups, atoms)."""
    from scipy.sparse import csr_array  # slow to load, and few commands fit a model

    pairs = list(zip(moments.columns, groupings, strict=True))
    atoms = np.concatenate([starts[column] + np.arange(len(own)) for column, own in pairs])
    groups = np.concatenate([ends[i] + own for i, (_, own) in enumerate(pairs)])
    return csr_array((np.ones(len(atoms)), (groups, atoms)), shape=(ends[-1], starts[-1]))
