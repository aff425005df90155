"""A model, and its form: a network of variables, and how attributes are read from them.

A model is what a method has learnt, which may be published, stored, and drawn from for ever.

Some variables are hidden (the class of a mixture) or hold several attributes (a column over a
pair). A condition or a rule becomes weights of variables (`common.bayes.weighting`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from common.bayes.domain import Domain, View
from common.bayes.network import Network, Pair
from common.bayes.weighting import MOST_CELLS, Floats, TooManyCells, WeightedNetwork, Weights
from common.privacy.randomness import RandomSource
from common.schema.codes import Codes, bit_count, bit_positions
from common.schema.conditions import CellWeights

_T = TypeVar("_T")


@dataclass(frozen=True, eq=False)
class NetworkForm:
    """A model, or a part of one, as a network of variables."""

    net: WeightedNetwork
    sizes: tuple[int, ...]  # of the attributes
    # For each attribute, the variables that its code is read from, in ascending order.
    variables: tuple[tuple[int, ...], ...]
    # For each attribute, its code at each joint value of those variables; -1 where there is none.
    readings: tuple[NDArray[np.intp], ...]
    rows: float = 1.0  # how many real rows it stands for, beside the other parts of the model

    def weights(self, cells: CellWeights) -> Weights:
        """Return weights of attributes' cells as weights of variables."""
        axes = tuple(sorted({v for a in cells.attributes for v in self.variables[a]}))
        sizes = self.net.domain.sizes
        codes = [
            self.readings[a].reshape([sizes[v] if v in self.variables[a] else 1 for v in axes])
            for a in cells.attributes
        ]
        known = np.logical_and.reduce(np.broadcast_arrays(*(column >= 0 for column in codes)))
        weight = cells.table[
            tuple(np.broadcast_arrays(*(np.maximum(column, 0) for column in codes)))
        ]
        return Weights(axes, np.where(known, weight, 0.0))

    def weighted(self, weighed: Sequence[CellWeights]) -> NetworkForm:
        """Return the model times the weights, and without patterns that stand for no value."""
        weights = [self.weights(cells) for cells in weighed]
        weights += [
            Weights(variables, (reading >= 0).astype(np.float64).reshape((2,) * len(variables)))
            for variables, reading in zip(self.variables, self.readings, strict=True)
            if reading.min() < 0
        ]
        return replace(self, net=self.net.weighted(weights))

    def marginal(self, attribute: int) -> Floats:
        joint = self.net.marginal(self.variables[attribute]).ravel()
        reading = self.readings[attribute]
        known = reading >= 0
        proportions = np.bincount(reading[known], joint[known], minlength=self.sizes[attribute])
        return np.asarray(proportions, dtype=np.float64)

    def sample(self, rows: int, source: RandomSource) -> Codes:
        drawn = self.net.sample(rows, source)
        columns = []
        for variables, reading in zip(self.variables, self.readings, strict=True):
            cell = np.zeros(rows, dtype=np.intp)
            for variable in variables:
                cell = cell * drawn.sizes[variable] + drawn.columns[variable]
            columns.append(reading[cell])
        return Codes.from_columns(columns, self.sizes)


def of_attributes(net: WeightedNetwork, sizes: Sequence[int]) -> NetworkForm:
    variables = tuple((a,) for a in range(len(sizes)))
    return NetworkForm(net, tuple(sizes), variables, tuple(np.arange(size) for size in sizes))


def of_bits(net: WeightedNetwork, sizes: Sequence[int], *, gray: bool = False) -> NetworkForm:
    readings = []
    for size in sizes:
        codes = np.arange(size)
        patterns = np.full(1 << bit_count(size), -1, dtype=np.intp)
        patterns[codes ^ (codes >> 1) if gray else codes] = codes
        readings.append(patterns)
    return NetworkForm(net, tuple(sizes), tuple(map(tuple, bit_positions(sizes))), tuple(readings))


def of_mixture(
    classes: Floats,
    columns: Sequence[Floats],
    sets: Sequence[Sequence[int]],
    sizes: Sequence[int],
    laws: Mapping[int, tuple[int, Floats]] | None = None,
) -> NetworkForm:
    """Return the form of a mixture: the class is the first variable, columns depend on it.

    `columns` has of each column the distribution of its cells in each class, `sets` the attributes
    whose joint values are its cells. `laws` are of columns that depend on another one, too: which,
    and the distribution of their cells (classes, cells of the other, own cells).
    """
    parents: dict[int, tuple[int, ...]] = {at + 1: (0,) for at in range(len(sets))}
    parents |= {at + 1: (0, other + 1) for at, (other, _) in (laws or {}).items()}
    network = Network.from_parents({0: (), **parents})
    weights = classes / classes.sum()
    domain = Domain.flat([len(weights), *(column.shape[1] for column in columns)])
    by_child = {0: weights[None, :], **{at + 1: column for at, column in enumerate(columns)}}
    for at, (_, law) in (laws or {}).items():
        by_child[at + 1] = law.reshape(-1, law.shape[2])
    conditionals = tuple(by_child[pair.child] for pair in network.pairs)
    place = {a: (at + 1, axis) for at, joint in enumerate(sets) for axis, a in enumerate(joint)}
    readings = []
    for a in range(len(sizes)):
        at, axis = place[a]
        shape = [sizes[b] for b in sets[at - 1]]
        readings.append(np.unravel_index(np.arange(math.prod(shape)), shape)[axis])
    net = WeightedNetwork(network, domain, conditionals)
    variables = tuple((place[a][0],) for a in range(len(sizes)))
    return NetworkForm(net, tuple(sizes), variables, tuple(readings))


def of_combinations(counts: NDArray[np.int64], sizes: Sequence[int]) -> NetworkForm:
    """Return the form of counts of all combinations of attributes: that is the only variable."""
    if counts.size * max(sizes) > MOST_CELLS:
        raise TooManyCells(f"{counts.size:,} combinations of groups are too many")
    weights = np.maximum(counts, 0).astype(np.float64).reshape(1, -1)
    weights = weights if weights.any() else np.ones_like(weights)
    net = WeightedNetwork(
        Network.from_parents({0: ()}),
        Domain.flat([weights.size]),
        (weights / weights.sum(),),
    )
    readings = np.unravel_index(np.arange(weights.size), sizes)
    return NetworkForm(net, tuple(sizes), ((0,),) * len(sizes), tuple(readings))


def of_values(
    form: NetworkForm, attribute: int, cells: NDArray[np.intp], within: Floats
) -> NetworkForm:
    """Return the form with an attribute's own values in place of its cells.

    `cells` has the cell of each value, `within` the probability of each value in its cell.

    Two variables come in: the cell, which follows from what the form reads it from, and the value.
    """
    net, sources, reading = form.net, form.variables[attribute], form.readings[attribute]
    sizes, number = list(net.domain.sizes), form.sizes[attribute]
    cell, value = len(sizes), len(sizes) + 1
    inside = (np.arange(number)[:, None] == cells) * within
    pairs = (
        *net.network.pairs,
        Pair(cell, tuple(map(View, sources))),
        Pair(value, (View(cell),)),
    )
    conditionals = (*net.conditionals, np.eye(number)[reading], inside)
    domain = Domain.flat([*sizes, number, len(cells)])

    def put(old: tuple[_T, ...], new: _T) -> tuple[_T, ...]:
        return (*old[:attribute], new, *old[attribute + 1 :])

    return replace(
        form,
        net=WeightedNetwork(Network(pairs), domain, conditionals, net.log_mass),
        sizes=put(form.sizes, len(cells)),
        variables=put(form.variables, (value,)),
        readings=put(form.readings, np.arange(len(cells))),
    )


class Model(ABC):
    """What a finished script has learnt: everything in it is noisy, so it may be published."""

    @abstractmethod
    def sample(self, rows: int, source: RandomSource) -> Codes:
        """Draw synthetic rows, in the study's own domains."""

    @abstractmethod
    def as_json(self) -> dict[str, object]:
        """Return the model as plain values."""

    @abstractmethod
    def form(self) -> Sequence[NetworkForm]:
        """Return the networks that the model consists of, for conditions and rules.

        A model that is no network returns none, and one whose networks are too large raises
        TooManyCells: its rows are then drawn until enough satisfy a condition, and a rare condition
        is refused.
        """

    @property
    def arrows(self) -> Network | None:
        """The network of its variables, if each is drawn given others; None for any other model."""
        return None

    @property
    def by_public_frequencies(self) -> Sequence[int]:
        """The attributes whose values are drawn by the schema's public frequencies, in cells."""
        return ()
