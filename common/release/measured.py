"""What a study measured, for the diagnostics and the report, and how rows compare with counts."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from common.methods.subn_plus.requests import Contrasts, GroupedTables, even_groups
from common.release.diagnostics import GROUPS, Diagnostics, Measured, noise_by_name
from common.release.report.relations import significant
from common.schema import Codes
from common.schema.codes import bit_positions
from common.study.document import Study
from common.study.requests import Request, RowsInMemory, split_tables
from common.study.results import read_cells
from common.study.steps import Step

Numbers = NDArray[np.float64]
Shares = Numbers  # of the rows, one number for each value of an attribute


def study_diagnostics(
    study: Study, steps: Sequence[Step], results: Sequence[bytes], synthetic: Codes
) -> Diagnostics:
    """Compare every published sum of a study with the synthetic rows."""
    found: list[Measured] = []
    for step, result in zip(steps, results, strict=True):
        # What a party chose to look at is measured by other steps.
        found += (
            _of_sum(study, step, result, synthetic)
            if step.counts_all
            else _of_running_sum(study, step)
        )
    return Diagnostics(study.schema.names, tuple(found), related_pairs(synthetic))


def study_tables(study: Study, steps: Sequence[Step]) -> list[Measured]:
    """Return every table that a published sum of a study tells, with the noise in its cells."""
    sums = [step for step in steps if step.counts_all]
    return [table for step in sums for table in _tables_of(study, step)]


def _tables_of(study: Study, step: Step) -> list[Measured]:
    request = step.counted
    shown = request.shown
    own = attributes_of_bits(study.schema.sizes) if any(t.in_bits for t in shown) else None
    return [
        Measured(
            name=step.name,
            attributes=tuple(own[v] for v in shape.variables) if own else shape.variables,
            shape=shape.shape,
            deviation=math.sqrt(_variance(study, step)) / request.unit,
            rows=_rows(study, step.parties),
            grouped=tuple(own is not None or each for each in shape.grouped),
            summable=bool(step.tables),
            in_bits=own is not None,
        )
        for shape in shown
    ]


def _variance(study: Study, step: Step) -> float:
    return step.noise_law.variance(study.noise_shares(len(step.parties)))


def _rows(study: Study, parties: Collection[str]) -> int:
    return sum(study.rows_of[name] for name in parties)


def _of_sum(study: Study, step: Step, result: bytes, synthetic: Codes) -> list[Measured]:
    """Compare the tables of a sum with the synthetic rows, if there are any."""
    tables = _tables_of(study, step)
    if not synthetic.rows:
        return tables
    published, unit = read_cells(result, step.cells), step.counted.unit
    residuals, deviations = _residuals(
        step.counted, published, synthetic, _rows(study, step.parties), _variance(study, step)
    )
    whole = len(published) == sum(table.cells for table in tables)  # else a number for each table
    ends = np.cumsum([table.cells if whole else 1 for table in tables])
    parts = [slice(start, end) for start, end in pairwise([0, *ends])]
    return [
        replace(table, residuals=residuals[part] / unit, deviations=deviations[part] / unit)
        for table, part in zip(tables, parts, strict=True)
    ]


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
    if not isinstance(request, Contrasts):
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


def _of_running_sum(study: Study, step: Step) -> Iterator[Measured]:
    """Yield running sums: the last of them counts the rows of all parties that had a turn."""
    for shape in step.tables:
        own = attributes_of_bits(study.schema.sizes) if shape.in_bits else None
        yield Measured(
            name=step.name,
            attributes=tuple(own[v] for v in shape.variables) if own else shape.variables,
            shape=shape.shape,
            deviation=math.sqrt(step.noise_law.variance()),
            rows=_rows(study, step.exchange.covered(step, shape)),
            grouped=(shape.in_bits,) * len(shape.variables),
        )


def related_pairs(codes: Codes) -> frozenset[tuple[int, int]]:
    """Return the pairs whose dependence in these rows is significant.

    Each is tested in all values, and in few groups, where a weak but steady relation shows.
    """
    pairs = tuple(combinations(range(codes.width), 2))
    if not pairs:
        return frozenset()
    rows = RowsInMemory(codes)
    margins = rows.count([(a,) for a in range(codes.width)])
    groups = tuple(even_groups(own, codes.rows, groups=GROUPS) for own in margins)
    coarse = GroupedTables(pairs, groups)
    in_groups = split_tables(coarse.tables, coarse.answer(rows))
    return frozenset(
        pair
        for pair, *tables in zip(pairs, rows.count(pairs), in_groups, strict=True)
        if any(significant(table, among=2 * len(pairs)) for table in tables)
    )


def attributes_of_bits(sizes: Iterable[int]) -> list[int]:
    """Return the attribute of every bit."""
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
        rows = _rows(study, step.parties)
        shapes = [table for table in step.tables if not table.in_bits]
        tables = split_tables(shapes, read_cells(result, step.cells))
        for shape, counts in zip(shapes, tables, strict=True):
            for axis, attribute in enumerate(shape.variables):
                summed = step.noise_law.variance() * shape.cells / counts.shape[axis]
                if not shape.grouped[axis] and summed < noise[attribute]:
                    others = tuple(each for each in range(counts.ndim) if each != axis)
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
