"""How far rows are from what a release measured: released less synthetic counts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from common.methods.subn_plus.descent import RequestInCells
from common.methods.subn_plus.requests import Agreements, GroupedTables, TablesTogether
from common.release.measured import (
    MeasuredTable,
    attributes_of_bits,
    rows_of,
    tables_of,
    variance_of,
)
from common.schema import Codes
from common.study.document import Study
from common.study.requests import Counts, PartyRows, Request, RowsInMemory, read_cells
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
    ends = np.cumsum([table.cells if whole else 1 for table in tables])
    parts = [slice(start, end) for start, end in pairwise([0, *ends])]
    return [
        replace(table, residuals=residuals[part] / unit, deviations=deviations[part] / unit)
        for table, part in zip(tables, parts, strict=True)
    ]


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
