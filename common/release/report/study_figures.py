"""What a report shows of a study's published sums: noisy shares, and the noise in a count."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeGuard

from common.release.measured import study_tables
from common.release.report.expected_error import noise_by_name
from common.release.report.released import Shares
from common.study.document import Study
from common.study.requests import split_tables
from common.study.steps import Step, SumStep
from common.study.sums import read_cells


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
        there = set(step.parties)
        rows = sum(member.rows for member in study.members if member.name in there)
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
