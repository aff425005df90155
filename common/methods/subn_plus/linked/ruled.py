"""Histories that obey the rules about events, by people whom the model and other rules made.

People and their numbers of events are drawn as without these rules: what was measured of them
stays. The history of a person with n events is drawn from the model's distribution times the rules
times a weight for each value of the columns that rules are about. The weights keep the frequency of
every such value among all events. Of all distributions without an impossible event, with these
people, numbers and frequencies, it is the one of least Kullback-Leibler divergence from the model
[Csiszar75]. Without the weights it would be the model's, given that every event is possible; but
impossible events would take the frequencies of values along, which were measured well.

Nothing is drawn in vain. For people of one kind (`common.schema.event_rules`), M(w) is how much of
the events of class w is possible. Backward along the walk, M times what is possible of the events
to come is the weight of a class: of the person's class, the first event's, and every next one's.
The columns of an event are then drawn by variable elimination (`common.bayes.weighting`).

Where columns of events hang together too much for that, histories are the model's, and events that
break a rule are replaced by the nearest possible ones, as in a single table.

[Csiszar75] Csiszar: I-divergence geometry of probability distributions and minimization problems.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from common.bayes.form import of_mixture
from common.bayes.weighting import TooManyCells, WeightedNetwork
from common.methods.subn_plus.linked.model import LinkedModel, Walk, drawn_places
from common.methods.subn_plus.losses import Floats
from common.privacy.randomness import RandomSource
from common.schema.codes import Codes, concatenate
from common.schema.conditions import CellWeights
from common.schema.event_rules import PossibleEvents
from common.schema.linked import LinkedCodes, Positions

_LEAST = 1e-12  # probability of a value that rules may leave as the only one
_TINY = 1e-300
_MOST_HELD = 1 << 24  # numbers in the tables of kinds of people that are held at a time
_FITTINGS = (3, 50)  # the fewest and the most steps that fit the weights
_MOST_WORK = 1 << 28  # cells that these steps go through, if not the fewest
_LEAST_WORK = 1 << 18  # cells that take as long as a kind of people at least
_CLOSE = 1e-4  # differences of a column's frequencies, together


@dataclass(frozen=True, slots=True)
class _Kind:
    """What the events of people of one kind can be.

    Attributes:
        networks: the columns of events given their class, for one part of the classes each.
        onward: how much is possible of an event and the m after it, by m, the person's class and
            the event's, relative to the person's class (most, R, S).
        logs: the logarithm of how much is possible of n events, by n and the person's class
            (most + 1, R).
    """

    networks: tuple[WeightedNetwork, ...]
    onward: Floats
    logs: Floats

    @property
    def numbers(self) -> int:
        """How many numbers the tables hold."""
        tables = (table for network in self.networks for table in network.conditionals)
        return self.onward.size + sum(table.size for table in tables)


@dataclass(frozen=True, eq=False)
class RuledHistories:
    """A model of people and events whose events obey rules.

    `weights` are those of the values of every attribute of events.
    """

    model: LinkedModel
    rules: PossibleEvents
    weights: tuple[Floats, ...]
    _prepared: dict[int, _Kind] = field(default_factory=dict)

    def with_events(self, people: Codes, source: RandomSource) -> LinkedCodes:
        """Draw the events of people."""
        model = self.model
        if not people.rows:
            return model.with_events(people, source)
        odds = model.class_odds(people)
        numbers = drawn_places(model.numbers[drawn_places(odds, source)], source)
        kinds = self.rules.kinds_of(people)
        order = np.argsort(kinds, kind="stable")
        every, first = np.unique(kinds[order], return_index=True)
        groups = zip(every.tolist(), np.split(order, first[1:]), strict=True)
        events = concatenate(
            [
                self._events(self._kind(number), odds[who], numbers[who], source)
                for number, who in groups
            ]
        )
        by_kind = people.take(order)
        linked = LinkedCodes(by_kind.columns, by_kind.sizes, events, numbers[order], model.most)
        possible = self.rules.repaired(by_kind, events, linked.of_person)
        return replace(linked, events=possible).take(np.argsort(order))

    def _events(self, kind: _Kind, odds: Floats, numbers: Positions, source: RandomSource) -> Codes:
        """Draw the events of people of one kind, by the odds of their classes and their numbers."""
        logs = _log(odds) + _log(self.model.numbers.T)[numbers] + kind.logs[numbers]
        classes = drawn_places(_odds_of(logs), source)
        steps = self._steps(kind, classes, numbers, source)
        columns = [np.zeros(len(steps), dtype=np.intp) for _ in self.model.columns]
        start = 0
        for network in kind.networks:
            end = start + network.domain.sizes[0]
            there = np.flatnonzero((steps >= start) & (steps < end))
            _, *drawn = network.sample_given(0, steps[there] - start, source)
            for column, codes in zip(columns, drawn, strict=True):
                column[there] = codes
            start = end
        return Codes.from_columns(columns, [column.shape[1] for column in self.model.columns])

    def _steps(
        self, kind: _Kind, classes: Positions, numbers: Positions, source: RandomSource
    ) -> Positions:
        """Return the classes of all events, person after person."""
        walk, starts = self.model.walk, np.cumsum(numbers) - numbers
        steps = np.zeros(int(numbers.sum()), dtype=np.int64)
        for place in range(int(numbers.max(initial=0))):
            there = np.flatnonzero(numbers > place)
            person, at = classes[there], starts[there] + place
            odds = walk.first[person]
            if place:
                before = steps[at - 1]
                back = walk.returns[before][:, None]
                odds = back * walk.back[person] + (1 - back) * walk.step[before]
            possible = kind.onward[numbers[there] - place - 1, person]
            steps[at] = drawn_places(odds * possible, source)
        return steps

    def _kind(self, number: int) -> _Kind:
        if number not in self._prepared:
            if sum(kind.numbers for kind in self._prepared.values()) > _MOST_HELD:
                self._prepared.clear()
            self._prepared[number] = self._prepare(self.rules.weights(number))
        return self._prepared[number]

    def _prepare(self, rules: Sequence[CellWeights]) -> _Kind:
        columns = [
            np.maximum(column, _LEAST) * weights
            for column, weights in zip(self.model.columns, self.weights, strict=True)
        ]
        try:
            parts = _networks(columns, rules)
        except TooManyCells:
            parts = _networks(columns, [])
        masses = np.maximum(np.concatenate([mass for mass, _ in parts]), _TINY)
        networks = tuple(network for _, network in parts)
        return _Kind(networks, *_possible_walks(self.model.walk, masses, self.model.most))

    def frequencies(self, odds: Floats, rules: Sequence[CellWeights]) -> list[Floats]:
        """Return how many events are expected to have each value, of columns in rules.

        `odds` has the classes of people, of whom all are of the kind with these rules.
        """
        kind, numbers = self._prepare(rules), self.model.numbers
        people = np.zeros_like(kind.logs)
        for number in range(1, len(people)):
            together = odds * numbers[:, number]
            people[number] = together.sum(axis=1) @ _odds_of(_log(together) + kind.logs[number])
        events = _expected_classes(self.model.walk, kind.onward, people)
        counts = [np.zeros(self.model.columns[a].shape[1]) for a in self.rules.of_events]
        start = 0
        for network in kind.networks:
            part = events[start : start + network.domain.sizes[0]]
            start += len(part)
            whole = replace(network, conditionals=(part[None, :], *network.conditionals[1:]))
            for place, a in enumerate(self.rules.of_events):
                counts[place] += whole.marginal((a + 1,))
        return counts


def keeping_frequencies(model: LinkedModel, rules: PossibleEvents, people: Codes) -> RuledHistories:
    """Return histories whose values are as frequent as in the model's histories of these people.

    Iterative scaling finds the weights, in smaller steps where a step went too far. Where rules and
    frequencies contradict each other, the nearest that was found is taken, and the rules hold.
    """
    odds, kinds = model.class_odds(people), rules.kinds_of(people)
    groups = {kind: odds[kinds == kind] for kind in np.unique(kinds).tolist()}
    ruled = best = RuledHistories(model, rules, _ones(model))
    targets, counts = ruled.frequencies(odds, ()), list[Floats]()
    nearest, pace = np.inf, 1.0
    for _ in range(_steps_within_reach(model, rules, len(groups))):
        by_kind = [ruled.frequencies(odds, rules.weights(kind)) for kind, odds in groups.items()]
        expected = [np.sum(parts, axis=0) for parts in zip(*by_kind, strict=True)]
        off = max(
            float(np.abs(one - other).sum() / max(other.sum(), _TINY))
            for one, other in zip(expected, targets, strict=True)
        )
        if off < nearest:
            best, nearest, counts = ruled, off, expected
        else:
            pace /= 2
        if nearest < _CLOSE:
            break
        ruled = RuledHistories(model, rules, _scaled(best, targets, counts, pace))
    return best


def _steps_within_reach(model: LinkedModel, rules: PossibleEvents, kinds: int) -> int:
    """Return how many steps fit the weights in bounded time."""
    cells = sum(weights.table.size for weights in rules.weights(0)) * len(model.walk.returns)
    fewest, most = _FITTINGS
    return min(most, max(fewest, _MOST_WORK // (kinds * max(cells, _LEAST_WORK))))


def _ones(model: LinkedModel) -> tuple[Floats, ...]:
    return tuple(np.ones(column.shape[1]) for column in model.columns)


def _scaled(
    ruled: RuledHistories, targets: Sequence[Floats], counts: Sequence[Floats], pace: float
) -> tuple[Floats, ...]:
    """Return weights that bring the counts nearer to the targets."""
    weights = list(ruled.weights)
    for a, target, count in zip(ruled.rules.of_events, targets, counts, strict=True):
        ratio = np.divide(target, count, out=np.ones_like(count), where=count > 0)
        weights[a] = weights[a] * ratio**pace
        weights[a] /= weights[a].max()
    return tuple(weights)


def _log(odds: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(odds))


def _odds_of(logs: Floats) -> Floats:
    """Return odds that add up to one, from logarithms up to a constant; zeros of a row of zeros."""
    odds = np.exp(logs - np.maximum(logs.max(axis=1, keepdims=True), -1 / _TINY))
    return np.asarray(odds / np.maximum(odds.sum(axis=1, keepdims=True), _TINY))


def _networks(
    columns: Sequence[Floats], rules: Sequence[CellWeights]
) -> list[tuple[Floats, WeightedNetwork]]:
    """Return how much of the events of each class is possible, and their columns given it.

    Raises:
        TooManyCells: the columns hang together too much, even of a single class.
    """
    classes, sizes = len(columns[0]), [column.shape[1] for column in columns]
    sets = [(a,) for a in range(len(sizes))]
    form = of_mixture(np.ones(classes), columns, sets, sizes)
    try:
        return [form.net.by_value(0, [form.weights(cells) for cells in rules])]
    except TooManyCells:
        half = classes // 2
        if not half:
            raise
        parts = ([column[:half] for column in columns], [column[half:] for column in columns])
        return [network for part in parts for network in _networks(part, rules)]


def _possible_walks(walk: Walk, masses: Floats, most: int) -> tuple[Floats, Floats]:
    """Return what is possible along a walk, backward: `onward` and `logs` of a kind of people."""
    returns = walk.returns
    onward, logs = np.empty((most, *walk.first.shape)), np.zeros((most + 1, len(walk.first)))
    after, scale = np.ones(walk.first.shape), np.zeros(len(walk.first))
    for left in range(most):
        possible = after * masses
        largest = np.maximum(possible.max(axis=1), _TINY)
        scale += np.log(largest)
        onward[left] = possible / largest[:, None]
        logs[left + 1] = _log((walk.first * onward[left]).sum(axis=1)) + scale
        returned = (walk.back * onward[left]).sum(axis=1)
        after = onward[left] @ ((1 - returns)[:, None] * walk.step).T + np.outer(returned, returns)
    return onward, logs


def _expected_classes(walk: Walk, onward: Floats, people: Floats) -> Floats:
    """Return how many events of each class are expected, forward along the walk.

    `people` says how many have n events, by n and their class; `onward` what is possible.
    """
    total, returns = np.zeros(len(walk.returns)), walk.returns
    before = np.zeros(walk.first.shape)  # events after which there are so many to come
    for here, begin in zip(onward[::-1], people[:0:-1], strict=True):
        first = walk.first * here
        leaving = (1 - returns) * (here @ walk.step.T)
        leaving += np.outer((walk.back * here).sum(axis=1), returns)
        flow = before / np.maximum(leaving, _TINY)
        after = (flow * (1 - returns)) @ walk.step + (flow @ returns)[:, None] * walk.back
        begun = first / np.maximum(first.sum(axis=1, keepdims=True), _TINY)
        before = begin[:, None] * begun + here * after
        total += before.sum(axis=0)
    return total
