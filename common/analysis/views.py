"""People and their events as single tables that a statistic can be computed of.

    rows_view(schema)                       # the rows as they are
    people_view(schema)                     # a row a person, with her number of events
    events_view(schema)                     # a row an event, with its person's columns
    averages_view(schema)                   # people who have events, each with any of her events
    first_view(schema, "diagnosis = b")     # a row a person: when her first such event was

A view is a schema and a function of codes, so the same statistic is computed of the release, of the
released model and of every replicate: `TableView.of`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.analysis.replicates import Replicates
from common.analysis.statistics import CodedTable, Statistic, Values, happens
from common.errors import InputError, LocalError
from common.privacy.randomness import SeededRandomSource, uniforms
from common.schema import Codes, Schema
from common.schema.codes import CodeColumn
from common.schema.conditions import Condition
from common.schema.events import Events
from common.schema.linked import LinkedCodes, Positions

REACHED = "reached"
_AVERAGED = 1 << 17  # rows of people with one of their events, at least
_MOST_TIMES = 8  # that a person is there


@dataclass(frozen=True)
class FirstEvents:
    """The first event of a kind of every person, and when it was.

    No published table tells which of a person's events comes first. But let A be the average over
    her events of those that are of the kind and no later than some time, and M their number. Then
    whether she has had one by that time, 1 or 0, is at least A and at most M. Averages over people
    of both follow from published tables: M is the sum over k = 1, 2, ... of A if she has k events
    or more, and else of 0.
    """

    schema: Schema  # of people and events
    kind: Condition
    time: int  # the place of the time among the columns of events

    @cached_property
    def viewed(self) -> Schema:
        """People's columns, when their first event of the kind was, and whether there was one."""
        when = self.schema.of_events.attributes[self.time]
        document = {"attribute": [{"name": REACHED, "kind": "boolean"}]}
        return Schema((*self.schema.attributes, when, *Schema.from_document(document).attributes))

    def of(self, codes: Codes) -> Codes:
        """Return a row a person; one without such an event was watched for the whole range."""
        linked = _linked(codes)
        mask = self.kind.mask(linked.events)
        person, first = np.unique(linked.of_person[mask], return_index=True)
        when = linked.events.columns[self.time][mask][first]
        return self._rows(linked.columns, person, when)

    def _rows(
        self, people: Sequence[CodeColumn], person: Positions, when: NDArray[np.integer[Any]]
    ) -> Codes:
        time, rows = self.schema.of_events.attributes[self.time], len(people[0])
        times, reached = np.full(rows, time.value_count - 1), np.zeros(rows, dtype=np.int64)
        times[person], reached[person] = when, 1
        return Codes.from_columns([*people, times, reached], self.viewed.sizes)

    def bounds(
        self, statistic: Statistic, none: Codes, share: float
    ) -> tuple[Statistic, Statistic]:
        """Return the least and the greatest survival, as statistics of `averages_view`.

        `none` are people without events, `share` is the part of people who have some.
        """
        joined, width = self.schema.joined.names, len(self.schema.names)
        places = {self.time, *map(self.schema.of_events.position, self.kind.attributes)}
        columns = {joined[width], *(joined[width + 1 + place] for place in places)}
        most = int(self.schema.joined.sizes[width]) - 1

        def at_least(table: CodedTable, number: int) -> Values:
            rows = self._averaged(table.codes, none, share, number)
            return statistic.of(CodedTable(self.viewed, rows, table.seed, table.inside))

        def least(table: CodedTable) -> Values:
            survival = [at_least(table, number) for number in range(1, most + 1)]
            reached = {key: sum(1 - values[key] for values in survival) for key in survival[0]}
            return {key: max(1 - value, 0.0) for key, value in reached.items()}

        of_averages = replace(statistic, attributes=(statistic.attributes - {REACHED}) | columns)
        greatest = replace(of_averages, of=lambda table: at_least(table, 1))
        return replace(of_averages, of=least), greatest

    def _averaged(self, rows: Codes, none: Codes, share: float, number: int) -> Codes:
        """Return people with any of their events; it counts for those with so many or more."""
        width = len(self.schema.names)
        events = rows.select(range(width + 1, rows.width))
        mask = self.kind.mask(events) & (rows.columns[width] >= number)
        without = round(rows.rows * (1 - share) / share) if none.rows else 0
        others = none.take((np.arange(without) * none.rows // max(without, 1)).astype(np.intp))
        columns = zip(rows.columns[:width], others.columns, strict=True)
        people = [np.concatenate(both) for both in columns]
        return self._rows(people, np.flatnonzero(mask), events.columns[self.time][mask])


@dataclass(frozen=True)
class TableView:
    """A single table that people and their events are seen as."""

    schema: Schema
    codes: Callable[[Codes], Codes]  # the rows of this view
    of_people: bool = True  # whether a row is a row of the study; else an event
    first: FirstEvents | None = None  # whether a row has a person's first event of a kind

    def of(self, replicates: Replicates) -> Replicates:
        """Return a release and its replicates as this view shows them."""
        return replace(
            replicates,
            schema=self.schema,
            released=self.codes(replicates.released),
            reference=self.codes(replicates.reference),
            tables=tuple(map(self.codes, replicates.tables)),
        )


def rows_view(schema: Schema) -> TableView:
    return TableView(schema, lambda codes: codes)


def people_view(schema: Schema) -> TableView:
    """Return a row a person; a column with the name of the events counts hers."""
    _events(schema)
    columns = schema.joined.attributes[: len(schema.names) + 1]
    return TableView(Schema(columns), lambda codes: _linked(codes).with_number)


def events_view(schema: Schema) -> TableView:
    """Return a row an event: its person's columns, her number of events, its own columns.

    A column of events whose name a column of people has is called after both: "age of visits".
    """
    _events(schema)
    return TableView(schema.joined, lambda codes: _linked(codes).by_event, of_people=False)


def first_view(schema: Schema, condition: str) -> TableView:
    """Return a row a person: her columns, and when her first event of a kind was.

    A person without such an event was watched for the whole range of the order, and is not
    `reached`.
    """
    events, of_events = _events(schema), schema.of_events
    if events.order not in of_events.names or {events.order, REACHED} & set(schema.names):
        raise InputError(
            f"survival: the time of an event is not told, as the order of {events.name} is no "
            "attribute of them. Declare it in [[events.attribute]], or name columns of people"
        )
    first = FirstEvents(schema, happens(condition, of_events), of_events.position(events.order))
    return TableView(first.viewed, first.of, first=first)


def averages_view(schema: Schema) -> TableView:
    """Return the rows that sums of averaged events count: a person with any one of her events.

    A person who has events is there some times, each time with one of them, every one as likely as
    the others; people without events are left out.
    """
    return TableView(schema.joined, lambda codes: _averages(_linked(codes)), of_people=False)


def _averages(codes: LinkedCodes) -> Codes:
    people = np.flatnonzero(codes.numbers)
    times = min(max(_AVERAGED // max(len(people), 1), 1), _MOST_TIMES)
    drawn = uniforms(len(people) * times, SeededRandomSource("events of people"))
    places = (drawn.reshape(-1, times) + np.arange(times)) / times * codes.numbers[people][:, None]
    return codes.by_event.take((codes.starts[people][:, None] + places.astype(np.intp)).ravel())


def by_events(statistic: Statistic, schema: Schema) -> Statistic:
    """Return a statistic of events as one of `averages_view`.

    Every event counts once: a row of a person with m events, m times. So it rests on the number of
    events, too.
    """
    place = len(schema.names)
    number = schema.joined.names[place]

    def of(table: CodedTable) -> Values:
        rows = np.repeat(np.arange(table.rows), table.codes.columns[place])
        return statistic.of(replace(table, codes=table.codes.take(rows)))

    return replace(statistic, attributes=statistic.attributes | {number}, of=of)


def _linked(codes: Codes) -> LinkedCodes:
    if not isinstance(codes, LinkedCodes):
        raise LocalError("these are people without their events")
    return codes


def _events(schema: Schema) -> Events:
    if schema.events is None:
        raise InputError("of: the release is of a single table, without events. Leave it out")
    return schema.events
