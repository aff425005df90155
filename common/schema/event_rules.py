"""Rules about events, which may name columns of their person, too.

    [[events.rule]]             # the forms of [[rule]]
    when = "sex = Male"
    then = "diagnosis != Pregnancy"

An event that breaks a rule is counted as the nearest possible one. A person never changes for the
sake of an event: of `when = "diagnosis = Pregnancy"` and `then = "sex = Female"` the diagnosis
gives way.

Rules see of a person only what tells possible events apart. That is her kind: people of one kind
can have the same events. A schema in which some people could have no event at all is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError, located
from common.schema.attribute import Domains
from common.schema.codes import Codes
from common.schema.conditions import CellWeights
from common.schema.limits import MOST_KIND_RULES, MOST_KINDS, MOST_PEOPLE_CELLS, check_most
from common.schema.rules import (
    MOST_TRIED,
    Cells,
    Possible,
    PossibleCells,
    Rule,
    example_of,
    repair,
    tables_of,
)

Positions = NDArray[np.integer[Any]]
_LEAST_TRIED = 1_000  # steps of the search for an event that a kind of people can have


@dataclass(frozen=True, eq=False, slots=True)
class PossibleEvents:
    """All rules about events: which events are possible, by their person."""

    rules: tuple[PossibleCells, ...]  # attributes of events have positions after those of people
    people: int  # how many attributes people have
    columns: tuple[int, ...]  # the attributes of people that a rule is about
    kinds: NDArray[np.intp]  # the kind of each cell of these attributes
    cells: NDArray[np.intp]  # a cell of each kind
    examples: tuple[Mapping[int, int], ...]  # of each kind, the codes of a possible event

    @classmethod
    def of(
        cls, rules: Sequence[Rule], joined: Domains, people: int, possible: Possible
    ) -> PossibleEvents:
        """Make the tables of rules about events; refuse rules that leave some people no event.

        `joined` has the attributes of people, so many, and then those of events.
        """
        tables = tuple(_of_event(table, people) for table in tables_of(rules, joined))
        columns = tuple(sorted({a for table in tables for a in table.attributes[: table.fixed]}))
        kinds, cells = _kinds(tables, columns, joined.sizes, possible)
        events = cls(tables, people, columns, kinds, cells, ())
        return replace(events, examples=tuple(events._examples(joined)))

    def _examples(self, joined: Domains) -> list[dict[int, int]]:
        tries = max(_LEAST_TRIED, MOST_TRIED // len(self.cells))
        examples = []
        for kind, cell in enumerate(self.cells.tolist()):
            try:
                examples.append(example_of(self._tables(kind), joined.sizes[self.people :], tries))
            except InputError:
                person = ", ".join(
                    f"{joined.names[a]} = {joined.attributes[a].labels[code]}"
                    for a, code in zip(self.columns, cell, strict=True)
                )
                who = f"a person with {person}" if person else "any person"
                raise InputError(
                    f"rules: no event was found that is possible for {who}. Leave a rule out"
                ) from None
        return examples

    def weights(self, kind: int) -> list[CellWeights]:
        """Return what rules say to people of a kind, as weights of cells of events' attributes."""
        tables = self._tables(kind)
        return [CellWeights(table.attributes, table.table.astype(np.float64)) for table in tables]

    def _tables(self, kind: int) -> list[PossibleCells]:
        """Return the rules as people of a kind see them, over events' attributes alone."""
        person = dict(zip(self.columns, self.cells[kind].tolist(), strict=True))
        return [
            replace(
                rule,
                attributes=tuple(a - self.people for a in rule.attributes[rule.fixed :]),
                table=rule.table[tuple(person[a] for a in rule.attributes[: rule.fixed])],
                ordered=rule.ordered[rule.fixed :],
                fixed=0,
            )
            for rule in self.rules
        ]

    def kinds_of(self, people: Codes) -> NDArray[np.intp]:
        if not self.columns:
            return np.zeros(people.rows, dtype=np.intp)
        return np.asarray(self.kinds[tuple(people.columns[a] for a in self.columns)])

    def hold(self, people: Codes, events: Codes, of_person: Positions) -> list[Cells]:
        """Tell, of each rule, whether each event obeys it."""
        columns = self.joined(people, events, of_person)
        return [rule.holds(columns) for rule in self.rules]

    def holds(self, people: Codes, events: Codes, of_person: Positions) -> Cells:
        """Tell whether each event is possible for its person."""
        every = np.ones(events.rows, dtype=np.bool_)
        return np.asarray(np.logical_and.reduce([every, *self.hold(people, events, of_person)]))

    def repaired(self, people: Codes, events: Codes, of_person: Positions) -> Codes:
        """Return the events, each that breaks a rule replaced by the nearest possible one.

        One for which that does not end becomes the example of its person's kind.
        """
        bad = np.flatnonzero(~self.holds(people, events, of_person))
        if not len(bad):
            return events
        rows = self.joined(people, events.take(bad), of_person[bad])
        columns = {a: np.array(codes, dtype=np.intp) for a, codes in rows.items()}
        stuck = np.flatnonzero(repair(self.rules, columns))
        whole = [np.array(column) for column in events.columns]
        for attribute in self.of_events:
            whole[attribute][bad] = columns[attribute + self.people]
        for place, kind in zip(stuck, self.kinds_of(people)[of_person[bad[stuck]]], strict=True):
            for attribute, code in self.examples[kind].items():
                whole[attribute][bad[place]] = code
        return replace(events, columns=tuple(whole))

    @property
    def of_events(self) -> list[int]:
        """The attributes of events that a rule is about."""
        return sorted({a - self.people for t in self.rules for a in t.attributes[t.fixed :]})

    def joined(self, people: Codes, events: Codes, of_person: Positions) -> dict[int, NDArray[Any]]:
        """Return a row for every event, of the attributes that a rule is about."""
        columns = {a: people.columns[a][of_person] for a in self.columns}
        return columns | {a + self.people: events.columns[a] for a in self.of_events}


def _of_event(table: PossibleCells, people: int) -> PossibleCells:
    """Let a rule keep people as they are, and what gives way be of the event."""
    fixed = sorted(a for a in table.attributes if a < people)
    events = [a for a in table.attributes if a >= people]
    if not events:
        raise InputError(f"rule ({table.rule}): no column of events is in it. Write it as [[rule]]")
    if fixed and table.rule.texts[0][0] == "order":
        raise InputError(
            f"rule ({table.rule}): an order is of two columns of an event. Write when and then"
        )
    after = table.attributes[len(table.attributes) - table.giving_way :]
    giving = [a for a in events if a in after] or events
    axes = (*fixed, *(a for a in events if a not in giving), *giving)
    order = [table.attributes.index(a) for a in axes]
    return replace(
        table,
        attributes=axes,
        giving_way=len(giving),
        table=table.table.transpose(order),
        ordered=tuple(table.ordered[place] for place in order),
        fixed=len(fixed),
    )


def _kinds(
    tables: Sequence[PossibleCells],
    columns: tuple[int, ...],
    sizes: Sequence[int],
    people: Possible,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the kind of each cell of people's columns, and a cell of each kind.

    Cells that no person can have are of the kind of some that a person can.
    """
    shape = [sizes[a] for a in columns]
    with located("rules: people's columns in them"):
        check_most("cells together", prod(shape), most=MOST_PEOPLE_CELLS)
    kinds = np.zeros(shape, dtype=np.intp)
    by_columns: dict[tuple[int, ...], list[NDArray[Any]]] = {}
    for table in tables:
        cells = prod(table.table.shape[: table.fixed])
        by_columns.setdefault(table.attributes[: table.fixed], []).append(
            table.table.reshape(cells, -1)
        )
    for attributes, slices in by_columns.items():
        numbers = _rows_numbered(np.hstack(slices))
        numbers = numbers.reshape([sizes[a] if a in attributes else 1 for a in columns])
        kinds = _numbered(kinds * (int(numbers.max()) + 1) + numbers)
    mask = people.mask(columns, (False,) * len(columns))
    there = np.broadcast_to(True if mask is None else mask, shape)
    kinds = _numbered(np.where(there, kinds, kinds[there][0]))
    count = int(kinds.max()) + 1
    check_most("rules: kinds of people that they tell apart", count, most=MOST_KINDS)
    check_most("rules: kinds of people times rules", count * len(tables), most=MOST_KIND_RULES)
    every, places = np.unique(np.where(there, kinds, -1), return_index=True)
    first = np.unravel_index(places[every >= 0], shape) if columns else ()
    return kinds, np.array(first, dtype=np.intp).reshape(len(columns), count).T


def _numbered(values: NDArray[np.intp]) -> NDArray[np.intp]:
    numbers = np.unique(values, return_inverse=True)[1]
    return np.asarray(numbers.reshape(values.shape), dtype=np.intp)


def _rows_numbered(rows: NDArray[np.bool_]) -> NDArray[np.intp]:
    numbers: dict[bytes, int] = {}
    packed = np.packbits(rows, axis=1)
    return np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in packed])
