"""What sets of attributes show beside their margins: the cheapest tables under Gaussian-like noise.

A row is a vector for each attribute: 8 in its group of values, 0 in the others, less 8 / q for q
groups. The contrast of a set of attributes is the sum over the rows of the outer product of their
vectors. It holds what a table of the set holds, but for what smaller sets show better; and a
replaced row moves all pairs of d attributes in q groups by (1 - 1 / q) d in the L2 norm where their
tables move by d, all triples in two groups by half as much as their tables. The exact norms are
`common.privacy.sensitivity.contrasts`. In the L1 norm contrasts move more than tables.

[Kairouz21] has the setting: sums of vectors of bounded L2 norm under distributed discrete noise.

[Kairouz21] Kairouz, Liu, Steinke: The distributed discrete Gaussian mechanism.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from common.crypto.framing import frame
from common.methods.subn_plus.grouping import GroupedTables
from common.privacy.sensitivity import CONTRAST_UNIT, contrast_shift
from common.study.requests import Attributes, Counts, PartyRows, TableShape, split_tables


@dataclass(frozen=True)
class Contrasts:
    """The contrasts of some sets of as many attributes each.

    Attributes:
        sets: the attributes of each.
        groups: for every attribute of the study, the group of each of its values.
    """

    sets: tuple[Attributes, ...]
    groups: tuple[tuple[int, ...], ...]

    tables: ClassVar[Sequence[TableShape]] = ()

    @property
    def shown(self) -> Sequence[TableShape]:
        """The tables that the contrasts are made of: smaller sets are told by other sums."""
        return self.counted.tables

    @property
    def unit(self) -> int:
        """What a row adds to the cell that it is in, before the centre is taken off."""
        return int(CONTRAST_UNIT**self.order)

    @property
    def links(self) -> tuple[Attributes, ...]:
        """The sets."""
        return self.sets

    @cached_property
    def counted(self) -> GroupedTables:
        """The tables that the contrasts are made of."""
        return GroupedTables(self.sets, self.groups)

    @property
    def cells(self) -> int:
        """As many as the tables have."""
        return self.counted.cells

    @property
    def order(self) -> int:
        """How many attributes each set has."""
        return len(self.sets[0])

    @property
    def canonical(self) -> bytes:
        """The sets and the groups."""
        return frame(("contrasts", CONTRAST_UNIT, self.counted.canonical))

    def limit(self, rows: int) -> int:
        """No coordinate of a row's vector is larger than 8."""
        return rows * self.unit

    def answer(self, data: PartyRows) -> Counts:
        """The exact sums."""
        tables = split_tables(self.counted.tables, self.counted.answer(data))
        return np.concatenate([contrast(table).reshape(-1) for table in tables])

    def squares(self, data: PartyRows) -> Counts:
        """The sums over the rows of the squares of what each adds."""
        tables = split_tables(self.counted.tables, self.counted.answer(data))
        return np.concatenate([squares(table).reshape(-1) for table in tables])

    def split(self, answer: Counts) -> list[Counts]:
        """One array for each set."""
        return split_tables(self.counted.tables, answer)


def contrast(table: Counts) -> Counts:
    """The contrast of a set, from its table."""
    for axis, groups in enumerate(table.shape):
        table = CONTRAST_UNIT * table - contrast_shift(groups) * table.sum(axis=axis, keepdims=True)
    return table


def squares(table: Counts) -> Counts:
    """The sums of squares of a set, from its table."""
    for axis, groups in enumerate(table.shape):
        shift = contrast_shift(groups)
        inside, outside = (CONTRAST_UNIT - shift) ** 2, shift**2
        table = (inside - outside) * table + outside * table.sum(axis=axis, keepdims=True)
    return table
