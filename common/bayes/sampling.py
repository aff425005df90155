"""Rows drawn from a network and its conditionals: post-processing, any number of rows is free."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from common.bayes.conditionals import Conditional, cumulative
from common.bayes.domain import Domain
from common.bayes.network import Network
from common.errors import InputError, LocalError
from common.marginals.kernels import compiled
from common.privacy.randomness import RandomSource, uniforms
from common.schema.codes import Codes, concatenate

_BLOCK_ROWS = 1 << 16


def sample(
    network: Network,
    domain: Domain,
    conditionals: Sequence[Conditional],
    rows: int,
    source: RandomSource,
) -> Codes:
    """`rows` independent rows of the model."""
    return concatenate(list(sample_blocks(network, domain, conditionals, rows, source)))


def sample_blocks(
    network: Network,
    domain: Domain,
    conditionals: Sequence[Conditional],
    rows: int,
    source: RandomSource,
    block_rows: int = _BLOCK_ROWS,
) -> Iterator[Codes]:
    """The same rows in blocks, for releases larger than memory; at least one block, even of 0 rows.

    Attributes are drawn in network order [Zhang17, Sec. 3.3], each by inverting its distribution
    given the sampled, generalised values of its parents.
    """
    if rows < 0:
        raise InputError(f"cannot sample {rows} rows: give 0 or more")
    network.check(domain)
    sums = cumulative(conditionals)
    for pair, table in zip(network.pairs, sums, strict=True):
        if table.shape != (int(np.prod(domain.shape(pair.parents))), domain.sizes[pair.child]):
            raise LocalError(f"the conditional of attribute {pair.child} has shape {table.shape}")
    for start in range(0, max(rows, 1), block_rows):
        yield _block(network, domain, sums, min(block_rows, rows - start), source)


def _block(
    network: Network,
    domain: Domain,
    sums: Sequence[NDArray[np.float64]],
    rows: int,
    source: RandomSource,
) -> Codes:
    columns: dict[int, NDArray[np.intp]] = {}
    for pair, table in zip(network.pairs, sums, strict=True):
        configuration = np.zeros(rows, dtype=np.intp)
        for view in pair.parents:
            groups = domain.levels[view.attribute][view.level][columns[view.attribute]]
            configuration *= domain.size(view)
            configuration += groups
        drawn = np.empty(rows, dtype=np.intp)
        compiled(_invert)(table, configuration, uniforms(rows, source), drawn)
        columns[pair.child] = drawn
    return Codes.from_columns([columns[a] for a in range(domain.width)], domain.sizes)


def _invert(
    sums: NDArray[np.float64],
    configuration: NDArray[np.intp],
    points: NDArray[np.float64],
    drawn: NDArray[np.intp],
) -> None:
    """Draw the first value whose running sum passes the point, in the row of the parents."""
    for row in range(len(points)):
        line = sums[configuration[row]]
        low, high = 0, len(line) - 1
        while low < high:
            middle = (low + high) // 2
            if points[row] < line[middle]:
                high = middle
            else:
                low = middle + 1
        drawn[row] = low
