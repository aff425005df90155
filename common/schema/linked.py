"""People and their events as codes: one row a person, and her events in order.

    linked = encode_linked(schema, people, events, person="id")
    linked.rows, linked.numbers        # people, and how many events each has
    linked.of_person                   # the person of every event

A `LinkedCodes` is the table of codes of its people, so what works on people alone takes it as it
is. Events of a person count up to the schema's `most`, the first ones; events of unknown people are
left out. Both depend on the rows of that person only.

Where an event stands follows from its cell of the column `order` alone: numbers first, by their
size; then other texts, by their first 23 bytes, so that dates as 2024-01-31 are in order; empty
cells last. Events that stand equal are as their table has them, or as the caller says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from common.errors import InputError, LocalError
from common.schema import words
from common.schema.codes import CodeColumn, Codes, Groups, code_dtype, concatenate
from common.schema.columns import arrow_column, distinct
from common.schema.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

Positions = NDArray[np.int64]
OrderKeys = NDArray[np.bytes_]
ORDER_KEY = np.dtype("S24")  # a byte for what the cell holds, and what it is sorted by
_NUMBER, _TEXT, _EMPTY = b"\x01", b"\x02", b"\x03"


@dataclass(frozen=True, slots=True)
class LinkedCodes(Codes):
    """The codes of people, with those of their events."""

    events: Codes  # of all people, person after person, each person's in order
    numbers: Positions  # how many events each person has, 0 to `most`
    most: int  # the most events of a person that count

    def __post_init__(self) -> None:
        """Refuse events that do not belong to these people."""
        Codes.__post_init__(self)
        if self.numbers.shape != (self.rows,) or int(self.numbers.sum()) != self.events.rows:
            raise LocalError(f"{self.events.rows} events are not those of {self.rows} people")
        if self.rows and not 0 <= self.numbers.min() <= self.numbers.max() <= self.most:
            raise LocalError(f"a person has more than {self.most} events, or fewer than none")

    @property
    def of_person(self) -> Positions:
        return np.repeat(np.arange(self.rows), self.numbers)

    @property
    def starts(self) -> Positions:
        return np.cumsum(self.numbers) - self.numbers

    @property
    def arrays(self) -> tuple[NDArray[np.integer[Any]], ...]:
        return (*self.columns, self.numbers, *self.events.columns)

    def in_groups(self, groups: Groups) -> LinkedCodes:
        """Replace values by groups: of people's attributes, the number of events, and events'.

        The number of events is no column here: its groups are left to `with_number`.
        """
        first = self.width + 1
        people = {v: group_of for v, group_of in groups.items() if v < self.width}
        events = {v - first: group_of for v, group_of in groups.items() if v >= first}
        coarse = Codes(self.columns, self.sizes).in_groups(people)
        return replace(
            self, columns=coarse.columns, sizes=coarse.sizes, events=self.events.in_groups(events)
        )

    def take(self, rows: NDArray[np.integer[Any]] | slice) -> LinkedCodes:
        people = np.arange(self.rows)[rows]
        numbers = self.numbers[people]
        within = np.arange(numbers.sum()) - np.repeat(np.cumsum(numbers) - numbers, numbers)
        events = self.events.take(np.repeat(self.starts[people], numbers) + within)
        codes = Codes.take(self, rows)
        return LinkedCodes(
            codes.columns, codes.sizes, events, numbers, self.most, places=codes.places
        )

    @property
    def with_number(self) -> Codes:
        """The people's columns, and the number of events as one more."""
        number: CodeColumn = self.numbers.astype(code_dtype(self.most + 1))
        return Codes((*self.columns, number), (*self.sizes, self.most + 1))

    @property
    def by_event(self) -> Codes:
        """A row for every event: its person's columns, her number of events, its own columns."""
        people, events = self.with_number, self.events
        repeated = people.take(self.of_person)
        return Codes(repeated.columns + events.columns, repeated.sizes + events.sizes)

    @property
    def consecutive(self) -> tuple[Codes, Positions]:
        """A row for every two consecutive events of a person, and the person of each."""
        of_person = self.of_person
        first = np.flatnonzero(of_person[1:] == of_person[:-1])
        one, other = self.events.take(first), self.events.take(first + 1)
        return Codes(one.columns + other.columns, one.sizes + other.sizes), of_person[first]


def concatenate_linked(tables: Sequence[Codes]) -> Codes:
    """Put the rows of several tables into one; people keep their events."""
    linked = [table for table in tables if isinstance(table, LinkedCodes)]
    people = concatenate(tables)
    if not linked:
        return people
    if len(linked) < len(tables) or len({table.most for table in linked}) > 1:
        raise LocalError("only tables of the same events can be concatenated")
    return LinkedCodes(
        people.columns,
        people.sizes,
        concatenate([table.events for table in linked]),
        np.concatenate([table.numbers for table in linked]),
        linked[0].most,
        places=people.places,
    )


def encode_linked(
    schema: Schema, people: pd.DataFrame, events: pd.DataFrame, *, person: str
) -> LinkedCodes:
    """Encode two tables that a column `person` joins; it has a person of `people` once."""
    import pandas as pd  # loaded late: a service counts rows without it

    declared = schema.events
    if declared is None:
        raise InputError("schema: it has no [events]. Declare them, or hand over one table")
    for table, where in ((people, "people"), (events, declared.name)):
        if person not in table.columns:
            raise InputError(f"{where}: there is no column {person!r}. Name it with person=...")
    if people[person].isna().any() or people[person].duplicated().any():
        raise InputError(f"people: column {person!r} is empty or the same in two rows. Repair it")
    codes = schema.people.encode(people, where="people")
    of_person = pd.Index(people[person]).get_indexer(pd.Index(events[person]))
    known = np.flatnonzero(of_person >= 0)
    keys = np.zeros(len(events), dtype=ORDER_KEY)
    if declared.order:
        check_order(declared.order, list(map(str, events.columns)))
        keys = order_keys(events[declared.order])
    first, numbers = first_events(
        of_person[known], keys[known], people=codes.rows, most=declared.most
    )
    encoded = _encoded_events(schema.of_events, events, known[first], where=declared.name)
    return possible_histories(
        schema,
        LinkedCodes(
            codes.columns, codes.sizes, encoded, numbers, declared.most, places=codes.places
        ),
    )


def possible_histories(schema: Schema, codes: LinkedCodes) -> LinkedCodes:
    """Replace every event that breaks a rule by the nearest that its person can have."""
    rules = schema.possible_events
    if not rules.rules:
        return codes
    return replace(codes, events=rules.repaired(codes, codes.events, codes.of_person))


def breaking_events(schema: Schema, codes: LinkedCodes) -> list[NDArray[np.bool_]]:
    """Tell, of each rule about events, which events break it; for their owner alone.

    The codes are those of the schema without its rules.
    """
    people = schema.possible.repaired(Codes(codes.columns, codes.sizes))
    hold = schema.possible_events.hold(people, codes.events, codes.of_person)
    return [~obeying for obeying in hold]


def check_order(order: str, columns: Sequence[str]) -> None:
    if order not in columns:
        raise InputError(f"events: there is no column {order!r}, which [events] orders them by")


def order_keys(column: object) -> OrderKeys:
    """Return what the events of each row are sorted by, a function of its cell alone."""
    array = arrow_column(column)
    if pa.types.is_timestamp(array.type) and array.type.tz is not None:
        array = pc.cast(array, pa.timestamp(array.type.unit))  # one zone for all: UTC
    places, texts = distinct(array)
    return np.array([_order_key(text) for text in texts], dtype=ORDER_KEY)[places]


def _order_key(text: bytes | None) -> bytes:
    number = None if text is None else words.number(text)
    if text is None or number != number:  # NaN is an empty cell
        return _EMPTY
    if number is None:
        return _TEXT + text[: ORDER_KEY.itemsize - 1]
    bits = int(np.float64(number).view(np.uint64))
    # Flipped so that bytes sort as numbers do: negative ones all the way, others by their sign.
    return _NUMBER + (bits ^ ((1 << 64) - 1 if bits >> 63 else 1 << 63)).to_bytes(8, "big")


def first_events(
    of_person: NDArray[np.integer[Any]],
    keys: OrderKeys,
    ties: NDArray[np.uint64] | None = None,
    *,
    people: int,
    most: int,
) -> tuple[NDArray[np.intp], Positions]:
    """Return the rows of events that count, person after person in order; and numbers of each.

    Events of equal keys are sorted by `ties`; without, they stay as they are.
    """
    order = np.lexsort((keys, of_person) if ties is None else (ties, keys, of_person))
    numbers = np.bincount(of_person, minlength=people)
    within = np.arange(len(order)) - np.repeat(np.cumsum(numbers) - numbers, numbers)
    return order[within < most], np.minimum(numbers, most).astype(np.int64)


def _encoded_events(
    schema: Schema, events: pd.DataFrame, rows: NDArray[np.intp], *, where: str
) -> Codes:
    schema.check_columns([str(name) for name in events.columns], where=where)
    if not len(rows):
        return no_codes(schema)
    return schema.encode(
        events.iloc[rows], where=where, row_numbers=lambda places: [int(rows[p]) for p in places]
    )


def no_codes(schema: Schema) -> Codes:
    return Codes.from_columns([np.zeros(0, dtype=np.intp)] * len(schema.sizes), schema.sizes)
