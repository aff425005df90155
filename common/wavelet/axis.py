"""One axis of the matrix of counts: what the mechanism and the answers need to know about it.

Along an axis, cells have a position (depth first along a hierarchy), so that every question is an
interval of positions; coefficients have another. The kinds of axes are in `common.wavelet.axes`.

A cell may be followed by one more, the sum of the empty cells a Haar axis is padded with. The
padding is truly zero, so a range that reaches the last value may be answered with or without it,
and one of the two is the more accurate.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Positions: TypeAlias = slice | NDArray[np.intp]
Integers: TypeAlias = NDArray[np.integer[Any]]
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
    second: NDArray[np.float64]
    fourth: NDArray[np.float64]


class Axis(ABC):
    """What the mechanism and the answers need to know about an axis."""

    kind: AxisKind
    size: int

    @property
    @abstractmethod
    def coefficients(self) -> int:
        """The number of coefficients, padding included."""

    @property
    @abstractmethod
    def stored(self) -> int:
        """The number of cells kept in a release."""

    @property
    @abstractmethod
    def cells(self) -> Positions:
        """Where the stored cells sit among the coefficients before and after the transform."""

    @property
    @abstractmethod
    def sensitivity(self) -> int:
        """Generalised sensitivity, the paper's P(A)."""

    @property
    @abstractmethod
    def variance_bound(self) -> Fraction:
        """What a query's variance is at most multiplied by, the paper's H(A)."""

    @property
    @abstractmethod
    def worst_variance(self) -> Fraction:
        """What the worst query's variance is multiplied by, exactly."""

    @property
    @abstractmethod
    def multipliers(self) -> NDArray[np.int64]:
        """Integer coefficient / weighted coefficient, for each coefficient."""

    @property
    @abstractmethod
    def bands(self) -> tuple[slice, ...]:
        """The coefficients of each level of the tree, coarsest first."""

    @property
    def leaf_codes(self) -> NDArray[np.intp]:
        """The code of the cell at each position."""
        return np.arange(self.size)

    @cached_property
    def classes(self) -> NDArray[np.int64]:
        """The distinct multipliers; noise within a class has one scale."""
        return np.unique(self.multipliers)

    @abstractmethod
    def forward(self, values: NDArray[np.int64]) -> None:
        """Cells to integer coefficients, in place, along the middle of three axes."""

    @abstractmethod
    def inverse(self, values: NDArray[np.float64]) -> None:
        """Integer coefficients, perturbed, to cells, in place, along the middle of three axes."""

    @abstractmethod
    def reach(self, low: Integers, high: Integers, *, padding: bool = True) -> Reach:
        """What the ranges [low, high) touch; with `padding`, the more accurate of two ways."""
