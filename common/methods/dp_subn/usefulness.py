"""Theta-usefulness: the largest degree at which the counts still stand out of their noise.

A noisy marginal is theta-useful when its mean cell count is at least theta times the mean
magnitude of its noise [Zhang17, Def. 4.3]. With m marginals of c cells published together at
epsilon, a cell holds N/c rows on average and noise of scale 2m/epsilon.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import prod

THETA_NETWORK = 6  # for k, the degree of the network
THETA_FRONTIER = 2  # for k', the degree of the search frontier


def is_useful(
    *, rows: int, epsilon: Fraction, marginals: int, cells: int, theta: Fraction | int
) -> bool:
    """Whether `marginals` tables of `cells` cells published together are theta-useful."""
    return rows * epsilon >= theta * 2 * marginals * cells


def network_degree(
    sizes: Sequence[int], rows: int, epsilon: Fraction, *, theta: Fraction | int = THETA_NETWORK
) -> int:
    """k: the largest degree whose parameters are theta-useful at the budget of phase 4.

    Binary data: N*eps_4 / ((d-k) * 2^(k+2)) >= 6, d-k marginals of 2^(k+1) cells. On other domains
    the marginals cannot share an attribute set, so d of them are counted, of the mean cell count.
    """
    return _largest(sizes, rows, epsilon, theta, shared_prefix=True)


def frontier_degree(
    sizes: Sequence[int], rows: int, epsilon: Fraction, *, theta: Fraction | int = THETA_FRONTIER
) -> int:
    """k': the largest degree whose d-1 sufficient statistics are theta-useful at its budget."""
    return _largest(sizes, rows, epsilon, theta, shared_prefix=False)


def _largest(
    sizes: Sequence[int],
    rows: int,
    epsilon: Fraction,
    theta: Fraction | int,
    *,
    shared_prefix: bool,
) -> int:
    attributes = len(sizes)
    binary = all(size <= 2 for size in sizes)
    degree = 0
    for candidate in range(1, attributes):
        marginals = attributes - 1
        if shared_prefix:
            marginals = attributes - candidate if binary else attributes
        cells = _typical_cells(sizes, candidate + 1)
        if not is_useful(rows=rows, epsilon=epsilon, marginals=marginals, cells=cells, theta=theta):
            break
        degree = candidate
    return degree


def _typical_cells(sizes: Sequence[int], attributes: int) -> int:
    """The cells of a marginal of so many attributes of median size; 2^attributes on binary data."""
    return prod([sorted(sizes)[len(sizes) // 2]] * attributes)
