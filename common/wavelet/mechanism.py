"""The mechanism: count, transform, add noise, transform back; slab by slab, in place.

Privacy: the integer coefficients c~ are released with independent discrete Laplace noise of scale
t(c~) = lambda * multiplier(c~). Replacing a row changes two cells by one; by the generalised
sensitivity (see `WaveletDecisions.sensitivity`) each of them changes sum |change of c~| / t(c~)
by at most sensitivity / lambda, together 2 * sensitivity / lambda = epsilon. All that follows the
noise (thresholding, mean subtraction, the inverse) reads noisy coefficients only and costs nothing.
Until the noise is added every number is an integer.

Privelet* shrinks noisy coefficients towards zero, band by band [Xiao11, Sec. 7]. Neighbouring cells
are often alike, so most true coefficients are near zero and most of what is seen is noise. A band
holds the coefficients of one level of every axis, within one sub-matrix. Soft thresholding moves
each towards zero by theta, and theta is chosen such that the energy left is the energy expected of
the signal. It is biased, and no variance can be given for its answers.

Memory: one matrix, which holds the counts first and the noisy cells afterwards, and one slab.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError
from common.privacy.accountant import Accountant, laplace_charge
from common.privacy.budget import parse_epsilon
from common.privacy.randomness import RandomSource
from common.privacy.sampling.discrete_laplace import discrete_laplace, discrete_laplace_variance
from common.schema import Codes, Schema
from common.wavelet.axis import Axis, Positions
from common.wavelet.decisions import Method, Rule, WaveletDecisions, axes_of, make_plan
from common.wavelet.noisy_matrix import NoisyMatrix

Sampler: TypeAlias = Callable[[Fraction, int, RandomSource], NDArray[np.int64]]

_ROWS_AT_ONCE = 1 << 18
_DRAWS_AT_ONCE = 1 << 18


def noisy_cells(
    codes: Codes, plan: WaveletDecisions, sampler: Sampler, source: RandomSource
) -> NDArray[np.float64]:
    """Return the counts of `codes` under epsilon-differential privacy, of `plan.stored_shape`.

    They are unbiased, but for Privelet*, which shrinks.
    """
    plan.check_rows(codes)
    counts = count_cells(codes, plan)
    cells = counts.view(np.float64)  # the same memory: a slab's counts give way to its noisy cells
    inner = tuple(axis.stored for axis in plan.transformed)
    exact = counts.reshape(plan.sub_matrices, *inner)
    noisy = cells.reshape(plan.sub_matrices, *inner)
    shrinkage = Shrinkage.of(plan) if plan.method == "privelet*" else None
    work = np.empty((plan.slab, *plan.sub_matrix_shape), dtype=np.int64)
    where = tuple(axis.cells for axis in plan.transformed)
    for start in range(0, plan.sub_matrices, plan.slab):
        part = slice(start, min(start + plan.slab, plan.sub_matrices))
        block = work[: part.stop - part.start]
        index = _index((slice(0, len(block)), *where))
        block[...] = 0
        block[index] = exact[part]
        transform(block, plan.transformed)
        add_noise(block, plan, sampler, source)
        perturbed = _as_floats(block)
        if shrinkage is not None:
            shrinkage.apply(perturbed)
        invert(perturbed, plan.transformed)
        noisy[part] = perturbed[index]
    return cells


def count_cells(codes: Codes, plan: WaveletDecisions) -> NDArray[np.int64]:
    """Count the rows in each cell, in the plan's stored order and shape."""
    counts = np.zeros(plan.stored_shape, dtype=np.int64)
    flat = counts.reshape(-1)
    places = []
    for position, axis in zip(plan.order, plan.stored_axes, strict=True):
        place = np.empty(axis.size, dtype=np.intp)
        place[axis.leaf_codes] = np.arange(axis.size)
        places.append((codes.columns[position], place, axis.stored))
    for start in range(0, codes.rows, _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        cell: NDArray[np.intp] = np.zeros(len(codes.columns[0][rows]), dtype=np.intp)
        for column, place, stored in places:
            cell *= stored
            cell += place[column[rows]]
        np.add.at(flat, cell, 1)
    return counts


def transform(block: NDArray[np.int64], axes: tuple[Axis, ...]) -> None:
    """Turn cells into integer coefficients along every axis but the first, in place."""
    for number, axis in enumerate(axes, start=1):
        axis.forward(_along(block, number))


def invert(block: NDArray[np.float64], axes: tuple[Axis, ...]) -> None:
    """Turn integer coefficients into cells along every axis but the first, in place."""
    for number, axis in reversed(list(enumerate(axes, start=1))):
        axis.inverse(_along(block, number))


def _along(block: NDArray[Any], number: int) -> NDArray[Any]:
    """Return a view of three axes: those before, the one given, those after."""
    shape = block.shape
    return block.reshape(math.prod(shape[:number]), shape[number], -1)


def add_noise(
    block: NDArray[np.int64], plan: WaveletDecisions, sampler: Sampler, source: RandomSource
) -> None:
    """Add one independent draw to every integer coefficient, padding included, in place.

    The padding's coefficients decide what the released cells are, so they are released too.
    """
    for scale, where in plan.noise_classes:
        for piece in _pieces((slice(0, len(block)), *where)):
            target = block[_index(piece)]
            noise = sampler(scale, target.size, source).reshape(target.shape)
            block[_index(piece)] += noise


def _pieces(positions: tuple[Positions, ...]) -> Iterator[tuple[Positions, ...]]:
    """Cut a block into pieces small enough to draw at once, in the block's own order."""
    lengths = [p.stop - p.start if isinstance(p, slice) else len(p) for p in positions]
    rest = math.prod(lengths[1:])
    if len(positions) > 1 and rest > _DRAWS_AT_ONCE:
        for number in range(lengths[0]):
            for tail in _pieces(positions[1:]):
                yield (_part(positions[0], number, number + 1), *tail)
        return
    step = max(1, _DRAWS_AT_ONCE // rest)
    for start in range(0, lengths[0], step):
        yield (_part(positions[0], start, min(start + step, lengths[0])), *positions[1:])


def _part(positions: Positions, start: int, stop: int) -> Positions:
    if isinstance(positions, slice):
        return slice(positions.start + start, positions.start + stop)
    return positions[start:stop]


def _index(positions: tuple[Positions, ...]) -> tuple[Any, ...]:
    """Return the index of the block that the positions span; a view if all of them are slices."""
    if all(isinstance(p, slice) for p in positions):
        return positions
    return np.ix_(*(np.arange(p.start, p.stop) if isinstance(p, slice) else p for p in positions))


def _as_floats(block: NDArray[np.int64]) -> NDArray[np.float64]:
    """Convert the numbers in their own memory, piece by piece; `block` is lost afterwards."""
    integers = block.reshape(-1)
    floats = integers.view(np.float64)
    for start in range(0, len(integers), _DRAWS_AT_ONCE):
        part = slice(start, start + _DRAWS_AT_ONCE)
        floats[part] = integers[part].astype(np.float64)
    return floats.reshape(block.shape)


def plan_privelet(
    schema: Schema,
    epsilon: str | Decimal | Fraction | int | float,
    *,
    method: Method = "privelet+",
    untransformed: Rule | Sequence[str] = "exact",
) -> WaveletDecisions:
    """Return what `privelet` would do, from public facts alone; see there."""
    rule: Rule | list[int]
    if untransformed == "exact" or untransformed == "bound":
        rule = untransformed
    elif isinstance(untransformed, str):
        raise InputError(f"unknown rule {untransformed!r}; name attributes in a list, or a rule")
    else:
        rule = [schema.position(name) for name in untransformed]
    plan = make_plan(axes_of(schema), parse_epsilon(epsilon, "epsilon"), method, rule)
    plan.check_size(schema.names)
    return plan


def privelet(
    codes: Codes,
    schema: Schema,
    *,
    epsilon: str | Decimal | Fraction | int | float,
    source: RandomSource,
    accountant: Accountant,
    party: str = "owner",
    method: Method = "privelet+",
    untransformed: Rule | Sequence[str] = "exact",
) -> NoisyMatrix:
    """Make noisy counts of every cell, epsilon-differentially private for a replaced row.

    Args:
        codes: the rows, encoded by `schema`.
        schema: the public domain.
        epsilon: the budget; all of it is spent, exactly.
        source: the noise's random bits.
        accountant: charged before the first draw; it may refuse.
        party: the name the accountant knows the owner of the rows by.
        method: "basic" (noise on every cell), "privelet" (every attribute transformed),
            "privelet+" (small attributes left alone), "privelet*" (and noisy coefficients shrunk).
        untransformed: for the last two, which attributes are left alone: those for which the
            worst query's variance is then smaller ("exact", or "bound" by the paper's bound), or
            the names given.
    """
    plan = plan_privelet(schema, epsilon, method=method, untransformed=untransformed)
    plan.check_rows(codes)
    accountant.charge(
        laplace_charge(
            "range counts",
            scale=plan.scale,
            # Of the weighted coefficients: a replaced row changes two cells by one each.
            sensitivities={party: 2 * plan.sensitivity},
            mechanism=f"discrete Laplace on wavelet coefficients ({method})",
        )
    )
    cells = noisy_cells(codes, plan, discrete_laplace, source)
    return NoisyMatrix(schema, plan, cells, codes.rows, source.private)


def thresholds(coefficients: NDArray[np.float64], noise_variance: float) -> NDArray[np.float64]:
    """Return the threshold of each row, a band of weighted coefficients [Xiao11, Eq. 10-12].

    With S the band, u its coefficients and s^2 the noise variance, theta solves
    F(theta) = sum max(|u| - theta, 0)^2 = K = sum u^2 - s^2 (|S| - 1), multiplied out from the
    paper so that a band of one is left as it is. F decreases; K <= 0 means that there is nothing
    but noise, and theta = max |u| removes all. Figure 8 of the paper, as printed, sorts signed
    values and compares the wrong way round; this is what it means: with X = |u| sorted downwards,
    find the i with X_i > theta >= X_{i+1}, for which F is a parabola with a known smaller root.
    """
    descending = -np.sort(-np.abs(coefficients), axis=1)
    count = np.arange(1, descending.shape[1] + 1)
    squares = np.cumsum(descending**2, axis=1)
    sums = np.cumsum(descending, axis=1)
    target = squares[:, -1] - noise_variance * (descending.shape[1] - 1)
    at_each = squares - 2 * sums * descending + count * descending**2  # F(X_i), never decreasing
    positive = np.maximum((at_each < target[:, None]).sum(axis=1), 1)
    row = np.arange(len(descending))
    alpha, beta = squares[row, positive - 1], sums[row, positive - 1]
    root = np.sqrt(np.maximum(beta**2 - positive * (alpha - target), 0))
    theta = np.where(target > 0, (beta - root) / positive, descending[:, 0])
    return np.clip(theta, 0, descending[:, 0])


def soft_threshold(
    coefficients: NDArray[np.float64], theta: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return sign(u) * max(|u| - theta, 0), with one theta per row."""
    shrunk = np.maximum(np.abs(coefficients) - theta[:, None], 0)
    return np.copysign(shrunk, coefficients)


@dataclass(frozen=True)
class Shrinkage:
    """Every band of a sub-matrix: where it is, its multipliers, its mean noise variance."""

    bands: tuple[tuple[tuple[slice, ...], NDArray[np.float64], float], ...]

    @classmethod
    def of(cls, plan: WaveletDecisions) -> Shrinkage:
        axes = plan.transformed
        bands = []
        for levels in itertools.product(*(axis.bands for axis in axes)):
            multiplier = np.ones(())
            for axis, level in zip(axes, levels, strict=True):
                multipliers = axis.multipliers[level]
                if (multipliers == multipliers[0]).all():
                    multipliers = multipliers[:1]  # broadcasts
                multiplier = np.multiply.outer(multiplier, multipliers.astype(np.float64))
            # Axes with one multiplier collapse to length 1, so the mean over this small array is
            # the mean over the band.
            variances = [
                discrete_laplace_variance(plan.scale * int(m)) / m**2 for m in multiplier.flat
            ]
            bands.append((levels, multiplier, math.fsum(variances) / len(variances)))
        return cls(tuple(bands))

    def apply(self, block: NDArray[np.float64]) -> None:
        """Shrink integer coefficients, perturbed, in place; the first axis counts sub-matrices."""
        for levels, multiplier, noise_variance in self.bands:
            band = block[(slice(None), *levels)]
            weighted = (band / multiplier).reshape(len(block), -1)
            theta = thresholds(weighted, noise_variance)
            band[...] = soft_threshold(weighted, theta).reshape(band.shape) * multiplier
