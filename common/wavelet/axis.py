"""One axis of the matrix of counts: what the mechanism and the answers need to know about it.

Along an axis, cells have a position (depth first along a hierarchy), so that every question is an
interval of positions; coefficients have another.

An axis is left alone, or has the Haar transform, both here, or the nominal transform along a
hierarchy (`common.wavelet.nominal`). Transforms are weight-normalised, in integers, in place.

Haar. [Xiao11, Sec. 4] gives each node of a full binary tree over the cells the coefficient
c = (mean of its left cells - mean of its right cells) / 2 and the weight W(c) = number of its
cells. Only u = W(c) * c is ever needed: u = (sum of left cells) - (sum of right cells), and
for the base coefficient u = the total. Integer cells give integer u, and noise on every u has the
same scale. Position 0 holds the base; the node of 2^k cells that starts at cell x sits at position
x + 2^(k-1), so a level is a strided slice and no second array is needed.

A cell may be followed by one more, the sum of the empty cells a Haar axis is padded with. The
padding is truly zero, so a range that reaches the last value may be answered with or without it,
and one of the two is the more accurate.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Positions: TypeAlias = slice | NDArray[np.intp]
Integers: TypeAlias = NDArray[np.integer[Any]]
Floats: TypeAlias = NDArray[np.float64]
AxisKind: TypeAlias = Literal["untransformed", "haar", "nominal"]


@dataclass(frozen=True, slots=True)
class Reach:
    """What a batch of ranges touches along one axis."""

    low: Integers  # first stored cell of each range
    high: Integers  # one past its last stored cell; it may include the padding
    second: Floats  # sum of squared weights of the coefficients used, shape (ranges, noise classes)
    fourth: Floats  # sum of their fourth powers, same shape


class Axis:
    """An axis that is left alone: every cell is its own coefficient [Xiao11, Sec. 6.4].

    Attributes:
        size: the number of values.
        leaf_codes: the code of the cell at each position; depth first along a hierarchy, so that
            its nodes are intervals.
        coefficients: their number, padding included.
        stored: the number of cells that are kept.
        cells: where the stored cells sit among the coefficients before and after the transform.
        sensitivity: generalised, the paper's P(A): one row more in a cell moves that cell by one.
    """

    kind: AxisKind = "untransformed"

    def __init__(self, size: int, leaf_codes: NDArray[np.intp] | None = None) -> None:
        self.size = self.coefficients = self.stored = size
        self.leaf_codes = np.arange(size) if leaf_codes is None else leaf_codes
        self.cells: Positions = slice(0, size)
        self.sensitivity = 1

    @property
    def variance_bound(self) -> Fraction:
        """The largest factor of a query's variance, the paper's bound H(A)."""
        return Fraction(self.size)  # a query may add up every cell

    @property
    def worst_variance(self) -> Fraction:
        """The exact factor of the worst query's variance."""
        return Fraction(self.size)

    @cached_property
    def multipliers(self) -> NDArray[np.int64]:
        """Integer coefficient / weighted coefficient, for each coefficient."""
        return np.ones(self.coefficients, dtype=np.int64)

    @cached_property
    def classes(self) -> NDArray[np.int64]:
        """The distinct multipliers; noise within a class has one scale."""
        return np.unique(self.multipliers)

    @property
    def bands(self) -> tuple[slice, ...]:
        """The coefficients that are thresholded together, coarsest first; here each alone."""
        return tuple(slice(cell, cell + 1) for cell in range(self.size))

    def forward(self, values: NDArray[np.int64]) -> None:
        """Turn cells into integer coefficients, in place, along the middle of three axes."""

    def inverse(self, values: Floats) -> None:
        """Turn perturbed integer coefficients into cells, in place; see `forward`."""

    def reach(self, low: Integers, high: Integers, *, padding: bool = True) -> Reach:
        """Return what the ranges [low, high) touch; `padding` allows the more accurate way."""
        length = (high - low).astype(np.float64)[:, None]
        return Reach(low, high, length, length)


class HaarAxis(Axis):
    """An ordered attribute; its cells are padded with empty ones to a power of two.

    The generalised sensitivity is 1 + l, l the levels of the tree [Xiao11, Lemma 2]. Proof: adding
    1 to one cell moves its ancestor's (sum of left) - (sum of right) by exactly 1 in absolute value
    at each of the l levels, moves the total by 1, and moves nothing else. The weighted L1 distance
    is therefore 1 + l for every cell. l belongs to the PADDED length: every coefficient of the
    padded tree is released.
    """

    kind: AxisKind = "haar"

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.depth = (size - 1).bit_length()  # the levels of the tree
        self.coefficients = 1 << self.depth
        self.stored = min(size + 1, self.coefficients)  # with the sum of the padding, if any
        self.cells = slice(0, self.stored)
        self.sensitivity = 1 + self.depth

    @property
    def variance_bound(self) -> Fraction:
        """[Xiao11, Lemma 3]."""
        return Fraction(2 + self.depth, 2)

    @cached_property
    def worst_variance(self) -> Fraction:
        """Over all ranges of values, not using the padding, by looking at all of them."""
        low, high = np.triu_indices(self.size + 1, k=1)
        return Fraction(float(haar_moments(low, high, self.depth)[0].max()))

    @property
    def bands(self) -> tuple[slice, ...]:
        """The base, then each level, coarsest first."""
        strides = [1 << (self.depth - level) for level in range(self.depth)]
        return (slice(0, 1), *(slice(stride // 2, None, stride) for stride in strides))

    def forward(self, values: NDArray[np.int64]) -> None:
        step = 1
        while step < values.shape[1]:
            left = values[:, 0 :: 2 * step]
            right = values[:, step :: 2 * step]
            left += right  # the sum; then right becomes left - right = sum - 2 * right
            right *= -2
            right += left
            step *= 2

    def inverse(self, values: Floats) -> None:
        """Undo `forward`; then add the padding up into the cell after the last value.

        Exact for integers below 2^53 / 2^l: halves are binary fractions.
        """
        step = values.shape[1] // 2
        while step:
            left = values[:, 0 :: 2 * step]
            right = values[:, step :: 2 * step]
            left += right
            left *= 0.5
            right *= -1
            right += left
            step //= 2
        if self.stored > self.size:
            values[:, self.size] = values[:, self.size :].sum(axis=1)

    def reach(self, low: Integers, high: Integers, *, padding: bool = True) -> Reach:
        """See `haar_moments`; a range to the last value may go on to the end of the padding."""
        second, fourth = haar_moments(low, high, self.depth)
        end = high
        if padding and self.stored > self.size:
            padded_end = np.where(high == self.size, self.coefficients, high)
            padded_second, padded_fourth = haar_moments(low, padded_end, self.depth)
            better = padded_second < second
            second = np.where(better, padded_second, second)
            fourth = np.where(better, padded_fourth, fourth)
            end = np.where(better, self.stored, high)
        return Reach(low, end, second[:, None], fourth[:, None])


def haar_moments(low: Integers, high: Integers, depth: int) -> tuple[Floats, Floats]:
    """Sum squares and fourth powers of the weights with which ranges use coefficients.

    The answer to [low, high) is sum over nodes of u * (covered left - covered right) / cells of the
    node, plus base * (high - low) / 2^l. A node matters only if an end of the range lies strictly
    inside it, so there are at most two per level. With independent noise of variance s^2 on each u,
    the answer has variance s^2 * (sum of squares), which is at most (2 + l) / 2 [Xiao11, Lemma 3].
    """
    begin, end = low.astype(np.int64), high.astype(np.int64)
    share = (end - begin) / float(1 << depth)
    second, fourth = share**2, share**4
    for level in range(1, depth + 1):
        cells = 1 << level
        first, last = _tent(begin, cells), _tent(end, cells)
        same = begin // cells == end // cells
        # One node holds both ends, or two different nodes hold one end each.
        one = np.where(same, last - first, first) / cells
        two = np.where(same, 0, last) / cells
        second += one**2 + two**2
        fourth += one**4 + two**4
    return second, fourth


def _tent(end: NDArray[np.int64], cells: int) -> NDArray[np.int64]:
    """Return covered left minus covered right cells of the node around `end`, from its start."""
    inside = end % cells
    return np.minimum(inside, cells - inside)
