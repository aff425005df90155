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
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from common.methods.subn_plus.table_loss import Floats, Grouping
from common.privacy.sensitivity import CONTRAST_UNIT, contrast_shift

if TYPE_CHECKING:
    from scipy.sparse import csr_array


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
        """Per middle attribute: (its groups, all groups before) times all groups after."""
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
    """(groups, atoms): which atoms each group of each attribute has."""
    from scipy.sparse import csr_array  # slow to load, and few commands fit a model

    pairs = list(zip(moments.columns, groupings, strict=True))
    atoms = np.concatenate([starts[column] + np.arange(len(own)) for column, own in pairs])
    groups = np.concatenate([ends[i] + own for i, (_, own) in enumerate(pairs)])
    return csr_array((np.ones(len(atoms)), (groups, atoms)), shape=(ends[-1], starts[-1]))
