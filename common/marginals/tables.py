"""Contingency arrays: how large one may be, and how a smaller one is read off a larger one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError, LocalError

MAX_CELLS = 1 << 31
"""The largest table that is counted: 16 GiB of totals, and every cell index fits 32 bits."""

Number = TypeVar("Number", bound=np.number[Any])


def cell_count(sizes: Sequence[int], what: str = "the table") -> int:
    """The cells of a table over domains of these sizes; refuses more than `MAX_CELLS`."""
    cells = math.prod(sizes)
    if cells > MAX_CELLS:
        raise InputError(
            f"{what} would have {cells:,} cells ({' x '.join(map(str, sizes))}), and at most "
            f"{MAX_CELLS:,} can be counted; ask for fewer attributes or for coarser domains"
        )
    return cells


def project(table: NDArray[Number], axes: Sequence[int]) -> NDArray[Number]:
    """The marginal of `table` over the axes kept, in the order given; the others are summed out.

    Always a fresh C-contiguous array of the same type, also where nothing is summed out.
    """
    if len(set(axes)) != len(axes) or not all(0 <= axis < table.ndim for axis in axes):
        raise LocalError(f"axes {tuple(axes)} are not distinct axes of a {table.ndim}-way table")
    summed_out = tuple(axis for axis in range(table.ndim) if axis not in axes)
    kept = sorted(axes)
    marginal = np.asarray(table.sum(axis=summed_out, dtype=table.dtype))
    order = [kept.index(axis) for axis in axes]
    return np.array(marginal.transpose(order), dtype=table.dtype, order="C")
