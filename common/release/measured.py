"""What each kind of release measured, for the diagnostics and the report."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from common.bayes.privbayes.model import PrivBayesModel
from common.methods.subn_plus.contrasts import Contrasts
from common.methods.subn_plus.grouping import GroupedTables, even_groups
from common.release.diagnostics import GROUPS, Diagnostics, Measured
from common.release.report.expected_error import noise_by_name
from common.release.report.relations import stands_out
from common.release.report.released import Shares
from common.schema import Codes, Schema
from common.schema.codes import binarise, bit_positions
from common.study.document import Study
from common.study.requests import Request, RowsInMemory, split_tables
from common.study.steps import ChoiceStep, ReplaceStep, Step, SumStep
from common.study.sums import read_cells
from common.wavelet.noisy_matrix import RangeRelease

Numbers = NDArray[np.float64]


def study_diagnostics(
    study: Study, steps: Sequence[Step], results: Sequence[bytes], synthetic: Codes
) -> Diagnostics:
    """Of a study: every published sum, compared with the synthetic rows."""
    found: list[Measured] = []
    for step, result in zip(steps, results, strict=True):
        match step:
            case SumStep():
                found += _of_sum(study, step, result, synthetic)
            case ReplaceStep():
                found += _of_replacement(study, step)
            case ChoiceStep():
                continue  # what a party chose to look at is measured by other steps
    return Diagnostics(study.schema.names, tuple(found), _related(synthetic))


def study_tables(study: Study, steps: Sequence[Step]) -> list[Measured]:
    """Every table that a published sum of a study tells, with the noise in its cells."""
    sums = [step for step in steps if isinstance(step, SumStep)]
    return [table for step in sums for table in _tables_of(study, step)]


def _tables_of(study: Study, step: SumStep) -> list[Measured]:
    shown = step.request.shown
    own = _attributes_of_bits(study.schema.sizes) if any(t.in_bits for t in shown) else None
    return [
        Measured(
            name=step.name,
            attributes=tuple(own[v] for v in shape.variables) if own else shape.variables,
            shape=shape.shape,
            deviation=math.sqrt(_variance(study, step)) / step.request.unit,
            rows=_rows(study, step.parties),
            grouped=tuple(own is not None or each for each in shape.grouped),
            summable=bool(step.tables),
            in_bits=own is not None,
        )
        for shape in shown
    ]


def _variance(study: Study, step: SumStep) -> float:
    return step.law.variance(study.noise_shares(len(step.parties)))


def _rows(study: Study, parties: Collection[str]) -> int:
    return sum(member.rows for member in study.members if member.name in parties)


def _of_sum(study: Study, step: SumStep, result: bytes, synthetic: Codes) -> list[Measured]:
    """The tables of a sum, compared with the synthetic rows if there are any."""
    tables = _tables_of(study, step)
    if not synthetic.rows:
        return tables
    published, unit = read_cells(result, step.cells), step.request.unit
    residuals, deviations = _residuals(
        step.request, published, synthetic, _rows(study, step.parties), _variance(study, step)
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
    """Of a sum, in its own units, and their deviations."""
    drawn = RowsInMemory(synthetic)
    expected = request.answer(drawn)
    if not isinstance(request, Contrasts):
        return _compared(published, expected, rows, drawn.rows, variance)
    scale = rows / drawn.rows
    drawing = (request.squares(drawn) - expected.astype(np.float64) ** 2 / drawn.rows) * scale**2
    return published - expected * scale, np.sqrt(variance + drawing)


def _compared(
    published: NDArray[np.int64],
    expected: NDArray[np.int64],
    rows: int,
    drawn: int,
    variance: float,
) -> tuple[Numbers, Numbers]:
    """Released less synthetic counts, and the deviation by noise and drawing."""
    scaled = expected * (rows / drawn)
    proportion = np.minimum(np.abs(scaled) / rows, 1)
    drawing = np.maximum(np.abs(scaled) * (1 - proportion), 1.0) * (rows / drawn)
    return published - scaled, np.sqrt(variance + drawing)


def _of_replacement(study: Study, step: ReplaceStep) -> Iterator[Measured]:
    """Running sums: the last of them counts the rows of all parties that had a turn."""
    coverage = step.release.books.coverage
    own = _attributes_of_bits(study.schema.sizes) if step.request.in_bits else None
    for shape in step.tables:
        yield Measured(
            name=step.name,
            attributes=tuple(own[v] for v in shape.variables) if own else shape.variables,
            shape=shape.shape,
            deviation=math.sqrt(step.law.variance()),
            rows=_rows(study, coverage[tuple(shape.variables)].parties),
            grouped=(step.request.in_bits,) * len(shape.variables),
        )


def model_tables(model: PrivBayesModel) -> list[Measured]:
    """Every released table of PrivBayes, with the noise in its cells."""
    plan = model.plan
    own = _attributes_of_bits(plan.sizes) if plan.encoding.in_bits else range(len(plan.sizes))
    in_bits = plan.encoding.in_bits and max(plan.sizes) > 2
    return [
        Measured(
            name="tables",
            attributes=tuple(own[view.attribute] for view in family),
            shape=table.shape,
            deviation=math.sqrt(model.law.variance()),
            rows=plan.rows,
            grouped=tuple(in_bits or bool(view.level) for view in family),
            in_bits=in_bits,
        )
        for family, table in model.tables.items()
    ]


def privbayes_diagnostics(model: PrivBayesModel, schema: Schema, synthetic: Codes) -> Diagnostics:
    """Of PrivBayes: every released table, compared with the synthetic rows."""
    plan, tables = model.plan, model_tables(model)
    if synthetic.rows:
        in_bits, gray = plan.encoding.in_bits, plan.encoding == "gray"
        rows = RowsInMemory(
            plan.domain.expand(binarise(synthetic, gray=gray) if in_bits else synthetic)
        )
        for place, (family, counts) in enumerate(model.tables.items()):
            (expected,) = rows.count([tuple(plan.domain.views.index(view) for view in family)])
            residuals, deviations = _compared(
                counts.ravel(), expected.ravel(), plan.rows, rows.rows, model.law.variance()
            )
            tables[place] = replace(tables[place], residuals=residuals, deviations=deviations)
    return Diagnostics(schema.names, tuple(tables), _related(synthetic))


def range_diagnostics(release: RangeRelease) -> Diagnostics:
    """Of Privelet: all cells were counted, so every pair was; noise as its worst pair has it."""
    deviation = _cell_deviation(release)
    everything = Measured(
        name="range counts",
        attributes=tuple(range(len(release.schema.names))),
        shape=release.schema.sizes,
        deviation=deviation,
        rows=release.rows,
        grouped=(False,) * len(release.schema.sizes),
    )
    every = frozenset(combinations(range(len(release.schema.names)), 2))
    return Diagnostics(release.schema.names, (everything,), every)


def _cell_deviation(release: RangeRelease) -> float:
    """Of one cell: exact where the method knows it, else that of noise on every cell."""
    known = release.cell_deviation()
    return 2 * math.sqrt(2) / float(release.plan.epsilon) if known is None else known


def _related(codes: Codes) -> frozenset[tuple[int, int]]:
    """The pairs that depend on each other in these rows, more than by chance.

    Each is looked at in all values, and in few groups, where a weak but steady relation shows.
    """
    pairs = tuple(combinations(range(codes.width), 2))
    if not pairs:
        return frozenset()
    rows = RowsInMemory(codes)
    margins = rows.count([(a,) for a in range(codes.width)])
    groups = tuple(even_groups(own, codes.rows, GROUPS) for own in margins)
    coarse = GroupedTables(pairs, groups)
    in_groups = split_tables(coarse.tables, coarse.answer(rows))
    return frozenset(
        pair
        for pair, *tables in zip(pairs, rows.count(pairs), in_groups, strict=True)
        if any(stands_out(table, among=2 * len(pairs)) for table in tables)
    )


def _attributes_of_bits(sizes: Iterable[int]) -> list[int]:
    """The attribute of every bit."""
    return [a for a, span in enumerate(bit_positions(tuple(sizes))) for _ in span]


def study_shares(
    study: Study, steps: Sequence[Step], results: Sequence[bytes]
) -> list[Shares | None]:
    """Every attribute's noisy distribution, from the published table that tells most about it.

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
                summed = step.law.variance() * shape.cells / counts.shape[axis]
                if not shape.grouped[axis] and summed < noise[attribute]:
                    others = tuple(each for each in range(counts.ndim) if each != axis)
                    best[attribute] = counts.sum(axis=others) / rows
                    noise[attribute] = summed
    return best


def study_noise(study: Study, steps: Sequence[Step]) -> dict[str, float]:
    """The deviation of the count of one value of an attribute, from tables of all parties."""
    tables = study_tables(study, [step for step in steps if _of_all(step, study)])
    return noise_by_name(tables, study.schema.names)


def _of_all(step: Step, study: Study) -> TypeGuard[SumStep]:
    """Whether a step is a sum over all parties, but for missing ones."""
    return isinstance(step, SumStep) and len(step.parties) >= len(study.members) - study.may_miss
