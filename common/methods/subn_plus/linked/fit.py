"""The fit of a model of people and events to noisy sums: floating point, deciding nothing.

Values of a column that no table of pairs tells apart are one atom. Within an atom every class
shares what the margin says. Adam descends the loss in logits, from a start that depends on nothing
but the shape of the model: equal sums give equal models.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from common.bayes.form import Model
from common.bayes.postprocessing import onto_simplex
from common.marginals.threads import one_thread
from common.methods.subn_plus.latent import NEARER, LatentModel, softmax
from common.methods.subn_plus.linked.loss import (
    Loss,
    Numbered,
    Parts,
    Prices,
    Seen,
    SeenPair,
    Side,
    Sums,
)
from common.methods.subn_plus.linked.model import LinkedModel, Walk
from common.methods.subn_plus.losses import Floats
from common.methods.subn_plus.thinning import DEARER, HELD_BACK, best_factor, halved
from common.privacy.randomness import KeyedRandomSource, uniforms

CLASSES = 48  # of people, and of events
STEPS = 500
PRICE = 0.7  # of information about columns, times the price at which half the noise would pay
CLASS_PRICE = 1.4  # the same, about the classes of events
STEP_PRICE = 0.3  # the same, about the class of the next event
TRIAL_CLASSES, TRIAL_STEPS = 24, 200  # of the fits that choose a factor of the prices
_RATE = 0.1
_SPREAD = 0.9  # how far the classes start from the margins, in logits
_STAY = 2.0  # how much likelier a step keeps the class at the start, in logits
_ALWAYS = 40.0  # in logits: an event that nothing is known about the next one of
_TINY = 1e-12
# A start, not a secret: curator and parties get the same model.
_START = hashlib.sha256(b"parley people and events").digest()
FREE = Prices(0.0, 0.0, 0.0, 0.0)
Atoms = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its distribution, the noise in it, and the groups that pairs are seen in.

    Attributes:
        margin: the proportion of each value; of events, of all people: they add up to less than 1.
        variance: of the noise in the proportion of a value.
        groups: of each value in the tables of pairs.
        later: of each value in the tables of consecutive events.
        numbered: the noisy proportions; of events, by groups of the number of events (N, values).
        declared: of each value in each of the declared tables that have the column.
    """

    margin: Floats
    variance: float
    groups: Atoms
    later: Atoms
    numbered: Floats
    declared: tuple[Atoms, ...] = ()

    @property
    def atoms(self) -> Atoms:
        """The atom of each value."""
        atoms = self.groups
        for finer in (self.later, *self.declared):
            both = atoms * (int(finer.max()) + 1) + finer
            atoms = np.asarray(np.unique(both, return_inverse=True)[1], dtype=np.intp)
        return atoms

    def spread(self, rows: Floats) -> Floats:
        """Return distributions over atoms as distributions over values."""
        atoms, proportions = self.atoms, self.margin + _TINY
        proportions = proportions / np.bincount(atoms, proportions)[atoms]
        values = rows[:, atoms] * proportions
        return np.asarray(values / values.sum(axis=1, keepdims=True), dtype=np.float64)


_Weighed = TypeVar("_Weighed", Side, Numbered)


def unmeasured(tables: _Weighed) -> _Weighed:
    """Return a side, or its columns by number, that do not count."""
    return replace(
        tables, precisions=tuple(np.zeros_like(precision) for precision in tables.precisions)
    )


def split(sums: Sums) -> tuple[Sums, Sums]:
    """Return two looks at the same sums, with independent noise; see `subn_plus.thinning`."""
    every = (sums.people, sums.events, sums.both, sums.later)
    digest = hashlib.sha256(b"parley thinning of linked tables")
    for proportions in (
        *(matrix.proportions for matrix in every),
        *(pair.proportions for pair in sums.declared),
    ):
        digest.update(np.ascontiguousarray(proportions).tobytes())
    source = KeyedRandomSource(digest.digest(), private=False)
    first, second = [], []
    for matrix in every:
        known = matrix.precisions > 0
        variances = np.divide(
            1.0, matrix.precisions, out=np.zeros_like(matrix.proportions), where=known
        )
        one, other = halved(matrix.proportions, variances, source)
        if matrix is not sums.both and matrix is not sums.later:  # mirrored
            upper = np.triu(np.ones_like(one)) > 0
            one, other = (np.where(upper, look, look.T) for look in (one, other))
        first.append(Seen(one, matrix.precisions * (1 - HELD_BACK)))
        second.append(Seen(other, matrix.precisions * HELD_BACK))
    pairs = [(pair, halved(pair.proportions, 1 / pair.precision, source)) for pair in sums.declared]

    def look(looks: list[Seen], side: int, part: float) -> Sums:
        declared = tuple(
            replace(pair, proportions=both[side], precision=pair.precision * part)
            for pair, both in pairs
        )
        return Sums(looks[0], looks[1], looks[2], looks[3], declared)

    return look(first, 0, 1 - HELD_BACK), look(second, 1, HELD_BACK)


def _summed(groups: Atoms, proportions: Floats) -> Floats:
    return np.asarray(np.bincount(groups, proportions), dtype=np.float64)


def sights(groups: Atoms, atoms: Atoms) -> Floats:
    """Return the group that each atom is in, as a matrix of 0 and 1."""
    first = np.unique(atoms, return_index=True)[1]
    return np.asarray(np.eye(int(groups.max()) + 1)[groups[first]], dtype=np.float64)


def side_of(columns: Sequence[Column]) -> Side:
    """Return columns as the loss sees them."""
    return Side(
        tuple(_summed(column.atoms, column.margin) for column in columns),
        tuple(1 / (np.bincount(column.atoms) * column.variance) for column in columns),
        tuple(sights(column.groups, column.atoms) for column in columns),
        tuple(sights(column.later, column.atoms) for column in columns),
    )


def numbered_of(columns: Sequence[Column], groups: Atoms) -> Numbered:
    """Return columns of events by the group of a person with 1, 2, ... events."""

    def in_atoms(column: Column) -> Floats:
        atoms = column.atoms
        return column.numbered @ np.eye(int(atoms.max()) + 1)[atoms]

    return Numbered(
        np.eye(int(groups.max()) + 1)[groups],
        tuple(map(in_atoms, columns)),
        tuple(1 / (np.bincount(column.atoms) * column.variance) for column in columns),
    )


def _spread_of(columns: Sequence[Column], *, later: bool = False, declared: bool = False) -> float:
    """Return the squared norm of the covariances of the columns' groups."""
    total = 0.0
    for column in columns:
        groups = column.atoms if declared else column.later if later else column.groups
        total += _square_of(_summed(groups, column.margin))
    return total


def _square_of(weights: Floats) -> float:
    """Return the squared norm of the covariance of groups of these weights."""
    proportions = weights / max(float(weights.sum()), _TINY)
    square, cube = float((proportions**2).sum()), float((proportions**3).sum())
    return square - 2 * cube + square**2


def prices_of(
    people: Sequence[Column], events: Sequence[Column], sums: Sums, factor: float
) -> Prices:
    """Return the prices of a nat at which little of the noise in tables of pairs enters the model.

    `noise_edge` of `common.methods.subn_plus.models` has the reason.
    """
    alone, of_events, later = _spread_of(people), _spread_of(events), _spread_of(events, later=True)
    within, both, other, after = (
        float(matrix.precisions.max(initial=0.0))
        for matrix in (sums.people, sums.both, sums.events, sums.later)
    )
    # Where no pairs are seen, columns differ by the number of events alone, if at all. What that
    # tells is clear: the factor is of the noise in pairs.
    known = 1 / min(column.variance for column in events)
    number = sqrt(_number_spread(events) * known)
    named = _declared_spread([*people, *events], len(people), sums.declared)
    return Prices(
        people=PRICE
        * (factor * sqrt(alone * within + of_events * both + named.people) or sqrt(alone * known)),
        events=PRICE
        * max(
            factor * sqrt(max(alone * both + of_events * other + named.events, 2 * later * after)),
            number,
        ),
        classes=CLASS_PRICE * (factor * sqrt((alone + of_events) * both + named.classes) or number),
        steps=factor * STEP_PRICE * sqrt(2 * later * after),
    )


def _number_spread(events: Sequence[Column]) -> float:
    """Return the squared norm of the covariances of the groups of the number of events."""
    proportions = np.maximum(
        np.mean([column.numbered.sum(axis=1) for column in events], axis=0), 0.0
    )
    return _square_of(proportions)


def _declared_spread(columns: Sequence[Column], width: int, pairs: Sequence[SeenPair]) -> Prices:
    """Return what the noise of declared pairs adds to the squares of the prices.

    The noise that reaches the columns of people is that of the columns they are seen with, each
    once, at the highest precision; the same for columns of events.
    """

    def added(*kinds: tuple[bool, bool, bool]) -> float:
        precisions = dict[int, float]()
        for of_events, with_events, of_first in kinds:
            for pair in pairs:
                if [v >= width for v in pair.columns] == [of_events, with_events]:
                    v = pair.columns[0 if of_first else 1]
                    precisions[v] = max(precisions.get(v, 0.0), pair.precision)
        return sum(
            precision * _spread_of([columns[v]], declared=True)
            for v, precision in precisions.items()
        )

    alone = ((False, False, True), (False, False, False))
    first, second = (False, True, True), (False, True, False)
    inside = ((True, True, True), (True, True, False))
    return Prices(
        people=added(*alone) + added(second),
        events=added(*inside) + added(first),
        classes=added(first) + added(second),
        steps=0.0,
    )


class Logits:
    """The parameters of the fit in one vector, with the parts of the model as pieces of it."""

    def __init__(
        self, people: Side, events: Side, *, classes: int, event_classes: int, walks: bool = True
    ) -> None:
        r, s = classes, event_classes
        shapes = [(r,), (r, s), (r, s), (s, s), (s,)]
        shapes += [(r, len(margin)) for margin in people.margins]
        shapes += [(s, len(margin)) for margin in events.margins]
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes]).tolist()
        self._pieces = [
            (slice(start, end), shape)
            for start, end, shape in zip([0, *ends], ends, shapes, strict=False)
        ]
        self._people, self._walks = len(people.margins), walks
        source = KeyedRandomSource(_START, private=False)
        self.vector = _SPREAD * (2 * uniforms(ends[-1], source) - 1)
        cut = self._cut(self.vector)
        cut[0][:] = 0.0
        cut[3][:] += _STAY * np.eye(s)
        cut[4][:] = -1.0 if walks else _ALWAYS
        for piece, log in zip(cut[5:], [*people.logs(), *events.logs()], strict=True):
            np.add(piece, log, out=piece)

    def near(self, model: LinkedModel, atoms: Sequence[Atoms]) -> Logits:
        """Start from a model; `atoms` has the atom of each value of all columns."""
        walk = model.walk
        columns = (*model.people.columns, model.numbers, *model.columns)
        parts = [model.people.weights, walk.first, walk.back, walk.step]
        parts += [
            rows @ np.eye(int(of_values.max()) + 1)[of_values]
            for of_values, rows in zip(atoms, columns, strict=True)
        ]
        logs = [np.log(np.maximum(odds, _TINY)).ravel() for odds in parts]
        returns = np.maximum(walk.returns, _TINY) / np.maximum(1 - walk.returns, _TINY)
        self.vector = np.concatenate([*logs[:4], np.log(returns), *logs[4:]])
        return self

    def _cut(self, vector: Floats) -> list[Floats]:
        return [vector[part].reshape(shape) for part, shape in self._pieces]

    def parts(self, vector: Floats) -> Parts:
        """Return the distributions that a vector stands for."""
        cut = self._cut(vector)
        returns = 1 / (1 + np.exp(-cut[4]))
        w, first, back, step = (softmax(piece) for piece in cut[:4])
        if not self._walks:
            back = first
        columns = [softmax(piece) for piece in cut[5:]]
        return Parts(w, first, back, step, returns, columns[: self._people],
                     columns[self._people :])  # fmt: skip

    def slopes(self, parts: Parts, by: Parts) -> Floats:
        """Return slopes by the parts as slopes by the vector."""
        first, back = by.first, by.back
        if not self._walks:
            first, back = first + back, np.zeros_like(back)
        pairs = [(parts.weights, by.weights), (parts.first, first), (parts.back, back)]
        by_piece = [_of_logits(*pair) for pair in [*pairs, (parts.step, by.step)]]
        by_piece.append(by.returns * parts.returns * (1 - parts.returns))
        by_piece += map(_of_logits, parts.people, by.people)
        by_piece += map(_of_logits, parts.events, by.events)
        return np.concatenate([slope.ravel() for slope in by_piece])


def _of_logits(odds: Floats, slopes: Floats) -> Floats:
    return np.asarray(odds * (slopes - (odds * slopes).sum(axis=-1, keepdims=True)))


def _descend(loss: Loss, logits: Logits, steps: int) -> Parts:
    """Take Adam's steps; their size falls linearly to zero."""
    vector = logits.vector.copy()
    mean, square = np.zeros_like(vector), np.zeros_like(vector)
    for step in range(steps):
        parts = logits.parts(vector)
        slopes = logits.slopes(parts, loss.evaluate(parts)[1])
        mean += 0.1 * (slopes - mean)
        square += 0.01 * (slopes * slopes - square)
        rate = _RATE * (1 - step / steps) / (1 - 0.9 ** (step + 1))
        vector -= rate * mean / (np.sqrt(square / (1 - 0.99 ** (step + 1))) + _TINY)
    return logits.parts(vector)


@one_thread
def fit_linked(
    people: Sequence[Column],
    events: Sequence[Column],
    sums: Sums,
    *,
    number_groups: Atoms,
    event_weight: Floats,
    later_weight: Floats,
    classes: int = CLASSES,
    steps: int = STEPS,
    near: Model | None = None,
) -> LinkedModel:
    """Fit classes of people, classes of events and a walk to all noisy sums at once.

    The last column of people is the number of events. Without sums of pairs there is a class for
    each group of that, and columns are independent given it. From a model of as many classes,
    fitted to sums like these, a third of the steps leads to the same place, at its price.
    """
    sides, numbered = (side_of(people), side_of(events)), numbered_of(events, number_groups)

    def fitted(
        evidence: Sums, factor: float, classes: int, steps: int, near: LinkedModel | None = None
    ) -> Parts:
        prices = prices_of(people, events, evidence, factor)
        loss = Loss(*sides, numbered, evidence, event_weight, later_weight, prices)
        walks = bool(evidence.later.precisions.any())
        start = Logits(*sides, classes=classes, event_classes=classes, walks=walks)
        if near is not None:
            start = start.near(near, [column.atoms for column in (*people, *events)])
        return _descend(loss, start, steps)

    def error(factor: float) -> float:
        parts = fitted(first, factor, min(classes, TRIAL_CLASSES), min(steps, TRIAL_STEPS))
        alone = unmeasured(sides[0]), sides[1], unmeasured(numbered)
        return Loss(*alone, second, event_weight, later_weight, FREE).evaluate(parts)[0]

    every = (sums.people, sums.both, sums.events, sums.later)
    if not (sums.declared or any(matrix.precisions.any() for matrix in every)):
        return by_number(people, events, number_groups)
    if isinstance(near, LinkedModel) and len(near.people.weights) == classes:
        factor = near.people.price
        parts = fitted(sums, factor, classes, max(steps // NEARER, 1), near)
    else:
        first, second = split(sums)
        factor = max(1.0, DEARER * best_factor(error))
        parts = fitted(sums, factor, classes, steps)
    return LinkedModel(
        LatentModel(
            parts.weights,
            tuple(
                column.spread(rows) for column, rows in zip(people[:-1], parts.people, strict=False)
            ),
            price=factor,
        ),
        people[-1].spread(parts.people[-1]),
        Walk(parts.first, parts.back, parts.step, parts.returns),
        tuple(column.spread(rows) for column, rows in zip(events, parts.events, strict=True)),
    )


def by_number(
    people: Sequence[Column], events: Sequence[Column], number_groups: Atoms
) -> LinkedModel:
    """Return columns that have nothing to do with each other, but for the number of events.

    There is a class of people, and one of their events, for each group of the number of events. How
    far its columns are from all events' is as much of what the tables say as is not noise [James
    and Stein].
    """
    groups = np.concatenate([[0], number_groups])  # people without events are of the first class
    sights = np.eye(int(groups.max()) + 1)[groups]
    proportions = people[-1].margin + _TINY
    weights = proportions @ sights
    numbers = (proportions[:, None] * sights).T / weights[:, None]
    same = np.eye(len(weights))
    return LinkedModel(
        LatentModel(
            weights / weights.sum(),
            tuple(
                np.tile(column.margin / column.margin.sum(), (len(weights), 1))
                for column in people[:-1]
            ),
        ),
        numbers,
        Walk(same, same, same, np.ones(len(weights))),
        tuple(map(_shrunk, events)),
    )


def _shrunk(column: Column) -> Floats:
    """Return a column's distribution in each group of the number of events."""
    mean, table = column.margin / column.margin.sum(), column.numbered
    totals = np.maximum(table.sum(axis=1, keepdims=True), _TINY)
    off, free = table - totals * mean, max(len(mean) - 1, 1)
    beyond = float((off**2).sum()) / free - (len(table) - 1) * column.variance
    signal = totals**2 * max(beyond, 0.0) / float((totals**2).sum())
    weights = signal / (signal + column.variance)
    rows = [onto_simplex(row, total=1.0) for row in mean + weights * off / totals]
    return np.array(rows)
