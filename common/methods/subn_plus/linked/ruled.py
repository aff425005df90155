"""Histories that obey the rules about events: exactly the model's, given that every event does.

People and their numbers of events are drawn as without rules; what was measured of them stays. Given
a person and her number of events, her history has the model's distribution on condition that rules
allow each of her events. Of all distributions of histories that rules allow, with these people and
numbers, it is the one of least Kullback-Leibler divergence from the model [Csiszar75].

Nothing is drawn in vain. For people of one kind (`common.schema.event_rules`), M(w) is how much of
the events of class w is possible. Backward along the walk, M times what is possible of the events
after it is the weight of a class; it re-weights the person's class, the first event's and every step.
The columns of an event are then drawn by variable elimination (`common.bayes.weighting`).

Where columns of events hang together too much for that, histories are the model's, and events that
break a rule are replaced by the nearest possible ones, as for a single table.

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
_MOST_PREPARED = 16  # kinds of people whose tables are held at a time


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


@dataclass(frozen=True, eq=False)
class RuledHistories:
    """A model of people and events whose events obey rules."""

    model: LinkedModel
    rules: PossibleEvents
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
        own = people.take(order)
        linked = LinkedCodes(own.columns, own.sizes, events, numbers[order], model.most)
        possible = self.rules.repaired(own, events, linked.of_person)
        return replace(linked, events=possible).take(np.argsort(order))

    def _events(
        self, kind: _Kind, odds: Floats, numbers: Positions, source: RandomSource
    ) -> Codes:
        """Draw the events of people of one kind, by the odds of their classes and their numbers."""
        with np.errstate(divide="ignore"):
            logs = np.log(odds) + np.log(self.model.numbers.T)[numbers] + kind.logs[numbers]
        classes = drawn_places(np.exp(logs - logs.max(axis=1, keepdims=True)), source)
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
        return Codes.from_columns(columns, [own.shape[1] for own in self.model.columns])

    def _steps(
        self, kind: _Kind, classes: Positions, numbers: Positions, source: RandomSource
    ) -> Positions:
        """Return the classes of all events, person after person."""
        walk, starts = self.model.walk, np.cumsum(numbers) - numbers
        steps = np.zeros(int(numbers.sum()), dtype=np.int64)
        for place in range(int(numbers.max(initial=0))):
            there = np.flatnonzero(numbers > place)
            own, at = classes[there], starts[there] + place
            odds = walk.first[own]
            if place:
                before = steps[at - 1]
                back = walk.returns[before][:, None]
                odds = back * walk.back[own] + (1 - back) * walk.step[before]
            steps[at] = drawn_places(odds * kind.onward[numbers[there] - place - 1, own], source)
        return steps

    def _kind(self, number: int) -> _Kind:
        if number not in self._prepared:
            if len(self._prepared) >= _MOST_PREPARED:
                self._prepared.clear()
            columns = [np.maximum(own, _LEAST) for own in self.model.columns]
            try:
                parts = _networks(columns, self.rules.weights(number))
            except TooManyCells:
                parts = _networks(columns, [])
            masses = np.maximum(np.concatenate([mass for mass, _ in parts]), _TINY)
            networks = tuple(network for _, network in parts)
            onward, logs = _possible_walks(self.model.walk, masses, self.model.most)
            self._prepared[number] = _Kind(networks, onward, logs)
        return self._prepared[number]


def _networks(
    columns: Sequence[Floats], rules: Sequence[CellWeights]
) -> list[tuple[Floats, WeightedNetwork]]:
    """Return how much of the events of each class is possible, and their columns given it.

    Raises:
        TooManyCells: the columns hang together too much, even of a single class.
    """
    classes, sizes = len(columns[0]), [own.shape[1] for own in columns]
    sets = [(a,) for a in range(len(sizes))]
    form = of_mixture(np.ones(classes), columns, sets, sizes)
    try:
        return [form.net.by_value(0, [form.weights(cells) for cells in rules])]
    except TooManyCells:
        half = classes // 2
        if not half:
            raise
        parts = ([own[:half] for own in columns], [own[half:] for own in columns])
        return [network for part in parts for network in _networks(part, rules)]


def _possible_walks(walk: Walk, masses: Floats, most: int) -> tuple[Floats, Floats]:
    """Return what is possible along a walk, backward: `onward` and `logs` of a kind of people."""
    returns = walk.returns
    onward, logs = np.empty((most, *walk.first.shape)), np.zeros((most + 1, len(walk.first)))
    after, scale = np.ones(walk.first.shape), np.zeros(len(walk.first))
    for left in range(most):
        possible = after * masses
        largest = possible.max(axis=1)
        scale += np.log(largest)
        onward[left] = possible / largest[:, None]
        logs[left + 1] = np.log((walk.first * onward[left]).sum(axis=1)) + scale
        returned = (walk.back * onward[left]).sum(axis=1)
        after = onward[left] @ ((1 - returns)[:, None] * walk.step).T + np.outer(returned, returns)
    return onward, logs
