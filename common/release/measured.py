"""What a release measured: every table that a published sum tells, and the noise in its cells."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from common.privacy.noise_law import NoiseLaw
from common.schema.codes import bit_positions
from common.study.document import Study
from common.study.requests import read_cells, split_tables
from common.study.steps import Step

GROUPS = 8  # of an attribute, from which on they are as good as its values
_MEAN_OF_NORMAL = math.sqrt(2 / math.pi)  # E|x| of a standard normal x: a sum of many draws
_DOUBT = 4.0  # deviations of the mean square of residuals beyond which rows do not follow

Shares = NDArray[np.float64]  # of the rows, one number for each value of an attribute


def noise_distance(deviations: float, rows: int) -> float:
    """Return the part of the rows that noise moves, by the sum of the deviations of all cells."""
    return min(1.0, _MEAN_OF_NORMAL * deviations / (2 * max(1, rows)))


@dataclass(frozen=True, eq=False, kw_only=True)
class MeasuredTable:
    """A table that a released sum tells."""

    name: str  # of the step it belongs to
    attributes: tuple[int, ...]  # those that are counted together
    shape: tuple[int, ...]  # values or groups of each attribute
    deviation: float  # of the noise in one cell
    rows: int  # how many rows it counts
    # of each attribute, whether its values are counted in groups, or in bits
    grouped: tuple[bool, ...]
    # whether tables of fewer attributes can be summed out of it: not if its margins are known from
    # other tables only
    summable: bool = True
    in_bits: bool = False  # whether it counts by bits of its attributes
    law: NoiseLaw | None = None  # of its noise, but for the deviation; None if it is not known
    # of each attribute that is counted in known groups, the group of each of its values
    groups: Mapping[int, Sequence[int]] = field(default_factory=dict)
    # of each released number: released less synthetic, in rows; None if not compared
    residuals: NDArray[np.float64] | None = None
    # of each residual, by noise and the drawing of synthetic rows
    deviations: NDArray[np.float64] | None = None

    @property
    def cells(self) -> int:
        return prod(self.shape)

    def tells(self, attributes: Sequence[int]) -> bool:
        """Return whether the table of these attributes follows from it."""
        mine = set(self.attributes)
        return mine >= set(attributes) if self.summable else mine == set(attributes)

    def usable(self, attributes: Sequence[int]) -> bool:
        """Return whether it tells the table of these attributes, under noise of a known law."""
        if self.law is None or self.residuals is None or self.in_bits or not self.tells(attributes):
            return False
        places = zip(self.attributes, self.grouped, strict=True)
        return all(a in self.groups for a, grouped in places if grouped and a in attributes)

    def fine(self, attributes: Sequence[int]) -> bool:
        """Return whether these attributes are counted value by value, or in many groups."""
        return all(
            size >= GROUPS or not grouped
            for attribute, size, grouped in zip(
                self.attributes, self.shape, self.grouped, strict=True
            )
            if attribute in attributes
        )

    @cached_property
    def spread(self) -> float | None:
        """The root mean square of the residuals in units of noise: near 1 if the rows follow."""
        scores = self._scores(())
        return None if scores is None else float(np.sqrt(np.mean(scores**2)))

    def follows(self, attributes: Sequence[int] = ()) -> bool:
        """Return whether the synthetic rows follow the table, or its sums over other attributes."""
        scores = self._scores(attributes)
        if scores is None:
            return True
        return float(np.mean(scores**2)) <= 1 + _DOUBT * math.sqrt(2 / scores.size)

    def _scores(self, attributes: Sequence[int]) -> NDArray[np.float64] | None:
        """Return residuals in units of noise, of the table or summed over other attributes."""
        if self.residuals is None or self.deviations is None or not self.residuals.size:
            return None
        if not attributes or not self.summable:
            return self.residuals / self.deviations
        others = tuple(axis for axis, a in enumerate(self.attributes) if a not in attributes)
        residual = self.residuals.reshape(self.shape).sum(axis=others)
        variance = (self.deviations**2).reshape(self.shape).sum(axis=others)
        return np.asarray(residual / np.sqrt(variance), dtype=np.float64)

    def moved(self, attributes: Sequence[int]) -> float:
        """Return the part of the rows that noise moves in a table of few groups of these."""
        cells = prod(
            min(size, GROUPS)
            for a, size in zip(self.attributes, self.shape, strict=True)
            if a in attributes
        )
        return noise_distance(self.deviation * math.sqrt(self.cells * cells), self.rows)


@dataclass(frozen=True, slots=True)
class ExpectedError:
    """What noise does to the distribution of a column, or of a pair of columns."""

    attributes: tuple[int, ...]  # one position in the schema, or two
    cells: int  # of their table
    deviation: float  # the standard deviation of the noise in a count, in rows
    distance: float  # the expected total variation distance to the exact distribution, at most 1
    grouped: bool = False  # whether values were counted in groups

    @property
    def rank(self) -> tuple[bool, float, float]:
        """A key that is less for the table that tells more."""
        return self.grouped, self.distance, self.deviation

    def named(self, names: Sequence[str]) -> str:
        return " and ".join(names[attribute] for attribute in self.attributes)


def expected_errors(tables: Iterable[MeasuredTable], order: int) -> list[ExpectedError]:
    """Return the least error of every column (order 1) or pair (order 2) that was counted.

    A method may count a column several times, in tables of its own and in tables with others. What
    is reported is the table that tells most: the table out of which the column, or the pair, can be
    summed with the least noise. A model that is fitted to all tables together is at least as close.
    A column that was only counted in groups of its values, or in bits, is left out: how its rows
    fall to the values of a group is no question of noise.
    """
    best: dict[tuple[int, ...], ExpectedError] = {}
    for table in tables:
        for error in _within(table, order):
            known = best.get(error.attributes)
            if known is None or error.rank < known.rank:
                best[error.attributes] = error
    errors = (best[key] for key in sorted(best))
    return [error for error in errors if order > 1 or not error.grouped]


def noise_by_name(tables: Iterable[MeasuredTable], names: Sequence[str]) -> dict[str, float]:
    """Return the deviation of a value's count, for each column counted value by value."""
    return {error.named(names): error.deviation for error in expected_errors(tables, 1)}


def _within(table: MeasuredTable, order: int) -> Iterator[ExpectedError]:
    """Yield the errors of all sets of so many attributes that can be summed out of a table."""
    if table.in_bits or (not table.summable and len(table.attributes) != order):
        return
    for axes in combinations(range(len(table.attributes)), order):
        cells = prod(table.shape[axis] for axis in axes)
        deviation = table.deviation * math.sqrt(table.cells / cells)
        distance = noise_distance(cells * deviation, table.rows)
        grouped = any(table.grouped[axis] for axis in axes)
        attributes = tuple(sorted(table.attributes[axis] for axis in axes))
        yield ExpectedError(attributes, cells, deviation, distance, grouped)


def study_tables(study: Study, steps: Sequence[Step]) -> list[MeasuredTable]:
    sums = [step for step in steps if step.counts_all]
    return [table for step in sums for table in tables_of(study, step)]


def tables_of(study: Study, step: Step) -> list[MeasuredTable]:
    shown = step.counted.shown
    attribute_of = attributes_of_bits(study.schema.sizes) if any(t.in_bits for t in shown) else None
    return [
        MeasuredTable(
            name=step.name,
            attributes=tuple(attribute_of[v] for v in shape.variables)
            if attribute_of
            else shape.variables,
            shape=shape.shape,
            deviation=math.sqrt(variance_of(study, step)) / step.counted.unit,
            rows=rows_of(study, step.parties),
            grouped=tuple(attribute_of is not None or grouped for grouped in shape.grouped),
            summable=bool(step.tables),
            in_bits=attribute_of is not None,
            law=step.noise_law,
        )
        for shape in shown
    ]


def variance_of(study: Study, step: Step) -> float:
    return step.noise_law.variance(study.noise_shares(len(step.parties)))


def rows_of(study: Study, parties: Collection[str]) -> int:
    return sum(study.rows_of[name] for name in parties)


def attributes_of_bits(sizes: Iterable[int]) -> list[int]:
    return [a for a, span in enumerate(bit_positions(tuple(sizes))) for _ in span]


def study_shares(
    study: Study, steps: Sequence[Step], results: Sequence[bytes]
) -> list[Shares | None]:
    """Return every attribute's noisy distribution, from the published table that tells most.

    None for an attribute of which no table of all parties was published value by value.
    """
    best: list[Shares | None] = [None] * len(study.schema.names)
    noise = [math.inf] * len(best)
    for step, result in zip(steps, results, strict=True):
        if not _of_all(step, study):
            continue
        rows = rows_of(study, step.parties)
        shapes = [table for table in step.tables if not table.in_bits]
        tables = split_tables(shapes, read_cells(result, step.cells))
        for shape, counts in zip(shapes, tables, strict=True):
            for axis, attribute in enumerate(shape.variables):
                summed = step.noise_law.variance() * shape.cells / counts.shape[axis]
                if not shape.grouped[axis] and summed < noise[attribute]:
                    others = tuple(other for other in range(counts.ndim) if other != axis)
                    best[attribute] = counts.sum(axis=others) / rows
                    noise[attribute] = summed
    return best


def study_noise(study: Study, steps: Sequence[Step]) -> dict[str, float]:
    """Return the deviation of a value's count for each attribute, from tables of all parties."""
    tables = study_tables(study, [step for step in steps if _of_all(step, study)])
    return noise_by_name(tables, study.schema.names)


def _of_all(step: Step, study: Study) -> bool:
    """Return whether a step is a sum over all parties, but for missing parties."""
    return step.counts_all and len(step.parties) >= len(study.members) - study.may_miss
