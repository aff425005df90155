"""How far rows are from what a release measured: released less synthetic counts.

Sums over people with their events have tables over the columns of `Schema.joined`, and their
numbers are people: a person's events are averaged, so that she counts once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from common.methods.subn_plus.descent import RequestInCells
from common.methods.subn_plus.linked.requests import AveragedTables
from common.methods.subn_plus.requests import Agreements, GroupedTables, TablesTogether
from common.release.measured import (
    MeasuredTable,
    attributes_of_bits,
    rows_of,
    tables_of,
    variance_of,
)
from common.schema import Codes
from common.schema.linked import LinkedCodes
from common.study.document import Study
from common.study.requests import (
    Attributes,
    Counts,
    PartyRows,
    Request,
    RowsInMemory,
    read_cells,
)
from common.study.steps import Step

Numbers = NDArray[np.float64]


@runtime_checkable
class Products(Protocol):
    """A request for sums of products, which are no counts: it knows the sums of their squares."""

    def squares(self, data: PartyRows) -> Counts:
        """Return the sum over the rows of each number's square."""


def compared_sums(
    study: Study, steps: Sequence[Step], results: Sequence[bytes], synthetic: Codes
) -> list[MeasuredTable]:
    """Compare every published sum of a study with the synthetic rows."""
    tables: list[MeasuredTable] = []
    for step, result in zip(steps, results, strict=True):
        # What a party chose to look at is measured by other steps.
        tables += (
            _of_sum(study, step, result, synthetic)
            if step.counts_all
            else _of_running_sum(study, step)
        )
    return tables


def _of_sum(study: Study, step: Step, result: bytes, synthetic: Codes) -> list[MeasuredTable]:
    """Compare the tables of a sum with the synthetic rows, if there are any."""
    ungrouped = tables_of(study, step)
    groups = groups_of(step.counted)
    tables = [
        replace(table, groups=grouping) for table, grouping in zip(ungrouped, groups, strict=True)
    ]
    if not synthetic.rows or not tables:  # sums over events are about no column of the rows
        return tables
    published, unit = read_cells(result, step.cells), step.counted.unit
    residuals, deviations = _residuals(
        step.counted, published, synthetic, rows_of(study, step.parties), variance_of(study, step)
    )
    whole = len(published) == sum(table.cells for table in tables)  # else a number for each table
    parts = _parts(table.cells if whole else 1 for table in tables)
    return [
        replace(table, residuals=residuals[part] / unit, deviations=deviations[part] / unit)
        for table, part in zip(tables, parts, strict=True)
    ]


def _parts(lengths: Iterable[int]) -> list[slice]:
    """Return the parts of a vector of these lengths, one after the other."""
    return [slice(start, end) for start, end in pairwise(np.cumsum([0, *lengths]).tolist())]


def groups_of(request: Request) -> list[Mapping[int, Sequence[int]]]:
    """Return, for each table that a request shows, the group of each value of its attributes."""
    match request:
        case RequestInCells(request=inner, parts=parts):
            return [groups_in_cells(coarse, parts) for coarse in groups_of(inner)]
        case TablesTogether(parts=together):
            return [groups for part in together for groups in groups_of(part)]
        case GroupedTables(groups=groups) | Agreements(halves=groups):
            return [dict(enumerate(groups))] * len(request.shown)
    return [{}] * len(request.shown)


def groups_in_cells(
    coarse: Mapping[int, Sequence[int]], parts: Mapping[int, Sequence[int]]
) -> Mapping[int, Sequence[int]]:
    """Return groups of values, from groups of the cells that values are in."""
    below = {a: [coarse[a][cell] for cell in cells] for a, cells in parts.items() if a in coarse}
    return {**coarse, **parts, **below}


def _residuals(
    request: Request,
    published: NDArray[np.int64],
    synthetic: Codes,
    rows: int,
    variance: float,
) -> tuple[Numbers, Numbers]:
    """Return the residuals of a sum, in its own units, and their deviations."""
    drawn = RowsInMemory(synthetic)
    expected = request.answer(drawn)
    if not isinstance(request, Products):
        return compare_counts(published, expected, rows=rows, drawn=drawn.rows, variance=variance)
    scale = rows / drawn.rows
    drawing = (request.squares(drawn) - expected.astype(np.float64) ** 2 / drawn.rows) * scale**2
    return published - expected * scale, np.sqrt(variance + drawing)


def compare_counts(
    published: NDArray[np.int64],
    expected: NDArray[np.int64],
    *,
    rows: int,
    drawn: int,
    variance: float,
) -> tuple[Numbers, Numbers]:
    """Return released less synthetic counts, and the deviation by noise and drawing."""
    scaled = expected * (rows / drawn)
    proportion = np.minimum(np.abs(scaled) / rows, 1)
    drawing = np.maximum(np.abs(scaled) * (1 - proportion), 1.0) * (rows / drawn)
    return published - scaled, np.sqrt(variance + drawing)


def _of_running_sum(study: Study, step: Step) -> Iterator[MeasuredTable]:
    """Yield running sums: the last of them counts the rows of all parties that had a turn."""
    for shape in step.tables:
        attribute_of = attributes_of_bits(study.schema.sizes) if shape.in_bits else None
        yield MeasuredTable(
            name=step.name,
            attributes=tuple(attribute_of[v] for v in shape.variables)
            if attribute_of
            else shape.variables,
            shape=shape.shape,
            deviation=math.sqrt(step.noise_law.variance()),
            rows=rows_of(study, step.exchange.covered(step, shape)),
            grouped=(shape.in_bits,) * len(shape.variables),
        )


@dataclass(frozen=True, slots=True)
class _Averaged:
    """One table of a sum."""

    variables: Attributes
    shape: tuple[int, ...]
    groups: Mapping[int, Sequence[int]]  # of every variable, the group of each of its values


def linked_sums(
    study: Study, steps: Sequence[Step], results: Sequence[bytes], rows: LinkedCodes
) -> list[MeasuredTable]:
    """Compare every published sum of averaged events, or of their number, with these rows."""
    return [
        table
        for step, result in zip(steps, results, strict=True)
        if step.counts_all and rows.rows
        for table in _compared(study, step, result, rows)
    ]


def _compared(
    study: Study, step: Step, result: bytes, rows: LinkedCodes
) -> Iterator[MeasuredTable]:
    """Yield the tables of a sum; none if it is not of this kind."""
    tables = list(_tables(step.counted))
    if not tables:
        return
    people, unit = rows_of(study, step.parties), step.counted.unit
    expected = step.counted.answer(RowsInMemory(rows)) * (people / rows.rows)
    residuals = (read_cells(result, step.cells) - expected) / unit
    parts = _parts(math.prod(table.shape) for table in tables)
    for table, part in zip(tables, parts, strict=True):
        yield MeasuredTable(
            name=step.name,
            attributes=table.variables,
            shape=table.shape,
            deviation=math.sqrt(variance_of(study, step)) / unit,
            rows=people,
            grouped=tuple(
                len(set(table.groups[v])) < len(table.groups[v]) for v in table.variables
            ),
            law=step.noise_law,
            groups=table.groups,
            residuals=residuals[part],
        )


def _tables(request: Request) -> Iterator[_Averaged]:
    match request:
        case RequestInCells(request=inner, parts=parts):
            for table in _tables(inner):
                yield replace(table, groups=groups_in_cells(table.groups, parts))
        case TablesTogether(parts=together):
            for part in together:
                yield from _tables(part)
        case AveragedTables(sets=sets, groups=groups):
            for variables, shape in zip(sets, request.shapes, strict=True):
                yield _Averaged(variables, shape, dict(enumerate(groups)))


def among_events(tables: Sequence[MeasuredTable], number: int, share: float) -> list[MeasuredTable]:
    """Return tables as they are among people who have events, which is this share of people.

    `number` is the column of the number of events. What the rows miss of two columns of people they
    are taken to miss in the same proportion among people with events.
    """
    return [
        _without_none(replace(table, rows=max(round(table.rows * share), 1)), number)
        if max(table.attributes) >= number
        else table
        for table in tables
    ]


def _without_none(table: MeasuredTable, number: int) -> MeasuredTable:
    """Return a table without the people who have no event, if these are a group by themselves."""
    groups = table.groups.get(number, ())
    if number not in table.attributes or list(groups).count(groups[0]) > 1:
        return table
    axis, none = table.attributes.index(number), groups[0]
    assert table.residuals is not None  # noqa: S101  (compared with rows)
    residuals = np.delete(table.residuals.reshape(table.shape), none, axis=axis)
    fewer = [group - (group > none) if group != none else 0 for group in groups]
    return replace(
        table,
        shape=residuals.shape,
        residuals=residuals.ravel(),
        groups={**table.groups, number: fewer},
    )
