"""The loss of a model of people and events, and its gradient.

Every sum that a study asks for is a polynomial in the parts of the model (`linked.model`). With
q_1 = first and q_(j+1) = (q_j (1 - returns)) step + (sum of q_j returns) back, the class of a
person's j-th event is q_j, and the events of a person with n of them are, on average,
(q_1 + ... + q_n) / n. The loss is

    half the sum over tables of |model - noisy|^2 / variance, in proportions of the people,
    + price * the information that classes have about columns, and about the classes of events.

The second term is what keeps noise out, as in `common.methods.subn_plus.latent`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from common.methods.subn_plus.losses import Floats

_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Side:
    """The columns of people, or those of events, as the fit sees them.

    Attributes:
        margins: each column's distribution over its atoms; of events, times the proportion of
            people with events.
        precisions: of each column's atoms, the inverse variance of their noisy proportion.
        sights: of each column, the group of pairs that each atom is in, as a matrix of 0 and 1.
        later: the same, for the groups of consecutive events; empty for people.
    """

    margins: tuple[Floats, ...]
    precisions: tuple[Floats, ...]
    sights: tuple[Floats, ...]
    later: tuple[Floats, ...] = ()

    def logs(self) -> list[Floats]:
        """Return the logarithms of the margins, as distributions."""
        return [np.log(np.maximum(margin / margin.sum(), _TINY)) for margin in self.margins]


@dataclass(frozen=True, slots=True)
class Seen:
    """Noisy proportions of pairs, all columns' groups side by side, and their precisions.

    The precision is the inverse variance of a cell; 0 of what no sum shows, such as a column with
    itself.
    """

    proportions: Floats
    precisions: Floats


@dataclass(frozen=True, slots=True)
class SeenPair:
    """Noisy proportions of two columns, in groups of their own.

    Attributes:
        columns: their places, events' after people's, in order.
        sights: of each column, the group that each atom is in, as a matrix of 0 and 1.
    """

    columns: tuple[int, int]
    sights: tuple[Floats, Floats]
    proportions: Floats
    precision: float


@dataclass(frozen=True, slots=True)
class Sums:
    """All pairs that were seen.

    Attributes:
        people: of people's columns (G, G), the number of events the last of them.
        events: of columns of one event (H, H).
        both: a column of people, but not their number of events, and a column of events (G, H).
        later: a column of an event and one of the next (J, J).
        declared: pairs that analyses need.
    """

    people: Seen
    events: Seen
    both: Seen
    later: Seen
    declared: tuple[SeenPair, ...] = ()


@dataclass(frozen=True, slots=True)
class Numbered:
    """Every column of events by groups of the number of events.

    Attributes:
        groups: the group of a person with 1, 2, ... events, as a matrix of 0 and 1 (most, N).
        tables: of each column, the noisy proportions of its atoms (N, atoms).
        precisions: of each column's atoms, the inverse variance of these.
    """

    groups: Floats
    tables: tuple[Floats, ...]
    precisions: tuple[Floats, ...]


@dataclass(frozen=True, slots=True)
class Prices:
    """What a nat costs: about people's columns, an event's columns, its class, and a step."""

    people: float
    events: float
    classes: float
    steps: float


@dataclass(slots=True)
class Parts:
    """A model's distributions, or the slopes by them."""

    weights: Floats  # (R,)
    first: Floats  # (R, S)
    back: Floats  # (R, S)
    step: Floats  # (S, S)
    returns: Floats  # (S,)
    people: list[Floats]  # (R, atoms) each; the number of events is the last
    events: list[Floats]  # (S, atoms) each

    def like(self) -> Parts:
        """Return slopes of zero."""
        zeros = np.zeros_like
        return Parts(
            zeros(self.weights), zeros(self.first), zeros(self.back), zeros(self.step),
            zeros(self.returns), [zeros(c) for c in self.people], [zeros(c) for c in self.events],
        )  # fmt: skip


def _beside(columns: Sequence[Floats], sights: Sequence[Floats]) -> Floats:
    pieces = [column @ sight for column, sight in zip(columns, sights, strict=True)]
    return np.concatenate(pieces, axis=1)


def _pull(slopes: Floats, sights: Sequence[Floats], into: list[Floats]) -> None:
    """Hand slopes by groups back to the atoms of each column."""
    start = 0
    for sight, column in zip(sights, into, strict=True):
        end = start + sight.shape[1]
        np.add(column, slopes[:, start:end] @ sight.T, out=column)
        start = end


def _within(weights: Floats, shown: Floats, pairs: Seen, by_class: Floats) -> tuple[float, Floats]:
    """Return the loss of one side's own pairs, and its slopes by what each class shows."""
    off = (shown * weights[:, None]).T @ shown - pairs.proportions
    pull = pairs.precisions * off
    pulled = shown @ pull
    np.add(by_class, 0.5 * (pulled * shown).sum(axis=1), out=by_class)
    return 0.25 * float((pull * off).sum()), weights[:, None] * pulled


def _information(
    price: float, weights: Floats, columns: list[Floats], by_class: Floats, into: list[Floats]
) -> float:
    """Price what classes tell about columns; what all of them share tells nothing."""
    value, total = 0.0, max(float(weights.sum()), _TINY)
    for column, slope in zip(columns, into, strict=True):
        log_ratio = np.log(column + _TINY) - np.log(weights @ column / total + _TINY)
        nats = (column * log_ratio).sum(axis=1)
        value += price * float(weights @ nats)
        by_class += price * nats
        np.add(slope, price * weights[:, None] * log_ratio, out=slope)
    return value


@dataclass(slots=True)
class Loss:
    """The loss as a function of a model's parts.

    Attributes:
        event_weight: what all events of a person with 1, 2, ... of them weigh, of the unit.
        later_weight: the same for her consecutive events, of a person with 2, 3, ... events.
    """

    people: Side
    events: Side
    numbered: Numbered
    sums: Sums
    event_weight: Floats
    later_weight: Floats
    prices: Prices

    def evaluate(self, parts: Parts) -> tuple[float, Parts]:
        """Return the loss of a model, and its slopes by the model's parts."""
        slopes = parts.like()
        averages = _Averages(parts, self.event_weight, self.later_weight)
        of_events = averages.of_events  # (R, S): of a person's class and her events'
        event_slopes = np.zeros_like(of_events)
        by_class = np.zeros(of_events.shape[1])  # slopes by the events' classes alone
        classes = of_events.sum(axis=0)
        value = self._margins(parts, slopes)
        value += self._by_number(parts, averages, slopes)
        prices = self.prices
        value += _information(
            prices.people, parts.weights, parts.people, slopes.weights, slopes.people
        )
        value += _information(prices.events, classes, parts.events, by_class, slopes.events)
        value += self._transitions(parts, averages, slopes)
        value += self._pairs(parts, averages, slopes, event_slopes, by_class)
        value += self._later(parts, averages, slopes)
        for pair in self.sums.declared:
            value += _declared(pair, parts, averages, slopes, (event_slopes, by_class))
        averages.pull(event_slopes + by_class, slopes)
        return value, slopes

    def _margins(self, parts: Parts, slopes: Parts) -> float:
        value = 0.0
        for column, margin, precision, into in zip(
            parts.people, self.people.margins, self.people.precisions, slopes.people, strict=True
        ):
            off = parts.weights @ column - margin
            pull = off * precision
            value += 0.5 * float(off @ pull)
            slopes.weights += column @ pull
            np.add(into, np.outer(parts.weights, pull), out=into)
        return value

    def _by_number(self, parts: Parts, averages: _Averages, slopes: Parts) -> float:
        """Hold the columns of events against their tables by the number of events."""
        numbered, value = self.numbered, 0.0
        classes = numbered.groups.T @ averages.by_number  # (N, S)
        by_classes = np.zeros_like(classes)
        for column, table, precision, into in zip(
            parts.events, numbered.tables, numbered.precisions, slopes.events, strict=True
        ):
            off = classes @ column - table
            pull = off * precision
            value += 0.5 * float((off * pull).sum())
            by_classes += pull @ column.T
            np.add(into, classes.T @ pull, out=into)
        averages.pull_by_number(numbered.groups @ by_classes, slopes)
        return value

    def _transitions(self, parts: Parts, averages: _Averages, slopes: Parts) -> float:
        """Price what a class tells about the classes of events; a shared mean tells nothing."""
        value, price, step_price = 0.0, self.prices.classes, self.prices.steps
        for rows, into in ((parts.first, slopes.first), (parts.back, slopes.back)):
            log_ratio = np.log(rows + _TINY) - np.log(parts.weights @ rows + _TINY)
            nats = (rows * log_ratio).sum(axis=1)
            value += price * float(parts.weights @ nats)
            slopes.weights += price * nats
            np.add(into, price * parts.weights[:, None] * log_ratio, out=into)
        before = averages.before.sum(axis=0)
        mean = before @ parts.step / max(float(before.sum()), _TINY)
        log_ratio = np.log(parts.step + _TINY) - np.log(mean + _TINY)
        nats = (parts.step * log_ratio).sum(axis=1)
        value += step_price * float(before @ nats)
        slopes.step += step_price * before[:, None] * log_ratio
        averages.pull_before(np.broadcast_to(step_price * nats, averages.before.shape), slopes)
        return value

    def _pairs(
        self,
        parts: Parts,
        averages: _Averages,
        slopes: Parts,
        event_slopes: Floats,
        by_class: Floats,
    ) -> float:
        sums = self.sums
        people_odds = _beside(parts.people, self.people.sights)
        event_odds = _beside(parts.events, self.events.sights)
        value, by_people_odds = _within(parts.weights, people_odds, sums.people, slopes.weights)
        of_events, by_event_odds = _within(
            averages.of_events.sum(axis=0), event_odds, sums.events, by_class
        )
        value += of_events
        number = self.people.sights[-1].shape[1]  # groups of the number of events
        alone, shown = people_odds[:, :-number], averages.of_events @ event_odds
        off = alone.T @ shown - sums.both.proportions
        pull = sums.both.precisions * off
        value += 0.5 * float((pull * off).sum())
        by_people_odds[:, :-number] += shown @ pull.T
        event_slopes += alone @ pull @ event_odds.T
        by_event_odds += averages.of_events.T @ (alone @ pull)
        _pull(by_people_odds, self.people.sights, slopes.people)
        _pull(by_event_odds, self.events.sights, slopes.events)
        return value

    def _later(self, parts: Parts, averages: _Averages, slopes: Parts) -> float:
        sums = self.sums.later
        if not sums.precisions.any():
            return 0.0
        event_odds = _beside(parts.events, self.events.later)
        before, returns = averages.before, parts.returns
        onward = before.sum(axis=0)
        returned = before * returns
        joint = (onward * (1 - returns))[:, None] * parts.step + returned.T @ parts.back
        off = event_odds.T @ joint @ event_odds - sums.proportions
        pull = sums.precisions * off
        value = 0.5 * float((pull * off).sum())
        by_joint = event_odds @ pull @ event_odds.T
        by_event_odds = joint @ event_odds @ pull.T + joint.T @ event_odds @ pull
        slopes.step += (onward * (1 - returns))[:, None] * by_joint
        along = (by_joint * parts.step).sum(axis=1)
        by_returned = parts.back @ by_joint.T
        slopes.back += returned @ by_joint
        slopes.returns += (by_returned * before).sum(axis=0) - onward * along
        averages.pull_before(by_returned * returns + (1 - returns) * along, slopes)
        _pull(by_event_odds, self.events.later, slopes.events)
        return value


def _declared(
    pair: SeenPair,
    parts: Parts,
    averages: _Averages,
    slopes: Parts,
    into: tuple[Floats, Floats],
) -> float:
    """Return the loss of a declared pair; `into` are the slopes by events and by their classes."""
    columns, by_columns = [*parts.people, *parts.events], [*slopes.people, *slopes.events]
    (a, b), width, (event_slopes, by_class) = pair.columns, len(parts.people), into
    one, other = (columns[v] @ sight for v, sight in zip((a, b), pair.sights, strict=True))
    numbers = a == width - 1 and b >= width  # the walk tells the events of each number of them
    if numbers:
        one, joint = pair.sights[0][1:], averages.by_number
    elif a < width <= b:
        joint = averages.of_events
    else:
        joint = np.diag(parts.weights if b < width else averages.of_events.sum(axis=0))
    off = one.T @ joint @ other - pair.proportions
    pull = pair.precision * off
    by_joint = one @ pull @ other.T
    if numbers:
        averages.pull_by_number(by_joint, slopes)
    elif a < width <= b:
        event_slopes += by_joint
    else:
        by_weights = slopes.weights if b < width else by_class
        np.add(by_weights, np.diag(by_joint), out=by_weights)
    if not numbers:
        np.add(by_columns[a], joint @ other @ pull.T @ pair.sights[0].T, out=by_columns[a])
    np.add(by_columns[b], joint.T @ one @ pull @ pair.sights[1].T, out=by_columns[b])
    return 0.5 * pair.precision * float((off * off).sum())


class _Averages:
    """The averages over a person's events that the sums are made of, and their slopes."""

    def __init__(self, parts: Parts, event_weight: Floats, later_weight: Floats) -> None:
        self._parts, self._event_weight, self._later_weight = parts, event_weight, later_weight
        most, returns = len(event_weight), parts.returns
        places = [parts.first]
        for _ in range(most - 1):
            last = places[-1]
            returned = (last @ returns)[:, None] * parts.back
            places.append((last * (1 - returns)) @ parts.step + returned)
        self._places = places
        # Of people with n events, the classes of all of them together, as their average.
        self._up_to = np.cumsum(np.stack(places), axis=0) / np.arange(1, most + 1)[:, None, None]
        numbers = parts.people[-1]
        self._odds = (numbers[:, 1:] * event_weight).T  # (most, R)
        self._later_odds = (numbers[:, 2:] * later_weight).T  # (most - 1, R)
        weights = parts.weights
        self._of_events = np.einsum("nr,nrs->rs", self._odds, self._up_to)
        self.of_events = weights[:, None] * self._of_events
        self.by_number = np.einsum("nr,nrs->ns", self._odds * weights, self._up_to)
        self._before = np.einsum("nr,nrs->rs", self._later_odds, self._up_to[: most - 1])
        self.before = weights[:, None] * self._before
        self._slopes = np.zeros_like(self._up_to)

    def pull_by_number(self, by_number: Floats, slopes: Parts) -> None:
        """Take slopes by `by_number`."""
        along = np.einsum("ns,nrs->nr", by_number, self._up_to)
        slopes.weights += (along * self._odds).sum(axis=0)
        weights = self._parts.weights
        slopes.people[-1][:, 1:] += (along * weights).T * self._event_weight
        self._slopes += (self._odds * weights)[:, :, None] * by_number[:, None, :]

    def pull_before(self, by_before: Floats, slopes: Parts) -> None:
        """Take slopes by `before`."""
        weights, count = self._parts.weights, len(self._later_odds)
        slopes.weights += (by_before * self._before).sum(axis=1)
        slope = weights[:, None] * by_before
        along = np.einsum("rs,nrs->rn", slope, self._up_to[:count])
        slopes.people[-1][:, 2:] += along * self._later_weight
        self._slopes[:count] += self._later_odds[:, :, None] * slope

    def pull(self, by_events: Floats, slopes: Parts) -> None:
        """Take slopes by `of_events`; then hand all slopes on to the walk."""
        parts = self._parts
        slopes.weights += (by_events * self._of_events).sum(axis=1)
        slope = parts.weights[:, None] * by_events
        along = np.einsum("rs,nrs->rn", slope, self._up_to)
        slopes.people[-1][:, 1:] += along * self._event_weight
        self._slopes += self._odds[:, :, None] * slope
        self._slopes /= np.arange(1, len(self._slopes) + 1)[:, None, None]
        by_place = np.cumsum(self._slopes[::-1], axis=0)[::-1]
        carried = by_place[-1]
        for place in range(len(self._places) - 2, -1, -1):
            last = self._places[place]
            back = (carried * parts.back).sum(axis=1)[:, None]
            onward = carried @ parts.step.T
            slopes.back += (last @ parts.returns)[:, None] * carried
            slopes.step += (last * (1 - parts.returns)).T @ carried
            slopes.returns += (last * (back - onward)).sum(axis=0)
            carried = by_place[place] + onward * (1 - parts.returns) + back * parts.returns
        slopes.first += carried
