"""Attributes that depend strongly, as one column of the mixture.

A hidden class can hardly say that one attribute determines another: it would need a class for every
value. A column over both attributes' cells can, and costs nothing: within a class the cells share
what their common margin says, and a class that moves one attribute moves the other along.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.bayes.form import Model, NetworkForm, of_mixture
from common.methods.subn_plus.balance import balanced
from common.methods.subn_plus.latent import LatentModel, fit
from common.methods.subn_plus.losses import Floats, Grouping, Measurement
from common.methods.subn_plus.strata import stratified
from common.privacy.randomness import RandomSource
from common.schema.codes import CodeColumn, Codes, code_dtype
from common.study.requests import Attributes

_FORMAT = "parley latent class model of joined attributes 1"
_BISECTIONS = 60
_NEWTON_STEPS = 6  # four are enough for the last digit, wherever the start is
_MOST_ROUNDS = 1000  # a few do, but for pairs that nearly determine each other
_CLOSE = 1e-6
_PRIOR = 1e-3  # weight of independence in a joint table: no cell that margins need is empty
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Joined:
    """Columns over sets of attributes; every attribute is in exactly one.

    Attributes:
        sets: the attributes of each column.
        sizes: the domain size of every attribute.
    """

    sets: tuple[Attributes, ...]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, pairs: Sequence[Attributes], sizes: Sequence[int]) -> Joined:
        """Return columns of the given disjoint sets, and of every other attribute by itself."""
        in_pairs = {attribute for pair in pairs for attribute in pair}
        alone = ((a,) for a in range(len(sizes)) if a not in in_pairs)
        return cls((*pairs, *alone), tuple(sizes))

    def shape(self, column: int) -> tuple[int, ...]:
        return tuple(self.sizes[a] for a in self.sets[column])

    def values(self, column: int, cells: NDArray[np.integer[Any]]) -> tuple[CodeColumn, ...]:
        """Return the value of each attribute of a column in the given cells."""
        shape = self.shape(column)
        of_cells = np.unravel_index(np.arange(prod(shape)), shape)
        return tuple(
            codes.astype(code_dtype(size))[cells]
            for codes, size in zip(of_cells, shape, strict=True)
        )


@dataclass(frozen=True, slots=True)
class JoinedModel(Model):
    """A mixture whose columns may hold several attributes."""

    joined: Joined
    mixture: LatentModel

    def form(self) -> tuple[NetworkForm, ...]:
        """Return the class and, given it, every column."""
        mixture, joined = self.mixture, self.joined
        return (of_mixture(mixture.weights, mixture.columns, joined.sets, joined.sizes),)

    def as_json(self) -> dict[str, object]:
        return {
            **self.mixture.as_json(),
            "format": _FORMAT,
            "attributes": [list(attributes) for attributes in self.joined.sets],
        }

    def sample(self, rows: int, source: RandomSource) -> Codes:
        """Draw rows of the model, stratified and balanced: the attributes of a column together."""
        weights, laws = self.mixture.weights, self.mixture.columns
        *drawn, classes = stratified(weights, [*laws, np.eye(len(weights))], rows, source)
        out: dict[int, CodeColumn] = {}
        alone: dict[int, Floats] = {}
        for column, (members, cells) in enumerate(zip(self.joined.sets, drawn, strict=True)):
            out.update(zip(members, self.joined.values(column, cells), strict=True))
            joint = laws[column].reshape(-1, *self.joined.shape(column))
            for axis, a in enumerate(members, start=1):
                others = tuple(other for other in range(1, joint.ndim) if other != axis)
                alone[a] = joint.sum(axis=others)
        units = {a: column for column, members in enumerate(self.joined.sets) for a in members}
        every = range(len(out))
        moved = balanced(
            [out[a] for a in every],
            classes,
            weights,
            [alone[a] for a in every],
            [units[a] for a in every],
            source,
        )
        return Codes.from_columns(moved, self.joined.sizes)


def independent_blocks(
    sizes: Sequence[int],
    margins: Sequence[Floats],
    rows: int,
    blocks: Sequence[Measurement],
    *,
    penalty: float,
) -> JoinedModel:
    """Model disjoint sets of attributes, independent of each other: one class, a column per set.

    Nothing is known about attributes of different blocks, and one mixture for all would tie them: a
    class that stands for something in one block stands for something in the others, too. Each
    attribute is in exactly one of the noisy tables, in its own values; the margins are every
    attribute's distribution, and the penalty is that of `latent.fit`.
    """
    columns = []
    for table in blocks:
        inside = tuple(range(len(table.attributes)))
        block_margins = [margins[a] for a in table.attributes]
        if sum(len(margin) > 1 for margin in block_margins) <= 1:
            columns.append(max(block_margins, key=len))
        else:
            alone = replace(table, attributes=inside)
            columns.append(
                fit(block_margins, rows, [alone], penalty=penalty).marginal(inside).ravel()
            )
    joined = Joined.of([table.attributes for table in blocks], sizes)
    return JoinedModel(joined, LatentModel(np.ones(1), tuple(c[None, :] for c in columns)))


def joint_margin(
    table: Measurement, first: Floats, second: Floats, *, rows: int, price: float
) -> Floats:
    """Return the joint distribution of a pair, from its noisy table and its better known margins.

    The table of probabilities x that minimises |rows x - counts|^2 / (2 variance) + price KL(x |
    the margins' product), then fitted to the margins. As in the mixture, a departure from
    independence must explain more than it costs; where nothing does, the pair is independent.
    """
    independent = np.outer(first, second)
    steep = rows * rows / (price * table.variance)
    # The minimum has log x + steep x = log(independent) + steep counts / rows + a constant.
    known = np.log(np.maximum(independent, _TINY)) + steep * table.counts / rows + np.log(steep)
    # At `low` the cells sum to less than 1, at `high` each of them is at least 1.
    low = float(np.log(steep / known.size) - known.max())
    high = float(np.log(steep) + steep - known.min())
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if wright_omega(known + middle).sum() > steep:
            high = middle
        else:
            low = middle
    return _fitted(wright_omega(known + low) / steep, first, second)


def wright_omega(numbers: Floats) -> Floats:
    """Return the w with w + log w = z, for every z.

    Newton's method for u = log w: u + exp(u) is convex and rising, and the start is not below the
    root, so the steps go down to it and are soon as small as rounding. Scipy has the function, and
    takes longer to load than all of a small fit.
    """
    logs = np.where(numbers > 1, np.log(np.maximum(numbers, 1)), np.minimum(numbers, 0))
    for _ in range(_NEWTON_STEPS):
        roots = np.exp(logs)
        logs -= (logs + roots - numbers) / (1 + roots)
    return np.exp(logs)


def _fitted(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """Return the matrix closest to `table` whose rows and columns have these sums."""
    joint: Floats = table + _PRIOR * np.outer(rows, columns)
    for _ in range(_MOST_ROUNDS):
        joint *= (rows / np.maximum(joint.sum(axis=1), _TINY))[:, None]
        joint *= columns / np.maximum(joint.sum(axis=0), _TINY)
        if np.abs(joint.sum(axis=1) - rows).sum() < _CLOSE:
            break
    return joint


def pair_margin(
    table: Measurement, first: Floats, second: Floats, rows: int, price: float
) -> Floats:
    """Return the joint distribution of a pair's own values, from its noisy table in groups.

    Within a group of values nothing is known but the margins.
    """
    into, onto = (
        _within_groups(m, g) for m, g in zip((first, second), table.groupings, strict=True)
    )
    grouped = (first @ (into > 0), second @ (onto > 0))
    joint = joint_margin(table, *grouped, rows=rows, price=price)
    return np.asarray(into @ joint @ onto.T, dtype=np.float64)


def _within_groups(margin: Floats, grouping: Grouping | None) -> Floats:
    """Return the proportion of its group that each value is, as a matrix (values, groups)."""
    groups = np.arange(len(margin)) if grouping is None else grouping
    member = np.eye(int(groups.max()) + 1)[groups]
    weighted = np.maximum(margin, 1e-12)[:, None] * member  # a group of nothing has equal parts
    return np.asarray(weighted / weighted.sum(axis=0), dtype=np.float64)
