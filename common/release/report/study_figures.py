"""What a report shows of a study's published sums: noisy shares, and the noise in every table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeGuard

import numpy as np

from common.release.report.released import MarginalError, Shares
from common.study.document import Study
from common.study.steps import Step, SumStep, TableShape, split_tables


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
        rows = _rows(study, step)
        shapes = _by_attributes(step)
        tables = split_tables(shapes, np.frombuffer(result, dtype="<i8").astype(np.int64))
        for shape, counts in zip(shapes, tables, strict=True):
            for axis, attribute in enumerate(shape.variables):
                summed = step.law.variance() * shape.cells / counts.shape[axis]
                if not shape.grouped[axis] and summed < noise[attribute]:
                    others = tuple(each for each in range(counts.ndim) if each != axis)
                    best[attribute] = counts.sum(axis=others) / rows
                    noise[attribute] = summed
    return best


def study_errors(study: Study, steps: Sequence[Step]) -> list[MarginalError]:
    """The noise in every published table of a study, and in sums that are no tables."""
    found = [each for step in steps if isinstance(step, SumStep) for each in _errors(study, step)]
    least = [math.inf] * len(study.schema.names)
    for shape, error in found:
        for attribute, noise in _margin_noise(shape, error):
            least[attribute] = min(least[attribute], noise)
    return [
        replace(error, telling=any(noise == least[a] for a, noise in _margin_noise(shape, error)))
        for shape, error in found
    ]


def study_noise(study: Study, steps: Sequence[Step]) -> dict[str, float]:
    """The deviation of the count of one value of an attribute, from the table that tells most.

    Attributes of which no table of all parties was published value by value are left out.
    """
    found: dict[str, float] = {}
    for step in steps:
        if not _of_all(step, study):
            continue
        for shape, error in _errors(study, step):
            for attribute, noise in _margin_noise(shape, error):
                name = study.schema.names[attribute]
                deviation = noise / math.sqrt(study.schema.sizes[attribute])
                found[name] = min(deviation, found.get(name, math.inf))
    return found


def _of_all(step: Step, study: Study) -> TypeGuard[SumStep]:
    """Whether a step is a sum over all parties, but for missing ones."""
    return isinstance(step, SumStep) and len(step.parties) >= len(study.members) - study.may_miss


def _rows(study: Study, step: SumStep) -> int:
    """The rows in a sum."""
    there = set(step.parties)
    return sum(member.rows for member in study.members if member.name in there)


def _margin_noise(table: TableShape | None, error: MarginalError) -> Iterator[tuple[int, float]]:
    """How far noise moves the margins that a table shows value by value, up to their own size."""
    if table is not None and error.distance is not None:
        for attribute, grouped in zip(table.variables, table.grouped, strict=True):
            if not grouped:
                yield attribute, error.deviation * math.sqrt(table.cells)


def _errors(study: Study, step: SumStep) -> Iterator[tuple[TableShape | None, MarginalError]]:
    copies = study.noise_shares(len(step.parties))
    deviation = math.sqrt(step.law.variance(copies))
    absolute = step.law.mean_absolute(copies)
    names, rows = study.schema.names, _rows(study, step)
    tables = _by_attributes(step)
    for table in tables:
        words = ", ".join(
            names[a] + ("*" if grouped else "")
            for a, grouped in zip(table.variables, table.grouped, strict=True)
        )
        distance = min(1.0, table.cells * absolute / (2 * rows))
        yield table, MarginalError(words, table.cells, deviation, distance)
    if not tables:
        yield None, MarginalError(step.name, step.cells, deviation, None)


def _by_attributes(step: SumStep) -> list[TableShape]:
    """The tables that count by attributes; none if the step counts bits, or something else."""
    return [table for table in step.tables if not table.in_bits]
