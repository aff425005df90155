"""Rows that stand in for the owners', so that a study can be tried before anything is spent.

Either a public table that the owners think is like theirs, or simulated rows for any schema: drawn
from a random Bayesian network over the schema's own domains. In schema order, each attribute has up
to two earlier ones as parents. A row's value is found in four steps:

1. every parent's value is replaced by its normal score: the standard normal quantile of the middle
   of its place among the attribute's values (after a shuffle of unordered values);
2. the scores, each with a random sign, are added up and divided by the root of their number;
3. z = dependence * that sum + sqrt(1 - dependence^2) * a standard normal draw;
4. the value is the quantile of the attribute's own marginal at the normal probability of z.

So the marginals do not depend on `dependence`: bells over ordered values, 1/rank over unordered
ones, one row in fifty `missing` or `other`. 0 makes attributes independent, 1 makes each a function
of its parents. The same seed makes the same rows. No real row is looked at.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from common.errors import InputError
from common.schema import Codes, Schema
from common.schema.attribute import Attribute
from common.schema.tables import read_table

DEPENDENCE = 0.5
_MOST_PARENTS = 2
_SPECIAL = 0.02  # the share of `other`, and of `missing`


def simulated(schema: Schema, rows: int, *, seed: int, dependence: float = DEPENDENCE) -> Codes:
    """Rows of a random network over the schema's domains."""
    if not 0 <= dependence <= 1:
        raise InputError(f"--dependence {dependence}: from 0 to 1")
    rng = np.random.default_rng(seed)
    columns: list[NDArray[np.int64]] = []
    scores: list[NDArray[np.float64]] = []
    for attribute in schema.attributes:
        law = _law(attribute, rng)
        shuffle = (
            np.arange(attribute.size) if attribute.ordered else rng.permutation(attribute.size)
        )
        parents = rng.permutation(len(columns))[: rng.integers(1, _MOST_PARENTS + 1)]
        pull = np.zeros(rows)
        for parent in parents:
            pull += rng.choice((-1.0, 1.0)) * scores[parent] / np.sqrt(len(parents))
        kept = dependence if len(parents) else 0.0
        height = ndtr(kept * pull + np.sqrt(1 - kept**2) * rng.standard_normal(rows))
        ladder = np.cumsum(law[shuffle])
        place = np.minimum(np.searchsorted(ladder, height, side="right"), attribute.size - 1)
        middles = ladder - law[shuffle] / 2
        scores.append(ndtri(np.clip(middles, 1e-9, 1 - 1e-9))[place])
        columns.append(shuffle[place])
    return Codes.from_columns(columns, schema.sizes)


def _law(attribute: Attribute, rng: np.random.Generator) -> NDArray[np.float64]:
    """The attribute's marginal."""
    special = int(attribute.other) + int(attribute.missing)
    usual = attribute.size - special
    if attribute.ordered:
        centre, width = rng.uniform(0.3, 0.7), rng.uniform(0.15, 0.3)
        middles = (np.arange(usual) + 0.5) / max(usual, 1)
        law = np.exp(-(((middles - centre) / width) ** 2) / 2)
    else:
        law = rng.permutation(1 / (1 + np.arange(usual)))
    if usual == 0:
        return np.full(special, 1 / special)
    law = law / law.sum() * (1 - special * _SPECIAL)
    return np.concatenate([law, np.full(special, _SPECIAL)])


def public_rows(path: Path, schema: Schema, rows: int, *, seed: int) -> Codes:
    """At most `rows` rows of a public table, picked at random.

    Raises:
        InputError: the table cannot be read, or does not fit the schema.
    """
    table = read_table(path, schema).encode(schema)
    if table.rows < 1:
        raise InputError(f"{path}: a stand-in needs rows")
    picked = np.random.default_rng(seed).permutation(table.rows)[:rows]
    return table.take(np.sort(picked))
