"""The three kinds of axes: how each is transformed, what that costs, what it buys.

Untransformed (the attributes of the paper's S_A), Haar for an ordered attribute, nominal for one
with a hierarchy.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from common.errors import LocalError
from common.wavelet import haar, nominal
from common.wavelet.axis import Axis, AxisKind, Integers, Positions, Reach
from common.wavelet.tree import Tree


@dataclass(frozen=True)
class UntransformedAxis(Axis):
    """Every cell is its own coefficient: right for small domains [Xiao11, Sec. 6.4]."""

    size: int
    order: NDArray[np.intp] | None = None
    kind: AxisKind = "untransformed"

    @property
    def coefficients(self) -> int:
        return self.size

    @property
    def stored(self) -> int:
        return self.size

    @property
    def cells(self) -> Positions:
        return slice(0, self.size)

    @property
    def sensitivity(self) -> int:
        """One row more in a cell moves that cell by one."""
        return 1

    @property
    def variance_bound(self) -> Fraction:
        """A query may add up every cell."""
        return Fraction(self.size)

    @property
    def worst_variance(self) -> Fraction:
        """The bound is attained by the full range."""
        return Fraction(self.size)

    @property
    def multipliers(self) -> NDArray[np.int64]:
        """Counts are used as they are."""
        return np.ones(self.size, dtype=np.int64)

    @property
    def bands(self) -> tuple[slice, ...]:
        """Cells never share a band: thresholding treats each sub-matrix alone."""
        return tuple(slice(cell, cell + 1) for cell in range(self.size))

    @property
    def leaf_codes(self) -> NDArray[np.intp]:
        """Depth first if the attribute has a hierarchy, so that its nodes are intervals."""
        return np.arange(self.size) if self.order is None else self.order

    def forward(self, values: NDArray[np.int64]) -> None:
        """Nothing to do."""

    def inverse(self, values: NDArray[np.float64]) -> None:
        """Nothing to do."""

    def reach(self, low: Integers, high: Integers, *, padding: bool = True) -> Reach:
        """Each cell of the range counts once."""
        length = (high - low).astype(np.float64)[:, None]
        return Reach(low, high, length, length)


@dataclass(frozen=True)
class HaarAxis(Axis):
    """The Haar transform of an ordered attribute."""

    size: int
    kind: AxisKind = "haar"

    @property
    def depth(self) -> int:
        """The levels of the binary tree."""
        return haar.levels(self.size)

    @property
    def coefficients(self) -> int:
        """The size, padded to a power of two."""
        return 1 << self.depth

    @property
    def stored(self) -> int:
        """The values, and the sum of the padding if there is any."""
        return min(self.size + 1, self.coefficients)

    @property
    def cells(self) -> Positions:
        return slice(0, self.stored)

    @property
    def sensitivity(self) -> int:
        """[Xiao11, Lemma 2]."""
        return haar.sensitivity(self.size)

    @property
    def variance_bound(self) -> Fraction:
        """[Xiao11, Lemma 3]."""
        return Fraction(2 + self.depth, 2)

    @cached_property
    def worst_variance(self) -> Fraction:
        """Over all ranges of values, not using the padding."""
        return Fraction(haar.worst_variance(self.size))

    @property
    def multipliers(self) -> NDArray[np.int64]:
        """Weighted coefficients are integers already."""
        return np.ones(self.coefficients, dtype=np.int64)

    @property
    def bands(self) -> tuple[slice, ...]:
        """The base is a band of its own."""
        return haar.bands(self.depth)

    def forward(self, values: NDArray[np.int64]) -> None:
        haar.forward(values)

    def inverse(self, values: NDArray[np.float64]) -> None:
        """See `haar.inverse`; then the padding is added up into the cell after the last value."""
        haar.inverse(values)
        if self.stored > self.size:
            values[:, self.size] = values[:, self.size :].sum(axis=1)

    def reach(self, low: Integers, high: Integers, *, padding: bool = True) -> Reach:
        """See `haar.moments`; a range to the last value may go on to the end of the padding."""
        second, fourth = haar.moments(low, high, self.depth)
        end = high
        if padding and self.stored > self.size:
            padded_end = np.where(high == self.size, self.coefficients, high)
            padded_second, padded_fourth = haar.moments(low, padded_end, self.depth)
            better = padded_second < second
            second = np.where(better, padded_second, second)
            fourth = np.where(better, padded_fourth, fourth)
            end = np.where(better, self.stored, high)
        return Reach(low, end, second[:, None], fourth[:, None])


@dataclass(frozen=True)
class NominalAxis(Axis):
    """The nominal transform of an attribute with a hierarchy."""

    tree: Tree
    kind: AxisKind = "nominal"

    @property
    def size(self) -> int:  # type: ignore[override]  # the tree knows it; there is no setter
        return self.tree.size

    @property
    def coefficients(self) -> int:
        """One per node, leaves included."""
        return self.tree.nodes

    @property
    def stored(self) -> int:
        return self.tree.size

    @property
    def cells(self) -> Positions:
        """The leaves, depth first; a slice where all leaves are on one level."""
        nodes = self.tree.leaf_nodes
        first = int(nodes[0])
        if np.array_equal(nodes, np.arange(first, first + len(nodes))):
            return slice(first, first + len(nodes))
        return nodes

    @property
    def sensitivity(self) -> int:
        """[Xiao11, Lemma 4]."""
        return nominal.sensitivity(self.tree)

    @property
    def variance_bound(self) -> Fraction:
        """[Xiao11, Lemma 5]."""
        return Fraction(4)

    @cached_property
    def worst_variance(self) -> Fraction:
        return nominal.worst_variance(self.tree)

    @cached_property
    def multipliers(self) -> NDArray[np.int64]:
        return nominal.multipliers(self.tree)

    @property
    def bands(self) -> tuple[slice, ...]:
        """The base is the first level."""
        return nominal.bands(self.tree)

    @property
    def leaf_codes(self) -> NDArray[np.intp]:
        return self.tree.leaf_codes

    def forward(self, values: NDArray[np.int64]) -> None:
        nominal.forward(values, self.tree)

    def inverse(self, values: NDArray[np.float64]) -> None:
        nominal.inverse(values, self.tree)

    @cached_property
    def _by_interval(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The nodes' intervals as sorted keys, and the nodes in that order."""
        keys = self.tree.low * (self.size + 1) + self.tree.high
        order = np.argsort(keys)
        return keys[order], order

    @cached_property
    def _moments(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return nominal.moments(self.tree, self.classes)

    def reach(self, low: Integers, high: Integers, *, padding: bool = True) -> Reach:
        """The ranges must be nodes of the hierarchy."""
        keys, order = self._by_interval
        wanted = low.astype(np.intp) * (self.size + 1) + high
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        if not np.array_equal(keys[place], wanted):
            raise LocalError("a range along a hierarchy must be exactly the leaves of one node")
        node = order[place]
        second, fourth = self._moments
        return Reach(low, high, second[node], fourth[node])
