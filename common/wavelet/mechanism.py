"""The mechanism: count, transform, add noise, transform back; slab by slab, in place.

Privacy: the integer coefficients c~ are released with independent discrete Laplace noise of scale
t(c~) = lambda * multiplier(c~). Replacing a row changes two cells by one; by the generalised
sensitivity (see `Plan.sensitivity`) each of them changes sum |change of c~| / t(c~) by at most
sensitivity / lambda, together 2 * sensitivity / lambda = epsilon. All that follows the noise
(thresholding, mean subtraction, the inverse) reads noisy coefficients only and costs nothing.
Until the noise is added every number is an integer.

Memory: one matrix, which holds the counts first and the noisy cells afterwards, and one slab.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError
from common.privacy.accountant import Accountant, laplace_charge
from common.privacy.budget import parse_epsilon
from common.privacy.randomness import RandomSource
from common.privacy.sampling.discrete_laplace import discrete_laplace
from common.schema import Codes, Schema
from common.wavelet.axis import Axis, Positions
from common.wavelet.decisions import Method, Plan, Rule, axes_of, make_plan
from common.wavelet.noisy_matrix import RangeRelease
from common.wavelet.threshold import Shrinkage

Sampler: TypeAlias = Callable[[Fraction, int, RandomSource], NDArray[np.int64]]

_ROWS_AT_ONCE = 1 << 18
_DRAWS_AT_ONCE = 1 << 18


def noisy_cells(
    codes: Codes, plan: Plan, sampler: Sampler, source: RandomSource
) -> NDArray[np.float64]:
    """Return the matrix of counts of `codes` under epsilon-differential privacy.

    Returns:
        Unbiased cells (but for Privelet*, which shrinks), of shape `plan.stored_shape`.
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


def count_cells(codes: Codes, plan: Plan) -> NDArray[np.int64]:
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


def add_noise(block: NDArray[np.int64], plan: Plan, sampler: Sampler, source: RandomSource) -> None:
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
    lengths = [_length(p) for p in positions]
    rest = math.prod(lengths[1:])
    if len(positions) > 1 and rest > _DRAWS_AT_ONCE:
        for number in range(lengths[0]):
            for tail in _pieces(positions[1:]):
                yield (_part(positions[0], number, number + 1), *tail)
        return
    step = max(1, _DRAWS_AT_ONCE // rest)
    for start in range(0, lengths[0], step):
        yield (_part(positions[0], start, min(start + step, lengths[0])), *positions[1:])


def _length(positions: Positions) -> int:
    if isinstance(positions, slice):
        return int(positions.stop - positions.start)
    return len(positions)


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
) -> Plan:
    """Return what `privelet` would do, from public facts alone; see there."""
    rule: Rule | list[int]
    if untransformed == "exact" or untransformed == "bound":
        rule = untransformed
    elif isinstance(untransformed, str):
        raise InputError(f"unknown rule {untransformed!r}; name attributes in a list, or a rule")
    else:
        rule = [schema.position(name) for name in untransformed]
    plan = make_plan(axes_of(schema), parse_epsilon(epsilon), method, rule)
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
) -> RangeRelease:
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

    Raises:
        InputError: a domain too large, or an epsilon too small for exact arithmetic.
        PolicyError: the owner's budget does not allow it. Nothing was charged or drawn.
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
    return RangeRelease(schema, plan, cells, codes.rows, source.private)
