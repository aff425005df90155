"""The second table of a linked schema: what a person's events may contain.

    [events]
    name = "visits"             # what an event is called; the release has synthetic-visits.csv
    most = 8                    # events of a person that count: the first 8
    order = "day"               # optional: a column of the source that orders a person's events

    [[events.attribute]]        # the keys of [[attribute]]
    name = "diagnosis"
    kind = "categorical"
    values = ["I10", "E11", "J45"]

    [[events.rule]]             # the keys of [[rule]]; it may name columns of people, too
    when = "age < 15"
    then = "diagnosis != I10"

People are the rows of the schema itself. Without `order`, a person's events are in the order of
their table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from common.errors import InputError, located
from common.schema.attribute import Attribute
from common.schema.limits import MOST_ATTRIBUTE_NAME, MOST_EVENTS, check_most, check_name
from common.schema.rules import Rule
from common.schema.toml import Parser, anything, read_table, text, whole

PERSON = "person"  # the column that joins the two tables of a release
USUAL_MOST = 8  # events of a person that a draft counts
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")  # it becomes a part of a file's name


def events_name(words: str) -> str:
    """Return what events may be called that have these words for a name."""
    name = re.sub(r"[^a-z0-9_-]+", "-", words.lower()).strip("-")[:40]
    return name if _NAME.fullmatch(name) else "events"


@dataclass(frozen=True, slots=True)
class Events:
    """The events of people: name, how many of a person count, attributes, order and rules."""

    name: str
    most: int
    attributes: tuple[Attribute, ...]
    order: str = ""  # a column of the source; empty for the order of the table
    rules: tuple[Rule, ...] = ()  # what no event can be, by its person's columns, too

    def __post_init__(self) -> None:
        """Refuse what no release could hold."""
        if not _NAME.fullmatch(self.name):
            raise InputError(
                f"events: name: {self.name!r:.100} cannot be part of a file's name. Use up to 40 "
                "lower-case letters, digits, - and _, a letter first"
            )
        if self.most < 1:
            raise InputError(f"events: most: at least 1, not {self.most}")
        check_most("events: most", self.most, most=MOST_EVENTS)
        if not self.attributes:
            raise InputError("events: there is no attribute. Write one [[events.attribute]]")
        names = [attribute.name for attribute in self.attributes]
        if len(set(names)) < len(names) or PERSON in names:
            raise InputError(
                f"events: every attribute needs a name of its own, other than {PERSON!r}"
            )
        if self.order:
            with located("events: order"):
                check_name(self.order, most=MOST_ATTRIBUTE_NAME)

    def forgiven(self) -> Events:
        """Return events of which no cell is refused (`Attribute.forgiven`)."""
        return replace(
            self, attributes=tuple(attribute.forgiven() for attribute in self.attributes)
        )

    @property
    def entries(self) -> dict[str, object]:
        """The keys of [events], without attributes and rules."""
        order = {"order": self.order} if self.order else {}
        return {"name": self.name, "most": self.most, **order}


_KEYS: Mapping[str, Parser] = {
    "name": text,
    "most": whole(least=1),
    "order": text,
    "attribute": anything,
    "rule": anything,
}


def read_events(table: object) -> dict[str, Any]:
    """Return what an [events] table says; its attributes and rules are still as TOML has them."""
    if not isinstance(table, Mapping):
        raise InputError("events: write it as a table, [events]")
    return read_table(table, _KEYS, inside="events", required=("name", "most", "attribute"))
