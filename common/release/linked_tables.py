"""The two tables of a linked release, read back: people, and the events that belong to them."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa

from common.errors import InputError
from common.release.contents import Contents
from common.release.folder import TABLES, events_table
from common.release.synthetic_table import blocks_of, check_rules, encoded_block
from common.schema import Codes, Schema
from common.schema.codes import concatenate
from common.schema.events import PERSON
from common.schema.linked import LinkedCodes, Positions


def table_names(listed: Collection[str], schema: Schema) -> tuple[str, str]:
    """Return the names of the tables of people and of events, of the files that a release has."""
    people = next((name for name in TABLES if name in listed), None)
    if people is None:
        raise InputError("the release has no synthetic table")
    return people, events_table(schema, people.rpartition(".")[2])


def read_linked(contents: Contents, schema: Schema) -> LinkedCodes:
    """Read both tables; InputError if events belong to no person, or are too many or unordered."""
    events = schema.events
    if events is None:
        raise InputError("schema: it has no [events]")
    of_people, of_events = table_names(contents.sizes(), schema)
    people, numbers = _read(contents, of_people, schema.people)
    if not np.array_equal(numbers, np.arange(1, people.rows + 1)) or not people.rows:
        raise contents.error(of_people, why=f"column {PERSON!r} does not count people from 1 on")
    codes, owners = _read(contents, of_events, schema.of_events)
    if len(owners) and (np.any(np.diff(owners) < 0) or owners[0] < 1 or owners[-1] > people.rows):
        raise contents.error(
            of_events, why=f"column {PERSON!r} is not that of {of_people}, in order"
        )
    counts = np.bincount(owners, minlength=people.rows + 1)[1:].astype(np.int64)
    if counts.max(initial=0) > events.most:
        raise contents.error(of_events, why=f"a person has more than {events.most} events")
    linked = LinkedCodes(people.columns, people.sizes, codes, counts, events.most)
    rules, attributes = schema.possible_events, schema.attributes + events.attributes
    with contents.blaming(of_events):
        check_rules(rules.rules, attributes, rules.joined(people, codes, linked.of_person))
    return linked


def _read(contents: Contents, name: str, schema: Schema) -> tuple[Codes, Positions]:
    parts, persons = [], [np.zeros(0, dtype=np.int64)]
    try:
        for block in blocks_of(contents, name, schema, more=(PERSON,)):
            with contents.blaming(name):
                parts.append(encoded_block(block, schema, where=name))
            persons.append(block.column(PERSON).cast(pa.int64()).to_numpy())
    except (OSError, ValueError, pa.ArrowException) as error:
        raise contents.error(name, why=f"not a table that can be read: {error}") from None
    empty = Codes.from_columns([np.zeros(0, dtype=np.int64)] * len(schema.sizes), schema.sizes)
    return concatenate([empty, *parts]), np.concatenate(persons)
