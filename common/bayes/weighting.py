"""A network times weights: its rows drawn again, exactly, by variable elimination.

A condition on rows is a weight of 0 or 1 for each joint value of a few variables. The product of a
network's distribution and the weights, normalised, is a network again: eliminate the variables one
by one, and each depends on the variables it still shared a table with. The result is drawn like any
other network, and no row is rejected, however unlikely the condition was.

Only the variables with weights and their ancestors take part; all others keep their distribution
given their parents. The tables on the way can be large where many variables hang together: more
than `MOST_CELLS` are refused, and `TooManyCells` says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.bayes.domain import Domain, View
from common.bayes.network import Conditional, Network, Pair
from common.errors import LocalError
from common.privacy.randomness import RandomSource, uniforms
from common.schema.codes import Codes

MOST_CELLS = 1 << 22
Floats = NDArray[np.float64]


class TooManyCells(LocalError):
    """Elimination would need a table of more than `MOST_CELLS` cells."""


@dataclass(frozen=True, eq=False, slots=True)
class Weights:
    """A non-negative weight for every joint value of some variables, in ascending order."""

    variables: tuple[int, ...]
    table: Floats


@dataclass(frozen=True, eq=False, slots=True)
class WeightedNetwork:
    """A network and its conditionals, and the mass that the weights left of the original one."""

    network: Network
    domain: Domain
    conditionals: tuple[Conditional, ...]
    log_mass: float = 0.0

    def weighted(self, weights: Sequence[Weights]) -> WeightedNetwork:
        """Return the distribution times the weights; the mass is -inf if nothing is left."""
        if math.isinf(self.log_mass):
            return self
        taking_part = self._ancestors(a for factor in weights for a in factor.variables)
        tables = [*weights, *(self._family(place) for place in self._places(taking_part))]
        trail, factors, log_mass = _eliminate(tables, taking_part, self.domain.sizes)
        if math.isinf(log_mass):
            return WeightedNetwork(self.network, self.domain, self.conditionals, log_mass)
        log_mass += sum(math.log(float(factor.table)) for factor in factors)
        return self._with((), trail, log_mass)

    def by_value(self, root: int, weights: Sequence[Weights]) -> tuple[Floats, WeightedNetwork]:
        """Return what weights leave of each value of the first variable, and the rest given it."""
        taking_part = self._ancestors(a for factor in weights for a in factor.variables) - {root}
        tables = [*weights, *(self._family(place) for place in self._places(taking_part))]
        trail, factors, log_mass = _eliminate(tables, taking_part, self.domain.sizes)
        if math.isinf(log_mass):
            return np.zeros(self.domain.sizes[root]), self
        masses = _product(factors, (root,), self.domain.sizes) * math.exp(log_mass)
        return masses, self._with((root,), trail, 0.0)

    def _with(
        self, roots: tuple[int, ...], trail: Sequence[tuple[Pair, Floats]], log_mass: float
    ) -> WeightedNetwork:
        """Return the network in which what was summed out, last first, comes after the roots."""
        whole = list(zip(self.network.pairs, self.conditionals, strict=True))
        changed = [(pair, _normalised(table)) for pair, table in reversed(trail)]
        before = {pair.child for pair, _ in changed}.union(roots)
        first = [(pair, table) for pair, table in whole if pair.child in roots]
        rest = [(pair, table) for pair, table in whole if pair.child not in before]
        pairs, conditionals = zip(*first, *changed, *rest, strict=True)
        return WeightedNetwork(Network(pairs), self.domain, conditionals, log_mass)

    def marginal(self, variables: Sequence[int]) -> Floats:
        """Return the probabilities of the joint values of some variables, in ascending order."""
        taking_part = self._ancestors(variables)
        tables = [self._family(place) for place in self._places(taking_part)]
        return _summed_onto(tuple(sorted(variables)), tables, taking_part, self.domain.sizes)

    def sample(self, rows: int, source: RandomSource) -> Codes:
        """Draw rows, stratified.

        Among the rows that have the same values of a variable's parents, each value of the variable
        comes its expected number of times, up to rounding; which rows get it is left to chance.
        Every row has the network's distribution. A value without probability is never drawn.
        """
        columns = self._drawn({}, rows, partial(stratified, source=source))
        return Codes.from_columns([columns[a] for a in range(len(columns))], self.domain.sizes)

    def sample_given(
        self, root: int, values: NDArray[np.integer[Any]], source: RandomSource
    ) -> list[NDArray[np.intp]]:
        """Draw a row for each of these values of the first variable, each independently."""

        def one_by_one(table: Conditional, configuration: NDArray[np.intp]) -> NDArray[np.intp]:
            return _at(table, configuration, uniforms(len(configuration), source))

        columns = self._drawn({root: values.astype(np.intp)}, len(values), one_by_one)
        return [columns[a] for a in range(len(columns))]

    def _drawn(
        self,
        columns: dict[int, NDArray[np.intp]],
        rows: int,
        draw: Callable[[Conditional, NDArray[np.intp]], NDArray[np.intp]],
    ) -> dict[int, NDArray[np.intp]]:
        """Draw the variables that are not among the columns yet, each given its parents."""
        for pair, table in zip(self.network.pairs, self.conditionals, strict=True):
            if pair.child in columns:
                continue
            configuration = np.zeros(rows, dtype=np.intp)
            for view in pair.parents:
                groups = self.domain.levels[view.attribute][view.level]
                configuration *= self.domain.size(view)
                configuration += groups[columns[view.attribute]]
            columns[pair.child] = draw(table, configuration)
        return columns

    def _places(self, variables: set[int]) -> list[int]:
        return [at for at, pair in enumerate(self.network.pairs) if pair.child in variables]

    def _ancestors(self, variables: Iterable[int]) -> set[int]:
        ancestors = set(variables)
        for pair in reversed(self.network.pairs):
            if pair.child in ancestors:
                ancestors.update(view.attribute for view in pair.parents)
        return ancestors

    def _family(self, place: int) -> Weights:
        """Return Pr[child | parents] as weights of the variables at full detail."""
        pair, table = self.network.pairs[place], self.conditionals[place]
        axes = [*(view.attribute for view in pair.parents), pair.child]
        _check_cells([self.domain.sizes[a] for a in axes])
        full = table.reshape([*self.domain.shape(pair.parents), -1])
        for axis, view in enumerate(pair.parents):
            full = np.take(full, self.domain.levels[view.attribute][view.level], axis=axis)
        order = np.argsort(axes)
        return Weights(tuple(sorted(axes)), full.transpose(order))


def stratified(
    table: Conditional, configuration: NDArray[np.intp], source: RandomSource
) -> NDArray[np.intp]:
    """Draw a value for each row, given the row of `table` that it has.

    Rows of one configuration are put in random order, and the i-th of n takes the value at the
    quantile (i + u) / n, with one uniform u for all of them.
    """
    rows = len(configuration)
    order = np.lexsort((source.words(rows), configuration))
    _, starts, counts = np.unique(configuration[order], return_index=True, return_counts=True)
    offsets = np.repeat(uniforms(len(starts), source), counts)
    ranks = np.arange(rows) - np.repeat(starts, counts)
    quantiles = (ranks + offsets) / np.repeat(counts, counts)
    drawn = np.empty(rows, dtype=np.intp)
    drawn[order] = _at(table, configuration[order], quantiles)
    return drawn


def _at(table: Conditional, rows: NDArray[np.intp], quantiles: Floats) -> NDArray[np.intp]:
    """Return the values at the quantiles; the steps of the table's rows follow each other."""
    steps = np.cumsum(table, axis=1)
    steps /= steps[:, -1:]
    steps[steps >= steps[:, -1:]] = 1.0
    edges = (steps + np.arange(len(table))[:, None]).ravel()
    places = np.minimum(rows + quantiles, np.nextafter(rows + 1.0, 0.0))
    positions = np.searchsorted(edges, places, side="right")
    return np.asarray(positions - rows * table.shape[1], dtype=np.intp)


def _eliminate(
    tables: Sequence[Weights], variables: set[int], sizes: Sequence[int]
) -> tuple[list[tuple[Pair, Floats]], list[Weights], float]:
    """Sum the variables out, the cheapest first.

    Return what each was summed out of, what is left, and the logarithm of its scale.
    """
    factors, trail, log_mass = list(tables), list[tuple[Pair, Floats]](), 0.0
    for child in _elimination_order(tables, variables, sizes):
        scope, joint, factors = _joined(child, factors, sizes)
        trail.append((Pair(child, tuple(View(a) for a in scope)), joint.reshape(-1, sizes[child])))
        message = joint.sum(axis=-1)
        largest = float(message.max())
        if largest == 0.0:
            return trail, [], -math.inf
        log_mass += math.log(largest)  # messages stay within reach of doubles
        factors.append(Weights(scope, message / largest))
    return trail, factors, log_mass


def _summed_onto(
    axes: tuple[int, ...], tables: Sequence[Weights], variables: set[int], sizes: Sequence[int]
) -> Floats:
    factors = list(tables)
    for child in _elimination_order(tables, variables - set(axes), sizes):
        scope, joint, factors = _joined(child, factors, sizes)
        factors.append(Weights(scope, joint.sum(axis=-1)))
    return _product(factors, axes, sizes)


def _joined(
    child: int, tables: Sequence[Weights], sizes: Sequence[int]
) -> tuple[tuple[int, ...], Floats, list[Weights]]:
    """Return the neighbours of a variable, the product of its tables, and the other tables."""
    factors = [factor for factor in tables if child in factor.variables]
    scope = tuple(sorted({a for factor in factors for a in factor.variables} - {child}))
    others = [factor for factor in tables if child not in factor.variables]
    return scope, _product(factors, (*scope, child), sizes), others


def _elimination_order(
    tables: Sequence[Weights], variables: set[int], sizes: Sequence[int]
) -> list[int]:
    """Return a greedy order: next is the variable whose elimination makes the smallest table."""
    around: dict[int, set[int]] = {a: set() for factor in tables for a in factor.variables}
    for factor in tables:
        for a in factor.variables:
            around[a].update(factor.variables)
    order, waiting = list[int](), set(variables)
    while waiting:
        child = min(waiting, key=lambda a: (prod(sizes[b] for b in around[a] | {a}), a))
        waiting.remove(child)
        order.append(child)
        near = around.pop(child) - {child}
        for a in near:
            around[a] = (around[a] | near) - {child}
    return order


def _product(tables: Sequence[Weights], axes: tuple[int, ...], sizes: Sequence[int]) -> Floats:
    _check_cells([sizes[a] for a in axes])
    joint = np.ones([sizes[a] for a in axes])
    for factor in tables:
        inside = [a for a in axes if a in factor.variables]
        aligned = factor.table.transpose([factor.variables.index(a) for a in inside])
        joint *= aligned.reshape([sizes[a] if a in factor.variables else 1 for a in axes])
    return joint


def _check_cells(sizes: Sequence[int]) -> None:
    if prod(sizes) > MOST_CELLS:
        raise TooManyCells(f"a table of {prod(sizes):,} cells would be needed")


def _normalised(table: Floats) -> Conditional:
    """Scale rows to add up to one; a row without mass, which is never reached, is uniform."""
    mass = table.sum(axis=1, keepdims=True)
    uniform = np.full(table.shape, 1.0 / table.shape[1])
    return np.asarray(np.divide(table, mass, out=uniform, where=mass > 0), dtype=np.float64)
