"""What Privelet releases: a noisy count of every cell, answers from them, and rows."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
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
from common.release.columns import Columns
from common.release.diagnostics import Diagnostics
from common.release.fitted import FittedModel
from common.release.measured import range_diagnostics
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
        """How many rows satisfy a query, with the exact deviation of the noise."""
        return self.ranges.count(query, confidence=confidence)

    def counts(self, queries: Sequence[str], *, confidence: float = 0.95) -> RangeCounts:
        """How many rows satisfy each of many queries."""
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
        """Independent draws from the noisy counts, made non-negative."""
        return self._draw(rows, source)

    def given(self, condition: Sequence[CellWeights]) -> Draw:
        """What draws the rows that satisfy a condition."""
        cells = self._cells.copy()
        for each in condition:
            shape = [s if a in each.attributes else 1 for a, s in enumerate(self.schema.sizes)]
            order = np.argsort(each.attributes)
            cells *= each.table.transpose(order).reshape(shape)
        if not cells.any():
            raise InputError(NO_MASS)
        return _CellDraw(cells)

    def refit(self, rows: Codes, source: RandomSource) -> FittedPrivelet:
        """Count these rows with noise of the same plan."""
        plan = self.ranges.plan
        cells = noisy_cells(rows, plan, discrete_laplace, source)
        return replace(
            self, ranges=NoisyMatrix(self.schema, plan, cells, rows.rows, source.private)
        )

    def diagnose(self, synthetic: Codes) -> Diagnostics:
        """Every cell was counted; the noise is known by itself."""
        return range_diagnostics(self.ranges)

    def _content(self) -> dict[str, object]:
        """What was done; the counts are in a file of their own."""
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

        It is a range release (`common.release.range_file`) with one more member, which has the
        privacy statement.
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
