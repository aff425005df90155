"""One table as the tables of several owners, for simulations: by rows, by a column, or by people.

Of people and their events there are two files, which the column of people joins (`LinkedFiles`).

People's rows are read and chosen as an owner's node does (`party.sources.people`): all rows of a
person go to as many owners as a person may have rows with. Each owner states a round number of rows
and leaves out what is more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd

from common.errors import InputError
from common.fitted.single_owner import Table
from common.privacy.randomness import RandomSource
from common.schema import Codes, Schema
from common.schema.codes import concatenate
from common.schema.linked import encode_linked
from common.tables import TableFile, formats, read_table
from common.wording import many
from party.sources.people import PeopleLimit, chosen
from party.sources.settings import SourceSettings

_KINDS = {".parquet": "parquet", ".pq": "parquet", **formats.KINDS}
OwnersTables: TypeAlias = Table | tuple[Table, Table]  # with a linked schema, people and events
_KEY_BYTES = 32
_DIGITS = 2


def at_random(table: pd.DataFrame, parties: int, source: RandomSource) -> dict[str, pd.DataFrame]:
    """Deal rows out at random, equally."""
    if not 1 <= parties <= len(table):
        raise InputError(
            f"{many(len(table), 'row')} cannot be dealt out to {many(parties, 'party')}"
        )
    order = np.argsort(source.words(len(table)), kind="stable")
    return {
        f"party {number + 1}": table.iloc[np.sort(order[number::parties])]
        for number in range(parties)
    }


def by_column(table: pd.DataFrame, column: str) -> dict[str, pd.DataFrame]:
    """Make one owner for each value of a column, so that owners differ as real ones do."""
    if column not in table.columns:
        raise InputError(
            f"no column {column!r} to partition by; there are {', '.join(map(str, table.columns))}"
        )
    groups = table.groupby(column, dropna=False, observed=True)
    return {str(value): group for value, group in groups}


@dataclass(frozen=True, slots=True)
class PeopleRows:
    """Rows, and whose each of them is."""

    rows: Codes
    people: Sequence[bytes]

    @classmethod
    def read(
        cls, path: Path, schema: Schema, person: str, delimiter: str | None, sheet: str = ""
    ) -> PeopleRows:
        """Read the rows of a file.

        Raises:
            InputError: it cannot be read, or the column of people is not there or an attribute.
        """
        given = {"delimiter": delimiter, "sheet": sheet}
        source = SourceSettings(
            kind=_KINDS.get(path.suffix.lower(), "csv"),
            address=str(path),
            options={key: value for key, value in given.items() if value},
            person=person,
        )
        parts, people = source.people(schema).read(schema)
        if not people:
            raise InputError(f"{path}: the table has no rows")
        return cls(concatenate(parts), people)

    def dealt_out(self, parties: int, *, owners: int, key: bytes) -> list[PeopleRows]:
        """Deal the rows out to parties; a person is with `owners` of them at most."""
        at = list[list[int]]([] for _ in range(parties))
        seen = dict[bytes, int]()
        for row, person in enumerate(self.people):
            first = int.from_bytes(hashlib.blake2b(person, key=key, digest_size=8).digest())
            turn = seen[person] = seen.get(person, -1) + 1
            at[(first + turn % owners) % parties].append(row)
        return [
            PeopleRows(self.rows.take(np.array(own, np.intp)), [self.people[i] for i in own])
            for own in at
        ]

    def limited(self, per_person: int, key: bytes) -> Codes:
        """Keep at most so many rows of a person, and a round number of them in all."""
        limit = PeopleLimit(rows=self.rows.rows, per_person=per_person, key=key, filler=b"")
        kept = chosen(self.rows, self.people, limit)
        return self.rows.take(kept[: round_down(len(kept))])


@dataclass(frozen=True, slots=True)
class LinkedFiles:
    """The files of people and of their events, with the columns that join and order them."""

    people: TableFile
    events: TableFile
    person: str

    @classmethod
    def read(
        cls,
        people: Path,
        events: Path,
        schema: Schema,
        *,
        person: str,
        delimiter: str | None = None,
        sheets: tuple[str, str] = ("", ""),
    ) -> LinkedFiles:
        """Read both files; InputError names the file, the line and the column.

        Args:
            people: one row a person.
            events: one row an event.
            schema: of both, with [events].
            person: the column of people, in both files.
            delimiter: of CSV files; None for the one in the header of each.
            sheets: of Excel files, of people and of events; empty for the first.
        """
        declared = schema.events
        if declared is None:
            raise InputError("schema: it has no [events]. Declare them, or name one table")
        if not person:
            raise InputError("--person: name the column that says, in both files, whose row it is")
        order = (declared.order,) if declared.order else ()
        found = cls(
            read_table(people, schema.people, delimiter=delimiter, sheet=sheets[0], more=(person,)),
            read_table(
                events, schema.of_events,
                delimiter=delimiter, sheet=sheets[1], more=(person, *order),
            ),
            person,
        )  # fmt: skip
        found.people.encode(schema.people)  # here an error can still name the file and the line
        found.events.encode(schema.of_events)
        return found

    @property
    def frames(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Both tables."""
        return self.people.data.to_pandas(), self.events.data.to_pandas()

    def joined(self, schema: Schema) -> str:
        """Say what becomes of the events, for the owner alone."""
        codes = encode_linked(schema, *self.frames, person=self.person)
        counted, without = codes.events.rows, int((codes.numbers == 0).sum())
        return (
            f"{self.events.path}: {counted:,} of {many(self.events.data.num_rows, 'row')} count; "
            f"the others are of unknown people, or beyond the first {codes.most} of a person. "
            f"People without any: {without:,}"
        )

    def dealt_out(
        self, deal: Callable[[pd.DataFrame], Mapping[str, pd.DataFrame]]
    ) -> dict[str, tuple[pd.DataFrame, pd.DataFrame]]:
        """Deal people out to owners, each with her events."""
        people, events = self.frames
        return {
            name: (own, events[events[self.person].isin(own[self.person])])
            for name, own in deal(people).items()
        }


def two_files(argument: Path, *, same_file: bool) -> tuple[Path, Path]:
    """Return the files that PEOPLE:EVENTS names; with two sheets, one file is both."""
    people, colon, events = str(argument).rpartition(":")
    if colon and people and events:
        return Path(people), Path(events)
    if same_file:
        return argument, argument
    raise InputError(
        f"{argument}: the schema has [events], so an owner has two tables. Write both with a colon "
        "between them, as people.csv:visits.csv"
    )


def round_down(number: int) -> int:
    """Return the number with zeros after its first two digits."""
    unit = int(10 ** max(0, len(str(number)) - _DIGITS))
    return number // unit * unit


def tables_of_people(
    tables: Sequence[PeopleRows],
    schema: Schema,
    *,
    per_person: int,
    owners: int,
    parties: int,
    source: RandomSource,
) -> list[pd.DataFrame]:
    """Return the owners' tables: those given, or a single one dealt out.

    Raises:
        InputError: an owner is left without rows.
    """
    if not 1 <= owners <= parties:
        raise InputError(f"--owners-per-person {owners}: from 1 to the number of owners, {parties}")
    key = source.random_bytes(_KEY_BYTES)
    parts = (
        list(tables) if len(tables) > 1 else tables[0].dealt_out(parties, owners=owners, key=key)
    )
    made = []
    for part in parts:
        if not part.people:
            raise InputError("--parties: an owner is left without people. Ask for fewer owners")
        made.append(schema.decode(part.limited(per_person, key), source))
    return made
