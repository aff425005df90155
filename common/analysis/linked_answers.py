"""Estimates of people and their events, with intervals from the sums that average events.

A statistic of people, their number of events among its columns, rests on tables of people. A
statistic of events counts every event once, while a published table counts every person once, her
events averaged. One follows from the other by the number of events (`by_events`): so an interval
of a statistic of events rests on the published tables of its columns, and on those of each of them
with the number of events. Where one was not counted, the interval has all that could be.

Which of a person's events comes first no table tells: that rests on the model alone, and is flagged.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from common.analysis.answers import answered
from common.analysis.diagnostics import Diagnostics
from common.analysis.direct import DirectIntervals
from common.analysis.estimates import CONFIDENCE, Estimate, estimate
from common.analysis.replicates import Replicates
from common.analysis.statistics import Statistic
from common.analysis.views import TableView, averages_view, by_events
from common.fitted.linked import LinkedFit
from common.fitted.linked_sums import among_events

UNTOLD = "no published table tells which of a person's events comes first"


@dataclass(frozen=True, eq=False)
class LinkedAnswers:
    """Answers by the published sums of a linked release."""

    fitted: LinkedFit
    people: Diagnostics  # what was measured of people's columns

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """What was measured of all columns: people's, the number of events, and events'."""
        own = (*self.people.measured, *self.fitted.linked_sums)
        return Diagnostics(self.fitted.schema.joined.names, own, self.people.related)

    def concerns(self, statistic: Statistic, view: TableView) -> list[str]:
        """Return the reasons why a statistic is flagged, if any."""
        if not view.counted:
            return [UNTOLD]
        found = self.diagnostics.concerns(statistic.attributes, pairwise=statistic.pairwise)
        if view.of_people:
            return found
        every = by_events(statistic, self.fitted.schema).attributes
        weighed = self.diagnostics.concerns(every, pairwise=True)
        return [*weighed, *(words for words in found if words not in weighed)]

    def of(
        self,
        statistic: Statistic,
        made: Replicates,
        view: TableView,
        confidence: float = CONFIDENCE,
    ) -> list[Estimate]:
        """Estimate a statistic of a view of both tables, given the release and its replicates."""
        seen = view.of(made)
        if view.of_people and view.counted:
            return answered(self.fitted, statistic, seen, self.diagnostics, confidence)
        weighed = by_events(statistic, self.fitted.schema)
        return estimate(
            statistic,
            seen,
            direct=self._direct(made).of(weighed) if view.counted else {},
            flagged=bool(self.concerns(statistic, view)),
            confidence=confidence,
        )

    def _direct(self, made: Replicates) -> DirectIntervals:
        """Return what computes intervals from sums of averaged events."""
        schema = self.fitted.schema
        share = float((self.fitted.released_linked.numbers > 0).mean())
        tables = among_events(self.diagnostics.measured, len(schema.names), share)
        return DirectIntervals(tuple(tables), averages_view(schema).of(made))
