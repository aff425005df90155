"""What a study of people and their events releases: two tables that a column `person` joins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from common.bayes.model import Model
from common.errors import InputError, LocalError
from common.fitted.study import StudyFit
from common.methods.conditional import Draw
from common.methods.subn_plus.linked.model import LinkedModel
from common.privacy.randomness import RandomSource, source_of
from common.release.folder import TABLE, events_stem
from common.schema import Codes, Schema
from common.schema.conditions import CellWeights, parse
from common.schema.events import PERSON
from common.schema.linked import LinkedCodes


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

    def draw(self, rows: int, source: RandomSource) -> LinkedCodes:
        """Draw people with their events."""
        return self._linked.with_events(self._possible.sample(rows, source), source)

    def given(self, condition: Sequence[CellWeights]) -> Draw:
        """Return what draws people who satisfy a condition, with their events."""
        people = self._possible.given(condition)
        return lambda rows, source: self._linked.with_events(people(rows, source), source)

    def frames(self, codes: Codes, source: RandomSource | None = None) -> dict[str, pd.DataFrame]:
        """Return people and events as tables that `person` joins, by the names of their files."""
        if not isinstance(codes, LinkedCodes):
            raise LocalError("these are people without their events")
        source = source or source_of(self.seed, "numbers")
        numbers = np.arange(1, codes.rows + 1)
        people = self.decode(codes, source)
        people.insert(0, PERSON, numbers)
        events = self.schema.of_events.decode(codes.events, source)
        events.insert(0, PERSON, numbers[codes.of_person])
        return {TABLE: people, events_stem(self.schema): events}

    def sample_linked(
        self, people: int | None = None, *, where: str = ""
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Draw any number of people with their events; they cost nothing.

        Args:
            people: how many.
            where: a condition that every person satisfies, like "age >= 65".

        Raises:
            InputError: the condition is not understood, is about events, or no one satisfies it.
        """
        self._refuse_events(where)
        first, second = self.frames(self.sample_codes(people, where=where)).values()
        return first, second

    def _refuse_events(self, where: str) -> None:
        """Refuse a condition that would be understood if events had a say in it."""
        try:
            parse(where, self.schema)
        except InputError:
            events = [each for each in self.schema.of_events.attributes
                      if each.name not in self.schema.names]  # fmt: skip
            try:
                parse(where, Schema((*self.schema.attributes, *events)))
            except InputError:
                events = []
            if not events:
                raise
            raise InputError(
                "where: conditions are about people, and this one is about events. Use attributes "
                f"of people: {', '.join(self.schema.names)}"
            ) from None

    def refit(self, rows: Codes, source: RandomSource) -> StudyFit:
        """Refuse: there are no replicates of linked tables."""
        raise InputError(
            "estimate: intervals are not there for people with events. Draw tables with sample(), "
            "or run the study on one table"
        )
