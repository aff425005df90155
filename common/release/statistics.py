"""What analysts ask of a table: shares, means, quantiles, regressions; whole or group by group.

A statistic is a function of a `CodedTable` that returns named numbers, so the same object is
computed on the release, on the released model and on every replicate. It names the attributes whose
relations it rests on, which the diagnostics compare with what was measured.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from common.errors import InputError
from common.privacy.randomness import SeededRandomSource
from common.schema import Attribute, Codes, Schema
from common.schema.attribute import Listed
from common.schema.conditions import Condition, parse
from common.schema.decoder import decode_column
from common.schema.toml import suggest

Numbers = NDArray[np.float64]
Group: TypeAlias = str | None
Values: TypeAlias = Mapping[tuple[str, Group], float]  # by name and group
_NEWTON_STEPS = 30
_RIDGE = 1e-8  # keeps a coefficient finite where the rows do not determine it


@dataclass(frozen=True)
class CodedTable:
    """Synthetic rows, as codes and as values."""

    schema: Schema
    codes: Codes
    seed: str = ""  # of the places of numbers inside their bins

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.codes.rows

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The table as an analyst reads it."""
        return self.schema.decode(self.codes, SeededRandomSource(f"numbers/{self.seed}"))

    @cached_property
    def _numbers(self) -> dict[str, Numbers]:
        return {}

    def numbers(self, name: str) -> Numbers:
        """A column as numbers; an empty cell is not a number."""
        if name not in self._numbers:
            place = self.schema.position(name)
            source = SeededRandomSource(f"numbers/{self.seed}/{name}")
            column = decode_column(self.schema.attributes[place], self.codes.columns[place], source)
            numbers = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
            self._numbers[name] = numbers
        return self._numbers[name]

    def labels(self, name: str) -> Sequence[str]:
        """What each code of an attribute is called."""
        return self.schema.attributes[self.schema.position(name)].labels

    def column(self, name: str) -> NDArray[np.unsignedinteger]:
        """The codes of an attribute."""
        return self.codes.columns[self.schema.position(name)]


class Statistic(Protocol):
    """Something to compute of a table."""

    @property
    def attributes(self) -> frozenset[str]:
        """Those whose relations it rests on."""

    @property
    def bounds(self) -> tuple[float, float]:
        """No value of it lies outside."""

    def of(self, table: CodedTable) -> Values:
        """Its values."""


@dataclass(frozen=True)
class Share:
    """The proportion of rows that satisfy a condition, in all rows or in each group."""

    condition: Condition
    by: str | None = None
    where: Condition | None = None
    bounds = (0.0, 1.0)

    @property
    def attributes(self) -> frozenset[str]:
        """Those of the condition and of the groups."""
        return _together(self.condition.attributes, self.by, self.where)

    def of(self, table: CodedTable) -> Values:
        """A share for each group."""
        inside = self.condition.mask(table.codes)
        name = f"share of {self.condition.text}"
        return {
            (name, group): float(inside[rows].mean()) if rows.any() else np.nan
            for group, rows in _groups(table, self.by, self.where)
        }


@dataclass(frozen=True)
class Count:
    """How many real rows satisfy a condition, in all or with each value of an attribute."""

    condition: Condition
    rows: int
    by: str | None = None

    @property
    def bounds(self) -> tuple[float, float]:
        """From none to all of the rows."""
        return 0.0, float(self.rows)

    @property
    def attributes(self) -> frozenset[str]:
        """Those of the condition and of the groups."""
        return _together(self.condition.attributes, self.by, None)

    def of(self, table: CodedTable) -> Values:
        """A count for each group."""
        name = f"count of {self.condition.text}" if self.condition.text.strip() else "count"
        return {
            (name, group): self.rows * float(rows.mean())
            for group, rows in _groups(table, self.by, self.condition)
        }


@dataclass(frozen=True)
class OfNumbers:
    """A function of the numbers of a column, in all rows or in each group."""

    name: str
    column: str
    compute: Callable[[Numbers], float]
    by: str | None = None
    where: Condition | None = None
    bounds = (-np.inf, np.inf)

    @property
    def attributes(self) -> frozenset[str]:
        """The column, and those of the groups."""
        return _together((self.column,), self.by, self.where)

    def of(self, table: CodedTable) -> Values:
        """A value for each group; empty cells are left out."""
        numbers = table.numbers(self.column)
        known = ~np.isnan(numbers)
        found = {}
        for group, rows in _groups(table, self.by, self.where):
            asked = numbers[rows & known]
            found[f"{self.name} of {self.column}", group] = (
                self.compute(asked) if len(asked) else np.nan
            )
        return found


@dataclass(frozen=True)
class Regression:
    """Coefficients of a linear regression; of a logistic one where the outcome is yes or no."""

    outcome: str
    terms: tuple[str, ...]
    by: str | None = None
    where: Condition | None = None
    bounds = (-np.inf, np.inf)

    @property
    def attributes(self) -> frozenset[str]:
        """The outcome, the terms, and those of the groups."""
        return _together((self.outcome, *self.terms), self.by, self.where)

    def of(self, table: CodedTable) -> Values:
        """A coefficient for each term and group."""
        formula = f"{self.outcome} ~ {' + '.join(self.terms)}"
        columns = {"(intercept)": np.ones(table.rows)}
        for term in self.terms:
            columns |= _columns(table, term)
        names, design = list(columns), np.column_stack(list(columns.values()))
        outcome = table.numbers(self.outcome)
        logistic = _attribute(table.schema, self.outcome).kind == "boolean"
        known = ~np.isnan(design).any(axis=1) & ~np.isnan(outcome)
        found: dict[tuple[str, Group], float] = {}
        for group, rows in _groups(table, self.by, self.where):
            use = rows & known
            fitted = np.full(len(names), np.nan)
            if use.any() and logistic:
                fitted = _logistic(design[use], outcome[use])
            elif use.any():
                fitted = np.linalg.lstsq(design[use], outcome[use], rcond=None)[0]
            for name, value in zip(names, fitted, strict=True):
                found[f"{formula}: {name}", group] = float(value)
        return found


@dataclass(frozen=True)
class OfTable:
    """Any function of a table that returns a number, or several by name."""

    compute: Callable[[pd.DataFrame], object]
    attributes: frozenset[str] = frozenset()
    bounds = (-np.inf, np.inf)

    def of(self, table: CodedTable) -> Values:
        """What the function returns."""
        return named(self.compute(table.frame))


def named(found: object) -> Values:
    """The numbers that an analyst's function returned, by name.

    Raises:
        InputError: it returned something else.
    """
    try:
        if isinstance(found, pd.Series | Mapping):
            return {(str(name), None): float(value) for name, value in found.items()}
        return {("estimate", None): float(found)}  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InputError(
            f"estimate: the function returned {type(found).__name__}. Return a number, or a "
            "pandas Series or dict of numbers"
        ) from None


def share(schema: Schema, condition: str, by: str | None = None, where: str = "") -> Share:
    """The proportion of rows that satisfy a condition."""
    return Share(parse(condition, schema), _known(schema, by), _where(schema, where))


def count(schema: Schema, condition: str, rows: int, by: str | None = None) -> Count:
    """How many of the real rows satisfy a condition."""
    return Count(parse(condition, schema), rows, _known(schema, by))


def mean(schema: Schema, column: str, by: str | None = None, where: str = "") -> OfNumbers:
    """The mean of a column; of yes or no, the proportion of yes."""
    _check_numbers(schema, column)
    return OfNumbers(
        "mean", column, lambda v: float(v.mean()), _known(schema, by), _where(schema, where)
    )


def quantile(
    schema: Schema, column: str, at: float, by: str | None = None, where: str = ""
) -> OfNumbers:
    """A quantile of a column; 0.5 is the median."""
    _check_numbers(schema, column)
    if not 0 <= at <= 1:
        raise InputError(f"quantile: {at:g} is not in 0..1. Write the median as 0.5")
    name = "median" if at == 0.5 else f"quantile {at:g}"
    return OfNumbers(
        name, column, lambda v: float(np.quantile(v, at)), _known(schema, by), _where(schema, where)
    )


def regression(schema: Schema, formula: str, by: str | None = None, where: str = "") -> Regression:
    """A regression, written like "income ~ age + sex"; names with other signs in backticks.

    Raises:
        InputError: the formula cannot be read, or its outcome is no number.
    """
    left, tilde, right = formula.partition("~")
    terms = tuple(_bare(each) for each in re.split(r"\+(?=(?:[^`]*`[^`]*`)*[^`]*$)", right))
    outcome = _bare(left)
    if not tilde or not outcome or not all(terms):
        raise InputError(f"--regress {formula!r}: write it like 'income ~ age + sex'")
    _check_numbers(schema, outcome)
    for term in terms:
        _attribute(schema, term)
    if outcome in terms or len(set(terms)) < len(terms):
        raise InputError(f"--regress {formula!r}: an attribute is there twice. Name it once")
    return Regression(outcome, terms, _known(schema, by), _where(schema, where))


def _bare(name: str) -> str:
    return name.strip().strip("`")


def _where(schema: Schema, text: str) -> Condition | None:
    return parse(text, schema) if text.strip() else None


def _known(schema: Schema, name: str | None) -> str | None:
    return name if name is None else _attribute(schema, name).name


def _attribute(schema: Schema, name: str) -> Attribute:
    if name not in schema.names:
        raise InputError(
            f"there is no attribute {name!r}{suggest(name, schema.names)}; there are "
            f"{', '.join(schema.names)}"
        )
    return schema.attributes[schema.position(name)]


def _check_numbers(schema: Schema, name: str) -> None:
    attribute = _attribute(schema, name)
    words = isinstance(attribute.domain, Listed) and attribute.domain.textual
    if words or attribute.kind in ("date", "datetime"):
        raise InputError(
            f"{name!r} is {attribute.kind} and has no numbers to compute with. For the proportion "
            "of a value use a share"
        )


def _together(names: Sequence[str], by: str | None, where: Condition | None) -> frozenset[str]:
    found = {*names, *(where.attributes if where is not None else ())}
    return frozenset(found if by is None else found | {by})


def _groups(
    table: CodedTable, by: str | None, where: Condition | None
) -> Iterator[tuple[Group, NDArray[np.bool_]]]:
    """The rows of each group; all rows if there are no groups."""
    rows = np.ones(table.rows, dtype=np.bool_) if where is None else where.mask(table.codes)
    if by is None:
        yield None, rows
        return
    codes = table.column(by)
    for code, label in enumerate(table.labels(by)):
        yield label, rows & (codes == code)


def _columns(table: CodedTable, term: str) -> dict[str, Numbers]:
    """A term's columns: its numbers, or whether it has each value but the first."""
    attribute = _attribute(table.schema, term)
    if not (isinstance(attribute.domain, Listed) and attribute.domain.textual):
        return {term: table.numbers(term)}
    codes = table.column(term)
    return {
        f"{term}[{label}]": (codes == code).astype(np.float64)
        for code, label in enumerate(attribute.labels)
        if code > 0
    }


def _logistic(design: Numbers, outcome: Numbers) -> Numbers:
    """Newton's method, on columns of one scale, with a penalty too small to see."""
    scale = np.maximum(np.abs(design).max(axis=0), 1e-12)
    scaled = design / scale
    weights = np.zeros(scaled.shape[1])
    ridge = _RIDGE * len(scaled) * np.eye(scaled.shape[1])
    for _ in range(_NEWTON_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(scaled @ weights, -30, 30)))
        gradient = scaled.T @ (outcome - chance) - ridge @ weights
        curvature = (scaled * (chance * (1 - chance))[:, None]).T @ scaled + ridge
        step = np.linalg.solve(curvature, gradient)
        weights = weights + step
        if np.abs(step).max() < 1e-9:
            break
    result: Numbers = weights / scale
    return result
