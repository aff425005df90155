"""A Bayesian network whose tables see attributes in groups of values, with margins in full detail.

A family's table says how the child's groups go with the parents' groups. It is fitted to the rows
drawn so far and to the child's margin (iterative proportional fitting), so that the noise in the
table moves the association only, and every column meets its margin. Within a group a value is as
likely as in the margin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.privacy.randomness import RandomSource
from common.schema.codes import Codes
from common.subn.chosen_families import Family
from common.subn.latent import systematic
from common.subn.table_loss import Floats

_FORMAT = "parley network of groups 1"
_ROUNDS = 30
_PRIOR = 1e-3  # share of independence mixed into a table: no cell that margins need is empty
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class GroupedNetwork:
    """Margins (s,) of all attributes; families, parents first, and their probabilities."""

    margins: tuple[Floats, ...]
    families: tuple[Family, ...]
    tables: tuple[Floats, ...]

    def as_json(self) -> dict[str, object]:
        """The model as plain values."""
        return {
            "format": _FORMAT,
            "margins": [margin.tolist() for margin in self.margins],
            "families": [
                {
                    "attributes": list(family.attributes),
                    "groups": [list(own) for own in family.groups],
                    "probabilities": table.tolist(),
                }
                for family, table in zip(self.families, self.tables, strict=True)
            ],
        }

    def sample(self, rows: int, source: RandomSource) -> Codes:
        """Rows of the network, stratified: shares are met up to rounding at every draw."""
        children = {family.attributes[0] for family in self.families}
        columns = [np.zeros(rows, dtype=np.intp) for _ in self.margins]
        for attribute, margin in enumerate(self.margins):
            if attribute not in children:
                columns[attribute] = _shuffled(margin, rows, source)
        for family, table in zip(self.families, self.tables, strict=True):
            columns[family.attributes[0]] = self._draw(family, table, columns, source)
        return Codes.from_columns(columns, tuple(len(margin) for margin in self.margins))

    def _draw(
        self,
        family: Family,
        table: Floats,
        columns: Sequence[NDArray[np.intp]],
        source: RandomSource,
    ) -> NDArray[np.intp]:
        """The child's values, given its parents'."""
        child, *parents = family.attributes
        groups, *parent_groups = (np.array(own, dtype=np.intp) for own in family.groups)
        seen = [own[columns[a]] for own, a in zip(parent_groups, parents, strict=True)]
        cell = np.ravel_multi_index(tuple(seen), table.shape[1:])
        wanted = np.bincount(cell, minlength=table[0].size).astype(np.float64)
        margin = self.margins[child]
        shares: Floats = np.bincount(groups, margin).astype(np.float64)
        joint = fitted(table.reshape(len(table), -1), shares * len(cell), wanted)
        within = margin / np.maximum(shares, _TINY)[groups]
        values = np.zeros(len(cell), dtype=np.intp)
        by_cell = np.split(np.argsort(cell, kind="stable"), np.cumsum(wanted.astype(np.intp))[:-1])
        for column, own in enumerate(by_cell):
            if own.size:
                values[own] = _shuffled(joint[groups, column] * within, own.size, source)
        return values


def fitted(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """The matrix closest to `table` (of probabilities) whose rows and columns have these sums."""
    total = rows.sum()
    if total == 0:
        return np.zeros_like(table)
    joint: Floats = table * total + _PRIOR * np.outer(rows, columns) / total
    for _ in range(_ROUNDS):
        joint *= (rows / np.maximum(joint.sum(axis=1), _TINY))[:, None]
        joint *= columns / np.maximum(joint.sum(axis=0), _TINY)
    return joint


def _shuffled(weights: Floats, count: int, source: RandomSource) -> NDArray[np.intp]:
    """`count` indices in random order, index i about in proportion to weights[i]."""
    return systematic(weights, count, source)[np.argsort(source.words(count))]
