"""Options for the second table of an owner, of people's events; and questions about events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from common.analysis.views import events_view
from common.errors import InputError
from common.schema import Schema
from parley.cli import options
from parley.simulation.linked_files import LinkedFiles

_T = TypeVar("_T")


@dataclass(frozen=True)
class EventsFile:
    """The second table of an owner, of people's events."""

    events: Annotated[
        Path | None, typer.Option("--events", help="The table of people's events, linked to them.")
    ] = None
    person: Annotated[
        str,
        typer.Option(
            help="With --events: the column that says, in both, whose row it is.",
            show_default=False,
        ),
    ] = ""
    events_sheet: options.EventsSheet = ""

    def check(self, *, linked: bool) -> None:
        """Refuse a schema that asks for other tables than were named."""
        if linked and self.events is None:
            raise InputError(
                "--events: the schema has [events]. Name their table, and the column that joins "
                "the two with --person"
            )
        if not linked and (self.events or self.person or self.events_sheet):
            raise InputError("--events: the schema has no [events]. Declare them, or leave it out")

    def linked(self, people: Path, schema: Schema, reading: options.Reading) -> LinkedFiles | None:
        """Read both tables; None if the schema is of a single table."""
        self.check(linked=schema.events is not None)
        if self.events is None:
            return None
        return LinkedFiles.read(
            (people, self.events), schema,
            person=self.person, delimiter=reading.character,
            sheets=(reading.sheet, self.events_sheet),
        )  # fmt: skip


def asked_of(released: Schema, schema: Schema, ask: Callable[[Schema], _T]) -> _T:
    """Ask of a table of a release; where only its events have the columns, say how to ask."""
    events = released.events
    try:
        return ask(schema)
    except InputError:
        if events is None:
            raise
        try:
            ask(events_view(released).schema)
        except InputError:
            pass
        else:
            raise InputError(
                f"{events.name}: a column of theirs is named, and a row is a person here. Ask "
                f"`parley estimate RELEASE --of {events.name}`, where a row is one of her "
                f"{events.name}"
            ) from None
        raise
