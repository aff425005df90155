"""What a study of people and their events releases: two tables that a column `person` joins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from common.bayes.form import Model
from common.errors import InputError, LocalError
from common.fitted.compared import linked_sums
from common.fitted.study import StudyFit
from common.methods.conditional import Draw
from common.methods.subn_plus.declared import DECLARED
from common.methods.subn_plus.linked.model import LinkedModel
from common.methods.subn_plus.linked.plans import (
    BOTH,
    EVENTS,
    NEXT,
    NUMBERS,
    PEOPLE,
    LinkedFacts,
    kinds_of,
)
from common.methods.subn_plus.linked.ruled import keeping_frequencies
from common.privacy.randomness import RandomSource, SeededRandomSource, source_of
from common.release.folder import TABLE, events_stem
from common.release.measured import MeasuredTable
from common.schema import Codes
from common.schema.conditions import CellWeights, Condition, parse
from common.schema.events import PERSON
from common.schema.linked import LinkedCodes, concatenate_linked
from common.schema.query import tokenise
from common.wording import many

_BATCH = 1 << 12  # people that are drawn at a time, to keep those with some event
_MOST_TRIED = 1 << 20  # people, before a condition on events may be refused as too rare
_MOST_DRAWN = 1 << 26  # people that are drawn for one answer
_TYPICAL = 1 << 12  # people by whom rules keep the frequencies of events


_WORDS = {  # what is counted together in the tables of a step
    PEOPLE: "two columns of a person",
    BOTH: "a column of a person and one of her events",
    EVENTS: "two columns of an event",
    NEXT: "an event and the next one",
}


@dataclass(frozen=True, slots=True)
class EventsTold:
    """What a release has of events: how many, and how many pairs of each kind were measured."""

    name: str
    most: int  # events of a person that count
    people: int
    events: int
    measured: Mapping[str, int]
    not_measured: tuple[str, ...]
    rules: Mapping[str, float]  # how much of the model's people and events would break one
    declared: int = 0  # tables that were counted for the analyses of the study

    def lines(self) -> Iterator[str]:
        yield (
            f"{self.name}: {self.events:,} synthetic ones of {self.people:,} people; of a person, "
            f"at most {self.most} count"
        )
        counted = (f"{words} ({many(pairs, 'pair')})" for words, pairs in self.measured.items())
        if self.measured:
            yield f"counted together: {'; '.join(counted)}"
        if self.declared:
            yield f"counted first, for the analyses: {many(self.declared, 'table')}"
        if self.not_measured:
            yield f"never counted together: {'; '.join(self.not_measured)}"
        yield from (f"{rules}: {words}" for rules, words in _rules_told(self.rules))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LinkedFit(StudyFit):
    """The outcome of a study of people and their events."""

    def __repr__(self) -> str:
        people, events = self.schema.names, self.schema.of_events.names
        private = "" if self.privacy["private"] else ", NOT PRIVATE"
        return (
            f"{type(self).__name__}: {self.rows:,} people, epsilon "
            f"{self.privacy['epsilon_delivered']:g}{private}\n  people: {', '.join(people)}\n"
            f"  events: {', '.join(events)}\n  sample() draws people and their events"
        )

    @property
    def _linked(self) -> LinkedModel:
        model = self.model
        if not isinstance(model, LinkedModel):
            raise LocalError(f"{type(model).__name__}: not a model of people and events")
        return model

    @property
    def _drawn_from(self) -> Model:
        """The people; their events are drawn after them."""
        return self._linked.people

    @cached_property
    def _with_events(self) -> Callable[[Codes, RandomSource], LinkedCodes]:
        """What draws the events of people, as the rules allow them."""
        rules = self.schema.possible_events
        if not rules.rules:
            return self._linked.with_events
        return keeping_frequencies(self._linked, rules, self._typical).with_events

    @property
    def _typical(self) -> Codes:
        """Some people of the model, always the same."""
        return self._possible.sample(_TYPICAL, SeededRandomSource("typical people"))

    def draw(self, rows: int, source: RandomSource) -> LinkedCodes:
        return self._with_events(self._possible.sample(rows, source), source)

    def given(self, condition: Sequence[CellWeights]) -> Draw:
        people = self._possible.given(condition)
        return lambda rows, source: self._with_events(people(rows, source), source)

    def frames(self, codes: Codes, source: RandomSource | None = None) -> dict[str, pd.DataFrame]:
        """Return people and events as tables that `person` joins, by the names of their files."""
        if not isinstance(codes, LinkedCodes):
            raise LocalError("these are people without their events")
        source = source or source_of(self.seed, "numbers")
        numbers = np.arange(1, codes.rows + 1)
        people = self.decode(codes, source)
        people.insert(0, PERSON, numbers)
        first = len(self.schema.names) + 1  # of events' columns among all
        inside = {a - first: inside for a, inside in self.inside.items() if a >= first}
        events = self.schema.of_events.decode(codes.events, source, inside)
        events.insert(0, PERSON, numbers[codes.of_person])
        return {TABLE: people, events_stem(self.schema): events}

    def sample_linked(
        self, people: int | None = None, *, where: str = ""
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Draw people with their events, as `sample` draws rows; `draw_where` has conditions."""
        first, second = self.frames(self.sample_codes(people, where=where)).values()
        return first, second

    def draw_where(self, where: str) -> Draw:
        """Return what draws people who satisfy a condition, and have events of some kinds.

        Conditions on events come last, each after `any`: "age >= 65 and any diagnosis = Cancer".
        """
        of_people, *of_events = split_any(where)
        self._refuse_events(of_people)
        draw = super().draw_where(of_people)
        kinds = [parse(words, self.schema.of_events) for words in of_events]
        return having(draw, kinds) if kinds else draw

    def _refuse_events(self, where: str) -> None:
        """Refuse a condition on events that does not say `any`."""
        try:
            parse(where, self.schema)
        except InputError:
            try:
                parse(where, self.schema.of_events)
            except InputError:
                pass
            else:
                raise InputError(
                    f"where: {where!r} is about events. Write any {where}, for people who have "
                    "such an event"
                ) from None
            raise

    @property
    def released_linked(self) -> LinkedCodes:
        released = self.released
        if not isinstance(released, LinkedCodes):
            raise LocalError("these are people without their events")
        return released

    def compared_linked(self, synthetic: LinkedCodes) -> list[MeasuredTable]:
        """Compare the sums of the number of events and of events with these rows."""
        return linked_sums(self.study, self.steps, self.results, synthetic)

    @property
    def events_told(self) -> EventsTold:
        kinds_counted = {PEOPLE if step.name == NUMBERS else step.name for step in self.steps}
        facts = LinkedFacts.of(self.study)
        kinds, declared, released = kinds_of(facts), self.schema.events, self.released_linked
        if declared is None:
            raise LocalError("these are people without their events")
        return EventsTold(
            name=declared.name,
            most=declared.most,
            people=released.rows,
            events=released.events.rows,
            measured={
                _WORDS[kind]: pairs for kind, pairs in kinds.items() if kind in kinds_counted
            },
            not_measured=tuple(_WORDS[kind] for kind in kinds if kind not in kinds_counted),
            declared=sum(len(step.counted.links) for step in self.steps if step.name == DECLARED),
            rules=self._broken,
        )

    @cached_property
    def _broken(self) -> dict[str, float]:
        """Of what has rules: the proportion of the model's that would break one without them."""
        model, possible, events = self._linked, self.schema.possible_events, self.schema.events
        source, broken = SeededRandomSource("without rules"), dict[str, float]()
        if self.schema.rules:
            obeys = self.schema.possible.holds(model.people.sample(_TYPICAL, source))
            broken["people"] = 1 - float(obeys.mean())
        if possible.rules and events is not None:
            linked = model.with_events(self._typical, source)
            obeys = possible.holds(linked, linked.events, linked.of_person)
            broken[events.name] = float((~obeys).sum() / max(1, len(obeys)))
        return broken

    @property
    def how_made(self) -> list[tuple[str, object]]:
        return [*super().how_made, *_rules_told(self._broken)]


def _rules_told(broken: Mapping[str, float]) -> Iterator[tuple[str, object]]:
    for what, share in broken.items():
        yield (
            f"rules about {what}",
            f"none is broken; without rules, {share:.1%} of the model's {what} would break one",
        )


def split_any(where: str) -> list[str]:
    """Split a condition into that on people, which may be empty, and those after each `any`."""
    tokens = list(tokenise(where))
    parts, start, depth, before = [], 0, 0, None
    for place, token in enumerate(tokens[:-1]):
        depth += token.is_("(") - token.is_(")")
        joined = before is None or before.is_("and")
        if depth == 0 and joined and token.is_("any") and tokens[place + 1].kind != "symbol":
            parts.append(where[start : before.start if before else token.start].strip())
            start = token.start + len("any")
        before = token
    return [*parts, where[start:].strip()]


def having(draw: Draw, kinds: Sequence[Condition]) -> Draw:
    """Return what draws until there are enough people with an event of each kind.

    People have exactly the distribution of the model, given that they have such events.
    """

    def drawn(rows: int, source: RandomSource) -> Codes:
        parts = [draw(0, source)]
        matches = trials = 0
        while matches < rows:
            batch = draw(max(_BATCH, rows), source)
            people = batch.take(np.flatnonzero(_have(batch, kinds)))
            parts.append(people)
            matches, trials = matches + people.rows, trials + batch.rows
            if trials >= _MOST_TRIED and matches < rows * trials / _MOST_DRAWN:
                raise InputError(
                    f"where: {matches:,} of {trials:,} people of the model have such events. "
                    "Ask for a condition that is less rare"
                )
        return concatenate_linked(parts).take(slice(0, rows))

    return drawn


def _have(people: Codes, kinds: Sequence[Condition]) -> NDArray[np.bool_]:
    if not isinstance(people, LinkedCodes):
        raise LocalError("these are people without their events")
    masks = (kind.mask(people.events) for kind in kinds)
    counts = [np.bincount(people.of_person[mask], minlength=people.rows) for mask in masks]
    return np.asarray(np.min(counts, axis=0) > 0)
