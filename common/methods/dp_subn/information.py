"""Mutual information in noisy tables, and the pairs of phase 1 that are read off noisy views.

Everything here works on noisy tables: nothing asks for an exact count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from common.bayes.postprocessing import marginal_table
from common.errors import LocalError
from common.methods.designs.nocd import Pair, View, pairs_of

_STEPS_PER_BIT = 1 << 30


def pair_tables(
    views: Sequence[View], tables: Sequence[NDArray[np.float64]]
) -> dict[Pair, NDArray[np.float64]]:
    """Return every pair's noisy table, attributes ascending; the mean where several views hold it.

    A mean over views weights each by the inverse of its cells: summing out c cells of equal noise
    leaves a variance proportional to c.
    """
    sums: dict[Pair, NDArray[np.float64]] = {}
    weights: dict[Pair, float] = {}
    for view, table in zip(views, tables, strict=True):
        if table.ndim != len(view):
            raise LocalError(f"view {view} came with a table of {table.ndim} dimensions")
        for pair, axes in pairs_of(view):
            pair_table = marginal_table(table, axes)
            weight = pair_table.size / table.size
            sums[pair] = sums[pair] + weight * pair_table if pair in sums else weight * pair_table
            weights[pair] = weights.get(pair, 0.0) + weight
    return {pair: table / weights[pair] for pair, table in sums.items()}


def mutual_informations(tables: NDArray[np.float64], rows: int) -> NDArray[np.float64]:
    """Return I(X; P) in bits of many noisy tables (tables, |X|, |P|) that cover the same rows.

    Each table is projected onto the non-negative tables that sum to `rows`.
    """
    flat = tables.reshape(len(tables), -1)
    descending = -np.sort(-flat, axis=1)
    excess = (np.cumsum(descending, axis=1) - rows) / np.arange(1, flat.shape[1] + 1)
    # The cells that stay positive are the first in descending order, and one at least.
    support = np.maximum(np.count_nonzero(descending > excess, axis=1), 1)
    shift = np.take_along_axis(excess, support[:, None] - 1, axis=1)
    joint = np.maximum(tables - shift[:, :, None], 0.0) / rows
    independent = joint.sum(axis=2, keepdims=True) * joint.sum(axis=1, keepdims=True)
    positive = joint > 0
    ratio = np.divide(joint, independent, out=np.ones_like(joint), where=positive)
    return np.asarray(np.maximum((joint * np.log2(ratio)).sum(axis=(1, 2)), 0.0))


def mutual_information(table: NDArray[np.float64], rows: int) -> float:
    """Return I(first axis; all other axes) in bits of a noisy table that covers `rows` rows."""
    if rows <= 0 or table.size == 0:
        return 0.0
    return float(mutual_informations(table.reshape(1, table.shape[0], -1), rows)[0])


def correlations(
    attributes: int, pairs: Mapping[Pair, NDArray[np.float64]], rows: int
) -> NDArray[np.float64]:
    """Return the symmetric matrix of the pairs' information in bits; zero where not measured."""
    matrix = np.zeros((attributes, attributes))
    for (a, b), table in pairs.items():
        matrix[a, b] = matrix[b, a] = mutual_information(table, rows)
    return matrix


def on_grid(information: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round to 2^-30 bits.

    Curator and parties each compute this, perhaps on different machines, whose logarithms and order
    of addition may differ in the last digit. On this grid they agree, and sums are exact.
    """
    return np.rint(information * _STEPS_PER_BIT) / _STEPS_PER_BIT
