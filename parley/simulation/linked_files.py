"""The two files of an owner: people, and their events, which the column of people joins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from common.errors import InputError
from common.schema import Schema
from common.schema.linked import LinkedCodes, encode_linked
from common.tables import TableFile, read_table
from common.wording import many

if TYPE_CHECKING:  # pandas is slow to load
    import pandas as pd

    from common.fitted.single_owner import Table

OwnersTables: TypeAlias = "Table | tuple[Table, Table]"  # of a linked schema: people and events


@dataclass(frozen=True, slots=True)
class LinkedFiles:
    """The files of people and of their events, with the columns that join and order them."""

    people: TableFile
    events: TableFile
    person: str

    @classmethod
    def read(
        cls,
        files: tuple[Path, Path],
        schema: Schema,
        *,
        person: str,
        delimiter: str | None = None,
        sheets: tuple[str, str] = ("", ""),
    ) -> LinkedFiles:
        """Read the files of people and of events, whose rows have a column `person`.

        An InputError names the file, the line and the column.
        """
        declared = schema.events
        if declared is None:
            raise InputError("schema: it has no [events]. Declare them, or name one table")
        if not person:
            raise InputError("--person: name the column that says, in both files, whose row it is")
        order = (declared.order,) if declared.order else ()
        linked = cls(
            read_table(
                files[0], schema.people, delimiter=delimiter, sheet=sheets[0], more=(person,)
            ),
            read_table(
                files[1], schema.of_events,
                delimiter=delimiter, sheet=sheets[1], more=(person, *order),
            ),
            person,
        )  # fmt: skip
        linked.people.encode(schema.people)  # here an error can still name the file and the line
        linked.events.encode(schema.of_events)
        return linked

    @property
    def frames(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        return self.people.data.to_pandas(), self.events.data.to_pandas()

    def encode(self, schema: Schema) -> LinkedCodes:
        """Return the codes of people with the events that count."""
        return encode_linked(schema, *self.frames, person=self.person)

    def joined(self, codes: LinkedCodes) -> str:
        """Say what becomes of the events, for the owner alone, by the codes of both tables."""
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
            name: (part, events[events[self.person].isin(part[self.person])])
            for name, part in deal(people).items()
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
