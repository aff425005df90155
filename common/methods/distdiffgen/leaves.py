"""What DistDiffGen counts in the end, and the rows that it draws from these counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from common.crypto.framing import frame
from common.methods.distdiffgen.cuts import Cuts
from common.privacy.randomness import RandomSource, uniforms
from common.schema.codes import Codes
from common.study.requests import Attributes, Counts, PartyRows, TableShape


@dataclass(frozen=True, eq=False)
class LeafRequest:
    """How many rows are in every combination of groups."""

    cuts: Cuts
    sizes: tuple[int, ...]

    unit: ClassVar[int] = 1

    @property
    def shown(self) -> Sequence[TableShape]:
        return self.tables

    @cached_property
    def tables(self) -> tuple[TableShape, ...]:
        """One table of all attributes that were divided, and the target."""
        used = [a for a, groups in enumerate(self.cuts.shape) if groups > 1]
        shape = tuple(self.cuts.shape[a] for a in used)
        grouped = tuple(self.cuts.shape[a] < self.sizes[a] for a in used)
        return (TableShape(tuple(used), shape, grouped),)

    @property
    def links(self) -> Sequence[Attributes]:
        """The attributes that are counted together."""
        return (self.tables[0].variables,)

    @property
    def cells(self) -> int:
        return prod(self.cuts.shape)

    @property
    def canonical(self) -> bytes:
        """The groups and the sizes."""
        return frame(("leaves", frame(self.sizes), self.cuts.canonical))

    def limit(self, rows: int) -> int:
        """Return the rows: a cell counts at most all of them."""
        return rows

    def answer(self, data: PartyRows) -> Counts:
        codes = data.codes()
        places = np.zeros(codes.rows, np.int64)
        for column, groups in zip(codes.columns, self.cuts.maps(self.sizes), strict=True):
            places = places * (int(groups.max()) + 1) + groups[column]
        return np.bincount(places, minlength=self.cells).astype(np.int64)


@dataclass(frozen=True, eq=False)
class LeafModel:
    """Noisy counts of combinations of groups; rows are uniform within a combination.

    Attributes:
        cuts: the groups of every attribute.
        sizes: how many values each attribute has.
        counts: an axis for every attribute of more than one group.
    """

    cuts: Cuts
    sizes: tuple[int, ...]
    counts: NDArray[np.int64]

    arrows: ClassVar[None] = None

    def sample(self, rows: int, source: RandomSource) -> Codes:
        """Draw combinations in proportion to their counts, none below zero, then values."""
        weights = np.maximum(self.counts, 0).astype(np.float64).ravel()
        if not weights.any():
            weights[:] = 1.0
        ladder = np.cumsum(weights)
        places = np.searchsorted(ladder, uniforms(rows, source) * ladder[-1], side="right")
        drawn = iter(np.unravel_index(np.minimum(places, weights.size - 1), self.counts.shape))
        whole = np.zeros(rows, np.intp)
        columns = []
        for cut in self.cuts.groups:
            groups = next(drawn) if len(cut) > 1 else whole
            widths = np.array([len(node.codes()) for node in cut])
            flat = np.array([code for node in cut for code in node.codes()])
            starts = np.cumsum(widths) - widths
            within = (uniforms(rows, source) * widths[groups]).astype(np.intp)
            columns.append(flat[starts[groups] + np.minimum(within, widths[groups] - 1)])
        return Codes.from_columns(columns, self.sizes)

    def as_json(self) -> dict[str, object]:
        """The groups and their counts."""
        return {
            "format": "parley leaves 1",
            "target": self.cuts.target,
            "groups": [[node.codes() for node in cut] for cut in self.cuts.groups],
            "counts": self.counts.ravel().tolist(),
        }
