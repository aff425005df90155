"""The model of a linked study: classes of people, classes of events, and a walk through these.

A person has a class z. Given z, her attributes and her number of events are independent. Her first
event is of class w with probability first[z, w]. From an event of class w the next one is drawn
from back[z] with probability returns[w], a return to what is her own, else from step[w]. The
attributes of an event are independent given its class.

People are a mixture (`LatentModel`), so all that holds for mixtures holds for them: rules, rare
conditions. A history is drawn for people who are there already, by the classes that they can be of.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from common.bayes.form import Model, NetworkForm
from common.methods.subn_plus.latent import LatentModel
from common.methods.subn_plus.losses import Floats
from common.privacy.randomness import RandomSource, uniforms
from common.schema.codes import Codes
from common.schema.linked import LinkedCodes, Positions

_FORMAT = "parley model of people and events 1"
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class Walk:
    """The classes of a person's events; R classes of people, S classes of events.

    Attributes:
        first: of the first event, by the person's class (R, S).
        back: of an event after a return (R, S).
        step: of an event after one without a return, by the class of that (S, S).
        returns: the probability of a return, by the class of the event before (S,).
    """

    first: Floats
    back: Floats
    step: Floats
    returns: Floats


@dataclass(frozen=True, slots=True)
class LinkedModel(Model):
    """People, the number of events by their class (R, most + 1), the walk, and events' columns."""

    people: LatentModel
    numbers: Floats
    walk: Walk
    columns: tuple[Floats, ...]  # of each attribute of events, by the event's class (S, size)

    @property
    def most(self) -> int:
        return int(self.numbers.shape[1]) - 1

    def sample(self, rows: int, source: RandomSource) -> LinkedCodes:
        """Draw people with their events."""
        return self.with_events(self.people.sample(rows, source), source)

    def with_events(self, people: Codes, source: RandomSource) -> LinkedCodes:
        """Draw the events of people, from the model's distribution given their attributes."""
        classes = drawn_places(self.class_odds(people), source)
        numbers = drawn_places(self.numbers[classes], source).astype(np.int64)
        steps = self._walk(classes, numbers, source)
        columns = [_drawn_by_class(odds, steps, source) for odds in self.columns]
        sizes = [odds.shape[1] for odds in self.columns]
        events = Codes.from_columns(columns, sizes)
        return LinkedCodes(people.columns, people.sizes, events, numbers, self.most)

    def class_odds(self, people: Codes) -> Floats:
        """Return how likely each person is of each class, given her attributes."""
        logs = np.log(np.maximum(self.people.weights, _TINY))[None, :].repeat(people.rows, axis=0)
        for codes, column in zip(people.columns, self.people.columns, strict=True):
            logs += np.log(np.maximum(column, _TINY)).T[codes]
        logs -= logs.max(axis=1, keepdims=True, initial=-np.inf) if people.rows else 0.0
        odds = np.exp(logs)
        return np.asarray(odds / odds.sum(axis=1, keepdims=True), dtype=np.float64)

    def _walk(self, classes: Positions, numbers: Positions, source: RandomSource) -> Positions:
        """Return the classes of all events, person after person."""
        walk, starts = self.walk, np.cumsum(numbers) - numbers
        event_classes = np.zeros(int(numbers.sum()), dtype=np.int64)
        for place in range(self.most):
            there = np.flatnonzero(numbers > place)
            person_class, at = classes[there], starts[there] + place
            if place == 0:
                event_classes[at] = drawn_places(walk.first[person_class], source)
                continue
            before = event_classes[at - 1]
            returned = uniforms(len(there), source) < walk.returns[before]
            odds = np.where(returned[:, None], walk.back[person_class], walk.step[before])
            event_classes[at] = drawn_places(odds, source)
        return event_classes

    def form(self) -> tuple[NetworkForm, ...]:
        """Return the network of the people; their events are drawn after them."""
        return self.people.form()

    def as_json(self) -> dict[str, object]:
        """Return the model as plain values."""
        walk = self.walk
        return {
            "format": _FORMAT,
            "people": self.people.as_json(),
            "numbers": self.numbers.tolist(),
            "first": walk.first.tolist(),
            "back": walk.back.tolist(),
            "step": walk.step.tolist(),
            "returns": walk.returns.tolist(),
            "events": [column.tolist() for column in self.columns],
        }


def drawn_places(odds: Floats, source: RandomSource) -> Positions:
    """Draw one place of every row, by its odds."""
    edges = np.cumsum(odds, axis=1)
    places = (uniforms(len(odds), source)[:, None] * edges[:, -1:] >= edges).sum(axis=1)
    return np.asarray(np.minimum(places, odds.shape[1] - 1), dtype=np.int64)


def _drawn_by_class(odds: Floats, classes: Positions, source: RandomSource) -> Positions:
    """Draw a place for each class, as `drawn_places` does of `odds[classes]`, class by class.

    A column of many values would not fit into memory once for every event.
    """
    edges, drawn = np.cumsum(odds, axis=1), uniforms(len(classes), source)
    places = np.zeros(len(classes), dtype=np.int64)
    for number in range(len(odds)):
        there = np.flatnonzero(classes == number)
        below = drawn[there] * edges[number, -1]
        places[there] = np.searchsorted(edges[number], below, side="right")
    return np.asarray(np.minimum(places, odds.shape[1] - 1), dtype=np.int64)
