"""What is decided before the data is touched: transforms, noise scale, memory.

Everything here is a function of public facts only (the schema, epsilon, the method), so a plan
costs no privacy and is the same wherever it is made.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError, LocalError
from common.privacy.sampling.discrete_laplace import LARGEST_SCALE
from common.schema import Attribute, Codes, Schema
from common.wavelet.axis import Axis, HaarAxis, Positions
from common.wavelet.nominal import ArrayTree, NominalAxis

Method: TypeAlias = Literal["basic", "privelet", "privelet+", "privelet*"]
Rule: TypeAlias = Literal["exact", "bound"]
METHODS: tuple[Method, ...] = ("basic", "privelet", "privelet+", "privelet*")

MAX_CELLS = 1 << 27  # one gibibyte of counts
SLAB_COEFFICIENTS = 1 << 20  # coefficients worked on at once, unless one sub-matrix has more
_LARGEST_INTEGER = 1 << 53  # up to here, integers and double-precision numbers agree


def axes_of(schema: Schema) -> tuple[Axis, ...]:
    """Return the axis of every attribute, each with the transform its kind calls for."""
    return tuple(axis_of(attribute) for attribute in schema.attributes)


def axis_of(attribute: Attribute) -> Axis:
    """Choose Haar where intervals mean something, nominal along the hierarchy otherwise."""
    if attribute.ordered:
        return HaarAxis(attribute.size)
    return NominalAxis(ArrayTree.of(attribute.hierarchy))


def leave_untransformed(axis: Axis, rule: Rule) -> bool:
    """Return whether an attribute is more accurate without a transform [Xiao11, Sec. 6.4].

    The worst query's variance is 8 / epsilon^2 times a product with one factor per attribute: its
    size if it is left alone, otherwise P^2 times the transform's own factor. The product is
    smallest if each factor is, so attributes can be decided one by one. "bound" uses the paper's
    bound H on the transform's factor; "exact" uses the worst query's true factor, which is about
    half of it for Haar.
    """
    squared = axis.sensitivity**2
    if axis.size > squared * axis.variance_bound:
        return False  # decided either way, and spares looking at all ranges of a large domain
    return rule == "bound" or axis.size <= squared * axis.worst_variance


@dataclass(frozen=True)
class WaveletDecisions:
    """The transforms of all axes and the noise they call for."""

    axes: tuple[Axis, ...]  # in the order of the schema
    epsilon: Fraction  # the privacy budget, spent exactly
    method: Method

    def __post_init__(self) -> None:
        """Refuse an empty domain and a budget that protects nothing."""
        if not self.axes:
            raise InputError("there is no attribute to count by; give at least one")
        if self.epsilon <= 0:
            raise InputError(f"epsilon must be above 0, not {self.epsilon}")

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Axes as stored: untransformed first, because the work proceeds slab by slab over them.

        Haar comes last: its cells are then neighbours in memory, and so are, for each of them, the
        cells of a hierarchy's node.
        """
        rank = {"untransformed": 0, "nominal": 1, "haar": 2}
        return tuple(sorted(range(len(self.axes)), key=lambda i: rank[self.axes[i].kind]))

    @property
    def caution(self) -> str | None:
        """Say that a method with transforms transforms nothing; None if it does, or is basic."""
        if self.method == "basic" or self.transformed:
            return None
        return (
            f"{self.method} transforms no attribute here: each is small enough to be more accurate "
            "without, so this is the same as basic. Name other attributes with --untransformed to "
            "force transforms."
        )

    @property
    def stored_axes(self) -> tuple[Axis, ...]:
        return tuple(self.axes[i] for i in self.order)

    @property
    def transformed(self) -> tuple[Axis, ...]:
        return tuple(axis for axis in self.stored_axes if axis.kind != "untransformed")

    @property
    def stored_shape(self) -> tuple[int, ...]:
        return tuple(axis.stored for axis in self.stored_axes)

    @property
    def cells(self) -> int:
        return math.prod(axis.size for axis in self.axes)

    @property
    def sub_matrices(self) -> int:
        """The number of combinations of untransformed values."""
        return math.prod(a.size for a in self.axes if a.kind == "untransformed")

    @property
    def sub_matrix_shape(self) -> tuple[int, ...]:
        """The coefficients of one sub-matrix."""
        return tuple(axis.coefficients for axis in self.transformed)

    @property
    def slab(self) -> int:
        room = SLAB_COEFFICIENTS // math.prod(self.sub_matrix_shape)
        return max(1, min(room, self.sub_matrices))

    @property
    def sensitivity(self) -> int:
        """Generalised sensitivity of all coefficients together: the product of the axes'.

        [Xiao11, Theorem 2]. Proof: the transform is a Kronecker product and so are its weights;
        a unit change of the cell (x_1, .., x_d) moves coefficient (c_1, .., c_d) by the product of
        what a unit change of x_i moves c_i by, so the weighted sum factorises. Untransformed axes
        contribute 1: a row is in one sub-matrix only.
        """
        return math.prod(axis.sensitivity for axis in self.axes)

    @property
    def scale(self) -> Fraction:
        """Noise scale of a weighted coefficient, lambda = 2 * sensitivity / epsilon.

        [Xiao11, Lemma 1]. The 2: a replaced row changes two cells by one each.
        """
        return 2 * self.sensitivity / self.epsilon

    @property
    def variance_bound(self) -> Fraction:
        """No query's noise variance is above this [Xiao11, Eq. 7]."""
        return (
            2 * self.scale**2 * math.prod((a.variance_bound for a in self.axes), start=Fraction(1))
        )

    @cached_property
    def noise_classes(self) -> tuple[tuple[Fraction, tuple[Positions, ...]], ...]:
        """Noise scales and the integer coefficients of a sub-matrix that get them.

        An integer coefficient is its weighted coefficient times the multipliers of its axes, so
        its scale is lambda times the same multipliers: |change| / scale is the same for both.
        """
        per_axis = [
            [(int(m), _positions(axis.multipliers == m)) for m in axis.classes]
            for axis in self.transformed
        ]
        return tuple(
            (self.scale * math.prod(m for m, _ in combination), tuple(w for _, w in combination))
            for combination in itertools.product(*per_axis)
        )

    def class_multipliers(self) -> NDArray[np.float64]:
        """Return the multiplier of each combination of noise classes, one axis per stored axis."""
        result = np.ones(())
        for axis in self.stored_axes:
            result = np.multiply.outer(result, axis.classes.astype(np.float64))
        return result

    def check_size(self, names: Sequence[str], max_cells: int = MAX_CELLS) -> None:
        """Refuse a matrix that will not fit, before anything is allocated."""
        stored = math.prod(self.stored_shape)
        at_work = self.slab * math.prod(self.sub_matrix_shape)
        if max(stored, at_work // 2) <= max_cells:
            return
        shape = " x ".join(f"{n} {a.size:,}" for n, a in zip(names, self.axes, strict=True))
        gibibytes = 8 * (stored + at_work) / 2**30
        raise InputError(
            f"the domain has {self.cells:,} cells ({shape}): more than the limit of {max_cells:,}, "
            f"and {gibibytes:,.1f} GiB of memory. Use fewer attributes or coarser values, or use "
            "PrivBayes, which never builds the full matrix"
        )

    def check_rows(self, codes: Codes) -> None:
        """Refuse rows of another domain, and noise or counts beyond exact arithmetic."""
        sizes = tuple(axis.size for axis in self.axes)
        if codes.sizes != sizes:
            raise LocalError(f"the rows have the domain sizes {codes.sizes}, the plan {sizes}")
        multiplier = math.prod(int(axis.multipliers.max()) for axis in self.transformed)
        # A draw beyond 64 scales has a chance of e^-64.
        largest = multiplier * (codes.rows + 64 * self.scale)
        if largest > _LARGEST_INTEGER or multiplier * self.scale > LARGEST_SCALE:
            raise InputError(
                f"epsilon {float(self.epsilon):g} is too small for this domain: the noise, of "
                f"scale {float(self.scale):.3g}, would leave the range of exact arithmetic"
            )


def make_plan(
    axes: Sequence[Axis],
    epsilon: Fraction,
    method: Method,
    untransformed: Rule | Sequence[int] = "exact",
) -> WaveletDecisions:
    """Choose which axes are left alone; each has the transform its attribute would have.

    Method "basic" leaves all alone, "privelet" none; the others follow `untransformed`, a rule or
    the positions of the axes to leave alone.
    """
    if method not in METHODS:
        raise InputError(f"unknown method {method!r}; there are {', '.join(METHODS)}")
    chosen = []
    for position, axis in enumerate(axes):
        if method == "basic":
            alone = True
        elif method == "privelet":
            alone = axis.size == 1
        elif isinstance(untransformed, str):
            alone = leave_untransformed(axis, untransformed)
        else:
            alone = axis.size == 1 or position in untransformed
        chosen.append(Axis(axis.size, axis.leaf_codes) if alone else axis)
    return WaveletDecisions(tuple(chosen), epsilon, method)


def _positions(mask: NDArray[np.bool_]) -> Positions:
    """Return the true positions, as a slice if they are consecutive."""
    where = np.flatnonzero(mask)
    if where[-1] - where[0] + 1 == len(where):
        return slice(int(where[0]), int(where[-1]) + 1)
    return where
