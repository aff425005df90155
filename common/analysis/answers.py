"""The analyses that a study declared, answered: estimates with intervals, from published files.

One function, `answers`, computes them for the report, `parley answers`, `parley describe` and the
Python API, so that a reader finds the same numbers everywhere. An analysis becomes one statistic or
several (`statistics_of`):

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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from common.analysis import statistics as kinds
from common.analysis.diagnostics import Diagnostics
from common.analysis.estimates import CONFIDENCE, Estimate, estimate, of_mean
from common.analysis.means import known_means
from common.analysis.replicates import TABLES, Replicates
from common.analysis.statistics import Statistic
from common.analysis.survival import survival_at_fifths
from common.bayes.postprocessing import margin_of
from common.fitted.model import FittedModel
from common.methods.subn_plus.facts import ordered_values
from common.methods.subn_plus.thinning import normals
from common.privacy.randomness import SeededRandomSource, uniforms
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


def answers(
    fitted: FittedModel,
    diagnostics: Diagnostics,
    *,
    released: Codes,
    confidence: float = CONFIDENCE,
) -> tuple[Answer, ...]:
    """Answer every analysis that the study of a release declared, by its rows and its sums."""
    if not fitted.analyses:
        return ()
    replicates = redrawn(fitted, released)
    return tuple(
        Answer(
            analysis,
            tuple(
                estimate
                for statistic in statistics_of(analysis, fitted.schema)
                for estimate in answered(fitted, statistic, replicates, diagnostics, confidence)
            ),
        )
        for analysis in fitted.analyses
    )


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
    """Yield the statistics that answer an analysis."""
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


def is_declared(fitted: FittedModel, statistic: Statistic) -> bool:
    """Return whether analyses name all columns of a statistic together, or all that it rests on."""
    columns = tuple(fitted.schema.position(name) for name in statistic.attributes)
    sets = [
        set(declared) for analysis in fitted.analyses for declared in analysis.sets(fitted.schema)
    ]
    parts = combinations(columns, 2) if statistic.pairwise and len(columns) > 1 else (columns,)
    return all(any(declared.issuperset(part) for declared in sets) for part in parts)


def redrawn(fitted: FittedModel, released: Codes, tables: int = TABLES) -> Replicates:
    """Return rows of the release with sampling and noise of single columns drawn once more."""
    reference = released
    if released.rows < min(fitted.rows, ENOUGH_ROWS):
        reference = fitted.draw(min(fitted.rows, ENOUGH_ROWS), SeededRandomSource("answers"))
    named = {name for analysis in fitted.analyses for name in _names(analysis, fitted.schema)}
    noise = {
        error.attributes[0]: error.deviation
        for error in fitted.column_errors
        if fitted.schema.names[error.attributes[0]] in named
    }
    once = Replicates(fitted.schema, released, reference, (), fitted.inside)
    return drawn_again(once, noise, rows=fitted.rows, tables=tables)


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


def _names(analysis: Analysis, schema: Schema) -> Sequence[str]:
    return [schema.names[a] for columns in analysis.sets(schema) for a in columns]


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
