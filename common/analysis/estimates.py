"""Estimates with honest intervals, from a release and its replicates.

A replicate is to the released model what the release is to the population, so an estimate is off by
what the replicates' estimates are off: their mean less the released model's value is its bias, and
their spread is its standard error. Both hold the sampling of the real rows, the noise, and the
sampling of synthetic rows. Neither can see what the model leaves out.

With B replicates of spread s the interval is

    corrected +- t(B - 1) * sqrt((s / part)^2 (1 + 1 / B) + (corrected - released)^2)

A method that fits a model to noisy counts weakens relations. The bias is then a part of the
relation and not an amount: the released model, whose relations are weak already, shows less bias
than there was. So where a statistic rests on a relation that is clear in the released model,

    part = (mean of replicates - apart) / (released model - apart)
    corrected = apart + (released - apart) / part

with `apart` the value for independent columns: that of the model's rows with each column shuffled.
Elsewhere part = 1 and corrected = released - bias. The 1 / B is for the bias, which is a mean of B
values. The correction is also in the width, as it is never known well. A correction that is no
larger than its own standard error is not made.

A model may leave a relation out, and replicates of it cannot tell. So an estimate of several
columns is combined with the direct one, which needs no model (`common.analysis.direct`), by how far
all published tables are from the model (`common.analysis.combining`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from common.analysis.combining import combined, misfit_of, quantile
from common.analysis.direct import Direct, DirectIntervals
from common.analysis.means import Mean
from common.analysis.replicates import Replicates, coded, shuffled
from common.analysis.statistics import Group, Statistic, Values, named
from common.errors import InputError
from common.release.measured import MeasuredTable

CONFIDENCE = 0.95
_LEAST_VALID = 0.5  # of the replicates; a group that is empty in more has no interval
_CLEAR = 2.0  # spreads that a relation is from none, to tell which part of it is kept
_LEAST_KEPT = 1 / 3  # of a relation; a correction by more is a guess
_SAME = 1e-9
_SCATTERED = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: multiples lie far apart


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate of a statistic of the population.

    Attributes:
        statistic: what was estimated.
        group: the value of the attribute that was grouped by; None for all rows.
        estimate: the value in the release, corrected by its bias and combined with the direct one.
        standard_error: of the estimate; None if the replicates do not tell.
        low: lower end of the interval, which also covers what was not measured.
        high: upper end of the interval.
        flagged: whether the interval is wide because something was not measured.
    """

    statistic: str
    group: Group
    estimate: float | None
    standard_error: float | None
    low: float | None
    high: float | None
    flagged: bool

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def estimate(
    statistic: Statistic,
    replicates: Replicates,
    *,
    measured: Sequence[MeasuredTable] = (),
    direct: Mapping[tuple[str, Group], Direct] = MappingProxyType({}),
    misfit: float = math.inf,
    flagged: bool = False,
    confidence: float = CONFIDENCE,
) -> list[Estimate]:
    """Compute a statistic with its interval: one estimate for each of its values.

    Given what was measured, compared with the released rows, the estimate of a statistic of several
    columns is combined with that of `common.analysis.direct`; or with the direct ones that are
    given, and the misfit of their tables.
    """
    check_confidence(confidence)
    released, reference, *others = (
        statistic.of(coded(replicates, codes, str(number)))
        for number, codes in enumerate(
            (replicates.released, replicates.reference, *replicates.tables)
        )
    )
    apart: Values = {}
    if len(statistic.attributes) > 1:
        if any(table.usable(table.attributes) for table in measured):
            intervals = DirectIntervals(tuple(measured), replicates)
            direct, misfit = intervals.of(statistic), misfit_of(intervals, statistic)
        apart = statistic.of(coded(replicates, shuffled(replicates.reference), "1"))
    return [
        _both(
            _one(key, released, reference, apart, others, confidence, flagged=flagged),
            direct.get(key),
            statistic.bounds,
            misfit=misfit,
            freedom=len(others) - 1,
            confidence=confidence,
        )
        for key in released
    ]


def _one(
    key: tuple[str, Group],
    released: Values,
    reference: Values,
    apart: Values,
    others: Sequence[Values],
    confidence: float,
    *,
    flagged: bool,
) -> Estimate:
    """Return the estimate by the model and its replicates."""
    values = np.array([replicate.get(key, np.nan) for replicate in others])
    valid = values[np.isfinite(values)]
    value = released[key]
    if not math.isfinite(value) or len(valid) < _LEAST_VALID * len(values):
        known = value if math.isfinite(value) else None
        return Estimate(*key, known, None, None, None, flagged=True)
    corrected, error = _corrected(value, reference.get(key, np.nan), apart.get(key, np.nan), valid)
    half = quantile(len(valid) - 1, confidence=confidence) * error
    return Estimate(*key, corrected, error, corrected - half, corrected + half, flagged)


def of_mean(mean: Mean, confidence: float = CONFIDENCE) -> Estimate:
    """Return the mean of a whole column as the report has it."""
    check_confidence(confidence)
    low, high = mean.interval(confidence)
    name = f"mean of {mean.name}"
    flagged = mean.hidden > mean.error  # the interval is wide by what bins hide
    return Estimate(name, None, mean.mean, mean.error, low, high, flagged)


def check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise InputError(f"confidence: {confidence:g} is not between 0 and 1. Write 0.95")


def _both(
    model: Estimate,
    direct: Direct | None,
    bounds: tuple[float, float],
    *,
    misfit: float,
    freedom: int,
    confidence: float,
) -> Estimate:
    """Return the estimate from the model and from the sums, in the range of what is possible."""
    value, error, low, high = model.estimate, model.standard_error, model.low, model.high
    if value is None or error is None or low is None or high is None:
        return model
    if direct is not None:
        both = combined(
            value, direct, error=error, misfit=misfit, freedom=freedom, confidence=confidence
        )
        value, error, low, high = both.estimate, both.deviation, both.low, both.high
        bounds = max(bounds[0], direct.ends[0]), min(bounds[1], direct.ends[1])
    value, low, high = (min(max(number, bounds[0]), bounds[1]) for number in (value, low, high))
    return replace(model, estimate=value, standard_error=error, low=low, high=high)


def _corrected(
    value: float, centre: float, apart: float, replicated: NDArray[np.float64]
) -> tuple[float, float]:
    """Return the released value without its bias, and its standard error.

    The value in the released model (`centre`) or for independent columns (`apart`) may be NaN.
    """
    corrected, part = _without_bias(value, centre, apart, replicated)
    spread = float(replicated.std(ddof=1))
    noise = spread / part * math.sqrt(1 + 1 / len(replicated))
    return corrected, math.hypot(noise, corrected - value)


def _without_bias(
    value: float, centre: float, apart: float, replicated: NDArray[np.float64]
) -> tuple[float, float]:
    """Return a value without its bias, and which part of a relation was kept; 1 without one."""
    mean, spread = float(replicated.mean()), float(replicated.std(ddof=1))
    unsure = spread / math.sqrt(len(replicated))  # of the mean
    if abs(centre - apart) > _CLEAR * spread and (mean - apart) / (centre - apart) < 1:
        part = max((mean - apart) / (centre - apart), _LEAST_KEPT)
        # The error of part is unsure / |centre - apart|; that of 1 / part, 1 / part^2 as much.
        if 1 / part - 1 > unsure / abs(centre - apart) / part**2:
            return apart + (value - apart) / part, part
        return value, 1.0
    bias = mean - centre if math.isfinite(centre) else 0.0
    return value - (bias if abs(bias) > unsure else 0.0), 1.0


@dataclass(frozen=True, slots=True)
class Pooled:
    """One estimate from several tables.

    Attributes:
        estimate: the mean of the tables' estimates.
        standard_error: of the mean, about the population's value.
        degrees_of_freedom: of Student's t for the interval.
        low: lower end of the interval.
        high: upper end of the interval.
    """

    estimate: float
    standard_error: float
    degrees_of_freedom: float
    low: float
    high: float


def pool(
    estimates: Iterable[float],
    variances: Iterable[float] | None = None,
    *,
    model: float | None = None,
    independent: float | None = None,
    confidence: float = CONFIDENCE,
) -> Pooled:
    """Combine the estimates of m replicate tables by the rules for synthetic data.

    With b the variance between the tables' estimates and u the mean of their ordinary variances,
    the variance is (1 + 1/m) b - u [Raghunathan, Reiter, Rubin 2003]: b holds how the models of
    replicates differ from the released model, which is how that model differs from the population,
    and the sampling of synthetic rows, u, which the mean over tables does not have. The variance is
    never less than u, the sampling of as many real rows. Without variances nothing is subtracted,
    and the interval is a little wide.

    Given the estimate of a large table of the released model, the result is corrected as that of
    `estimate` is: the tables are off from the model by what the model is off from the population.

    Args:
        estimates: one for each table.
        variances: for each table the square of the ordinary standard error, as any software has it.
        model: the estimate of a large table of the released model; None corrects nothing.
        independent: the estimate of that table with each column shuffled by itself, for statistics
            that rest on relations; they are weakened by a part, not by an amount.
        confidence: of the interval.

    Raises:
        InputError: fewer than two tables, or not one variance for each.
    """
    values = np.array(list(estimates), dtype=np.float64)
    tables = len(values)
    if tables < 2 or not np.isfinite(values).all():
        raise InputError("pool: give the estimates of at least two tables, each a finite number")
    between = float(values.var(ddof=1)) * (1 + 1 / tables)
    ordinary = [0.0] * tables if variances is None else list(variances)
    if len(ordinary) != tables or not all(math.isfinite(v) and v >= 0 for v in ordinary):
        raise InputError(f"pool: give one variance, 0 or more, for each of the {tables} tables")
    within = float(np.mean(ordinary))
    variance = max(between - within, within)
    excess = (between - within) / between if between > within else 1.0
    freedom = max((tables - 1) * (excess**2 if variance > within else 1.0), 1.0)
    error, centre = math.sqrt(variance), float(values.mean())
    if model is not None:
        apart = math.nan if independent is None else independent
        centre, part = _without_bias(model, model, apart, values)
        error = math.hypot(error / part, centre - model)
    half = quantile(freedom, confidence=confidence) * error
    return Pooled(centre, error, freedom, centre - half, centre + half)


def related(compute: Callable[[pd.DataFrame], object], table: pd.DataFrame) -> frozenset[str]:
    """Return the columns whose relations a function rests on: shuffling one changes its result.

    A function of one column does not change when the column is shuffled: it rests on no relation.
    """
    before = named(compute(table))
    order = np.argsort(np.arange(len(table), dtype=np.uint64) * _SCATTERED, kind="stable")
    mixed = table.iloc[order].set_axis(table.index)
    return frozenset(
        str(name)
        for name in table.columns
        if not _alike(before, named(compute(table.assign(**{name: mixed[name]}))))
    )


def _alike(one: Values, other: Values) -> bool:
    return one.keys() == other.keys() and all(
        math.isclose(one[key], other[key], rel_tol=_SAME, abs_tol=_SAME)
        or (math.isnan(one[key]) and math.isnan(other[key]))
        for key in one
    )
