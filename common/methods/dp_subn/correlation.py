"""Phase 1: pair marginals read off noisy views, and the mutual information of every pair.

Everything here works on noisy tables: nothing asks for an exact count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from common.bayes import postprocessing
from common.errors import LocalError
from common.methods.designs.nocd import View

Pair = tuple[int, int]


def pair_tables(
    views: Sequence[View], tables: Sequence[NDArray[np.float64]]
) -> dict[Pair, NDArray[np.float64]]:
    """Every pair's noisy table, attributes ascending; the mean where several views hold the pair.

    A mean over views weights each by the inverse of its cells: summing out c cells of equal noise
    leaves a variance proportional to c.
    """
    sums: dict[Pair, NDArray[np.float64]] = {}
    weights: dict[Pair, float] = {}
    for view, table in zip(views, tables, strict=True):
        if table.ndim != len(view):
            raise LocalError(f"view {view} came with a table of {table.ndim} dimensions")
        for (i, a), (j, b) in combinations(enumerate(view), 2):
            others = tuple(axis for axis in range(table.ndim) if axis not in (i, j))
            pair = table.sum(axis=others)
            key, oriented = ((a, b), pair) if a < b else ((b, a), pair.T)
            weight = oriented.size / table.size
            sums[key] = sums[key] + weight * oriented if key in sums else weight * oriented
            weights[key] = weights.get(key, 0.0) + weight
    return {pair: table / weights[pair] for pair, table in sums.items()}


def mutual_information(table: NDArray[np.float64], rows: float) -> float:
    """I(first axis; all other axes) in bits, from a noisy table that covers `rows` rows."""
    if rows <= 0 or table.size == 0:
        return 0.0
    return postprocessing.mutual_information(
        postprocessing.onto_simplex(table.reshape(table.shape[0], -1), total=rows)
    )


def correlations(
    attributes: int, pairs: Mapping[Pair, NDArray[np.float64]], rows: float
) -> NDArray[np.float64]:
    """The symmetric matrix of the pairs' mutual information, in bits; zero where not measured."""
    matrix = np.zeros((attributes, attributes))
    for (a, b), table in pairs.items():
        matrix[a, b] = matrix[b, a] = mutual_information(table, rows)
    return matrix
