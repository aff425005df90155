"""People and their events as codes: one row a person, and her events in order.

    linked = encode_linked(schema, people, events, person="id")
    linked.rows, linked.numbers        # people, and how many events each has
    linked.of_person                   # the person of every event

A `LinkedCodes` is the table of codes of its people, so what works on people alone takes it as it
is. Events of a person count up to the schema's `most`, the first ones; events of unknown people are
left out. Both depend on the rows of that person only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError, LocalError
from common.schema.codes import CodeColumn, Codes, code_dtype, concatenate
from common.schema.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

Positions = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LinkedCodes(Codes):
    """The codes of people, with those of their events.

    Attributes:
        events: of all people, person after person, each person's in order.
        numbers: how many events each person has, 0 to `most`.
        most: the most events of a person that count.
    """

    events: Codes
    numbers: Positions
    most: int

    def __post_init__(self) -> None:
        """Refuse events that do not belong to these people."""
        Codes.__post_init__(self)
        if self.numbers.shape != (self.rows,) or int(self.numbers.sum()) != self.events.rows:
            raise LocalError(f"{self.events.rows} events are not those of {self.rows} people")
        if self.rows and not 0 <= self.numbers.min() <= self.numbers.max() <= self.most:
            raise LocalError(f"a person has more than {self.most} events, or fewer than none")

    @property
    def of_person(self) -> Positions:
        """The position of the person of every event."""
        return np.repeat(np.arange(self.rows), self.numbers)

    @property
    def starts(self) -> Positions:
        """The position of every person's first event."""
        return np.cumsum(self.numbers) - self.numbers

    def take(self, rows: NDArray[np.integer[Any]] | slice) -> LinkedCodes:
        """Return some people with their events."""
        people = np.arange(self.rows)[rows]
        numbers = self.numbers[people]
        within = np.arange(numbers.sum()) - np.repeat(np.cumsum(numbers) - numbers, numbers)
        events = self.events.take(np.repeat(self.starts[people], numbers) + within)
        own = Codes.take(self, rows)
        return LinkedCodes(own.columns, own.sizes, events, numbers, self.most, places=own.places)

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
    """Encode two tables that a column `person` joins.

    Raises:
        InputError: a column is missing, a person has two rows or none, or a cell is refused.
    """
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
    rows = _in_order(events, declared.order, of_person)
    numbers = np.bincount(of_person[rows], minlength=codes.rows)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(numbers) - numbers, numbers)
    rows = rows[within < declared.most]
    counted = np.minimum(numbers, declared.most).astype(np.int64)
    encoded = _encoded_events(schema.of_events, events, rows, where=declared.name)
    return LinkedCodes(
        codes.columns, codes.sizes, encoded, counted, declared.most, places=codes.places
    )


def _in_order(events: pd.DataFrame, order: str, of_person: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the rows of events of known people: person after person, each person's in order."""
    places = np.arange(len(events))
    if order:
        if order not in events.columns:
            raise InputError(f"events: there is no column {order!r}, which [events] orders them by")
        try:
            sorted_places = events[order].reset_index(drop=True).sort_values(kind="stable").index
        except TypeError:
            raise InputError(
                f"events: column {order!r} holds values that cannot be ordered, such as numbers "
                "and text. Make it one type"
            ) from None
        places = np.asarray(sorted_places)
    places = places[of_person[places] >= 0]
    return places[np.argsort(of_person[places], kind="stable")]


def _encoded_events(
    schema: Schema, events: pd.DataFrame, rows: NDArray[np.intp], *, where: str
) -> Codes:
    schema.check_columns([str(name) for name in events.columns], where=where)
    if not len(rows):
        columns = [np.zeros(0, dtype=np.int64) for _ in schema.sizes]
        return Codes.from_columns(columns, schema.sizes)
    return schema.encode(
        events.iloc[rows], where=where, row_numbers=lambda places: [int(rows[p]) for p in places]
    )
