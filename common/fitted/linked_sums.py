"""What a release measured of people with their events, compared with rows of both tables.

Tables are over the columns of `Schema.joined`, and their numbers are people: a person's events are
averaged, so that she counts once. `common.fitted.compared` has the tables of people's columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from common.fitted.compared import groups_in_cells
from common.methods.subn_plus.descent import RequestInCells
from common.methods.subn_plus.linked.requests import AveragedTables
from common.methods.subn_plus.requests import TablesTogether
from common.release.measured import MeasuredTable, rows_of, variance_of
from common.schema.linked import LinkedCodes
from common.study.document import Study
from common.study.requests import Attributes, Request, RowsInMemory, read_cells
from common.study.steps import Step


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
    ends = np.cumsum([math.prod(table.shape) for table in tables]).tolist()
    for table, (start, end) in zip(tables, pairwise([0, *ends]), strict=True):
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
            residuals=residuals[start:end],
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
