"""Estimates of people and their events, with intervals from the sums that average events.

A statistic of people, their number of events among its columns, rests on tables of people. A
statistic of events counts every event once, while a published table counts every person once, her
events averaged. One follows from the other by the number of events (`by_events`): so an interval
of a statistic of events rests on the published tables of its columns, and on those of each of them
with the number of events. Where one was not counted, the interval has all that could be.

Which of a person's events comes first no table tells: that rests on the model alone, and is flagged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist

import numpy as np

from common.analysis.answers import answered
from common.analysis.diagnostics import Diagnostics
from common.analysis.direct import HIDDEN, DirectIntervals
from common.analysis.estimates import CONFIDENCE, Estimate, estimate
from common.analysis.replicates import Replicates
from common.analysis.statistics import Statistic
from common.analysis.views import TableView, averages_view, by_events
from common.fitted.linked import LinkedFit
from common.fitted.linked_sums import among_events
from common.schema.attribute import spans_of

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
        found = estimate(
            statistic,
            seen,
            direct=self._direct(made).of(weighed) if view.counted else {},
            flagged=bool(self.concerns(statistic, view)),
            confidence=confidence,
        )
        if statistic.mean_of is None or not view.counted:
            return found
        known = self._places(view.schema.position(statistic.mean_of), confidence)
        return [_with_places(own, known, statistic.bounds) for own in found]

    def _places(self, column: int, confidence: float) -> tuple[float, float]:
        """Return how far a mean of events is off by where numbers are in their bins.

        First the reach of the noise in the total of distances, which averages a person's events.
        Then what no noise moves: rounding, and that people with many events may have other places
        in a bin than people with few. Of q bins they are taken to differ by 1.5 / q of half a bin,
        the part that groups hide of a relation (`common.analysis.direct`). Without a total it is
        half a bin.
        """
        attribute = self.fitted.schema.joined.attributes[column]
        spans = spans_of(attribute)
        counts = np.bincount(
            self.fitted.released_linked.by_event.columns[column], minlength=attribute.size
        )[: len(spans)]
        half = float(counts @ spans) / (2 * max(counts.sum(), 1))
        total = self.fitted.totals.get(column)
        if total is None:
            return 0.0, half
        share = float((self.fitted.released_linked.numbers > 0).mean())
        reach = NormalDist().inv_cdf((1 + confidence) / 2) * math.sqrt(total.variance)
        hidden = min(1.0, HIDDEN / max(len(spans), 1)) * half
        return reach / share, total.rounding / share + hidden

    def _direct(self, made: Replicates) -> DirectIntervals:
        """Return what computes intervals from sums of averaged events."""
        schema = self.fitted.schema
        share = float((self.fitted.released_linked.numbers > 0).mean())
        tables = among_events(self.diagnostics.measured, len(schema.names), share)
        return DirectIntervals(tuple(tables), averages_view(schema).of(made))


def _with_places(
    found: Estimate, off: tuple[float, float], bounds: tuple[float, float]
) -> Estimate:
    """Return a mean whose interval also has what is not known of places in bins."""
    if found.estimate is None or found.low is None or found.high is None:
        return found
    noise, hidden = off
    low = found.estimate - math.hypot(found.estimate - found.low, noise) - hidden
    high = found.estimate + math.hypot(found.high - found.estimate, noise) + hidden
    return replace(found, low=max(low, bounds[0]), high=min(high, bounds[1]))
