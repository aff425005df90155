"""The groups of values that DistDiffGen has divided the attributes into, and rows drawn by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from common.bayes.form import Model, NetworkForm, of_combinations, of_values
from common.crypto.framing import frame
from common.methods.subn_plus.requests import GroupedTables
from common.privacy.randomness import RandomSource, uniforms
from common.schema import Schema
from common.schema.codes import Codes
from common.schema.hierarchy import Node

Cut = tuple[Node, ...]  # the groups of one attribute
Division = tuple[int, int]  # an attribute, and the place of a group in its cut


@dataclass(frozen=True, eq=False)
class Cuts:
    """The groups of every attribute; of the target, its values."""

    groups: tuple[Cut, ...]
    target: int

    @classmethod
    def start(cls, schema: Schema, target: int) -> Cuts:
        """Return one group of all values per attribute, but for the target."""
        roots = [attribute.hierarchy.root for attribute in schema.attributes]
        values = tuple(Node(str(code), code=code) for code in range(schema.sizes[target]))
        cuts: list[Cut] = [(root,) for root in roots]
        cuts[target] = values
        return cls(tuple(cuts), target)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(len, self.groups))

    def divisions(self, most_cells: int) -> list[Division]:
        """Return every group that can be divided without passing the cells, in order."""
        cells = prod(self.shape)
        return [
            (attribute, place)
            for attribute, cut in enumerate(self.groups)
            for place, node in enumerate(cut)
            if attribute != self.target
            and node.children
            and cells // len(cut) * (len(cut) - 1 + len(node.children)) <= most_cells
        ]

    def divided(self, division: Division) -> Cuts:
        """Return the groups with one of them replaced by its children."""
        attribute, place = division
        cut = self.groups[attribute]
        below_it = (*cut[:place], *cut[place].children, *cut[place + 1 :])
        groups = (*self.groups[:attribute], below_it, *self.groups[attribute + 1 :])
        return Cuts(groups, self.target)

    def maps(self, sizes: Sequence[int]) -> list[NDArray[np.intp]]:
        """Return, for every attribute, the group of each code."""
        groupings = []
        for cut, size in zip(self.groups, sizes, strict=True):
            groups = np.zeros(size, np.intp)
            for place, node in enumerate(cut):
                groups[node.codes()] = place
            groupings.append(groups)
        return groupings

    @property
    def canonical(self) -> bytes:
        return frame([frame([frame(node.codes()) for node in cut]) for cut in self.groups])


def leaf_request(cuts: Cuts, sizes: Sequence[int]) -> GroupedTables:
    """Ask for the rows in every combination of groups of the divided attributes."""
    divided = tuple(a for a, groups in enumerate(cuts.shape) if groups > 1)
    return GroupedTables(
        (divided,), tuple(tuple(grouping.tolist()) for grouping in cuts.maps(sizes))
    )


@dataclass(frozen=True, eq=False)
class LeafModel(Model):
    """Noisy counts of combinations of groups; rows are uniform within a combination.

    Attributes:
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

    def form(self) -> tuple[NetworkForm, ...]:
        """Return the combination of groups and, given it, every attribute, evenly."""
        form = of_combinations(self.counts, [len(groups) for groups in self.cuts.groups])
        for a, groups in enumerate(self.cuts.maps(self.sizes)):
            form = of_values(form, a, groups, 1 / np.bincount(groups)[groups])
        return (form,)

    def as_json(self) -> dict[str, object]:
        return {
            "format": "parley leaves 1",
            "target": self.cuts.target,
            "groups": [[node.codes() for node in cut] for cut in self.cuts.groups],
            "counts": self.counts.ravel().tolist(),
        }
