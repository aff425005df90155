"""Acceptance criteria: one more sum when the model is known, and what follows from it.

The sum has one or two integers for each criterion (`common.study.criteria`). A replaced row moves
each by at most `UNIT` (`common.privacy.sensitivity.bounded`):

    mean      the sum of the numbers, from 0 at the least possible to UNIT at the greatest; and UNIT
              for each row that has a number, where cells may be empty
    share     UNIT for each row that satisfies the condition
    distance  UNIT / 2 times the sum of |c - t| over the cells of an owner's own table of two
              attributes: of the mean over all pairs, of the worst pair, or of the pair that is
              worse than 9 of 10

Means and shares are those of all owners' rows together. A distance is not linear in the rows, so it
is each owner's own: the sum is the mean over owners, by their rows. That is never less than the
distance of all rows together (for "mean" and "all", because distances are convex). It includes
chance: rows drawn from the model itself are at a distance from it, which is said beside it.

t is what the model expects of the owner's rows. Every party fits the model to the published sums by
itself, and compares its rows with `REFERENCE_ROWS` that it draws from the model, all from the same
stream. The step does not depend on the fit, and the sensitivity holds for any t: a party whose
machine rounds differently spoils neither the protocol nor the promise.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cache, cached_property, partial
from itertools import combinations
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from common.bayes.model import Model
from common.crypto.framing import frame
from common.errors import InputError, LocalError
from common.exchanges.sums import sum_step
from common.marginals import count
from common.methods.conditional import ConditionalModel
from common.privacy import sensitivity
from common.privacy.randomness import KeyedRandomSource
from common.schema import Codes, Schema
from common.schema.attribute import numbers_of
from common.schema.conditions import cells_of, parse
from common.study.criteria import Criterion
from common.study.document import Study
from common.study.requests import Attributes, Counts, PartyRows, TableShape
from common.study.results import read_cells
from common.study.script import Fit, Script, added_up
from common.study.steps import Step

PHASE = "criteria"
UNIT = 1 << 12
REFERENCE_ROWS = 1 << 18
MOST_PAIR_CELLS = 1 << 12  # of a pair whose distance counts: of larger tables chance is most of it
_MOST = Fraction(9, 10)
_WRONG = 0.05  # the chance that any verdict of a study is wrong, at most


class Outcome(StrEnum):
    """The outcome of a criterion."""

    MET = "met"
    NOT_MET = "not met"
    UNDECIDED = "not decidable at this noise"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known about one criterion.

    Attributes:
        measured: of the owners' rows, with noise.
        error: how far noise and drawing may have moved it; 19 times of 20 none of a study's
            criteria is further off.
        model: that of the model's rows; 0 for a distance, which is the distance from the model.
        by_chance: of a distance: that of as many rows drawn from the model; None otherwise.
    """

    criterion: str
    outcome: Outcome
    measured: float
    error: float
    model: float
    by_chance: float | None = None

    def as_json(self) -> dict[str, object]:
        """Return plain values, to the digits that mean something."""
        numbers = {key: value for key, value in asdict(self).items() if isinstance(value, float)}
        return {**asdict(self), **{key: float(f"{own:.6g}") for key, own in numbers.items()}}


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

    def numbers(self, tables: Sequence[Counts], expected: Sequence[Counts]) -> list[int]:
        (own,) = tables
        return [int(own @ self.grid), UNIT * int(own[self.known].sum())][: self.cells]

    def interval(self, found: Sequence[float], error: float) -> tuple[float, float]:
        """Return the ends of the mean, if each number is at most `error` off."""
        whole = (found[1] - error, found[1] + error) if self.cells == 2 else (1.0, 1.0)
        if whole[0] <= 0:
            return self.ends
        parts = [(found[0] + off) / n for off in (-error, error) for n in whole]
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


class _Proportion:
    """One number from 0 to 1."""

    cells: ClassVar[int] = 1

    def interval(self, found: Sequence[float], error: float) -> tuple[float, float]:
        return max(found[0] - error, 0.0), min(found[0] + error, 1.0)


@dataclass(frozen=True)
class _Share(_Proportion):
    """The share of rows that satisfy a condition."""

    attributes: Attributes
    holds: NDArray[np.bool_]

    @classmethod
    def of(cls, schema: Schema, condition: str) -> _Share:
        attributes, holds = cells_of(parse(condition, schema).root, schema.sizes)
        return cls(attributes, holds > 0)

    @property
    def sets(self) -> list[Attributes]:
        return [self.attributes]

    def numbers(self, tables: Sequence[Counts], expected: Sequence[Counts]) -> list[int]:
        return [UNIT * int(tables[0][self.holds].sum())]

    def sampling_error(self, exact: Sequence[int], rows: int) -> float:
        return _sampling_error(exact[0] / (UNIT * rows), rows)


@dataclass(frozen=True)
class _Distance(_Proportion):
    """How far an owner's tables of two attributes are from the model's."""

    pairs: tuple[Attributes, ...]
    which: str

    @classmethod
    def of(cls, schema: Schema, which: str) -> _Distance:
        sizes = schema.sizes
        every = combinations(range(len(sizes)), 2)
        pairs = tuple((a, b) for a, b in every if sizes[a] * sizes[b] <= MOST_PAIR_CELLS)
        if not pairs:
            raise InputError(
                f"distance: no two attributes have a table of at most {MOST_PAIR_CELLS:,} cells. "
                "Name a mean or a share"
            )
        return cls(pairs, which)

    @property
    def sets(self) -> list[Attributes]:
        return list(self.pairs)

    def numbers(self, tables: Sequence[Counts], expected: Sequence[Counts]) -> list[int]:
        apart = sorted(
            int(np.abs(own - wanted).sum()) for own, wanted in zip(tables, expected, strict=True)
        )
        match self.which:
            case "mean":
                one = sum(apart) // len(apart)
            case "all":
                one = apart[-1]
            case _:
                one = apart[math.ceil(_MOST * len(apart)) - 1]
        return [UNIT // 2 * one]


Measure: TypeAlias = _Mean | _Share | _Distance


def _measure(criterion: Criterion, schema: Schema) -> Measure:
    if criterion.kind == "mean":
        return _Mean.of(schema, criterion.about)
    kind = _Share if criterion.kind == "share" else _Distance
    return kind.of(schema, criterion.about)


@dataclass(frozen=True, eq=False)
class CriteriaRequest:
    """The integers of all criteria.

    Attributes:
        reference: draws rows of the model; called by who answers, and only for distances.
    """

    criteria: tuple[Criterion, ...]
    schema: Schema
    reference: Callable[[], Codes]

    tables: ClassVar[Sequence[TableShape]] = ()
    shown: ClassVar[Sequence[TableShape]] = ()
    links: ClassVar[Sequence[Attributes]] = ()
    unit: ClassVar[int] = UNIT

    @cached_property
    def measures(self) -> tuple[Measure, ...]:
        return tuple(_measure(each, self.schema) for each in self.criteria)

    @property
    def cells(self) -> int:
        return sum(own.cells for own in self.measures)

    @property
    def canonical(self) -> bytes:
        """The criteria: what they mean follows from the schema, which is the study's."""
        plain = (each.plain for each in self.criteria)
        return frame(("criteria", UNIT, *(frame(map(str, own)) for own in plain)))

    def limit(self, rows: int) -> int:
        """Return the largest integer.

        Rows are at UNIT at most. The nearest integers to a table of expected counts add up to no
        more than twice the rows, so a distance is at most UNIT / 2 times three times the rows.
        """
        return 2 * UNIT * rows

    def answer(self, data: PartyRows) -> Counts:
        found = []
        for own in self.measures:
            wanted = isinstance(own, _Distance)
            expected = expected_of(self.reference(), own.sets, data.rows) if wanted else ()
            found += own.numbers(data.count(own.sets), expected)
        return np.array(found, dtype=np.int64)


def expected_of(reference: Codes, sets: Sequence[Attributes], rows: int) -> list[Counts]:
    """Return what the model expects of so many rows, rounded to integers."""
    drawn = reference.rows
    return [(2 * table * rows + drawn) // (2 * drawn) for table in count(reference, sets)]


def with_criteria(script: Callable[[Study], Script[Fit]], study: Study) -> Script[Fit]:
    """Run the steps of a method, and the sum of the criteria after them."""
    for criterion in study.criteria:
        _measure(criterion, study.schema)  # refuses what cannot be measured, before the first step
    fit = cache((yield from script(study)))
    yield from added_up(_step(study, fit))
    return fit


def _step(study: Study, fit: Fit) -> Step:
    reference = cache(partial(_drawn, study, fit, b"reference", REFERENCE_ROWS))
    request = CriteriaRequest(study.criteria, study.schema, reference)
    moved = sensitivity.bounded(request.cells, most=UNIT)
    return sum_step(
        name=PHASE,
        phase=PHASE,
        parties=study.parties,
        request=request,
        sensitivity=moved,
        law=study.promise.law(study.criteria_cost, moved),
    )


def _drawn(study: Study, fit: Fit, what: bytes, rows: int) -> Codes:
    """Draw rows of the model, equal for every party and every reader of the release."""
    key = hashlib.sha256(b"parley criteria 1 " + what + study.digest).digest()
    source = KeyedRandomSource(key, private=False)
    return ConditionalModel(fit(), study.schema.possible).sample(rows, source)


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
    found = read_cells(results[-1], step.cells) / (UNIT * sum(rows))
    error = noise_bound(study, step) / (UNIT * sum(rows))
    reference = _drawn(study, lambda: model, b"reference", REFERENCE_ROWS)
    judged, start = [], 0
    for criterion, own in zip(study.criteria, step.request.measures, strict=True):
        low, high = own.interval(found[start : start + own.cells].tolist(), error)
        start += own.cells
        if isinstance(own, _Distance):
            chance = _by_chance(study, model, own, reference, rows)
            judged.append(_judged(criterion, low, high, 0.0, chance))
        else:
            drawn, off = _of_model(own, reference)
            judged.append(_judged(criterion, low - off, high + off, drawn))
    return [each.as_json() for each in judged]


def noise_bound(study: Study, step: Step) -> float:
    """Return what the noise in none of the integers passes, 19 times of 20.

    The tails of Laplace noise are longer than those of any sum of shares or of Skellam noise.
    """
    deviation = math.sqrt(step.noise_law.variance(study.noise_shares(len(step.parties))))
    return deviation * math.log(step.cells / _WRONG) / math.sqrt(2)


def _by_chance(
    study: Study, model: Model, own: _Distance, reference: Codes, rows: Sequence[int]
) -> float:
    """Return the distance of owners whose rows are drawn from the model."""
    total = 0.0
    for number, each in enumerate(rows):
        some = min(each, REFERENCE_ROWS)  # of more rows chance moves hardly any
        drawn = _drawn(study, lambda: model, b"owner %d" % number, some)
        (apart,) = own.numbers(count(drawn, own.sets), expected_of(reference, own.sets, some))
        total += apart / (UNIT * some) * each
    return total / sum(rows)


def _of_model(own: _Mean | _Share, reference: Codes) -> tuple[float, float]:
    """Return the model's mean or share, by the reference rows, and how far it may be off."""
    exact = own.numbers(count(reference, own.sets), ())
    model, _ = own.interval([number / (UNIT * reference.rows) for number in exact], 0.0)
    return model, own.sampling_error(exact, reference.rows)


def _judged(
    criterion: Criterion, low: float, high: float, model: float, chance: float | None = None
) -> Verdict:
    """Judge what was measured to be between two numbers, against the model's."""

    def over(value: float) -> float:
        allowed = float(criterion.limit) * (abs(value) if criterion.relative else 1.0)
        return abs(model - value) - allowed

    # Piecewise linear: it is largest and smallest at an end, at 0 or at the model.
    values = [over(at) for at in (low, high, 0.0, model) if low <= at <= high]
    outcome = Outcome.NOT_MET if min(values) > 0 else Outcome.UNDECIDED
    outcome = Outcome.MET if max(values) <= 0 else outcome
    return Verdict(criterion.words, outcome, (low + high) / 2, (high - low) / 2, model, chance)
