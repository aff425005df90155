"""Weights of the joint values of a few attributes: a condition on rows as a table of 0 and 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.schema.codes import Codes


@dataclass(frozen=True, eq=False, slots=True)
class CellWeights:
    """A weight of at least 0 for every cell of the table of some attributes.

    Attributes:
        attributes: their positions in the schema, each once.
        table: an axis for each of them.
    """

    attributes: tuple[int, ...]
    table: NDArray[np.float64]

    def of(self, codes: Codes) -> NDArray[np.float64]:
        """Return the weight of every row."""
        found: NDArray[np.float64] = self.table[tuple(codes.columns[a] for a in self.attributes)]
        return found
