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

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from common.analysis.replicates import Replicates
from common.analysis.statistics import CodedTable, Statistic, Values, happens
from common.errors import InputError, LocalError
from common.privacy.randomness import SeededRandomSource, uniforms
from common.schema import Codes, Schema
from common.schema.events import Events
from common.schema.linked import LinkedCodes

REACHED = "reached"
_AVERAGED = 1 << 17  # rows of people with one of their events, at least
_MOST_TIMES = 8  # that a person is there


@dataclass(frozen=True)
class TableView:
    """A single table that people and their events are seen as."""

    schema: Schema
    codes: Callable[[Codes], Codes]  # the rows of this view
    of_people: bool = True  # whether a row is a row of the study; else an event
    counted: bool = True  # whether its columns are those that a study counts by

    def of(self, replicates: Replicates) -> Replicates:
        """Return a release and its replicates as this view shows them."""
        return Replicates(
            schema=self.schema,
            released=self.codes(replicates.released),
            reference=self.codes(replicates.reference),
            tables=tuple(map(self.codes, replicates.tables)),
            inside=replicates.inside,
        )


def rows_view(schema: Schema) -> TableView:
    """Return the rows as they are."""
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
    asked = happens(condition, of_events)
    place = of_events.position(events.order)
    time = of_events.attributes[place]
    (reached,) = Schema.from_document({"attribute": [{"name": REACHED, "kind": "boolean"}]}
                                      ).attributes  # fmt: skip

    def rows(codes: Codes) -> Codes:
        linked = _linked(codes)
        mask = asked.mask(linked.events)
        person, first = np.unique(linked.of_person[mask], return_index=True)
        when = np.full(linked.rows, time.value_count - 1, dtype=np.int64)
        when[person] = linked.events.columns[place][mask][first]
        yes = np.zeros(linked.rows, dtype=np.int64)
        yes[person] = 1
        columns = [*linked.columns, when, yes]
        return Codes.from_columns(columns, (*linked.sizes, time.size, reached.size))

    return TableView(Schema((*schema.attributes, time, reached)), rows, counted=False)


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
