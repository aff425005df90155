"""What analysts ask of a table: shares, means, quantiles, regressions; whole or group by group.

A statistic is a function of a `CodedTable` that returns named numbers, so the same object is
computed on the release, on the released model and on every replicate. It names the attributes whose
relations it rests on, which the diagnostics compare with what was measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from common.errors import InputError
from common.marginals.threads import one_thread
from common.privacy.randomness import SeededRandomSource
from common.schema import Attribute, Codes, Schema
from common.schema.attribute import Listed
from common.schema.conditions import Condition, parse
from common.schema.decoder import Insides, decode_column
from common.schema.query import bare_name, parse_formula

Numbers = NDArray[np.float64]
Group: TypeAlias = str | None
By: TypeAlias = str | Sequence[str] | None  # the columns of groups: none, one or several
Values: TypeAlias = Mapping[tuple[str, Group], float]  # by name and group
_NEWTON_STEPS = 60
_LONGEST_STEP = 4.0  # of the linear predictor of a row
_RIDGE = 1e-8  # keeps a coefficient finite where the rows do not determine it


@dataclass(frozen=True)
class CodedTable:
    """Synthetic rows, as codes and as values."""

    schema: Schema
    codes: Codes
    seed: str = ""  # of the places of numbers inside their bins
    inside: Insides = field(default_factory=dict)  # what is known of these places

    @property
    def rows(self) -> int:
        return self.codes.rows

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The table as an analyst reads it."""
        source = SeededRandomSource(f"numbers/{self.seed}")
        return self.schema.decode(self.codes, source, self.inside)

    @cached_property
    def _numbers(self) -> dict[str, Numbers]:
        return {}

    def numbers(self, name: str) -> Numbers:
        """Return a column as numbers; an empty cell is NaN."""
        if name not in self._numbers:
            place = self.schema.position(name)
            source = SeededRandomSource(f"numbers/{self.seed}/{name}")
            attribute, codes = self.schema.attributes[place], self.codes.columns[place]
            column = decode_column(attribute, codes, source, self.inside.get(place))
            numbers = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
            self._numbers[name] = numbers
        return self._numbers[name]

    def column(self, name: str) -> NDArray[np.unsignedinteger]:
        return self.codes.columns[self.schema.position(name)]


Rows: TypeAlias = NDArray[np.bool_]  # which rows of a table a group has
OfRows: TypeAlias = Callable[[Rows], Mapping[str, float]]
_UNBOUNDED = (-np.inf, np.inf)


@dataclass(frozen=True)
class Statistic:
    """Something to compute of a table."""

    attributes: frozenset[str]  # those whose relations it rests on
    of: Callable[[CodedTable], Values]  # its values in a table
    bounds: tuple[float, float] = _UNBOUNDED  # no value of it lies outside
    # whether it rests on relations of pairs only, as a linear regression does
    pairwise: bool = False
    mean_of: str | None = None  # the column, if it is the mean of a whole column


def of_table(
    compute: Callable[[pd.DataFrame], object], attributes: frozenset[str] = frozenset()
) -> Statistic:
    """Wrap a function of a table that returns a number, or several by name."""
    return Statistic(attributes, lambda table: named(compute(table.frame)))


def named(outcome: object) -> Values:
    """Return the numbers that an analyst's function returned, by name."""
    try:
        if isinstance(outcome, pd.Series | Mapping):
            return {(str(name), None): float(value) for name, value in outcome.items()}
        return {("estimate", None): float(outcome)}  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InputError(
            f"estimate: the function returned {type(outcome).__name__}. Return a number, or a "
            "pandas Series or dict of numbers"
        ) from None


def share(schema: Schema, condition: str, by: By = None, where: str = "") -> Statistic:
    """Ask for the proportion of rows that satisfy a condition, in all rows or in each group."""
    predicate = parse(condition, schema)

    def of(table: CodedTable) -> OfRows:
        inside = predicate.mask(table.codes)
        return lambda rows: {
            f"share of {predicate.text}": float(inside[rows].mean()) if rows.any() else np.nan
        }

    return grouped(schema, predicate.attributes, of, by, where, bounds=(0.0, 1.0))


def shares(schema: Schema, column: str, by: By = None) -> Statistic:
    """Ask for the proportion of every value of a column, in all rows or in each group."""
    labels = _attribute(schema, column).labels

    def of(table: CodedTable) -> OfRows:
        codes = table.column(column)

        def value(rows: Rows) -> dict[str, float]:
            total = int(rows.sum())
            counts = np.bincount(codes[rows], minlength=len(labels))
            return {
                f"share of {column} = {label}": float(number / total) if total else np.nan
                for label, number in zip(labels, counts, strict=False)
            }

        return value

    return grouped(schema, (column,), of, by, "", bounds=(0.0, 1.0))


def count(schema: Schema, condition: str, rows: int, by: By = None) -> Statistic:
    """Ask how many of the real rows satisfy a condition, in all or in each group."""
    name = f"count of {condition}" if condition.strip() else "count"

    def of(table: CodedTable) -> OfRows:
        return lambda inside: {name: rows * float(inside.mean())}

    return grouped(schema, (), of, by, condition, bounds=(0.0, float(rows)))


def mean(schema: Schema, column: str, by: By = None, where: str = "") -> Statistic:
    """Ask for the mean of a column; of yes or no, the proportion of yes."""
    statistic = _of_numbers(schema, "mean", column, np.mean, by, where)
    return statistic if by or where.strip() else replace(statistic, mean_of=column)


def quantile(schema: Schema, column: str, at: float, by: By = None, where: str = "") -> Statistic:
    """Ask for a quantile of a column; 0.5 is the median."""
    if not 0 <= at <= 1:
        raise InputError(f"quantile: {at:g} is not in 0..1. Write the median as 0.5")
    name = "median" if at == 0.5 else f"quantile {at:g}"
    return _of_numbers(schema, name, column, lambda v: np.quantile(v, at), by, where)


def _of_numbers(
    schema: Schema,
    name: str,
    column: str,
    compute: Callable[[Numbers], np.floating],
    by: By,
    where: str,
) -> Statistic:
    """Ask for a function of the numbers of a column; empty cells are left out."""
    checked_numbers(schema, column)

    def of(table: CodedTable) -> OfRows:
        numbers = table.numbers(column)
        known = ~np.isnan(numbers)

        def value(rows: Rows) -> dict[str, float]:
            values = numbers[rows & known]
            return {f"{name} of {column}": float(compute(values)) if len(values) else np.nan}

        return value

    return grouped(schema, (column,), of, by, where, bounds=ends_of(_attribute(schema, column)))


def ends_of(attribute: Attribute) -> tuple[float, float]:
    """Return the least and the greatest number that a column may hold."""
    domain = attribute.domain
    if isinstance(domain, Listed):
        numbers = np.array(domain.values, dtype=np.float64)
        return float(numbers.min()), float(numbers.max())
    if attribute.kind == "integer":
        return float(domain.first[0]), float(domain.last[-1])
    return float(domain.edges[0]), float(domain.edges[-1])


def correlation(
    schema: Schema, columns: str | Sequence[str], by: By = None, where: str = ""
) -> Statistic:
    """Ask for the correlation of two columns, by their names or written like "age, income"."""
    written = columns.split(",") if isinstance(columns, str) else columns
    names = tuple(bare_name(column) for column in written)
    if len(names) != 2 or names[0] == names[1] or not all(names):
        raise InputError(f"--correlation {columns!r}: write it like 'age, income'")
    for name in names:
        checked_numbers(schema, name)

    def of(table: CodedTable) -> OfRows:
        one, other = map(table.numbers, names)
        known = ~np.isnan(one) & ~np.isnan(other)

        def value(rows: Rows) -> dict[str, float]:
            use = rows & known
            return {f"correlation of {names[0]} and {names[1]}": _pearson(one[use], other[use])}

        return value

    return grouped(schema, names, of, by, where, bounds=(-1.0, 1.0), pairwise=True)


def _pearson(one: Numbers, other: Numbers) -> float:
    if not one.size or one.std() == 0 or other.std() == 0:
        return math.nan
    product = np.mean((one - one.mean()) * (other - other.mean()))
    return float(product / (one.std() * other.std()))


def regression(
    schema: Schema, formula: str, by: By = None, where: str = "", family: str | None = None
) -> Statistic:
    """Ask for coefficients of a linear regression, or logistic where the outcome is yes or no.

    A formula is written like "income ~ age + sex"; names with other signs are in backticks. The
    family is "linear", "logistic" or "poisson"; None is logistic for yes or no, else linear.
    """
    model = parse_formula(formula, schema)
    outcome, terms = model.outcome, model.terms
    checked_numbers(schema, outcome)
    fit = _fit_of(family, _attribute(schema, outcome))

    def of(table: CodedTable) -> OfRows:
        columns = {"(intercept)": np.ones(table.rows)}
        for term in terms:
            columns |= _columns(table, term)
        names = [f"{outcome} ~ {' + '.join(terms)}: {name}" for name in columns]
        design, values = np.column_stack(list(columns.values())), table.numbers(outcome)
        known = ~np.isnan(design).any(axis=1) & ~np.isnan(values)

        def coefficients(rows: Rows) -> dict[str, float]:
            use = rows & known
            fitted = fit(design[use], values[use]) if use.any() else np.full(len(names), np.nan)
            return dict(zip(names, fitted.tolist(), strict=True))

        return coefficients

    return grouped(schema, (outcome, *terms), of, by, where, pairwise=True)


def _fit_of(family: str | None, outcome: Attribute) -> Callable[[Numbers, Numbers], Numbers]:
    """Return what fits a family of models; InputError if the outcome cannot be of it."""
    if family is None:
        family = "logistic" if outcome.kind == "boolean" else "linear"
    if family not in FAMILIES:
        raise InputError(f"--family {family!r}: choose one of {', '.join(FAMILIES)}")
    if family == "logistic" and outcome.kind != "boolean":
        raise InputError(f"--family logistic: {outcome.name!r} is not yes or no. Choose another")
    if family == "poisson" and ends_of(outcome)[0] < 0:
        raise InputError(f"--family poisson: {outcome.name!r} may be below 0. Choose another")
    return FAMILIES[family]


def grouped(
    schema: Schema,
    names: Iterable[str],
    prepared: Callable[[CodedTable], OfRows],
    by: By,
    where: str,
    *,
    bounds: tuple[float, float] = _UNBOUNDED,
    pairwise: bool = False,
) -> Statistic:
    """Ask for a statistic of the rows that satisfy a condition: all, or by each value of `by`."""
    condition = parse(where, schema)
    groups = tuple(_attribute(schema, column).name for column in _several(by))

    def of(table: CodedTable) -> Values:
        compute, inside = prepared(table), condition.mask(table.codes)
        return {
            (name, label): value
            for label, rows in _groups(table, groups)
            for name, value in compute(inside & rows).items()
        }

    return Statistic(
        frozenset({*names, *groups, *condition.attributes}), of, bounds, pairwise=pairwise
    )


def _several(by: By) -> Sequence[str]:
    return () if by is None else (by,) if isinstance(by, str) else by


def _groups(table: CodedTable, names: Sequence[str]) -> Iterator[tuple[Group, Rows]]:
    """Yield the groups of rows, by every combination of the values of some columns."""
    if not names:
        yield None, np.ones(table.rows, dtype=np.bool_)
        return
    labels = [list(enumerate(_attribute(table.schema, name).labels)) for name in names]
    columns = [table.column(name) for name in names]
    for values in product(*labels):
        rows = np.ones(table.rows, dtype=np.bool_)
        for (code, _), column in zip(values, columns, strict=True):
            rows &= column == code
        yield ", ".join(label for _, label in values), rows


def _attribute(schema: Schema, name: str) -> Attribute:
    return schema.attributes[schema.position(name)]


def has_numbers(schema: Schema, name: str) -> bool:
    """Return whether a column has numbers to compute with; yes or no are 1 and 0."""
    attribute = _attribute(schema, name)
    return not attribute.textual and attribute.kind not in ("date", "datetime")


def happens(status: str, schema: Schema) -> Condition:
    """Return a condition, or the name of a yes-or-no column, as a condition."""
    return parse(f'"{status}" = true' if status in schema.names else status, schema)


def checked_numbers(schema: Schema, name: str) -> Attribute:
    """Return a column that holds numbers; InputError if it does not."""
    attribute = _attribute(schema, name)
    if not has_numbers(schema, name):
        raise InputError(
            f"{name!r} is {attribute.kind} and has no numbers to compute with. For the proportion "
            "of a value use a share"
        )
    return attribute


def _columns(table: CodedTable, term: str) -> dict[str, Numbers]:
    """Return a term's columns: its numbers, or whether it has each value but the first."""
    attribute = _attribute(table.schema, term)
    if not attribute.textual:
        return {term: table.numbers(term)}
    codes = table.column(term)
    return {
        f"{term}[{label}]": (codes == code).astype(np.float64)
        for code, label in enumerate(attribute.labels)
        if code > 0
    }


@one_thread
def _linear(design: Numbers, outcome: Numbers) -> Numbers:
    return np.asarray(np.linalg.lstsq(design, outcome, rcond=None)[0], dtype=np.float64)


@one_thread
def _logistic(design: Numbers, outcome: Numbers) -> Numbers:
    return _newton(design, outcome, _chance)


@one_thread
def _poisson(design: Numbers, outcome: Numbers) -> Numbers:
    return _newton(design, outcome, _rate)


def _chance(predicted: Numbers) -> tuple[Numbers, Numbers]:
    """Return the mean and the variance of yes or no."""
    chance = 1 / (1 + np.exp(-np.clip(predicted, -30, 30)))
    return chance, chance * (1 - chance)


def _rate(predicted: Numbers) -> tuple[Numbers, Numbers]:
    """Return the mean and the variance of a count."""
    rate = np.exp(np.clip(predicted, -30, 30))
    return rate, rate


def _newton(
    design: Numbers,
    outcome: Numbers,
    law: Callable[[Numbers], tuple[Numbers, Numbers]],
) -> Numbers:
    """Fit by Newton's method, on columns of one scale, with a penalty too small to see.

    A step that changes the predictor of a row by much is made shorter: far away, the exponential
    of a rate has no use for it.
    """
    scale = np.maximum(np.abs(design).max(axis=0), 1e-12)
    scaled = design / scale
    weights = np.zeros(scaled.shape[1])
    ridge = _RIDGE * len(scaled) * np.eye(scaled.shape[1])
    for _ in range(_NEWTON_STEPS):
        mean, variance = law(scaled @ weights)
        gradient = scaled.T @ (outcome - mean) - ridge @ weights
        curvature = (scaled * variance[:, None]).T @ scaled + ridge
        step = np.linalg.solve(curvature, gradient)
        step = step / max(1.0, float(np.abs(scaled @ step).max()) / _LONGEST_STEP)
        weights = weights + step
        if np.abs(step).max() < 1e-9:
            break
    result: Numbers = weights / scale
    return result


FAMILIES: Mapping[str, Callable[[Numbers, Numbers], Numbers]] = {
    "linear": _linear,
    "logistic": _logistic,
    "poisson": _poisson,
}
