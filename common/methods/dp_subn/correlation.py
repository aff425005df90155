"""Phase 1: pair marginals read off noisy views, and the mutual information of every pair.

Everything here works on noisy tables: nothing asks for an exact count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from common.errors import LocalError
from common.methods.designs.nocd import View

Pair = tuple[int, int]


def onto_simplex(values: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """The closest non-negative table (Euclidean) with the given sum; same shape.

    Clipping alone would leave the positive half of the noise in the table. Taking the same amount
    off every cell that stays positive removes it, and makes the table sum to its own row count.
    """
    if total < 0:
        raise LocalError(f"a table cannot sum to {total}")
    flat = np.asarray(values, dtype=np.float64).ravel()
    descending = np.sort(flat)[::-1]
    excess = (np.cumsum(descending) - total) / np.arange(1, flat.size + 1)
    kept = np.flatnonzero(descending > excess)
    shift = excess[kept[-1]] if kept.size else excess[0]
    return np.asarray(np.maximum(values - shift, 0.0), dtype=np.float64)


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
    joint = onto_simplex(table.reshape(table.shape[0], -1), rows) / rows
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    positive = joint > 0
    ratio = joint[positive] / independent[positive]
    return max(float(np.sum(joint[positive] * np.log2(ratio))), 0.0)


def correlations(
    attributes: int, pairs: Mapping[Pair, NDArray[np.float64]], rows: float
) -> NDArray[np.float64]:
    """The symmetric matrix of the pairs' mutual information, in bits; zero where not measured."""
    matrix = np.zeros((attributes, attributes))
    for (a, b), table in pairs.items():
        matrix[a, b] = matrix[b, a] = mutual_information(table, rows)
    return matrix
