"""What DistDiffGen counts in the end, and the rows that it draws from these counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.methods.distdiffgen.cuts import Cuts
from common.methods.subn_plus.grouping import GroupedTables
from common.privacy.randomness import RandomSource, uniforms
from common.schema.codes import Codes


def leaf_request(cuts: Cuts, sizes: Sequence[int]) -> GroupedTables:
    """How many rows are in every combination of groups of the attributes that were divided."""
    divided = tuple(a for a, groups in enumerate(cuts.shape) if groups > 1)
    return GroupedTables((divided,), tuple(tuple(own.tolist()) for own in cuts.maps(sizes)))


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
