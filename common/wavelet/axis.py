"""One axis of the matrix of counts: what the mechanism and the answers need to know about it.

Along an axis, cells have a position (depth first along a hierarchy), so that every question is an
interval of positions; coefficients have another.

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
    """What a batch of ranges touches along one axis.

    Attributes:
        low: first stored cell of each range.
        high: one past its last stored cell; it may include the padding.
        second: sum of squared weights of the coefficients used, shape (ranges, noise classes).
        fourth: sum of their fourth powers, same shape.
    """

    low: Integers
    high: Integers
    second: Floats
    fourth: Floats


class Axis:
    """An axis that is left alone: every cell is its own coefficient [Xiao11, Sec. 6.4].

    `common.wavelet.haar` and `common.wavelet.nominal` have the axes that are transformed.

    Attributes:
        size: the number of values.
        leaf_codes: the code of the cell at each position; depth first along a hierarchy, so that
            its nodes are intervals.
        coefficients: their number, padding included.
        stored: the number of cells kept in a release.
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
        """What a query's variance is at most multiplied by, the paper's H(A)."""
        return Fraction(self.size)  # a query may add up every cell

    @property
    def worst_variance(self) -> Fraction:
        """What the worst query's variance is multiplied by, exactly."""
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
