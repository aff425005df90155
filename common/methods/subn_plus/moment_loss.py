"""The squared error of a mixture's contrasts against noisy ones, and its gradient.

The contrasts of all pairs, or of all triples, of grouped attributes are a moment of one vector per
row: all attributes' vectors, one after the other. The mixture's moment of order two is
sum_c w_c g_c g_c^T, g_c being the class's mean vector: one matrix product for all pairs together,
and one for all triples with the same middle attribute, whatever the number of sets. Blocks of
attributes that share a column of the mixture are left out: given the class they are not
independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from common.methods.subn_plus.table_loss import Floats, Grouping
from common.privacy.sensitivity import CONTRAST_UNIT, contrast_shift


@dataclass(frozen=True, slots=True)
class Moments:
    """Noisy contrasts of all sets of two or three attributes.

    Attributes:
        columns: the column of the mixture that each attribute is in.
        groupings: of each attribute, the group of each cell of its column.
        contrasts: per row, an array for each set, in the order of `itertools.combinations`.
        variance: of the noise in one number of them.
        centred: whether they are contrasts; if not, tables.
    """

    columns: tuple[int, ...]
    groupings: tuple[Grouping, ...]
    contrasts: Sequence[Floats]
    variance: float
    centred: bool = True

    @property
    def order(self) -> int:
        """How many attributes a set has."""
        return self.contrasts[0].ndim

    @property
    def widths(self) -> list[int]:
        """How many groups each attribute has."""
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
            [moments.centred * contrast_shift(width) / CONTRAST_UNIT for width in widths], widths
        )
        self._groups = np.zeros((starts[-1], self._starts[-1]))
        for i, (column, grouping) in enumerate(zip(moments.columns, groupings, strict=True)):
            atoms = starts[column] + np.arange(len(grouping))
            self._groups[atoms, self._starts[i] + grouping] = 1
        own = np.repeat(moments.columns, widths)
        if moments.order == 2:
            self._blocks = [self._pair_block(moments, own)]
        else:
            self._blocks = self._triple_blocks(moments, own)
        self._order = moments.order

    def add_gradient(
        self, weights: Floats, columns: Floats, slopes: Floats, weight_slopes: Floats
    ) -> None:
        """Add the derivatives with respect to all columns, side by side, and to the weights."""
        seen = columns @ self._groups - self._shifts
        own = np.zeros_like(seen)
        if self._order == 2:
            self._add_pairs(weights, seen, own, weight_slopes)
        else:
            self._add_triples(weights, seen, own, weight_slopes)
        slopes += (weights[:, None] * own) @ self._groups.T

    def _pair_block(self, moments: Moments, own: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """All pairs as one symmetric matrix, and which of its entries count."""
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
        error = ((weights[:, None] * seen).T @ seen - target) * counts
        slope = seen @ error
        slopes += slope
        weight_slopes += np.einsum("cd,cd->c", slope, seen) / 2

    def _triple_blocks(
        self, moments: Moments, own: NDArray[np.intp]
    ) -> list[tuple[Floats, Floats]]:
        """Per middle attribute: (its groups, all groups before) times all groups after."""
        number, starts = len(moments.columns), self._starts
        arrays = {}
        tables = iter(moments.contrasts)
        for i in range(number):
            for j in range(i + 1, number):
                for k in range(j + 1, number):
                    arrays[i, j, k] = next(tables)
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
            here, there, right = seen[:, middle], seen[:, : middle.start], seen[:, after]
            both = here[:, :, None] * there[:, None, :]
            left = both.reshape(len(weights), -1)
            error = ((weights[:, None] * left).T @ right - target) * counts
            slope = (right @ error.T).reshape(both.shape)
            weight_slopes += np.einsum("cij,cij->c", slope, both)
            slopes[:, middle] += np.einsum("cij,cj->ci", slope, there)
            slopes[:, : middle.start] += np.einsum("cij,ci->cj", slope, here)
            slopes[:, after] += left @ error
