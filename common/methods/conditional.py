"""Rows of a model given a condition: exact for every model, however rare the condition is.

The rules of a schema are a condition that always holds.

Every model is a network of variables, some of which are hidden (the class of a mixture) or hold
several attributes (a column over a pair). `NetworkForm` is that network, and how attributes are
read from its variables. A condition becomes weights of variables (`common.bayes.weighting`).

Where the variables hang together too much for that, rows are drawn until enough satisfy the
condition: exact as well, but a rare condition is refused. Rows that break a rule are then replaced
by the nearest possible ones.

[Csiszar75] Csiszar: I-divergence geometry of probability distributions and minimization problems.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from common.bayes.domain import Domain, View
from common.bayes.network import Network, Pair
from common.bayes.privbayes.decisions import Encoding
from common.bayes.privbayes.model import PrivBayesModel
from common.bayes.weighting import MOST_CELLS, Floats, TooManyCells, WeightedNetwork, Weights
from common.errors import InputError, LocalError
from common.methods.distdiffgen.cuts import LeafModel
from common.methods.independent import StackedModels
from common.methods.network_model import NetworkModel
from common.methods.subn_plus.descent import Frequencies, SpreadModel, within_cells
from common.methods.subn_plus.joined import JoinedModel
from common.methods.subn_plus.latent import LatentModel
from common.privacy.randomness import RandomSource, uniforms
from common.schema.codes import Codes, bit_count, bit_positions, concatenate
from common.schema.conditions import CellWeights
from common.schema.rules import Possible
from common.study.steps import Model

_T = TypeVar("_T")
Draw = Callable[[int, RandomSource], Codes]

_MOST_FITTINGS = 50
_CLOSE = 1e-4
_MOST_TRIES = 400
_TRY_ROWS = 1 << 14
NO_MASS = (
    "the condition: no row of this model satisfies it. Ask for values that occur in the release"
)


@dataclass(frozen=True, eq=False)
class NetworkForm:
    """A model as a network of variables.

    Attributes:
        variables: of each attribute, those that it is read from, in ascending order.
        readings: of each attribute, its code at each joint value of them; -1 where there is none.
    """

    net: WeightedNetwork
    sizes: tuple[int, ...]
    variables: tuple[tuple[int, ...], ...]
    readings: tuple[NDArray[np.intp], ...]

    def weights(self, own: CellWeights) -> Weights:
        """Return weights of attributes' cells as weights of variables."""
        axes = tuple(sorted({v for a in own.attributes for v in self.variables[a]}))
        sizes = self.net.domain.sizes
        codes = [
            self.readings[a].reshape([sizes[v] if v in self.variables[a] else 1 for v in axes])
            for a in own.attributes
        ]
        known = np.logical_and.reduce(np.broadcast_arrays(*(each >= 0 for each in codes)))
        found = own.table[tuple(np.broadcast_arrays(*(np.maximum(each, 0) for each in codes)))]
        return Weights(axes, np.where(known, found, 0.0))

    def weighted(self, own: Sequence[CellWeights]) -> NetworkForm:
        """Return the model times the weights, and without patterns that stand for no value."""
        weights = [self.weights(each) for each in own]
        weights += [
            Weights(variables, (reading >= 0).astype(np.float64).reshape((2,) * len(variables)))
            for variables, reading in zip(self.variables, self.readings, strict=True)
            if reading.min() < 0
        ]
        return NetworkForm(self.net.weighted(weights), self.sizes, self.variables, self.readings)

    def marginal(self, attribute: int) -> Floats:
        """Return the probability of each code of an attribute."""
        own = self.net.marginal(self.variables[attribute]).ravel()
        reading = self.readings[attribute]
        known = reading >= 0
        found = np.bincount(reading[known], own[known], minlength=self.sizes[attribute])
        return np.asarray(found, dtype=np.float64)

    def sample(self, rows: int, source: RandomSource) -> Codes:
        drawn = self.net.sample(rows, source)
        columns = []
        for variables, reading in zip(self.variables, self.readings, strict=True):
            cell = np.zeros(rows, dtype=np.intp)
            for variable in variables:
                cell = cell * drawn.sizes[variable] + drawn.columns[variable]
            columns.append(reading[cell])
        return Codes.from_columns(columns, self.sizes)


def network_form(model: object) -> NetworkForm:
    """Return a model as a network of variables; LocalError if it is no network."""
    match model:
        case NetworkModel():
            net = WeightedNetwork(model.network, model.domain, model.conditionals)
            sizes = model.variables.attribute_sizes
            return _of_bits(net, sizes) if model.variables.in_bits else _of_attributes(net, sizes)
        case PrivBayesModel():
            plan = model.plan
            net = WeightedNetwork(model.network, plan.domain, model.conditionals)
            if not plan.encoding.in_bits:
                return _of_attributes(net, plan.sizes)
            return _of_bits(net, plan.sizes, gray=plan.encoding is Encoding.GRAY)
        case LatentModel():
            sizes = tuple(column.shape[1] for column in model.columns)
            return _of_mixture(model, tuple((a,) for a in range(len(sizes))), sizes)
        case JoinedModel():
            return _of_mixture(model.mixture, model.joined.sets, model.joined.sizes)
        case SpreadModel():
            form = network_form(model.model)
            for a, cells in model.parts.items():
                own = np.array(cells, dtype=np.intp)
                form = _of_values(form, a, own, model.public.get(a))
            return form
        case LeafModel():
            form = _of_combinations(model)
            for a, groups in enumerate(model.cuts.maps(model.sizes)):
                form = _of_values(form, a, groups)
            return form
        case _:
            raise LocalError(f"{type(model).__name__}: not a network of variables")


def _of_attributes(net: WeightedNetwork, sizes: Sequence[int]) -> NetworkForm:
    own = tuple((a,) for a in range(len(sizes)))
    return NetworkForm(net, tuple(sizes), own, tuple(np.arange(size) for size in sizes))


def _of_bits(net: WeightedNetwork, sizes: Sequence[int], *, gray: bool = False) -> NetworkForm:
    readings = []
    for size in sizes:
        codes = np.arange(size)
        patterns = np.full(1 << bit_count(size), -1, dtype=np.intp)
        patterns[codes ^ (codes >> 1) if gray else codes] = codes
        readings.append(patterns)
    return NetworkForm(net, tuple(sizes), tuple(map(tuple, bit_positions(sizes))), tuple(readings))


def _of_mixture(
    mixture: LatentModel, sets: Sequence[Sequence[int]], sizes: tuple[int, ...]
) -> NetworkForm:
    """Return a mixture's form: the class is the first variable; columns depend on it, and trees."""
    parents: dict[int, tuple[int, ...]] = {at + 1: (0,) for at in range(len(sets))}
    parents |= {link.child + 1: (0, link.parent + 1) for link in mixture.links}
    network = Network.from_parents({0: (), **parents})
    weights = mixture.weights / mixture.weights.sum()
    domain = Domain.flat([len(weights), *(column.shape[1] for column in mixture.columns)])
    by_child = {0: weights[None, :], **{at + 1: c for at, c in enumerate(mixture.columns)}}
    for link in mixture.links:
        law = link.conditionals()[:, link.groups[0]]
        by_child[link.child + 1] = law.reshape(-1, law.shape[2])
    conditionals = tuple(by_child[pair.child] for pair in network.pairs)
    place = {a: (at + 1, axis) for at, own in enumerate(sets) for axis, a in enumerate(own)}
    readings = []
    for a in range(len(sizes)):
        column, axis = place[a]
        shape = [sizes[b] for b in sets[column - 1]]
        readings.append(np.unravel_index(np.arange(math.prod(shape)), shape)[axis])
    net = WeightedNetwork(network, domain, conditionals)
    variables = tuple((place[a][0],) for a in range(len(sizes)))
    return NetworkForm(net, sizes, variables, tuple(readings))


def _of_combinations(model: LeafModel) -> NetworkForm:
    """Return the form of leaves: the combination of groups is the only variable."""
    sizes = tuple(map(len, model.cuts.groups))
    if model.counts.size * max(sizes) > MOST_CELLS:
        raise TooManyCells(f"{model.counts.size:,} combinations of groups are too many")
    weights = np.maximum(model.counts, 0).astype(np.float64).reshape(1, -1)
    weights = weights if weights.any() else np.ones_like(weights)
    net = WeightedNetwork(
        Network.from_parents({0: ()}),
        Domain.flat([weights.size]),
        (weights / weights.sum(),),
    )
    readings = np.unravel_index(np.arange(weights.size), sizes)
    return NetworkForm(net, sizes, ((0,),) * len(sizes), tuple(readings))


def _of_values(
    form: NetworkForm, attribute: int, cells: NDArray[np.intp], public: Frequencies = None
) -> NetworkForm:
    """Return the form with an attribute's own values, drawn by public frequencies or evenly.

    Two variables come in: the cell, which follows from what the form reads it from, and the value.
    """
    net, sources, reading = form.net, form.variables[attribute], form.readings[attribute]
    sizes, number = list(net.domain.sizes), form.sizes[attribute]
    cell, value = len(sizes), len(sizes) + 1
    inside = (np.arange(number)[:, None] == cells) * within_cells(cells, public)
    pairs = (
        *net.network.pairs,
        Pair(cell, tuple(map(View, sources))),
        Pair(value, (View(cell),)),
    )
    conditionals = (*net.conditionals, np.eye(number)[reading], inside)
    domain = Domain.flat([*sizes, number, len(cells)])

    def put(old: tuple[_T, ...], new: _T) -> tuple[_T, ...]:
        return (*old[:attribute], new, *old[attribute + 1 :])

    return NetworkForm(
        WeightedNetwork(Network(pairs), domain, conditionals, net.log_mass),
        put(form.sizes, len(cells)),
        put(form.variables, (value,)),
        put(form.readings, np.arange(len(cells))),
    )


@dataclass(frozen=True, eq=False)
class ConditionalModel:
    """The rows of a model that its schema's rules allow, and those that satisfy a condition."""

    model: Model | PrivBayesModel
    possible: Possible

    def given(self, condition: Sequence[CellWeights]) -> Draw:
        """Return what draws the rows that satisfy a condition, at no cost to privacy.

        Rows have exactly the distribution of `parts` given the condition.

        Raises:
            InputError: no row satisfies the condition. What is returned raises it if too few do
                to be found.
        """
        try:
            forms = [(form.weighted(condition), rows) for form, rows in self._parts]
        except TooManyCells:
            return partial(_kept, self._repaired, condition)
        masses = np.array([rows * math.exp(form.net.log_mass) for form, rows in forms])
        if masses.sum() > 0:
            return partial(_shared_out, [form.sample for form, _ in forms], masses)
        if condition:
            raise InputError(NO_MASS)
        return self._repaired  # the model gives nothing but rows that break a rule

    @cached_property
    def sample(self) -> Draw:
        return self.given(()) if self.possible.rules else self.model.sample

    @cached_property
    def _parts(self) -> list[tuple[NetworkForm, float]]:
        """Networks whose rows are possible, and how many real rows each stands for."""
        if isinstance(self.model, StackedModels):
            parts = [(network_form(own), float(own.plan.rows)) for own in self.model.models]
        else:
            parts = [(network_form(self.model), 1.0)]
        return [(within(form, self.possible), rows) for form, rows in parts]

    def _repaired(self, rows: int, source: RandomSource) -> Codes:
        return self.possible.repaired(self.model.sample(rows, source))


def within(form: NetworkForm, possible: Possible) -> NetworkForm:
    """Return the nearest distribution that rules allow and that keeps the attributes' margins.

    It is the model times the rules times a weight for each value of the attributes that rules are
    about: of all distributions without an impossible cell and with these margins, the one of least
    Kullback-Leibler divergence from the model [Csiszar75]. Leaving out the impossible cells alone
    would take their mass from values that were measured well. Iterative proportional fitting finds
    the weights; where rules and margins contradict each other, it stops, and the rules hold.
    """
    if not possible.rules:
        return form
    rules = possible.weights()
    wanted = {a: form.weighted(()).marginal(a) for a in possible.attributes}
    weights = {a: np.ones(form.sizes[a]) for a in possible.attributes}
    made = form.weighted(rules)
    for _ in range(_MOST_FITTINGS):
        off = 0.0
        for a, target in wanted.items():
            if math.isinf(made.net.log_mass):
                return form.weighted(rules)
            found = made.marginal(a)
            off = max(off, float(np.abs(found - target).sum()))
            weights[a] *= np.divide(target, found, out=np.ones_like(found), where=found > 0)
            weights[a] /= weights[a].max()
            made = form.weighted([*rules, *(CellWeights((b,), w) for b, w in weights.items())])
        if off < _CLOSE:
            break
    return made


def _shared_out(draws: Sequence[Draw], masses: Floats, rows: int, source: RandomSource) -> Codes:
    """Draw rows of several distributions in proportion to their masses, in random order."""
    if len(draws) == 1:
        return draws[0](rows, source)
    edges = np.cumsum(masses) / masses.sum()
    which = np.searchsorted(edges, uniforms(rows, source), side="right").clip(max=len(draws) - 1)
    counts = np.bincount(which, minlength=len(draws))
    parts = [draw(int(n), source) for draw, n in zip(draws, counts, strict=True) if n]
    return concatenate(parts).take(np.argsort(source.words(rows))) if parts else draws[0](0, source)


def _kept(draw: Draw, condition: Sequence[CellWeights], rows: int, source: RandomSource) -> Codes:
    """Draw rows until enough of them satisfy the condition."""
    parts, found, tried = [draw(0, source)], 0, 0
    while found < rows:
        if tried == _MOST_TRIES:
            raise InputError(
                f"the condition: {found:,} of {tried * _TRY_ROWS:,} rows of this model satisfy it, "
                f"too few to draw {rows:,}. Ask for fewer rows or a wider condition"
            )
        block = draw(_TRY_ROWS, source)
        inside = np.ones(block.rows, dtype=np.bool_)
        for each in condition:
            inside &= each.of(block) > 0
        parts.append(block.take(np.flatnonzero(inside)))
        found, tried = found + parts[-1].rows, tried + 1
    return concatenate(parts).take(slice(0, rows))
