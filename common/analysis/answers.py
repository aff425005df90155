"""The analyses that a study declared, answered: estimates with intervals, from published files.

`Answers` computes them for the report, `parley answers`, `parley describe` and the Python API, so
that a reader finds the same numbers everywhere. An analysis becomes one statistic or several
(`statistics_of`):

    relation      the correlation of two columns of numbers; a mean by value if one has none; the
                  proportions of one column's values by those of the other if both have none
    mean, share   of all rows, or of each group
    regression    its coefficients
    survival      the proportion without an event at four times [Kaplan and Meier]

What was declared was measured, so an answer needs no model to be fitted again: the spread of single
columns is that of `redrawn` rows, whose columns have sampling and noise once more, and that of
relations comes from the published tables (`common.analysis.direct`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from common.analysis import statistics as kinds
from common.analysis.diagnostics import Diagnostics
from common.analysis.estimates import CONFIDENCE, Estimate, estimate, of_mean
from common.analysis.means import known_means
from common.analysis.replicates import TABLES, Replicates
from common.analysis.statistics import Statistic
from common.analysis.survival import survival_at_fifths
from common.analysis.views import TableView, rows_view
from common.bayes.postprocessing import margin_of
from common.errors import InputError
from common.fitted.model import FittedModel
from common.methods.subn_plus.facts import ordered_values
from common.methods.subn_plus.thinning import normals
from common.privacy.randomness import SeededRandomSource, uniforms
from common.release.measured import ExpectedError
from common.schema import Codes, Schema
from common.schema.codes import concatenate
from common.study.analyses import Analysis

ENOUGH_ROWS = 20_000  # released rows, or as many as real ones, stand for the model
_LOST_ROWS = 10  # that stand for a value which no released row has
_RAKED = 3  # times that all columns are met one after the other


@dataclass(frozen=True, slots=True)
class Answer:
    """An analysis and its estimates."""

    analysis: Analysis
    estimates: tuple[Estimate, ...]

    def as_json(self) -> dict[str, object]:
        return {
            "analysis": self.analysis.plain,
            "estimates": [estimate.as_json() for estimate in self.estimates],
        }


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers by the rows and the published sums of a release."""

    fitted: FittedModel
    of_rows: Diagnostics  # what was measured of the columns of the rows
    released: Codes  # the synthetic rows

    def every(self, confidence: float = CONFIDENCE) -> tuple[Answer, ...]:
        """Answer every analysis that the study of a release declared."""
        return tuple(self._answer(analysis, confidence) for analysis in self.fitted.analyses)

    def _answer(self, analysis: Analysis, confidence: float) -> Answer:
        view = self.view_of(analysis)
        estimates = (
            estimate
            for statistic in statistics_of(analysis, view.schema)
            for estimate in self.declared(statistic, view, TABLES, confidence)
        )
        return Answer(analysis, tuple(estimates))

    def view_of(self, analysis: Analysis) -> TableView:
        """Return the table that an analysis is about."""
        return rows_view(self.fitted.schema)

    def of(
        self,
        statistic: Statistic,
        view: TableView,
        replicate: Callable[[], Replicates],
        *,
        tables: int = TABLES,
        confidence: float = CONFIDENCE,
    ) -> list[Estimate]:
        """Estimate a statistic of a view; what was declared needs no replicates."""
        if self.is_declared(statistic, view):
            return self.declared(statistic, view, tables, confidence)
        if not self.fitted.has_rows:
            names = ", ".join(sorted(statistic.attributes))
            together = " together" if len(statistic.attributes) > 1 else ""
            raise InputError(
                f"estimate: no declared analysis has {names}{together}, and this release counted "
                "nothing else. See `parley answers`"
            )
        return answered(self.fitted, statistic, view.of(replicate()), self.measured, confidence)

    @property
    def measured(self) -> Diagnostics:
        """What was measured of a view whose rows are those of the study."""
        return self.of_rows

    def concerns(self, statistic: Statistic, view: TableView) -> list[str]:
        """Return the reasons why a statistic is flagged, if any."""
        return self.measured.concerns(statistic.attributes, pairwise=statistic.pairwise)

    def is_declared(self, statistic: Statistic, view: TableView) -> bool:
        """Return whether analyses name all columns of a statistic, or all pairs it rests on."""
        schema = self.fitted.schema
        columns = tuple(schema.position(name) for name in statistic.attributes)
        sets = [
            set(columns) for analysis in self.fitted.analyses for columns in analysis.sets(schema)
        ]
        parts = combinations(columns, 2) if statistic.pairwise and len(columns) > 1 else (columns,)
        return all(any(together.issuperset(part) for together in sets) for part in parts)

    def declared(
        self, statistic: Statistic, view: TableView, tables: int, confidence: float
    ) -> list[Estimate]:
        """Estimate what was declared: by rows of the release, and by what was measured first."""
        rows = self.redrawn(view, self.fitted.rows, tables=tables)
        return answered(self.fitted, statistic, rows, self.measured, confidence)

    def redrawn(self, view: TableView, rows: int, *, tables: int = TABLES) -> Replicates:
        """Return rows of a view with sampling and noise of single columns drawn once more."""
        key = view.of_people, tables
        if key not in self._rows:
            fitted, reference = self.fitted, self.released
            if reference.rows < min(fitted.rows, ENOUGH_ROWS):
                more = SeededRandomSource("answers")
                reference = fitted.draw(min(fitted.rows, ENOUGH_ROWS), more)
            once = Replicates(view.schema, self.released, reference, (), fitted.inside)
            noise = self._noise(view)
            self._rows[key] = drawn_again(view.of(once), noise, rows=rows, tables=tables)
        return self._rows[key]

    def _noise(self, view: TableView) -> dict[int, float]:
        """Return the deviation of the noise in a count, of every column that is declared."""
        fitted = self.fitted
        sets = (columns for analysis in fitted.analyses for columns in analysis.sets(fitted.schema))
        columns = {column for together in sets for column in together}
        errors = ((error.attributes[0], error.deviation) for error in self.column_errors(view))
        return {column: deviation for column, deviation in errors if column in columns}

    def column_errors(self, view: TableView) -> Sequence[ExpectedError]:
        """Return what noise does to each column of a view."""
        return self.fitted.column_errors

    @cached_property
    def _rows(self) -> dict[tuple[bool, int], Replicates]:
        return {}


def answered(
    fitted: FittedModel,
    statistic: Statistic,
    replicates: Replicates,
    diagnostics: Diagnostics,
    confidence: float = CONFIDENCE,
) -> list[Estimate]:
    """Estimate one statistic, by replicates and by what was measured."""
    for mean in known_means(fitted) if statistic.mean_of else ():
        if mean.name == statistic.mean_of:  # the same as in the report
            return [of_mean(mean, confidence)]
    concerns = diagnostics.concerns(statistic.attributes, pairwise=statistic.pairwise)
    return estimate(
        statistic,
        replicates,
        measured=diagnostics.measured,
        flagged=bool(concerns),
        confidence=confidence,
    )


def statistics_of(analysis: Analysis, schema: Schema) -> Iterator[Statistic]:
    about, by = analysis.about, analysis.by
    if analysis.kind == "relation":
        for one, other in combinations(about, 2):
            yield _relation(schema, one, other)
    elif analysis.kind == "mean":
        yield kinds.mean(schema, about[0], by)
    elif analysis.kind == "share":
        yield kinds.share(schema, about[0], by)
    elif analysis.kind == "regression":
        yield kinds.regression(schema, about[0])
    else:
        yield survival_at_fifths(schema, about, by)


def _relation(schema: Schema, one: str, other: str) -> Statistic:
    numeric = [name for name in (one, other) if kinds.has_numbers(schema, name)]
    if len(numeric) == 2:
        return kinds.correlation(schema, (one, other))
    if not numeric:
        return kinds.shares(schema, other, one)
    return kinds.mean(schema, numeric[0], other if numeric[0] == one else one)


def drawn_again(
    once: Replicates, noise: Mapping[int, float], *, rows: int, tables: int = TABLES
) -> Replicates:
    """Return released rows, with so many rows of the reference drawn again some times.

    `noise` has the deviation of a count of each column that is drawn again with noise.
    """
    reference = _with_lost_values(once.reference, noise)
    again = tuple(
        _again(once.schema, reference, noise, rows, SeededRandomSource(f"answers/{number}"))
        for number in range(1, tables + 1)
    )
    return replace(once, reference=reference, tables=again, refitted=False)


def _with_lost_values(rows: Codes, columns: Iterable[int]) -> Codes:
    """Return rows with a few more for every value that noise took out of the release.

    Noise may have hidden it: repetitions must be able to have it.
    """
    parts = [rows]
    for a in columns:
        for value in np.flatnonzero(_counts(rows, a) == 0).tolist():
            few = rows.take(np.arange(0, rows.rows, max(rows.rows // _LOST_ROWS, 1)))
            changed = [np.full_like(c, value) if b == a else c for b, c in enumerate(few.columns)]
            parts.append(Codes.from_columns(changed, rows.sizes))
    return concatenate(parts)


def _again(
    schema: Schema,
    released: Codes,
    noise: Mapping[int, float],
    rows: int,
    source: SeededRandomSource,
) -> Codes:
    """Draw as many rows as were real, with replacement, and weigh them to redrawn columns."""
    places = (uniforms(rows, source) * released.rows).astype(np.intp)
    drawn = released.take(places)
    goals = {}
    for a, deviation in noise.items():
        attribute, counts = schema.attributes[a], _counts(drawn, a)
        noisy = counts + deviation * normals(counts.size, source)
        goals[a] = margin_of(noisy, rows, deviation, ordered_values(attribute))
    weights = np.ones(rows)
    for _ in range(_RAKED):
        for a, goal in goals.items():
            sums = _counts(drawn, a, weights)
            weights = weights * (goal / np.where(sums > 0, sums, 1.0))[drawn.columns[a]]
    ladder = np.cumsum(weights)
    steps = (np.arange(rows) + 0.5) / rows * ladder[-1]
    return drawn.take(np.minimum(np.searchsorted(ladder, steps), rows - 1))


def _counts(rows: Codes, attribute: int, weights: kinds.Numbers | None = None) -> kinds.Numbers:
    size = rows.sizes[attribute]
    return np.bincount(rows.columns[attribute], weights, minlength=size).astype(np.float64)
