"""What a report shows of a study's published sums: noisy shares, and the noise in every table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from common.methods.subn_plus.grouping import GroupedTables
from common.privacy.laplace import discrete_laplace_variance
from common.release.report.released import MarginalError, Shares
from common.study.document import Study
from common.study.steps import Attributes, Counts, Request, Step, SumStep, TableRequest


@dataclass(frozen=True, slots=True)
class _Shape:
    """A table of a request: what it counts by, and which of that it sees in groups only."""

    attributes: Attributes
    grouped: tuple[bool, ...]
    cells: int


def study_shares(
    study: Study, steps: Sequence[Step], results: Sequence[bytes]
) -> list[Shares | None]:
    """Every attribute's noisy distribution, from the published table that tells most about it.

    None for an attribute of which no table of all parties was published value by value.
    """
    best: list[Shares | None] = [None] * len(study.schema.names)
    noise = [math.inf] * len(best)
    for step, result in zip(steps, results, strict=True):
        if not (isinstance(step, SumStep) and len(step.parties) == len(study.members)):
            continue
        shapes = _shapes(step.request)
        tables = _tables(step.request, np.frombuffer(result, dtype="<i8").astype(np.int64))
        for shape, counts in zip(shapes, tables, strict=True):
            for axis, attribute in enumerate(shape.attributes):
                summed = float(step.scale) ** 2 * shape.cells / counts.shape[axis]
                if not shape.grouped[axis] and summed < noise[attribute]:
                    others = tuple(each for each in range(counts.ndim) if each != axis)
                    best[attribute] = counts.sum(axis=others) / study.rows
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
        if not (isinstance(step, SumStep) and len(step.parties) == len(study.members)):
            continue
        for shape, error in _errors(study, step):
            for attribute, noise in _margin_noise(shape, error):
                name = study.schema.names[attribute]
                deviation = noise / math.sqrt(study.schema.sizes[attribute])
                found[name] = min(deviation, found.get(name, math.inf))
    return found


def _margin_noise(shape: _Shape | None, error: MarginalError) -> Iterator[tuple[int, float]]:
    """How far noise moves the margins that a table shows value by value, up to their own size."""
    if shape is not None and error.distance is not None:
        for attribute, grouped in zip(shape.attributes, shape.grouped, strict=True):
            if not grouped:
                yield attribute, error.deviation * math.sqrt(shape.cells)


def _errors(study: Study, step: SumStep) -> Iterator[tuple[_Shape | None, MarginalError]]:
    shares = study.noise_shares(len(step.parties))
    deviation = math.sqrt(float(shares) * discrete_laplace_variance(step.scale))
    names, members = study.schema.names, {member.name: member.rows for member in study.members}
    rows = sum(members[party] for party in step.parties)
    absolute = float(step.scale) * mean_absolute(float(shares))
    shapes = _shapes(step.request)
    for shape in shapes:
        words = ", ".join(
            names[a] + ("*" if grouped else "")
            for a, grouped in zip(shape.attributes, shape.grouped, strict=True)
        )
        distance = min(1.0, shape.cells * absolute / (2 * rows))
        yield shape, MarginalError(words, shape.cells, deviation, distance)
    if not shapes:
        yield None, MarginalError(step.name, step.request.cells, deviation, None)


def mean_absolute(shares: float) -> float:
    """E|noise| in units of the scale, for so many shares of Laplace noise.

    The difference of two gamma variables of shape r has E|x| = 2 gamma(r + 1/2) / (sqrt(pi)
    gamma(r)); 1 for r = 1. Rounding to integers changes it little from a scale of 1 on.
    """
    return 2 * math.exp(math.lgamma(shares + 0.5) - math.lgamma(shares)) / math.sqrt(math.pi)


def _shapes(request: Request) -> list[_Shape]:
    """The tables of a request by attributes; none if it counts something else."""
    match request:
        case TableRequest(in_bits=False):
            return [
                _Shape(attributes, (False,) * len(attributes), cells)
                for attributes, cells in zip(request.sets, request.shape_cells, strict=True)
            ]
        case GroupedTables():
            return [
                _Shape(
                    attributes,
                    tuple(request.map_of(a) is not None for a in attributes),
                    math.prod(shape),
                )
                for attributes, shape in zip(request.sets, request.shapes, strict=True)
            ]
        case _:
            return []


def _tables(request: Request, vector: Counts) -> list[Counts]:
    match request:
        case TableRequest(in_bits=False) | GroupedTables():
            return request.tables(vector)
        case _:
            return []
