"""What Privelet releases: a noisy count of every cell, answers from them, and rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common.bayes.postprocessing import onto_simplex
from common.errors import InputError
from common.fitted.model import FittedModel
from common.methods.conditional import NO_MASS, Draw
from common.privacy.noise_law import DiscreteLaplace
from common.privacy.randomness import RandomSource, uniforms
from common.privacy.sampling.discrete_laplace import discrete_laplace
from common.privacy.sensitivity import histograms
from common.release import folder as release
from common.release import range_file
from common.release.manifest import MethodVersion
from common.release.measured import ExpectedError, MeasuredTable, Shares, noise_distance
from common.release.model_file import PRIVELET, ranges_content, read_range_file
from common.schema import Codes
from common.schema.conditions import CellWeights
from common.wavelet import NoisyMatrix, RangeCount, RangeCounts
from common.wavelet.mechanism import noisy_cells
from common.wording import many


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PriveletFit(FittedModel):
    """A range release; see `FittedModel` for what is not here."""

    ranges: NoisyMatrix

    @property
    def rows(self) -> int:
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
        cells = self._cells.copy()
        for weights in condition:
            shape = [s if a in weights.attributes else 1 for a, s in enumerate(self.schema.sizes)]
            order = np.argsort(weights.attributes)
            cells *= weights.table.transpose(order).reshape(shape)
        if not cells.any():
            raise InputError(NO_MASS)
        return _CellDraw(cells)

    def refit(self, rows: Codes, source: RandomSource) -> PriveletFit:
        plan = self.ranges.plan
        cells = noisy_cells(rows, plan, discrete_laplace, source)
        return replace(
            self, ranges=NoisyMatrix(self.schema, plan, cells, rows.rows, source.private)
        )

    @property
    def tables(self) -> list[MeasuredTable]:
        """One table of all cells: every cell was counted, so every pair was."""
        known = self.ranges.cell_deviation()  # else that of noise on every cell
        if known is None:
            on_cells = DiscreteLaplace.costing(self.ranges.plan.epsilon, sensitivity=histograms(1))
            known = math.sqrt(on_cells.nominal_variance)
        sizes = self.schema.sizes
        return [
            MeasuredTable(
                name="range counts",
                attributes=tuple(range(len(sizes))),
                shape=sizes,
                deviation=known,
                rows=self.rows,
                grouped=(False,) * len(sizes),
            )
        ]

    def compared(self, synthetic: Codes) -> list[MeasuredTable]:
        """Return the noise in every cell, which is known by itself."""
        return self.tables

    @property
    def every_cell(self) -> bool:
        return True

    @property
    def shares(self) -> list[Shares | None]:
        matrix = self.ranges.matrix()
        axes = range(matrix.ndim)
        return [matrix.sum(axis=tuple(a for a in axes if a != axis)) / self.rows for axis in axes]

    @property
    def column_errors(self) -> list[ExpectedError]:
        """The exact noise in every column; unknown for Privelet*."""
        sizes = self.schema.sizes
        full = np.array([[0, size] for size in sizes], dtype=np.intp)
        errors = []
        for position, size in enumerate(sizes):
            boxes = np.repeat(full[None], size, axis=0)
            boxes[:, position, 0] = np.arange(size)
            boxes[:, position, 1] = np.arange(size) + 1
            deviations = self.ranges.box_counts(boxes).standard_deviations
            if deviations is None:
                return []
            distance = noise_distance(float(deviations.sum()), self.rows)
            deviation = float(np.sqrt((deviations**2).mean()))
            errors.append(ExpectedError((position,), size, deviation, distance))
        return errors

    @property
    def pair_errors(self) -> tuple[ExpectedError, ...]:
        """None: every pair was counted, cell by cell."""
        return ()

    @property
    def cautions(self) -> tuple[str, ...]:
        caution = self.ranges.plan.caution
        return () if caution is None else (caution,)

    @property
    def how_made(self) -> list[tuple[str, object]]:
        plan = self.ranges.plan
        transforms = zip(self.schema.names, plan.axes, strict=True)
        return [
            ("method", f"Privelet ({plan.method})"),
            ("cells", f"{plan.cells:,}"),
            ("transforms", ", ".join(f"{name}: {axis.kind}" for name, axis in transforms)),
            ("noise scale", f"{float(plan.scale):,.4g} on weighted coefficients"),
            ("range counts", f"{release.RANGES}: ask it with `parley query`"),
        ]

    @property
    def made_with(self) -> MethodVersion:
        return PRIVELET

    def write_own_files(self, folder: Path) -> None:
        self.save(folder / release.RANGES)

    def _content(self) -> dict[str, object]:
        return ranges_content(self.ranges)

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
        range_file.save(self.ranges, path, self.to_json())

    @classmethod
    def load(cls, path: Path | str) -> PriveletFit:
        ranges, stored = read_range_file(path)
        return cls(ranges=ranges, **stored._asdict())


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
