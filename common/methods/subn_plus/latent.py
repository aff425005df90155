"""A mixture of product distributions, fitted to every noisy table at once.

The model: a hidden class m with weight w_m, and given the class all attributes are independent.
Any set of low-order tables can be fitted, whether or not the sets form a junction tree, so all
measurements of a run are used together, each weighted by its inverse variance:

    minimise  sum over tables of |model counts - noisy counts|^2 / (2 variance)
              + sum over classes and attributes of price * w_m KL(class m's column | the margin).

The second term is the information that the class has about the columns. It is what keeps noise out:
a dependence enters the model only if it explains more squared error (in units of the noise's
variance) than it costs, so with worthless measurements the model falls back to independent columns.

The result depends on the noisy tables only; it costs no privacy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from common.bayes.form import Model, NetworkForm, of_mixture
from common.bayes.postprocessing import margin_of, marginal_table, smoothed
from common.errors import LocalError
from common.marginals.threads import one_thread
from common.methods.subn_plus.balance import MOST_ROWS, balanced
from common.methods.subn_plus.losses import (
    Floats,
    Grouping,
    Measurement,
    MomentLoss,
    Moments,
    Scratch,
    Sights,
    TableLoss,
)
from common.methods.subn_plus.strata import stratified
from common.methods.subn_plus.trees import Edge, Link, Trees, apart, tree_of
from common.privacy.randomness import KeyedRandomSource, RandomSource, uniforms
from common.schema.codes import Codes

COMPONENTS = 64
ITERATIONS = 300
PENALTY = 30.0
_STEP = 0.2
_RISE = 30  # steps, until the step size is whole
_SPREAD = 0.9  # how far the classes start from the margins, in logits
NEARER = 3  # times fewer steps from a start that is nearly there
_TINY = 1e-12
_FORMAT = "parley latent class model 1"
_FORMAT_OF_TREES = "parley latent class model of trees 1"
# A start, not a secret: curator and parties get the same model.
_START = hashlib.sha256(b"parley latent classes").digest()


@dataclass(frozen=True, slots=True)
class LatentModel(Model):
    """Class weights (m,) and, per attribute, its values' distribution in each class (m, s)."""

    weights: Floats
    columns: tuple[Floats, ...]
    links: tuple[Link, ...] = ()  # of columns that hang on others; a parent's own comes first
    price: float = 1.0  # of information, in units of the first price that was tried

    def marginal(self, attributes: Sequence[int]) -> Floats:
        """Return the probabilities of the attributes' joint values, in the order given."""
        shape = tuple(self.columns[a].shape[1] for a in attributes)
        joint = self.weights[:, None]
        for a in attributes:  # class by class, the flattened outer product
            joint = (joint[:, :, None] * self.columns[a][:, None, :]).reshape(len(joint), -1)
        return np.asarray(joint.sum(axis=0).reshape(shape), dtype=np.float64)

    def together(self, pair: Sequence[int]) -> Floats:
        """Return the probabilities of two attributes' joint values, also if a tree has both."""
        above = {link.child: link for link in self.links}
        paths = [[column] for column in pair]
        for path in paths:
            while path[-1] in above:
                path.append(above[path[-1]].parent)
        meeting = next((a for a in paths[0] if a in paths[1]), None)
        if meeting is None:
            return self.marginal(pair)
        laws = self.weights[:, None] * self.columns[meeting]
        ends = []  # of each path, the laws of its end by class and value of the meeting attribute
        for path in paths:
            end = np.eye(laws.shape[1])[None]
            for link in (above[a] for a in reversed(path[: path.index(meeting)])):
                end = end @ link.conditionals()[:, link.groups[0]]
            ends.append(end)
        return np.asarray(((laws[:, :, None] * ends[0]).transpose(0, 2, 1) @ ends[1]).sum(axis=0))

    def fits(self, components: int, margins: Sequence[Floats]) -> bool:
        """Return whether it has this number of classes, and columns of these sizes."""
        sizes = [column.shape[1] for column in self.columns]
        return len(self.weights) == components and sizes == [len(margin) for margin in margins]

    def form(self) -> tuple[NetworkForm, ...]:
        """Return the class and, given it, every attribute."""
        sizes = [column.shape[1] for column in self.columns]
        sets = [(a,) for a in range(len(sizes))]
        conditionals = {
            link.child: (link.parent, link.conditionals()[:, link.groups[0]]) for link in self.links
        }
        return (of_mixture(self.weights, self.columns, sets, sizes, conditionals),)

    def as_json(self) -> dict[str, object]:
        plain = {
            "format": _FORMAT_OF_TREES if self.links else _FORMAT,
            "weights": self.weights.tolist(),
            "columns": [column.tolist() for column in self.columns],
        }
        return plain | ({"links": [link.as_json() for link in self.links]} if self.links else {})

    def sample(self, rows: int, source: RandomSource) -> Codes:
        """Draw rows of the model, stratified (`strata`) and balanced (`balance`)."""
        sizes = tuple(column.shape[1] for column in self.columns)
        if not self.links and rows > MOST_ROWS:
            drawn = stratified(self.weights, self.columns, rows, source)
            return Codes.from_columns(list(drawn), sizes)
        children = {link.child for link in self.links}
        alone = [a for a in range(len(sizes)) if a not in children]
        classes = np.eye(len(self.weights))  # as one more column: links need the class of a row
        drawn = stratified(self.weights, [*(self.columns[a] for a in alone), classes], rows, source)
        out: dict[int, NDArray[np.integer]] = dict(zip(alone, drawn, strict=False))
        for link in self.links:
            out[link.child] = link.draw(drawn[-1], out[link.parent], source)
        columns = [out[a] for a in range(len(sizes))]
        trees = tree_of(len(sizes), self.links)
        moved = balanced(columns, drawn[-1], self.weights, self.columns, trees, source)
        return Codes.from_columns(moved, sizes)


def softmax(logits: Floats) -> Floats:
    """Return the distributions over the last axis whose logits these are."""
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=-1, keepdims=True), dtype=np.float64)


def estimated_margins(
    sizes: Sequence[int],
    rows: int,
    measurements: Sequence[Measurement],
    ordered: Sequence[int] = (),
) -> tuple[Floats, ...]:
    """Return each attribute's distribution, by inverse variance over the tables of its values.

    Of every attribute, the first `ordered` values are in an order. What is likely noise is taken
    off (`smoothed`).
    """
    sums = [np.zeros(size) for size in sizes]
    weights = [0.0] * len(sizes)
    for table in measurements:
        for axis, (attribute, grouping) in enumerate(
            zip(table.attributes, table.groupings, strict=True)
        ):
            if grouping is None:
                weight = sizes[attribute] / (table.counts.size * table.variance)
                sums[attribute] += weight * marginal_table(table.counts, [axis])
                weights[attribute] += weight
    margins = []
    for total, weight, run in zip(sums, weights, ordered or [0] * len(sizes), strict=True):
        if not weight:
            margins.append(np.full(len(total), 1 / len(total)))
            continue
        deviation = 1 / sqrt(weight)
        likely = smoothed(total / weight, rows, deviation, run)
        margins.append(margin_of(likely, rows, deviation, run) / rows)
    return tuple(margins)


class _Adam:
    """Adam on an array; the step size rises, then falls linearly to zero.

    The first steps go the same way everywhere, and would leave precise margins far behind. The sums
    of slopes and of their squares are kept as they are; Adam's means are fractions of them.
    """

    def __init__(self, parameters: Floats, iterations: int) -> None:
        self._parameters = parameters
        self._sum = np.zeros_like(parameters)
        self._squares = np.zeros_like(parameters)
        self._iterations = iterations
        self._count = 0

    def step(self, slopes: Floats) -> None:
        """Take a step; the slopes are overwritten."""
        self._count += 1
        left = 1 - (self._count - 1) / self._iterations
        rate = _STEP * min(self._count / _RISE, left)
        scale = rate / (1 - 0.9**self._count) * sqrt(1 - 0.99**self._count)
        self._sum *= 0.9
        self._sum += slopes
        slopes *= slopes
        self._squares *= 0.99
        self._squares += slopes
        # The means are 0.1 of the sum and 0.01 of the squares: both roots of them have 0.1.
        root = np.sqrt(self._squares, out=slopes)
        root += _TINY / 0.1
        np.divide(self._sum, root, out=root)
        root *= scale
        self._parameters -= root


class _Atoms:
    """Values of the columns that no measurement tells apart are one atom of the fit.

    Within an atom all classes share what the margin says, so the fit has as many numbers as the
    measurements can see, however many values an attribute has.
    """

    def __init__(
        self,
        margins: Sequence[Floats],
        tables: Sequence[Measurement],
        moments: Sequence[Moments],
        edges: Sequence[Edge] = (),
    ) -> None:
        sights: list[list[Grouping | None]] = [[] for _ in margins]
        for edge in edges:
            for column, group_of in zip((edge.parent, edge.child), edge.groups, strict=True):
                sights[column].append(group_of)
        for table in tables:
            for column, grouping in zip(table.attributes, table.groupings, strict=True):
                sights[column].append(grouping)
        for moment in moments:
            for column, grouping in zip(moment.columns, moment.groupings, strict=True):
                sights[column].append(grouping)
        self._margins = margins
        self.of = [
            _refined(groupings, len(m)) for groupings, m in zip(sights, margins, strict=True)
        ]
        self.first = [np.unique(atom_of, return_index=True)[1] for atom_of in self.of]
        self.starts = [0, *np.cumsum([len(firsts) for firsts in self.first]).tolist()]

    def table(self, table: Measurement) -> Measurement:
        """Return a noisy table, seen through atoms."""
        groupings = tuple(
            self.first[a] if g is None else g[self.first[a]]
            for a, g in zip(table.attributes, table.groupings, strict=True)
        )
        return replace(table, groupings=groupings)

    def moments(self, moments: Moments, sights: Sights, trees: Sequence[int]) -> MomentLoss:
        """Return the moments' part of the loss; columns of one tree are not independent."""
        by_column = zip(moments.columns, moments.groupings, strict=True)
        groupings = [grouping[self.first[column]] for column, grouping in by_column]
        return MomentLoss(moments, groupings, sights, trees)

    def trees(self, edges: Sequence[Edge], scale: float) -> Trees:
        """Return the trees of the columns."""
        groups = [
            (edge.groups[0][self.first[edge.parent]], edge.groups[1][self.first[edge.child]])
            for edge in edges
        ]
        return Trees(edges, groups, [slice(*span) for span in pairwise(self.starts)], scale)

    def margins(self) -> Floats:
        """Return the margins of all atoms, side by side."""
        pairs = zip(self.of, self._margins, strict=True)
        return np.concatenate([np.bincount(atoms, margin) for atoms, margin in pairs])

    def first_logits(self, components: int, rows: int) -> Floats:
        """Return every class near the margins, no two alike: equal ones would stay equal."""
        source = KeyedRandomSource(_START, private=False)
        start = 2 * uniforms(components * self.starts[-1], source) - 1
        log_margins = np.log(np.maximum(self.margins(), 0.1 / rows))
        return np.asarray(log_margins[:, None] + _SPREAD * start.reshape(-1, components))

    def logits(self, columns: Sequence[Floats]) -> Floats:
        """Return the logarithms of a mixture's columns, as distributions over atoms."""
        columns = [
            np.eye(len(first))[atoms].T @ column.T
            for first, atoms, column in zip(self.first, self.of, columns, strict=True)
        ]
        return np.log(np.maximum(np.concatenate(columns), _TINY))

    def spread(self, columns: Floats) -> tuple[Floats, ...]:
        """Return distributions over atoms (atoms, classes) as distributions over values."""
        distributions = []
        for i, (atoms, margin) in enumerate(zip(self.of, self._margins, strict=True)):
            proportions = margin + _TINY
            proportions = proportions / np.bincount(atoms, proportions)[atoms]
            law = columns[self.starts[i] : self.starts[i + 1]].T[:, atoms] * proportions
            distributions.append(law / law.sum(axis=1, keepdims=True))
        return tuple(distributions)


def _refined(groupings: Sequence[Grouping | None], size: int) -> Grouping:
    """Return the coarsest grouping of the values that refines all of the given ones."""
    if any(grouping is None for grouping in groupings):
        return np.arange(size)
    atoms = np.zeros(size, dtype=np.intp)
    for grouping in groupings:
        if grouping is not None:
            both = atoms * (int(grouping.max()) + 1) + grouping
            atoms = np.unique(both, return_inverse=True)[1].astype(np.intp)
    return atoms


class _Loss:
    """The whole objective, as a function of class weights and columns; in units of `rows` squared.

    Every precision is divided by the largest: only their ratios matter to the optimiser, and no
    number grows with the budget.
    """

    def __init__(
        self,
        atoms: _Atoms,
        rows: int,
        measurements: Sequence[Measurement],
        moments: Sequence[Moments],
        edges: Sequence[Edge],
        penalty: float,
        *,
        by_size: bool = False,
    ) -> None:
        self._starts = atoms.starts
        self._target = atoms.margins()
        self._log_margins = np.log(np.maximum(self._target, 0.1 / rows))
        alone = [table for table in measurements if len(table.attributes) == 1]
        precision = np.zeros(len(atoms.of))
        for table in alone:
            precision[table.attributes[0]] += rows * rows / table.variance
        several = [table for table in measurements if len(table.attributes) > 1]
        largest = max(
            [
                *precision,
                *(rows * rows / table.variance for table in several),
                *(1 / moment.variance for moment in moments),
                *(edge.precision for edge in edges),
                _TINY,
            ]
        )
        sizes = np.concatenate([np.bincount(atom_of) for atom_of in atoms.of])
        self._precision = np.repeat(precision, np.diff(self._starts)) / sizes / largest
        self._sights = Sights(atoms.starts)
        self.trees = atoms.trees(edges, largest)
        together = tree_of(len(atoms.of), edges)
        scaled = [replace(t, variance=t.variance * largest) for t in map(atoms.table, several)]
        self._losses: list[TableLoss | MomentLoss] = [
            atoms.moments(
                replace(moment, variance=moment.variance * largest), self._sights, together
            )
            for moment in moments
        ]
        if scaled:
            self._losses.append(TableLoss(scaled, rows, self._sights))
        widths = [len(places) for places in atoms.first]
        factors = column_prices(widths) if by_size else np.ones(len(widths))
        self._penalty, self._factors = penalty / largest, factors[:, None]
        self._prices = np.repeat(self._penalty * factors, widths)
        self._scratch = Scratch()

    def gradients(self, weights: Floats, logits: Floats, tables: Sequence[Floats]) -> list[Floats]:
        """Return the gradients by the logits of columns (atoms, classes), weights and tables."""
        shifted, columns, totals = _distributions(logits, self._starts, self._scratch)
        spans = {u: slice(*self._starts[u : u + 2]) for u in self.trees.columns}
        for u, law in self.trees.laws(logits, tables).items():
            columns[spans[u]], totals[u] = law, 1.0
            shifted[spans[u]] = np.log(np.maximum(law, _TINY))
        off = (columns @ weights - self._target) * self._precision
        # What a value tells is `shifted` less the logarithm of its column's total. The slopes are
        # by distributions: a number for all values of a column and class changes nothing.
        pull = off - self._prices * self._log_margins
        weight_slopes = pull @ columns
        weight_slopes -= self._penalty * (self._factors * np.log(totals)).sum(axis=0)
        shifted *= self._prices[:, None]
        weight_slopes += np.einsum("dc,dc->c", columns, shifted)
        slopes = shifted
        slopes += pull[:, None]
        if self._losses:
            group_odds = self._sights.of(columns)
            group_slopes = self._sights.flat(len(weights))
            for loss in self._losses:
                loss.add_gradient(weights, group_odds, group_slopes, weight_slopes)
            self._sights.pull_back(group_slopes, slopes)
        by_laws = {u: slopes[span] * weights for u, span in spans.items()}
        by_logits, by_tables = self.trees.slopes(weights, by_laws, weight_slopes)
        slopes *= columns
        columns *= _per_atom(
            np.add.reduceat(slopes, self._starts[:-1]), self._starts, self._scratch
        )
        slopes -= columns
        slopes *= weights
        for u, slope in by_logits.items():
            slopes[spans[u]] = slope
        weight_slopes *= weights
        return [slopes, weight_slopes - weights * weight_slopes.sum(), *by_tables]


def column_prices(atoms: Sequence[int]) -> Floats:
    """Return what a nat costs in columns of so many atoms; 1 in the mean.

    Noise has a direction for each free number of a column. At one price for all, it enters through
    columns of many values, and relations of a column of few stay out. That the price grows with the
    fourth root is measured, not derived: docs/research/subn-notes.md.
    """
    prices = np.sqrt(np.sqrt(np.maximum(np.array(atoms) - 1.0, 1.0)))
    return np.asarray(prices / prices.mean(), dtype=np.float64)


def _per_atom(numbers: Floats, starts: Sequence[int], scratch: Scratch) -> Floats:
    """Repeat a number of each column (columns, classes) for every atom of the column."""
    column_of = np.repeat(np.arange(len(numbers)), np.diff(starts))
    repeated = scratch("per atom", starts[-1], numbers.shape[1])
    return np.take(numbers, column_of, axis=0, out=repeated)


def _distributions(
    logits: Floats, starts: Sequence[int], scratch: Scratch
) -> tuple[Floats, Floats, Floats]:
    """Return logits below zero, their columns' softmax, and what it was divided by."""
    largest = _per_atom(np.maximum.reduceat(logits, starts[:-1]), starts, scratch)
    shifted = np.subtract(logits, largest, out=scratch("shifted", *logits.shape))
    columns = np.exp(shifted, out=scratch("columns", *logits.shape))
    totals = np.add.reduceat(columns, starts[:-1])
    columns /= _per_atom(totals, starts, scratch)
    return shifted, columns, totals


@one_thread
def fit(
    margins: Sequence[Floats],
    rows: int,
    measurements: Sequence[Measurement],
    *,
    moments: Sequence[Moments] = (),
    edges: Sequence[Edge] = (),
    components: int = COMPONENTS,
    iterations: int = ITERATIONS,
    penalty: float = PENALTY,
    by_size: bool = False,
    start: LatentModel | None = None,
) -> LatentModel:
    """Fit the mixture that explains all noisy tables best; equal tables give equal mixtures.

    Equal to the last bit on one kind of processor with one version of numpy, on any number of its
    cores. Elsewhere matrix products may round otherwise: the last digits of a mixture may differ.

    The classes are drawn towards the margins, every column's distribution: `estimated_margins`.
    Noisy tables of a single column are in the margins already, and say how well these are known.
    The penalty is what a nat of information between class and columns costs, in units of the loss;
    `by_size`, in the mean of columns (`column_prices`).

    A mixture of the same columns and classes, fitted to tables like these, is a start from which a
    third of the steps leads to the same place. Another mixture is no start.
    """
    if rows < 1:
        raise LocalError(f"a model of {rows} rows cannot be fitted")
    measurements = apart(measurements, tree_of(len(margins), edges))
    several = [table for table in measurements if len(table.attributes) > 1]
    atoms = _Atoms(margins, several, moments, edges)
    loss = _Loss(atoms, rows, measurements, moments, edges, penalty, by_size=by_size)
    if start is not None and start.fits(components, margins):
        known = loss.trees.known(start.links)
        hanging = {link.child: link.potentials for link in known if link is not None}
        logits = atoms.logits([hanging.get(u, column) for u, column in enumerate(start.columns)])
        weight_logits = np.log(np.maximum(start.weights, _TINY))
        tables = loss.trees.start(known, logits)
        iterations = max(iterations // NEARER, 1)
    else:
        logits, weight_logits = atoms.first_logits(components, rows), np.zeros(components)
        tables = loss.trees.first_tables()
    optimisers = [_Adam(parameters, iterations) for parameters in (logits, weight_logits, *tables)]
    for _ in range(iterations):
        gradients = loss.gradients(softmax(weight_logits), logits, tables)
        for optimiser, gradient in zip(optimisers, gradients, strict=True):
            optimiser.step(gradient)
    _, columns, _ = _distributions(logits, atoms.starts, Scratch())
    for u, law in loss.trees.laws(logits, tables).items():
        columns[atoms.starts[u] : atoms.starts[u + 1]] = law
    distributions = atoms.spread(columns)
    for edge in edges:
        span = slice(*atoms.starts[edge.child : edge.child + 2])
        columns[span] = loss.trees.potentials(edge.child)
    potentials = atoms.spread(columns)
    links = tuple(
        Link(edge.parent, edge.child, edge.groups, np.exp(table), potentials[edge.child])
        for edge, table in zip(edges, tables, strict=True)
    )
    return LatentModel(softmax(weight_logits), distributions, links)
