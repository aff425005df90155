"""A simulated population of many columns with known structure: a random sparse Bayesian network.

Every column has at most two parents among the eight before it, so what a synthetic table should
have learnt is known. Domains are all binary, or mixed: yes or no, words, and binned numbers, of 2
to 100 values. A column's distribution bends smoothly with its parents' values, by a strength of its
own, so that some pairs depend on each other strongly and most not at all.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.schema import Codes, Schema

MIXED_SIZES = (2, 2, 3, 4, 5, 7, 10, 16, 32, 64, 100)
_WINDOW = 8
_ROWS_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class WidePopulation:
    """The network that rows are drawn from.

    Attributes:
        sizes: the domain size of every column.
        parents: of every column, all before it.
    """

    sizes: tuple[int, ...]
    parents: tuple[tuple[int, ...], ...]
    _margins: tuple[NDArray[np.float64], ...]  # logits, shape (size,)
    _bends: tuple[NDArray[np.float64], ...]  # per column: strength of each parent

    @property
    def schema(self) -> Schema:
        """The public domains: of three columns of more than six values one is of words."""
        parts = []
        for position, size in enumerate(self.sizes):
            name = f'[[attribute]]\nname = "c{position}"\n'
            if size > 6 and position % 3:
                parts.append(f'{name}kind = "real"\nmin = 0\nmax = {size}\nbins = {size}\n')
            else:
                words = json.dumps([f"value {code}" for code in range(size)])
                parts.append(f'{name}kind = "categorical"\nvalues = {words}\n')
        return Schema.from_toml("\n".join(parts))

    def rows(self, count: int, seed: int) -> Codes:
        """So many rows; the same seed makes the same rows."""
        rng = np.random.default_rng(seed)
        columns = [np.empty(count, dtype=np.int64) for _ in self.sizes]
        for start in range(0, count, _ROWS_AT_ONCE):
            here = slice(start, min(start + _ROWS_AT_ONCE, count))
            for column, values in enumerate(columns):
                logits = np.broadcast_to(
                    self._margins[column], (here.stop - start, self.sizes[column])
                ).copy()
                for parent, bend in zip(self.parents[column], self._bends[column], strict=True):
                    logits += bend * np.outer(
                        _scores(self.sizes[parent])[columns[parent][here]],
                        _scores(self.sizes[column]),
                    )
                # The largest of logits plus Gumbel noise is a draw from their softmax.
                values[here] = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
        return Codes.from_columns(columns, self.sizes)


def wide_population(sizes: tuple[int, ...], seed: int) -> WidePopulation:
    """A random network over columns of these sizes."""
    rng = np.random.default_rng(seed)
    parents, margins, bends = [], [], []
    for column, size in enumerate(sizes):
        before = range(max(0, column - _WINDOW), column)
        chosen = rng.choice(before, size=min(len(before), int(rng.integers(0, 3))), replace=False)
        parents.append(tuple(sorted(map(int, chosen))))
        margins.append(rng.normal(0.0, 0.7, size))
        bends.append(rng.choice([-1.0, 1.0], len(chosen)) * rng.uniform(0.5, 2.0, len(chosen)))
    return WidePopulation(tuple(sizes), tuple(parents), tuple(margins), tuple(bends))


def binary_sizes(columns: int) -> tuple[int, ...]:
    """Yes or no, every column."""
    return (2,) * columns


def mixed_sizes(columns: int, seed: int = 0) -> tuple[int, ...]:
    """Small and large domains, at random, as the columns of a questionnaire are."""
    rng = np.random.default_rng(seed)
    return tuple(int(size) for size in rng.choice(MIXED_SIZES, columns))


def _scores(size: int) -> NDArray[np.float64]:
    """The values of a domain on a scale from -1 to 1."""
    return np.linspace(-1.0, 1.0, size)
