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
from common.methods.subn_plus.totals import LARGEST, NO_CLASS, BinTotals, distances, in_classes
from common.privacy import sensitivity
from common.privacy.sensitivity import Sensitivity
from common.schema.codes import Codes
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
            parts = (self._totals(codes, at) for at in range(len(self.columns)))
            total += np.concatenate(list(parts))
        return total

    def _totals(self, codes: LinkedCodes, at: int) -> Counts:
        column, classes, spans = self.columns[at], self.classes[at], self.spans[at]
        far = distances(classes, spans)
        if column < self.people:
            people = Codes(codes.columns, codes.sizes, places=codes.places)
            (table,) = count(people.placed, [(column, codes.width + column)])
            return in_classes((QUARTERS * far * table).sum(axis=1), classes)
        place = column - self.people
        placed, width = codes.events.placed.columns, codes.events.width
        numbers = codes.numbers[codes.of_person]
        parts = over(far[placed[place], placed[width + place]], numbers)
        class_of = np.array(classes)[placed[place]]
        totals = np.zeros(max(classes) + 1, dtype=np.int64)
        np.add.at(totals, class_of[class_of != NO_CLASS], parts[class_of != NO_CLASS])
        return totals


def over(far: Counts, numbers: Counts | int) -> Counts:
    """Return distances over a person's number of events, in quarters: the nearest integers."""
    return np.asarray((2 * QUARTERS * far + numbers) // (2 * numbers), dtype=np.int64)


def largest_total(most: int) -> int:
    """Return what a person with up to `most` events adds to the totals of a column, at most.

    That is the sum of absolute values over the classes. Each of m events adds at most what one at
    the upper end of the widest bin adds, `over(127, m)`; below zero, rounding makes it no larger.
    """
    ends = np.array([LARGEST], dtype=np.int64)
    return max(number * int(over(ends, number)[0]) for number in range(1, most + 1))
