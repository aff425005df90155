"""Estimates of people and their events, with intervals from the sums that average events.

A statistic of people, their number of events among its columns, rests on tables of people. A
statistic of events counts every event once, while a published table counts every person once, her
events averaged. One follows from the other by the number of events (`by_events`): so an interval
of a statistic of events rests on the published tables of its columns, and on those of each of them
with the number of events. Where one was not counted, the interval has all that could be.

Which of a person's events comes first no table tells. Its interval covers all that the tables
allow (`FirstEvents`), and is flagged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist

import numpy as np

from common.analysis.answers import Answer, Answers
from common.analysis.combining import misfit_of, quantile
from common.analysis.diagnostics import Diagnostics
from common.analysis.direct import HIDDEN, DirectIntervals
from common.analysis.estimates import CONFIDENCE, Estimate, estimate
from common.analysis.replicates import TABLES, Replicates
from common.analysis.statistics import Statistic
from common.analysis.views import (
    FirstEvents,
    TableView,
    averages_view,
    by_events,
    events_view,
    people_view,
)
from common.errors import LocalError
from common.fitted.compared import among_events
from common.fitted.linked import LinkedFit
from common.fitted.model import FittedModel
from common.release.measured import ExpectedError, MeasuredTable, expected_errors
from common.schema import Codes, Schema
from common.schema.attribute import spans_of
from common.schema.linked import LinkedCodes
from common.study.analyses import Analysis

UNTOLD = "no published table tells which of a person's events comes first"
NAMELESS = "which columns it uses is not known. Name them: uses=[...]"


def every_answer(
    fitted: FittedModel, diagnostics: Diagnostics, *, released: Codes
) -> tuple[Answer, ...]:
    """Answer every analysis that the study of a release declared, of one table or of two."""
    if not isinstance(fitted, LinkedFit):
        return Answers(fitted, diagnostics, released).every()
    if not isinstance(released, LinkedCodes):
        raise LocalError("these are people without their events")
    return LinkedAnswers(fitted, diagnostics, released).every()


@dataclass(frozen=True, eq=False)
class LinkedAnswers(Answers):
    """Answers by the published sums of a linked release."""

    fitted: LinkedFit
    released: LinkedCodes  # the synthetic people with their events

    @property
    def schema(self) -> Schema:
        return self.fitted.schema

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """What was measured of all columns: people's, the number of events, and events'."""
        tables = (*self.of_rows.measured, *self.fitted.compared_linked(self.released))
        return Diagnostics(self.schema.joined.names, tables, self.of_rows.related)

    @cached_property
    def measured(self) -> Diagnostics:
        """What was measured of all people: a table of events leaves some of them out."""
        number = len(self.schema.names)
        measured = (t for t in self.diagnostics.measured if max(t.attributes) <= number)
        return replace(self.diagnostics, measured=tuple(measured))

    @cached_property
    def _of_events(self) -> tuple[MeasuredTable, ...]:
        """What was measured of people who have events."""
        number = len(self.schema.names)
        return tuple(among_events(self.diagnostics.measured, number, self._share))

    @property
    def _share(self) -> float:
        """The part of the synthetic people who have events."""
        return float((self.released.numbers > 0).mean())

    def concerns(self, statistic: Statistic, view: TableView) -> list[str]:
        """Return the reasons why a statistic is flagged, if any."""
        if view.first is not None:
            return [UNTOLD]
        if not view.of_people and not statistic.attributes:
            return [NAMELESS]
        diagnostics = self.measured if view.of_people else self.diagnostics
        concerns = diagnostics.concerns(statistic.attributes, pairwise=statistic.pairwise)
        if view.of_people:
            return concerns
        columns = by_events(statistic, self.schema).attributes
        of_pairs = diagnostics.concerns(columns, pairwise=True)
        return [*of_pairs, *(words for words in concerns if words not in of_pairs)]

    def view_of(self, analysis: Analysis) -> TableView:
        """Return people, or events."""
        return (events_view if analysis.of_events(self.schema) else people_view)(self.schema)

    def of(
        self,
        statistic: Statistic,
        view: TableView,
        replicate: Callable[[], Replicates],
        *,
        tables: int = TABLES,
        confidence: float = CONFIDENCE,
    ) -> list[Estimate]:
        """Estimate a statistic of a view of both tables; replicates are made if need be."""
        if view.first is None and (view.of_people or self.is_declared(statistic, view)):
            return super().of(statistic, view, replicate, tables=tables, confidence=confidence)
        replicates = replicate()
        viewed = view.of(replicates)
        flagged = bool(self.concerns(statistic, view))
        rows = averages_view(self.schema).of(replicates)
        intervals = DirectIntervals(self._of_events, rows)
        if view.first is not None:
            estimates = estimate(statistic, viewed, flagged=flagged, confidence=confidence)
            return self._with_bounds(view.first, statistic, estimates, intervals, confidence)
        of_averages = by_events(statistic, self.schema)
        named = len(of_averages.attributes) > 1
        estimates = estimate(
            statistic,
            viewed,
            direct=intervals.of(of_averages) if named else {},
            misfit=misfit_of(intervals, of_averages) if named else math.inf,
            flagged=flagged,
            confidence=confidence,
        )
        return self._with_places(statistic, estimates, confidence)

    def _with_bounds(
        self,
        first: FirstEvents,
        statistic: Statistic,
        estimates: list[Estimate],
        intervals: DirectIntervals,
        confidence: float,
    ) -> list[Estimate]:
        """Return estimates of first events whose intervals have all that published tables allow."""
        none = self.released.take(np.flatnonzero(self.released.numbers == 0))
        least, greatest = map(intervals.of, first.bounds(statistic, none, self._share))
        deviations = quantile(len(intervals.replicates.tables) - 1, confidence=confidence)

        def widened(model: Estimate) -> Estimate:
            key = model.statistic, model.group
            if model.low is None or model.high is None or key not in least:
                return model
            low = least[key].least - deviations * least[key].spread
            high = greatest[key].greatest + deviations * greatest[key].spread
            low, high = min(low, model.low), max(high, model.high)
            return replace(model, low=max(low, 0.0), high=min(high, 1.0))

        return list(map(widened, estimates))

    def is_declared(self, statistic: Statistic, view: TableView) -> bool:
        """Return whether an analysis of this view names all columns of a statistic."""
        columns = {view.schema.position(name) for name in statistic.attributes}
        return bool(columns) and any(
            columns <= set(together)
            for analysis in self.fitted.analyses
            if analysis.of_events(self.schema) is not view.of_people
            for together in analysis.sets(self.schema)
        )

    def declared(
        self, statistic: Statistic, view: TableView, tables: int, confidence: float
    ) -> list[Estimate]:
        """Estimate what was declared: by rows of the release, and by what was measured first."""
        if view.of_people:
            return super().declared(statistic, view, tables, confidence)
        people = max(round(self.fitted.rows * self._share), 1)
        estimates = estimate(
            by_events(statistic, self.schema),
            self.redrawn(averages_view(self.schema), people, tables=tables),
            measured=self._of_events,
            flagged=bool(self.concerns(statistic, view)),
            confidence=confidence,
        )
        return self._with_places(statistic, estimates, confidence)

    def column_errors(self, view: TableView) -> Sequence[ExpectedError]:
        """Return what noise does to each column of a view."""
        return expected_errors(self.measured.measured if view.of_people else self._of_events, 1)

    def _with_places(
        self, statistic: Statistic, estimates: list[Estimate], confidence: float
    ) -> list[Estimate]:
        """Widen the mean of a whole column of events by what bins hide; leave others."""
        if statistic.mean_of is None:
            return estimates
        error, hidden = self._places(self.schema.joined.position(statistic.mean_of))
        reach = NormalDist().inv_cdf((1 + confidence) / 2) * error
        return [
            replace(
                _widened(mean, reach, hidden, statistic.bounds),
                standard_error=mean.standard_error and math.hypot(mean.standard_error, error),
            )
            for mean in estimates
        ]

    def _places(self, column: int) -> tuple[float, float]:
        """Return how far a mean of events is off by where numbers are in their bins.

        First the deviation of the noise in the total of distances, in which a person's events are
        averaged. Then what no noise moves: rounding, and that people with many events may have
        other places in a bin than people with few. Of q bins they are taken to differ by 1.5 / q of
        half a bin, the part that groups hide of a relation (`common.analysis.direct`). Without a
        total it is half a bin.
        """
        attribute = self.schema.joined.attributes[column]
        spans = spans_of(attribute)
        counts = np.bincount(self.released.by_event.columns[column], minlength=attribute.size)
        counts = counts[: len(spans)]
        half = float(counts @ spans) / (2 * max(int(counts.sum()), 1))
        total = self.fitted.totals.get(column)
        if total is None:
            return 0.0, half
        hidden = min(1.0, HIDDEN / max(len(spans), 1)) * half
        return math.sqrt(total.variance) / self._share, total.rounding / self._share + hidden


def _widened(mean: Estimate, noise: float, hidden: float, bounds: tuple[float, float]) -> Estimate:
    """Return a mean whose interval also has what is not known of places in bins."""
    if mean.estimate is None or mean.low is None or mean.high is None:
        return mean
    low = mean.estimate - math.hypot(mean.estimate - mean.low, noise) - hidden
    high = mean.estimate + math.hypot(mean.high - mean.estimate, noise) + hidden
    return replace(mean, low=max(low, bounds[0]), high=min(high, bounds[1]))
