"""The squared error of a mixture's tables against noisy ones, and its gradient, for many tables.

    sum over tables of |model counts - noisy counts|^2 / (2 variance)

A wide study has thousands of small tables. One by one they cost some twenty calls of numpy each and
step; so tables of the same shape are put side by side and handled together, in batches that fit the
processor's cache. A table's attributes are cut into two halves: its model is then one matrix
product of the halves' outer products, several times faster than an outer product over all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod

import numpy as np
from numpy.typing import NDArray

from common.errors import LocalError

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
        """Add w.r.t. the logarithms of columns and weights: value times derivative."""
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
        """Where the attribute in this grouping stands among those of its width."""
        return self._places[_name(attribute, grouping)][1]

    def of(self, columns: Sequence[Floats]) -> dict[int, Floats]:
        """Per width, shape (sights, classes, width): the columns as the tables see them."""
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
        """Slopes of what is seen, as slopes of the columns' own values."""
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
        """(tables, classes, a), (tables, classes, b) -> (tables, classes, a*b), flattened."""
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
