"""Acceptance criteria: one more sum when the model is known, and what follows from it.

The sum has one or two integers for each criterion (`common.study.criteria`). A replaced row moves
each by at most `UNIT` (`common.privacy.sensitivity.bounded`):

    mean      the sum of the numbers, from 0 at the least possible to UNIT at the greatest; and UNIT
              for each row that has a number, where cells may be empty
    share     UNIT for each row that satisfies the condition

Means and shares are those of all owners' rows together. A party needs no model to answer: the
curator, and whoever verifies the release, compares what was measured with `REFERENCE_ROWS` drawn
from the model.

Studies of 0.2 could also name a `distance`, of each owner's own tables from the model, for which
every party fitted the model. Their text is still read, so that a release can be checked; a study
that names one is refused.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from common.bayes.form import Model
from common.crypto.framing import frame
from common.errors import InputError, LocalError
from common.exchanges.sums import sum_step
from common.marginals import count
from common.methods.conditional import ConditionalModel
from common.privacy import sensitivity
from common.privacy.laws.discrete_laplace import tail
from common.privacy.randomness import KeyedRandomSource
from common.schema import Codes, Schema
from common.schema.attribute import numbers_of
from common.schema.conditions import cells_of, parse
from common.study.criteria import Criterion
from common.study.document import Study
from common.study.requests import Attributes, Counts, PartyRows, TableShape, read_cells
from common.study.script import Fit, Script, added_up
from common.study.steps import Step

PHASE = "criteria"
UNIT = 1 << 12
REFERENCE_ROWS = 1 << 18
_WRONG = 0.05  # the chance that any verdict of a study is wrong, at most


class CriterionOutcome(StrEnum):
    """The outcome of a criterion."""

    MET = "met"
    NOT_MET = "not met"
    UNDECIDED = "not decidable at this noise"


@dataclass(frozen=True, slots=True)
class CriterionVerdict:
    """What is known about one criterion.

    Attributes:
        measured: of the owners' rows, with noise.
        error: how far noise and drawing may have moved it; 19 times of 20 none of a study's
            criteria is further off.
        model: that of the model's rows.
        by_chance: nothing; releases of 0.2 have it for distances.
    """

    criterion: str
    outcome: CriterionOutcome
    measured: float
    error: float
    model: float
    by_chance: None = None

    def as_json(self) -> dict[str, object]:
        """Return plain values, to the digits that mean something."""
        numbers = {key: value for key, value in asdict(self).items() if isinstance(value, float)}
        return {**asdict(self), **{key: float(f"{number:.6g}") for key, number in numbers.items()}}


@dataclass(frozen=True, slots=True)
class _Mean:
    """The mean of one attribute; `grid` has the place of each value, None where there is none."""

    attribute: int
    grid: NDArray[np.int64]
    known: NDArray[np.bool_]
    ends: tuple[float, float]

    @classmethod
    def of(cls, schema: Schema, name: str) -> _Mean:
        place = schema.position(name)
        attribute = schema.attributes[place]
        numbers = numbers_of(attribute)
        if numbers is None:
            raise InputError(f"mean: {name!r} is no column of numbers")
        least, greatest = float(numbers.min()), float(numbers.max())
        scale = UNIT / ((greatest - least) or 1.0)
        grid = np.zeros(attribute.size, dtype=np.int64)
        grid[: len(numbers)] = np.rint((numbers - least) * scale)
        return cls(place, grid, np.arange(attribute.size) < len(numbers), (least, greatest))

    @property
    def sets(self) -> list[Attributes]:
        return [(self.attribute,)]

    @property
    def cells(self) -> int:
        return 1 if self.known.all() else 2

    def numbers(self, tables: Sequence[Counts]) -> list[int]:
        (histogram,) = tables
        return [int(histogram @ self.grid), UNIT * int(histogram[self.known].sum())][: self.cells]

    def interval(self, numbers: Sequence[float], error: float) -> tuple[float, float]:
        """Return the ends of the mean, if each number is at most `error` off."""
        whole = (numbers[1] - error, numbers[1] + error) if self.cells == 2 else (1.0, 1.0)
        if whole[0] <= 0:
            return self.ends
        parts = [(numbers[0] + off) / n for off in (-error, error) for n in whole]
        least, greatest = self.ends
        low, high = (min(max(part, 0.0), 1.0) for part in (min(parts), max(parts)))
        return least + low * (greatest - least), least + high * (greatest - least)

    def sampling_error(self, exact: Sequence[int], rows: int) -> float:
        """Return the error of the mean in so many rows."""
        known = exact[1] // UNIT if self.cells == 2 else rows
        mean = exact[0] / (UNIT * max(known, 1))
        return _sampling_error(mean, max(known, 1)) * (self.ends[1] - self.ends[0])


def _sampling_error(mean: float, rows: int) -> float:
    """Return two deviations of a mean m of numbers from 0 to 1: of variance m (1 - m) at most."""
    return 2 * math.sqrt(max(mean * (1 - mean), 0.0) / rows)


@dataclass(frozen=True)
class _Proportion:
    """The share of rows that satisfy a condition."""

    attributes: Attributes
    holds: NDArray[np.bool_]

    cells: ClassVar[int] = 1

    @classmethod
    def of(cls, schema: Schema, condition: str) -> _Proportion:
        attributes, holds = cells_of(parse(condition, schema).root, schema.sizes)
        return cls(attributes, holds > 0)

    @property
    def sets(self) -> list[Attributes]:
        return [self.attributes]

    def numbers(self, tables: Sequence[Counts]) -> list[int]:
        return [UNIT * int(tables[0][self.holds].sum())]

    def interval(self, numbers: Sequence[float], error: float) -> tuple[float, float]:
        return max(numbers[0] - error, 0.0), min(numbers[0] + error, 1.0)

    def sampling_error(self, exact: Sequence[int], rows: int) -> float:
        return _sampling_error(exact[0] / (UNIT * rows), rows)


Measure: TypeAlias = _Mean | _Proportion


def _measure(criterion: Criterion, schema: Schema) -> Measure:
    match criterion.kind:
        case "mean":
            return _Mean.of(schema, criterion.about)
        case "share":
            return _Proportion.of(schema, criterion.about)
        case "distance":
            raise InputError(
                f"criterion {criterion.words!r}: distances are measured by versions up to 0.2 "
                "only. Name a mean or a share"
            )


@dataclass(frozen=True, eq=False)
class CriteriaRequest:
    """The integers of all criteria."""

    criteria: tuple[Criterion, ...]
    schema: Schema

    tables: ClassVar[Sequence[TableShape]] = ()
    shown: ClassVar[Sequence[TableShape]] = ()
    links: ClassVar[Sequence[Attributes]] = ()
    unit: ClassVar[int] = UNIT

    @cached_property
    def measures(self) -> tuple[Measure, ...]:
        return tuple(_measure(criterion, self.schema) for criterion in self.criteria)

    @property
    def cells(self) -> int:
        return sum(measure.cells for measure in self.measures)

    @property
    def canonical(self) -> bytes:
        """The criteria: what they mean follows from the schema, which is the study's."""
        plain = (criterion.plain for criterion in self.criteria)
        return frame(("criteria", UNIT, *(frame(map(str, entries)) for entries in plain)))

    def limit(self, rows: int) -> int:
        """Return a bound of the integers: twice what they reach, as in plans of 0.2."""
        return 2 * UNIT * rows

    def answer(self, data: PartyRows) -> Counts:
        numbers = [
            number
            for measure in self.measures
            for number in measure.numbers(data.count(measure.sets))
        ]
        return np.array(numbers, dtype=np.int64)


def with_criteria(script: Callable[[Study], Script[Fit]], study: Study) -> Script[Fit]:
    """Run the steps of a method, and the sum of the criteria after them."""
    for criterion in study.criteria:
        _measure(criterion, study.schema)  # refuses what cannot be measured, before the first step
    fit = yield from script(study)
    yield from added_up(_step(study))
    return fit


def _step(study: Study) -> Step:
    request = CriteriaRequest(study.criteria, study.schema)
    moved = sensitivity.bounded(request.cells, most=UNIT)
    return sum_step(
        name=PHASE,
        phase=PHASE,
        parties=study.parties,
        request=request,
        sensitivity=moved,
        law=study.promise.law(study.criteria_cost, moved),
    )


def _reference(study: Study, model: Model) -> Codes:
    """Draw rows of the model, equal for every reader of the release."""
    key = hashlib.sha256(b"parley criteria 1 reference" + study.digest).digest()
    source = KeyedRandomSource(key, private=False)
    return ConditionalModel(model, study.schema.possible).sample(REFERENCE_ROWS, source)


def verdicts(
    study: Study, steps: Sequence[Step], results: Sequence[bytes], model: Model
) -> list[dict[str, object]]:
    """Return which criteria a model meets, for privacy.json; only what was published is used."""
    if not study.criteria:
        return []
    step = steps[-1]
    if not isinstance(step.request, CriteriaRequest):
        raise LocalError("the last step of a study with criteria is their sum")
    rows = [study.rows_of[name] for name in step.parties]
    proportions = read_cells(results[-1], step.cells) / (UNIT * sum(rows))
    error = noise_bound(study, step) / (UNIT * sum(rows))
    reference = _reference(study, model)
    judged, start = [], 0
    for criterion, measure in zip(study.criteria, step.request.measures, strict=True):
        low, high = measure.interval(proportions[start : start + measure.cells].tolist(), error)
        start += measure.cells
        drawn, off = _of_model(measure, reference)
        judged.append(_judged(criterion, low - off, high + off, drawn))
    return [verdict.as_json() for verdict in judged]


def noise_bound(study: Study, step: Step) -> float:
    """Return the bound that no integer's noise exceeds, with a probability of 95 %."""
    deviation = math.sqrt(step.noise_law.variance(study.noise_shares(len(step.parties))))
    return tail(deviation, draws=step.cells, chance=_WRONG)


def _of_model(measure: _Mean | _Proportion, reference: Codes) -> tuple[float, float]:
    """Return the model's mean or share, by the reference rows, and how far it may be off."""
    exact = measure.numbers(count(reference, measure.sets))
    model, _ = measure.interval([number / (UNIT * reference.rows) for number in exact], 0.0)
    return model, measure.sampling_error(exact, reference.rows)


def _judged(criterion: Criterion, low: float, high: float, model: float) -> CriterionVerdict:
    """Judge what was measured to be between two numbers, against the model's."""

    def over(value: float) -> float:
        allowed = float(criterion.limit) * (abs(value) if criterion.relative else 1.0)
        return abs(model - value) - allowed

    # Piecewise linear: it is largest and smallest at an end, at 0 or at the model.
    values = [over(at) for at in (low, high, 0.0, model) if low <= at <= high]
    outcome = CriterionOutcome.NOT_MET if min(values) > 0 else CriterionOutcome.UNDECIDED
    outcome = CriterionOutcome.MET if max(values) <= 0 else outcome
    return CriterionVerdict(criterion.words, outcome, (low + high) / 2, (high - low) / 2, model)
