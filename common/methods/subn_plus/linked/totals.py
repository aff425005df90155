"""Totals of what bins hide, of people's numbers and of the numbers of their events.

As in a single table (`common.methods.subn_plus.totals`), with a person's events averaged: each of
her m events adds its distance from the middle of its bin, over m, in quarters that are rounded to
the nearest integer. What she adds to the classes of a column is together no more than a person with
one event at the end of a bin adds, but for rounding (`largest_total`): so the totals of a column
cost about as much noise as those of single rows. Averages in units of lcm(1, ..., most), as tables
have them, would need noise of more digits than can be drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from common.crypto.framing import frame
from common.marginals import count
from common.methods.subn_plus.linked.requests import linked
from common.methods.subn_plus.totals import LARGEST, BinTotals, distances, in_classes
from common.privacy import sensitivity
from common.privacy.sensitivity import Sensitivity
from common.schema.codes import CodeColumn, Codes, code_dtype
from common.schema.linked import LinkedCodes
from common.study.requests import Attributes, Counts, PartyRows

QUARTERS = 4  # of a distance: a person adds so many for one of her own numbers


@dataclass(frozen=True)
class AveragedTotals(BinTotals):
    """The totals of columns of people and of events; `columns` are variables of both.

    Attributes:
        people: how many variables are the person's: her attributes and her number of events.
        most: the most events of a person that count.
    """

    people: int
    most: int

    unit: ClassVar[int] = QUARTERS

    @property
    def links(self) -> tuple[Attributes, ...]:
        """The people's attributes; a column of events has none."""
        return tuple((column,) if column < self.people - 1 else () for column in self.columns)

    @property
    def sensitivity(self) -> Sensitivity:
        return sensitivity.class_totals(len(self.columns), largest=largest_total(self.most))

    @property
    def canonical(self) -> bytes:
        return frame(("averaged totals", QUARTERS, self.people, self.most, super().canonical))

    def roundings(self, column: int) -> float:
        """Return the rounding of a person's average, in that of one distance.

        Each of m events is off by up to half a quarter more.
        """
        return 1.0 if column < self.people else 1.0 + self.most / (2 * QUARTERS)

    def limit(self, rows: int) -> int:
        """Return the limit: no person adds more to a total."""
        return rows * largest_total(self.most)

    def answer(self, data: PartyRows) -> Counts:
        """Add up distances of people, and those of events over how many each person has."""
        total = np.zeros(self.cells, dtype=np.int64)
        for codes in linked(data):
            parts = (self._totals(codes, place) for place in range(len(self.columns)))
            total += np.concatenate(list(parts))
        return total

    def _totals(self, codes: LinkedCodes, place: int) -> Counts:
        column, classes, spans = self.columns[place], self.classes[place], self.spans[place]
        far = distances(classes, spans)
        if column < self.people:
            people = Codes(codes.columns, codes.sizes, places=codes.places)
            (table,) = count(people.placed, [(column, codes.width + column)])
            return in_classes((QUARTERS * far * table).sum(axis=1), classes)
        placed, of_events = codes.events.placed, column - self.people
        number: CodeColumn = codes.numbers[codes.of_person].astype(code_dtype(self.most + 1))
        events = Codes((number, *placed.columns), (self.most + 1, *placed.sizes))
        (table,) = count(events, [(0, 1 + of_events, 1 + codes.events.width + of_events)])
        sums = sum((over(far, m) * table[m]).sum(axis=1) for m in range(1, self.most + 1))
        return in_classes(np.asarray(sums), classes)


def over(far: Counts, number: int) -> Counts:
    """Return distances over a person's number of events, in quarters: the nearest integers."""
    return np.asarray((2 * QUARTERS * far + number) // (2 * number), dtype=np.int64)


def largest_total(most: int) -> int:
    """Return what a person with up to `most` events adds to the totals of a column, at most.

    That is the sum of absolute values over the classes. Each of m events adds at most what one at
    an end of the widest bin adds, `over(127, m)`; rounded up or down, its size is the same.
    """
    ends = np.array([LARGEST], dtype=np.int64)
    return max(number * int(over(ends, number)[0]) for number in range(1, most + 1))
