"""Totals of what bins hide: how far numbers are from the middles of their bins.

Histograms tell how many numbers are in a bin, not where in it they are, and numbers heap: at 40
hours, at round amounts, at the ends of bins. The mean of a column is the mean of the middles, which
the margins tell, and the mean distance from the middles. One more sum asks for the total of these
distances. The total of the numbers themselves would move by the whole range of a column with one
replaced row; this one moves by the width of a bin, so 1 or 2 percent of the budget are enough.

A column has a total for each of several classes of bins, neighbours of similar widths. A row is in
one class, so classes cost nothing (`common.privacy.sensitivity.class_totals`); there are as many as
can be seen. Distances are integers: a number has one of 255 places in its bin
(`common.schema.codes`), and the ends of the widest bin of a class are at -127 and 127.

The sum is made only where public facts say that it helps. Numbers that heap move a mean by up to
half a bin; the noise has to be below an eighth of that, or the sum is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from common.crypto.framing import frame
from common.methods.subn_plus.facts import PublicFacts
from common.methods.subn_plus.requests import Groups, even_groups
from common.privacy import sensitivity
from common.privacy.sensitivity import Sensitivity
from common.schema.codes import MIDDLE, PLACES
from common.study.requests import Attributes, Counts, PartyRows, TableShape
from common.study.script import Script, added_up

LARGEST = MIDDLE  # what a row adds to a total, at most
NO_CLASS = -1  # of a value that hides nothing
# Fractions of the budget, by how many times less than half a bin their noise has to be.
_FRACTIONS = {64: Fraction(1, 100), 8: Fraction(1, 50)}
_CLEAR = 4  # deviations in a class of the numbers that it could move
_SIMILAR = 4  # times as wide
_MOST_CLASSES = 32
NAME = "totals"  # of the step


@dataclass(frozen=True)
class BinTotals:
    """The totals of distances from the middles of bins, of columns by classes of bins.

    Attributes:
        columns: the attributes.
        classes: of each column, the class of every value; `NO_CLASS` if it hides nothing.
        spans: of each column and value, how wide its bin is.
        width: how many attributes there are.
    """

    columns: Attributes
    classes: tuple[Groups, ...]
    spans: tuple[Groups, ...]
    width: int

    tables: ClassVar[Sequence[TableShape]] = ()
    shown: ClassVar[Sequence[TableShape]] = ()
    unit: ClassVar[int] = 1

    @property
    def links(self) -> tuple[Attributes, ...]:
        return tuple((column,) for column in self.columns)

    @property
    def counts(self) -> tuple[int, ...]:
        """How many classes each column has."""
        return tuple(max(class_of) + 1 for class_of in self.classes)

    @property
    def cells(self) -> int:
        return sum(self.counts)

    @property
    def sensitivity(self) -> Sensitivity:
        return sensitivity.class_totals(len(self.columns), largest=LARGEST)

    @property
    def canonical(self) -> bytes:
        columns = zip(self.columns, self.classes, self.spans, strict=True)
        return frame(
            (
                "totals in bins",
                PLACES,
                self.width,
                *(
                    frame((a, frame(number - NO_CLASS for number in class_of), frame(spans)))
                    for a, class_of, spans in columns
                ),
            )
        )

    def limit(self, rows: int) -> int:
        """Return the limit: no row adds more than `LARGEST` to a total."""
        return rows * LARGEST

    def answer(self, data: PartyRows) -> Counts:
        tables = data.count([(column, self.width + column) for column in self.columns])
        return np.concatenate(
            [
                in_classes((table * distances(class_of, spans)).sum(axis=1), class_of)
                for table, class_of, spans in zip(tables, self.classes, self.spans, strict=True)
            ]
        )

    def roundings(self, column: int) -> float:
        """Return how many distances are rounded for a row, of its place and of its distance: 1."""
        return 1.0

    def split(self, answer: Counts) -> dict[int, Counts]:
        """Return the totals of every column, by its classes."""
        ends = np.cumsum(self.counts)[:-1]
        return dict(zip(self.columns, np.split(answer, ends), strict=True))


def in_classes(sums: Counts, classes: Groups) -> Counts:
    """Add up what the values of each class have."""
    totals, numbers = np.zeros(max(classes) + 1, dtype=np.int64), np.array(classes)
    np.add.at(totals, numbers[numbers != NO_CLASS], sums[numbers != NO_CLASS])
    return totals


def distances(classes: Groups, spans: Groups) -> Counts:
    """Return what a row adds, by its value and its place: integers from -127 to 127.

    That is its distance from the middle of its bin, as a part of half the widest bin of its class,
    times 127, rounded to the nearest integer.
    """
    class_of = np.array(classes)
    widths = np.where(class_of == NO_CLASS, 0, np.array(spans, dtype=np.int64))
    widest = np.ones(max(classes) + 1, dtype=np.int64)
    np.maximum.at(widest, np.maximum(class_of, 0), widths)
    unit = widest[np.maximum(class_of, 0)][:, None]
    doubled = 2 * widths[:, None] * (np.arange(PLACES) - MIDDLE)
    return np.asarray((doubled + unit) // (2 * unit), dtype=np.int64)


def hiding(facts: PublicFacts) -> Attributes:
    """Return the attributes whose values hide numbers."""
    return tuple(a for a, spans in enumerate(facts.spans) if any(spans))


def totals_fraction(facts: PublicFacts, largest: int = LARGEST) -> Fraction:
    """Return the totals' fraction of the budget; 0 if no column needs them, or they would drown.

    `largest` is what a row adds to the totals of a column, at most.
    """
    columns = hiding(facts)
    if not columns:
        return Fraction(0)
    fractions = (
        fraction
        for times, fraction in _FRACTIONS.items()
        if _noise(facts, columns, fraction * facts.budget, largest) <= facts.rows / times
    )
    return next(fractions, Fraction(0))


def _noise(
    facts: PublicFacts, columns: Attributes, cost: Fraction, largest: int = LARGEST
) -> float:
    """Forecast the deviation of a total, in numbers that are at the end of the widest bin."""
    moved = sensitivity.class_totals(len(columns), largest=largest)
    return facts.deviation(cost, moved) / largest


def ask_totals(facts: PublicFacts, cost: Fraction, histograms: Sequence[Counts]) -> Script[None]:
    """Ask for the totals; the published histograms say how to divide bins into classes."""
    request = totals_request(facts, cost, histograms)
    yield from added_up(facts.sum_of(request, name=NAME, cost=cost, moved=request.sensitivity))


def totals_request(facts: PublicFacts, cost: Fraction, histograms: Sequence[Counts]) -> BinTotals:
    """Return the totals of every column that hides numbers, in as many classes as can be seen."""
    columns = hiding(facts)
    most = int(facts.rows / (_CLEAR * _noise(facts, columns, cost)))
    classes = [
        bin_classes(histograms[a], facts.rows, facts.spans[a], min(max(1, most), _MOST_CLASSES))
        for a in columns
    ]
    spans = tuple(facts.spans[a] for a in columns)
    return BinTotals(columns, tuple(classes), spans, len(facts.sizes))


def bin_classes(histogram: Counts, rows: int, spans: Sequence[int], most: int) -> Groups:
    """Return the class of every value; in integers.

    Classes are neighbours that have about as many rows as others; none of them holds bins of which
    one is more than four times as wide as another.
    """
    groups = even_groups(histogram, rows, groups=most) if most > 1 else (0,) * len(spans)
    classes, widest = list[int](), list[int]()
    before = least = NO_CLASS
    for span, group in zip(spans, groups, strict=True):
        if not span:
            classes.append(NO_CLASS)
            continue
        similar = widest and max(widest[-1], span) <= _SIMILAR * min(least, span)
        if group != before or not similar:
            widest.append(span)
            least = span
        widest[-1], least, before = max(widest[-1], span), min(least, span), group
        classes.append(len(widest) - 1)
    return tuple(classes)
