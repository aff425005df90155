"""What Privelet releases: a noisy count of every cell, answers from them, and rows."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common.bayes.postprocessing import onto_simplex
from common.errors import InputError
from common.methods.conditional import NO_MASS, Draw
from common.privacy.randomness import RandomSource, uniforms
from common.privacy.sampling.discrete_laplace import discrete_laplace
from common.release import folder as release
from common.release import range_file
from common.release.diagnostics import Diagnostics, ExpectedError, Measured, noise_distance
from common.release.fitted import FittedModel
from common.release.measured import Shares
from common.release.report.release_page import MethodFacts
from common.release.synthetic_table import Columns
from common.schema import Codes
from common.schema.conditions import CellWeights
from common.wavelet import NoisyMatrix, RangeCount, RangeCounts
from common.wavelet.mechanism import noisy_cells
from common.wording import many

METHOD = "privelet"
_ABOUT = "parley.json"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FittedPrivelet(FittedModel):
    """A range release; see `FittedModel` for what is not here."""

    ranges: NoisyMatrix

    @property
    def rows(self) -> int:
        """The public number of rows that were counted."""
        return self.ranges.rows

    def count(self, query: str, *, confidence: float = 0.95) -> RangeCount:
        """Count the rows that satisfy a query, with the exact deviation of the noise."""
        return self.ranges.count(query, confidence=confidence)

    def counts(self, queries: Sequence[str], *, confidence: float = 0.95) -> RangeCounts:
        """Count the rows that satisfy each of many queries."""
        return self.ranges.counts(queries, confidence=confidence)

    @cached_property
    def _cells(self) -> NDArray[np.float64]:
        """The nearest table that has no negative or impossible cell and the right total."""
        cells = self.ranges.matrix().reshape(self.schema.sizes)
        every = tuple(range(cells.ndim))
        mask = self.schema.possible.mask(every, (False,) * cells.ndim)
        possible = np.broadcast_to(True if mask is None else mask, cells.shape)
        nearest = np.zeros_like(cells)
        nearest[possible] = onto_simplex(cells[possible], total=self.rows)
        return nearest

    @cached_property
    def _draw(self) -> Draw:
        return _CellDraw(self._cells)

    def draw(self, rows: int, source: RandomSource) -> Codes:
        """Draw rows independently from the noisy counts, made non-negative."""
        return self._draw(rows, source)

    def given(self, condition: Sequence[CellWeights]) -> Draw:
        """Return what draws the rows that satisfy a condition."""
        cells = self._cells.copy()
        for each in condition:
            shape = [s if a in each.attributes else 1 for a, s in enumerate(self.schema.sizes)]
            order = np.argsort(each.attributes)
            cells *= each.table.transpose(order).reshape(shape)
        if not cells.any():
            raise InputError(NO_MASS)
        return _CellDraw(cells)

    def refit(self, rows: Codes, source: RandomSource) -> FittedPrivelet:
        """Count these rows with noise of this plan."""
        plan = self.ranges.plan
        cells = noisy_cells(rows, plan, discrete_laplace, source)
        return replace(
            self, ranges=NoisyMatrix(self.schema, plan, cells, rows.rows, source.private)
        )

    def diagnose(self, synthetic: Codes) -> Diagnostics:
        """Return the noise in every cell, which is known by itself."""
        return range_diagnostics(self.ranges)

    def method_facts(self, synthetic: Codes) -> MethodFacts:
        """Return no means: the noise is not independent from value to value."""
        plan = self.ranges.plan
        transforms = zip(self.schema.names, plan.axes, strict=True)
        return MethodFacts(
            made=[
                ("method", f"Privelet ({plan.method})"),
                ("cells", f"{plan.cells:,}"),
                ("transforms", ", ".join(f"{name}: {axis.kind}" for name, axis in transforms)),
                ("noise scale", f"{float(plan.scale):,.4g} on weighted coefficients"),
                ("range counts", f"{release.RANGES}: ask it with `parley query`"),
            ],
            shares=range_shares(self.ranges),
            columns=range_errors(self.ranges),
            method_cautions=() if plan.caution is None else (plan.caution,),
        )

    def write_own_files(self, folder: Path) -> None:
        """Write the range counts."""
        self.save(folder / release.RANGES)

    def _content(self) -> dict[str, object]:
        """Return what was done; the counts are in a file of their own."""
        plan = self.ranges.plan
        return {
            "method": METHOD,
            "variant": plan.method,
            "rows": self.rows,
            "cells": plan.cells,
            "noise_scale": str(plan.scale),
            "transforms": {
                name: axis.kind for name, axis in zip(self.schema.names, plan.axes, strict=True)
            },
        }

    def _repr_html_(self) -> str:
        note = "" if self.privacy["private"] else " <strong>NOT PRIVATE</strong>"
        return (
            f"<p>Privelet ({self.ranges.plan.method}), epsilon "
            f"{self.privacy['epsilon_delivered']}, {many(self.rows, 'row')} in "
            f"{self.ranges.plan.cells:,} cells{note}</p>"
        )

    def save(self, path: Path | str) -> None:
        """Write the release to one file that `parley.load` reads; it needs no data.

        The file is a range release (`common.release.range_file`) with one more member, which has
        the privacy statement.
        """
        with release.new_file(Path(path)) as scratch:
            range_file.save(self.ranges, scratch)
            with zipfile.ZipFile(scratch, "a") as archive:
                archive.writestr(zipfile.ZipInfo(_ABOUT), json.dumps(self.to_json(), indent=2))

    @classmethod
    def load(cls, path: Path | str) -> FittedPrivelet:
        """Read what `save` wrote."""
        ranges = range_file.load(path)
        try:
            with zipfile.ZipFile(path) as archive:
                about = json.loads(archive.read(_ABOUT))
            return cls(
                ranges=ranges,
                schema=ranges.schema,
                privacy=dict(about["privacy"]),
                columns=Columns.of_json(about),
            )
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise InputError(f"{path}: {_ABOUT} is missing or damaged: {error!r}") from None


class _CellDraw:
    """Draws cells in proportion to their weights."""

    def __init__(self, cells: NDArray[np.float64]) -> None:
        self._shape = cells.shape
        self._filled = np.flatnonzero(cells)
        self._ladder = np.cumsum(cells.ravel()[self._filled])

    def __call__(self, rows: int, source: RandomSource) -> Codes:
        if rows < 0:
            raise InputError(f"cannot sample {rows} rows: give 0 or more")
        heights = uniforms(rows, source) * self._ladder[-1]
        places = np.searchsorted(self._ladder, heights, side="right")
        cells = self._filled[places.clip(max=len(self._ladder) - 1)]
        return Codes.from_columns(np.unravel_index(cells, self._shape), self._shape)


def range_diagnostics(release: NoisyMatrix) -> Diagnostics:
    """Return one table of all cells: every cell was counted, so every pair was."""
    known = release.cell_deviation()  # else that of noise on every cell
    deviation = 2 * math.sqrt(2) / float(release.plan.epsilon) if known is None else known
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


def range_shares(release: NoisyMatrix) -> list[Shares | None]:
    """Return the noisy distribution of every attribute of a range release."""
    matrix = release.matrix()
    axes = range(matrix.ndim)
    return [matrix.sum(axis=tuple(a for a in axes if a != axis)) / release.rows for axis in axes]


def range_errors(release: NoisyMatrix) -> list[ExpectedError]:
    """Return the noise in every column of a range release; it is unknown for Privelet*."""
    full = np.array([[0, size] for size in release.schema.sizes], dtype=np.intp)
    errors = []
    for position, size in enumerate(release.schema.sizes):
        boxes = np.repeat(full[None], size, axis=0)
        boxes[:, position, 0] = np.arange(size)
        boxes[:, position, 1] = np.arange(size) + 1
        deviations = release.box_counts(boxes).standard_deviations
        if deviations is None:
            return []
        distance = noise_distance(float(deviations.sum()), release.rows)
        deviation = float(np.sqrt((deviations**2).mean()))
        errors.append(ExpectedError((position,), size, deviation, distance))
    return errors
