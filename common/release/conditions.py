"""Conditions on rows, like "age in 20..39 and sex = Female", applied to codes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.schema import Codes, Schema
from common.schema.cell_weights import CellWeights
from common.schema.vocabulary import Vocabulary
from common.wavelet.domain import axes_of


@dataclass(frozen=True, slots=True)
class Condition:
    """Which codes of every attribute are allowed; None where all are."""

    allowed: tuple[NDArray[np.bool_] | None, ...]

    @classmethod
    def parse(cls, text: str, schema: Schema) -> Condition:
        """The condition in a text; see `common.schema.query` for the language.

        Raises:
            InputError: showing the place that is not understood, and what may stand there.
        """
        axes = [axis.leaf_codes for axis in axes_of(schema)]
        box = Vocabulary(schema.attributes, axes).compile([text])[0]
        allowed = [
            np.isin(np.arange(len(leaves)), leaves[low:high])
            for leaves, (low, high) in zip(axes, box, strict=True)
        ]
        return cls(tuple(None if values.all() else values for values in allowed))

    def weights(self) -> list[CellWeights]:
        """The condition as weights of cells: 1 where it holds, 0 where it does not."""
        return [
            CellWeights((a,), values.astype(np.float64))
            for a, values in enumerate(self.allowed)
            if values is not None
        ]

    def about(self, attribute: int) -> Condition:
        """The part of the condition that is about one attribute."""
        return Condition(tuple(v if i == attribute else None for i, v in enumerate(self.allowed)))

    def matching(self, codes: Codes) -> int:
        """How many rows satisfy the condition."""
        inside = np.ones(codes.rows, dtype=np.bool_)
        for column, values in zip(codes.columns, self.allowed, strict=True):
            if values is not None:
                inside &= values[column]
        return int(inside.sum())
