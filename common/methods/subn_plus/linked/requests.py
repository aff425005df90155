"""What is asked of people and their events: tables in which a person's events are averaged.

The variables of a linked study are the people's attributes, then the number of events, then the
attributes of an event. A table over people's variables counts people; a table with a variable of
events counts events, each of a person's m events with the weight floor(unit / m). So a person
weighs at most `unit` in every table, as much as a person with a single event, and her whole history
costs the noise of one row (`sensitivity.averaged`).

The unit is the least common multiple of 1 to 8, or to `most` where that is less: then weights are
exact shares. A person with more events weighs m floor(840 / m) of 840, which `weight` tells the
fit. A larger unit would only make the numbers longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import lcm, prod
from typing import ClassVar

import numpy as np

from common.crypto.framing import frame
from common.errors import LocalError
from common.marginals import count
from common.methods.subn_plus.requests import Groups
from common.privacy import sensitivity
from common.privacy.sensitivity import Sensitivity
from common.schema.linked import LinkedCodes, Positions
from common.study.requests import Attributes, Counts, PartyRows, TableShape

_EXACT = 8  # events up to which a person's weights are exact shares


def unit_of(most: int) -> int:
    """Return what a person with `most` events or fewer weighs in a table."""
    return lcm(*range(1, min(most, _EXACT) + 1))


def weight(number: int, *, unit: int) -> float:
    """Return what all of a person's events weigh together, as a share of the unit."""
    return number * (unit // number) / unit if number else 0.0


def linked(data: PartyRows) -> Iterator[LinkedCodes]:
    """Yield a party's people with their events, in parts; LocalError if the rows have none."""
    for codes in data.chunks():
        if not isinstance(codes, LinkedCodes):
            raise LocalError("this step is about people and their events, and there are no events")
        yield codes


@dataclass(frozen=True)
class AveragedTables:
    """Tables over variables of people and of their events, every variable in groups of values.

    Attributes:
        sets: the variables of each table.
        groups: for every variable of the study, the group of each of its values.
        people: how many of the variables are the person's: her attributes and her number of events.
        most: the most events of a person that count.
    """

    sets: tuple[Attributes, ...]
    groups: tuple[Groups, ...]
    people: int
    most: int

    # The tables are not over the attributes of the schema: a report of people does not show them.
    tables: ClassVar[tuple[TableShape, ...]] = ()
    shown: ClassVar[tuple[TableShape, ...]] = ()

    @property
    def links(self) -> Sequence[Attributes]:
        """The people's attributes of every table; a table of events alone has none."""
        return tuple(tuple(v for v in variables if v < self.people - 1) for variables in self.sets)

    @property
    def unit(self) -> int:
        return unit_of(self.most)

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each table."""
        return tuple(tuple(max(self.groups[v]) + 1 for v in variables) for variables in self.sets)

    @cached_property
    def cells(self) -> int:
        return sum(prod(shape) for shape in self.shapes)

    @property
    def sensitivity(self) -> Sensitivity:
        return sensitivity.averaged(len(self.sets), unit=self.unit)

    @property
    def canonical(self) -> bytes:
        return frame(
            (
                "averaged tables",
                self.people,
                self.most,
                frame(map(frame, self.sets)),
                frame(map(frame, self.groups)),
            )
        )

    def limit(self, rows: int) -> int:
        """Return the unit for every person: no cell holds more."""
        return self.unit * rows

    def answer(self, data: PartyRows) -> Counts:
        """Count people, and events by their weights."""
        return _added(self.cells, map(self._counted, linked(data)))

    def _counted(self, codes: LinkedCodes) -> Counts:
        groups = dict(enumerate(self.groups))
        of_people = [variables for variables in self.sets if max(variables) < self.people]
        of_events = [variables for variables in self.sets if max(variables) >= self.people]
        tables: dict[Attributes, Counts] = {}
        if of_people:
            people_groups = {v: groups[v] for v in range(self.people)}
            counts = count(codes.with_number, of_people, groups=people_groups)
            tables |= zip(of_people, (self.unit * table for table in counts), strict=True)
        if of_events:
            weights = _weights(codes.numbers, self.unit)[codes.of_person]
            counts = count(codes.by_event, of_events, groups=groups, weights=weights)
            tables |= zip(of_events, counts, strict=True)
        return np.concatenate([tables[variables].reshape(-1) for variables in self.sets])

    def split(self, vector: Counts) -> dict[Attributes, Counts]:
        """Cut an answer into its tables."""
        return _split(self.sets, self.shapes, vector)


@dataclass(frozen=True)
class NextTables:
    """For every two attributes of events, the first at one event and the second at the next.

    Attributes:
        groups: for every attribute of events, the group of each of its values.
        most: the most events of a person that count: she has at most one less of consecutive pairs.
    """

    groups: tuple[Groups, ...]
    most: int

    tables: ClassVar[tuple[TableShape, ...]] = ()
    shown: ClassVar[tuple[TableShape, ...]] = ()

    @property
    def links(self) -> Sequence[Attributes]:
        """No people's attributes, for every table."""
        return ((),) * len(self.sets)

    @property
    def unit(self) -> int:
        return unit_of(self.most - 1)

    @cached_property
    def sets(self) -> tuple[Attributes, ...]:
        """The pairs of attributes, in order, an attribute with itself included."""
        width = range(len(self.groups))
        return tuple((first, after) for first in width for after in width)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(max(self.groups[v]) + 1 for v in pair) for pair in self.sets)

    @cached_property
    def cells(self) -> int:
        return sum(max(group_of) + 1 for group_of in self.groups) ** 2

    @property
    def sensitivity(self) -> Sensitivity:
        return sensitivity.averaged(len(self.sets), unit=self.unit)

    @property
    def canonical(self) -> bytes:
        return frame(("next tables", self.most, frame(map(frame, self.groups))))

    def limit(self, rows: int) -> int:
        return self.unit * rows

    def answer(self, data: PartyRows) -> Counts:
        """Count consecutive events by their weights."""
        return _added(self.cells, map(self._counted, linked(data)))

    def _counted(self, codes: LinkedCodes) -> Counts:
        pairs, of_person = codes.consecutive
        width = len(self.groups)
        groups = dict(enumerate(self.groups * 2))
        weights = _weights(np.maximum(codes.numbers - 1, 0), self.unit)[of_person]
        sets = [(first, width + after) for first, after in self.sets]
        tables = count(pairs, sets, groups=groups, weights=weights)
        return np.concatenate([table.reshape(-1) for table in tables])

    def split(self, vector: Counts) -> dict[Attributes, Counts]:
        """Cut an answer into its tables."""
        return _split(self.sets, self.shapes, vector)


def _weights(numbers: Positions, unit: int) -> Positions:
    """Return the weight of each of a person's events, for every person."""
    return np.where(numbers > 0, unit // np.maximum(numbers, 1), 0)


def _added(cells: int, parts: Iterable[Counts]) -> Counts:
    total = np.zeros(cells, dtype=np.int64)
    for part in parts:
        total += part
    return total


def _split(
    sets: Sequence[Attributes], shapes: Sequence[tuple[int, ...]], vector: Counts
) -> dict[Attributes, Counts]:
    ends = np.cumsum([prod(shape) for shape in shapes])
    parts = np.split(vector, ends[:-1])
    return {
        variables: part.reshape(shape)
        for variables, shape, part in zip(sets, shapes, parts, strict=True)
    }
