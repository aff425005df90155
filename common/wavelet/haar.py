"""The Haar wavelet transform of an ordered axis, weight-normalised, in integers, in place.

[Xiao11, Sec. 4] gives each node of a full binary tree over the cells the coefficient
c = (mean of its left cells - mean of its right cells) / 2 and the weight W(c) = number of its
cells. Only u = W(c) * c is ever needed: u = (sum of left cells) - (sum of right cells), and
for the base coefficient u = the total. Integer cells give integer u, and noise on every u has the
same scale.

Layout: position 0 holds the base; the node of 2^k cells that starts at cell x sits at position
x + 2^(k-1), so a level is a strided slice and no second array is needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def levels(size: int) -> int:
    """ceil(log2(size)): the depth of the tree over `size` cells, padded to a power of two."""
    return (size - 1).bit_length()


def sensitivity(size: int) -> int:
    """Generalised sensitivity 1 + l of the transform over `size` cells [Xiao11, Lemma 2].

    Proof: adding 1 to one cell moves its ancestor's (sum of left) - (sum of right) by exactly 1 in
    absolute value at each of the l levels, moves the total by 1, and moves nothing else. The
    weighted L1 distance is therefore 1 + l for every cell. l belongs to the PADDED length: every
    coefficient of the padded tree is released.
    """
    return 1 + levels(size)


def forward(cells: NDArray[np.int64]) -> None:
    """Replace cells by normalised coefficients along the middle of three axes, in place.

    Args:
        cells: shape (before, 2^l, after), a view onto contiguous memory.
    """
    step = 1
    while step < cells.shape[1]:
        left = cells[:, 0 :: 2 * step]
        right = cells[:, step :: 2 * step]
        left += right  # the sum; then right becomes left - right = sum - 2 * right
        right *= -2
        right += left
        step *= 2


def inverse(coefficients: NDArray[np.float64]) -> None:
    """Undo `forward` in place. Exact for integers below 2^53 / 2^l: halves are binary fractions."""
    step = coefficients.shape[1] // 2
    while step:
        left = coefficients[:, 0 :: 2 * step]
        right = coefficients[:, step :: 2 * step]
        left += right
        left *= 0.5
        right *= -1
        right += left
        step //= 2


def bands(depth: int) -> tuple[slice, ...]:
    """The positions of the base and of each level, coarsest first."""
    strides = [1 << (depth - level) for level in range(depth)]
    return (slice(0, 1), *(slice(stride // 2, None, stride) for stride in strides))


def moments(
    low: NDArray[np.integer[Any]], high: NDArray[np.integer[Any]], depth: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sums of squares and of fourth powers of the weights with which ranges use coefficients.

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
    """Covered left minus covered right cells of the node around `end`, covered from its start."""
    inside = end % cells
    return np.minimum(inside, cells - inside)


def worst_variance(size: int) -> float:
    """The largest sum of squares over all ranges within `size` cells, by looking at all of them."""
    low, high = np.triu_indices(size + 1, k=1)
    return float(moments(low, high, levels(size))[0].max())
