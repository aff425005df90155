"""The schema: what a table may contain, agreed between the parties before any row is read.

    >>> schema = Schema.from_toml('''
    ... [[attribute]]
    ... name = "sex"
    ... kind = "categorical"
    ... values = ["F", "M"]
    ... ''')
    >>> schema.encode(pd.DataFrame({"sex": ["M", "F", "M"]})).columns[0].tolist()
    [1, 0, 1]

pandas is loaded where a data frame is made or read, and not before: most commands need none.

Nothing here is private: a schema is published with the synthetic table. Its content must come from
public knowledge; `infer` proposes one from data, for its owner to review.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from common.errors import InputError, located
from common.schema import declaration
from common.schema.attribute import Attribute
from common.schema.codes import CodeColumn, Codes
from common.schema.columns import SupportsArrow, arrow_column, named_columns
from common.schema.encoder import RowNumbers, encode_column, numbers_after
from common.schema.event_rules import PossibleEvents
from common.schema.events import PERSON, USUAL_MOST, Events, events_name
from common.schema.rules import Possible, Rule
from common.schema.toml import suggest, text_of
from common.wording import many

if TYPE_CHECKING:
    import pandas as pd

    from common.schema.decoder import Insides, WordSource

_DIGEST_PREFIX = b"parley schema 1\n"  # a change of the canonical text must change the digest

_SHOWN = 6  # attributes in a line
WARNING = (
    "NOT PRIVATE YET: the values and ranges below were read off the data, and a schema is\n"
    "published. Replace them by what is public knowledge (a code book, a range that holds for\n"
    "everybody) before you share this file or use it in a study."
)


@dataclass(frozen=True, repr=False)
class Schema:
    """The attributes of a table, in order.

    Attributes:
        attributes: at least one, no two of the same name.
        ignore: columns that are not read. No column is read that is not an attribute; naming one
            here only keeps it from becoming an attribute by mistake.
        rules: what cannot occur together in a row.
        events: of a linked schema, whose rows are people; None if there is one table.
    """

    attributes: tuple[Attribute, ...]
    ignore: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    events: Events | None = None

    def __post_init__(self) -> None:
        """Refuse a schema without attributes, and a name that is used twice."""
        if not self.attributes:
            raise InputError("the schema has no attributes. Write at least one [[attribute]]")
        for name, times in Counter(self.names + self.ignore).items():
            if times > 1:
                raise InputError(f"the name {name!r} is used {times} times. Rename all but one")
        if self.events is not None and PERSON in self.names:
            raise InputError(
                f"attribute {PERSON!r}: the column that joins people and events has this name. "
                "Rename the attribute"
            )
        self._check_rules()

    def __repr__(self) -> str:
        """Return a line for a notebook: how many attributes, and the first of them."""
        shown = ", ".join(
            f"{attribute.name} ({attribute.size})" for attribute in self.attributes[:_SHOWN]
        )
        more = ", ..." if len(self.attributes) > _SHOWN else ""
        return f"Schema of {many(len(self.attributes), 'attribute')}: {shown}{more}"

    def _check_rules(self) -> None:
        """Refuse rules that are not about these attributes."""
        try:
            _ = self.possible
        except InputError as error:
            if self.events is None:
                raise
            raise InputError(
                f"{error}\nA rule with a column of {self.events.name} is written as [[events.rule]]"
            ) from None
        if self.events is not None and self.events.rules:
            with located("events"):
                _ = self.possible_events

    @cached_property
    def possible(self) -> Possible:
        return Possible.of(self.rules, self)

    @cached_property
    def possible_events(self) -> PossibleEvents:
        """Which events the rules about events allow, by their person."""
        rules = () if self.events is None else self.events.rules
        joined = Schema(self.attributes + self.events.attributes) if self.events and rules else self
        return PossibleEvents.of(rules, joined, len(self.attributes), self.possible)

    @classmethod
    def load(cls, path: Path | str) -> Schema:
        """Read a schema file; an InputError names the file, the attribute and the problem."""
        return cls.from_toml(text_of(Path(path)), where=str(path))

    @classmethod
    def of(cls, columns: Mapping[str, Any]) -> Schema:
        """Make a schema in Python, from the domain of each column.

            Schema.of({"sex": ["F", "M"], "smokes": bool, "age": range(0, 100),
                       "income": {"kind": "real", "min": 0, "max": 90_000, "bins": 18}})

        A list holds the values of a category, a range whole numbers; a dict has the keys of an
        [[attribute]] of schema.toml.
        """
        entries = [{"name": name, **_domain(name, domain)} for name, domain in columns.items()]
        return cls.from_document({"attribute": entries})

    @staticmethod
    def infer(
        table: pd.DataFrame | pa.Table | SupportsArrow,
        *,
        missing: Sequence[str] = (),
        labels: Mapping[str, Mapping[bytes, str]] | None = None,
        public: Mapping[str, Sequence[str]] | None = None,
        person: str = "",
    ) -> Proposal:
        """Draft a schema for a table; NOT PRIVATE until its owner has reviewed it.

        Args:
            table: whose columns become attributes.
            missing: codes that stand for empty cells, in any column.
            labels: of values, by column, if the table's file has labels.
            public: lists of values that are public, by column.
            person: the column that says whose row a row is; it becomes no attribute.
        """
        from common.schema.infer import draft

        if isinstance(table, str | Path):
            raise InputError(
                "Schema.infer: expected a table, not a path. Read it first: "
                "parley.read_table(path).data"
            )
        if not hasattr(table, "iloc") and not isinstance(table, pa.Table):
            table = pa.table(table)
        attributes, notes = draft(
            table, missing=missing, labels=labels, public=public, person=person
        )
        return Proposal(Schema(attributes), notes)

    @classmethod
    def from_toml(cls, text: str, *, where: str = "schema") -> Schema:
        """Read a schema from a text; `where` names it in errors."""
        with located(where):
            return cls(*declaration.parse(text))

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Schema:
        """Read a schema from a TOML document that was parsed already, such as a part of a study."""
        return cls(*declaration.read(document))

    def to_toml(self) -> str:
        """Return the canonical text of this schema: equal schemas give equal texts."""
        return declaration.write(self.attributes, self.ignore, self.rules, self.events)

    def digest(self) -> str:
        """Return the SHA-256 of attributes, rules and events in canonical text.

        Parties with equal digests agree. Ignored columns are not in the digest: they are never
        read, and may differ between owners.
        """
        text = declaration.write(self.attributes, (), self.rules, self.events)
        return hashlib.sha256(_DIGEST_PREFIX + text.encode()).hexdigest()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the attributes."""
        return tuple(attribute.name for attribute in self.attributes)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of codes of each attribute."""
        return tuple(attribute.size for attribute in self.attributes)

    def position(self, name: str) -> int:
        """Return the position of an attribute; InputError if no attribute has the name."""
        if name not in self.names:
            raise InputError(f"no attribute is called {name!r}{suggest(name, self.names)}")
        return self.names.index(name)

    def encode(
        self,
        table: pd.DataFrame | pa.Table,
        *,
        where: str = "table",
        row_numbers: RowNumbers = list,
    ) -> Codes:
        """Encode a table, whose columns may be in any order; the columns of the codes are in ours.

        A row that breaks a rule has the codes of the nearest possible row (`common.schema.rules`).

        Args:
            table: of pandas or Arrow.
            where: the name of the table, for errors.
            row_numbers: from positions to row numbers, for errors; rows count from 0 by default,
                as in pandas.

        Raises:
            InputError: for a missing or repeated column, a table without rows, and cells
                that the schema refuses, the first five named with their rows.
        """
        self.require_one_table()
        columns = named_columns(table)
        self.check_columns([name for name, _ in columns], where=where)
        if len(table) == 0:
            raise InputError(f"{where}: the table has no rows")
        by_name = dict(columns)
        pieces = ((arrow_column(by_name[name]),) for name in self.names)
        return self.encode_pieces(pieces, where=where, row_numbers=row_numbers)

    def encode_pieces(
        self,
        columns: Iterable[Iterable[pa.Array]],
        *,
        where: str,
        row_numbers: RowNumbers,
    ) -> Codes:
        """`encode` columns in pieces; a piece may be freed when the next one is taken."""
        self.require_one_table()
        codes: list[CodeColumn] = []
        places: list[CodeColumn | None] = []
        for attribute, pieces in zip(self.attributes, columns, strict=True):
            parts: list[CodeColumn] = []
            within: list[CodeColumn] = []
            before = 0
            for piece in pieces:
                numbers = numbers_after(before, row_numbers)
                column, inside = encode_column(attribute, piece, where=where, row_numbers=numbers)
                parts.append(column)
                within += () if inside is None else (inside,)
                before += len(column)
            codes.append(parts[0] if len(parts) == 1 else np.concatenate(parts))
            places.append(np.concatenate(within) if len(within) > 1 else next(iter(within), None))
        table = Codes(tuple(codes), self.sizes, places=tuple(places))
        return self.possible.repaired(table)

    @property
    def every_name(self) -> tuple[str, ...]:
        """The names of all attributes, those of events after those of people."""
        return self.names if self.events is None else (*self.names, *self.of_events.names)

    @property
    def row(self) -> str:
        """What a row of the table, or of the table of people, is called."""
        return "row" if self.events is None else "person"

    @cached_property
    def people(self) -> Schema:
        return replace(self, events=None)

    @cached_property
    def of_events(self) -> Schema:
        """The schema of the events alone; InputError if there are none."""
        if self.events is None:
            raise InputError("schema: it has no [events]. Declare them, or hand over one table")
        rules = (table.rule for table in self.possible_events.rules if not table.fixed)
        return Schema(self.events.attributes, rules=tuple(rules))

    @cached_property
    def joined(self) -> Schema:
        """The columns that a study's tables are over; of a single table, its own.

        Of a linked schema: people's columns, the number of a person's events, events' columns. The
        number is called as the events are; a name that is taken already says whose column it is.
        """
        if self.events is None:
            return self
        called, most = self.events.name, self.events.most
        number = f"number of {called}" if called in self.every_name else called
        keys = {"kind": "integer", "min": 0, "max": most, "bins": most + 1}
        counts = Schema.from_document({"attribute": [{"name": number, **keys}]}).attributes
        names = {*self.names, number}
        events = (
            replace(attribute, name=f"{attribute.name} of {called}")
            if attribute.name in names
            else attribute
            for attribute in self.events.attributes
        )
        return Schema((*self.attributes, *counts, *events))

    def require_one_table(self) -> None:
        """Refuse a linked schema, with InputError, where a single table is read or written."""
        if self.events is not None:
            raise InputError(
                f"schema: it has [events] {self.events.name!r}, and this works on a single table. "
                "Leave [events] out for people alone; docs/linked-tables.md says what works on both"
            )

    def forgiven(self) -> Schema:
        """Return a schema of equal digest that refuses no cell (`Attribute.forgiven`)."""
        events = self.events and self.events.forgiven()
        return replace(self, attributes=tuple(a.forgiven() for a in self.attributes), events=events)

    def without_rules(self) -> Schema:
        """Return a schema that encodes a row or an event that breaks a rule cell by cell."""
        return replace(self, rules=(), events=self.events and replace(self.events, rules=()))

    @property
    def forgiving(self) -> bool:
        return all(attribute.forgiving for attribute in self.attributes)

    def check_columns(self, columns: Sequence[str], *, where: str) -> None:
        """Refuse repeated and missing columns; further columns are never read."""
        repeated = [name for name, times in Counter(columns).items() if times > 1]
        if repeated:
            raise InputError(f"{where}: duplicate column {_quoted(repeated)}. Rename all but one")
        missing = [name for name in self.names if name not in columns]
        unknown = [name for name in columns if name not in self.names]
        if missing:
            raise InputError(
                f"{where}: missing column {_quoted(missing)}{suggest(missing[0], unknown)}. "
                f"The table has {_quoted(columns)}"
            )

    def decode(
        self, codes: Codes, source: WordSource, inside: Insides | None = None
    ) -> pd.DataFrame:
        """Return the codes as a table of values whose codes they are."""
        from common.schema.decoder import decode_to_pandas

        return decode_to_pandas(self, codes, source, inside or {})


@dataclass(frozen=True, repr=False)
class Proposal:
    """A draft, what its owner should review, and whether it was made without any row."""

    schema: Schema
    notes: tuple[str, ...]
    public: bool = False
    # Rules that do not fit the proposed bins yet, as tables of [[rule]].
    unfit: tuple[Mapping[str, str], ...] = ()

    def __repr__(self) -> str:
        private = "" if self.public else ", NOT PRIVATE YET"
        notes = "".join(f"\n  * {note}" for note in self.notes[:_SHOWN])
        more = f"\n  ... {len(self.notes)} notes in all" if len(self.notes) > _SHOWN else ""
        return f"Draft{private}: {self.schema!r}{notes}{more}"

    def with_events(self, events: Proposal, *, called: str) -> Proposal:
        """Add a draft of people's events to one of people; `called` is what their file is called.

        Events are ordered by their date, if they have one. How many of a person count is not read
        off the data.
        """
        attributes = events.schema.attributes
        dates = [
            attribute.name for attribute in attributes if attribute.kind in ("date", "datetime")
        ]
        order = dates[0] if len(dates) == 1 else ""
        shared = set(self.schema.names).intersection(events.schema.names)
        linked = Events(
            name=events_name(called), most=USUAL_MOST, attributes=attributes, order=order,
            rules=() if shared else events.schema.rules,
        )  # fmt: skip
        notes = [f"{linked.name}: {note}" for note in events.notes]
        if shared and events.schema.rules:
            notes.append(f"{linked.name}: rules are left out: people have {_quoted(list(shared))}")
        notes.append(
            f"{linked.name}: of a person's {linked.name} the first {USUAL_MOST} count (most). "
            + (f"They are ordered by {order!r} (order)." if order else _NO_ORDER)
        )
        return replace(
            self,
            schema=replace(self.schema, events=linked),
            notes=(*self.notes, *notes),
            public=self.public and events.public,
        )

    def to_toml(self) -> str:
        """Write the draft as a file, with the warning and the notes as comments at its head."""
        head = [] if self.public else [f"# {line}" for line in WARNING.splitlines()]
        for note in self.notes:  # names come from the table, and may hold line breaks
            printable = "".join(c if c.isprintable() else " " for c in note)
            head.append(f"# * {printable}")
        rules = [
            f"# {line}" if line else ""
            for rule in self.unfit
            for line in ("", "[[rule]]", *(f"{key} = {json.dumps(rule[key])}" for key in rule))
        ]
        return "\n".join([*head, "", self.schema.to_toml(), *rules])


_NO_ORDER = "Name the column that orders them (order); else a file's order counts."


def _domain(name: str, domain: object) -> dict[str, Any]:
    """Return the keys of an [[attribute]] for a domain as Python writes it."""
    if isinstance(domain, Mapping):
        return dict(domain)
    if domain is bool:
        return {"kind": "boolean"}
    if isinstance(domain, range) and domain.step == 1:
        return {"kind": "integer", "min": domain.start, "max": domain.stop - 1}
    if isinstance(domain, tuple) and len(domain) == 2 and all(map(_is_number, domain)):
        raise InputError(
            f"{name}: {domain} may be two values or a range. Write [{domain[0]}, {domain[1]}] for "
            f"two values, range({domain[0]}, {domain[1]}) for whole numbers, or "
            f'{{"kind": "real", "min": {domain[0]}, "max": {domain[1]}}} for others'
        )
    if isinstance(domain, Sequence) and not isinstance(domain, str | range):
        return {"kind": "categorical", "values": [str(value) for value in domain]}
    raise InputError(
        f"{name}: expected a list of values, a range of whole numbers, bool, or a dict with the "
        f"keys of an [[attribute]], not {domain!r:.100}"
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_draft(text: str) -> bool:
    """Tell whether the text of a schema still has the warning that a proposal begins with."""
    return text.lstrip("\ufeff# ").startswith(WARNING.partition(":")[0])


def _quoted(names: Sequence[str]) -> str:
    shown = ", ".join(f'"{name}"' for name in names[:8])
    return f"{shown}, ... ({len(names)} in all)" if len(names) > 8 else shown
