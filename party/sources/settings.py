"""Which source a party has, as its owner writes it down.

    [source]
    kind = "csv"                  # csv, parquet, excel, spss, stata, sas, or a database, see below
    path = "people.csv"           # relative to this file
    delimiter = ";"               # csv; what its header has if not given
    sheet = "2026"                # excel; the first if not given
    as_of = 2026-06-30            # the date the data is of; for a file, the day it was written
    where = "consent = yes and age >= 18"     # files: which rows take part; databases have a query
    person = "patient_id"         # whose row a row is, for studies that protect people, not rows

    [source.columns]              # from the study's names to the table's, where they differ
    sex = "GESCHL"

    [source.recode.sex]           # other codes for some cells; the rest stay as they are
    1 = "Male"
    2 = "Female"
    9 = ""                        # an empty cell

    [source.events]               # of a person's events: any kind of source, with the keys above
    kind = "csv"
    path = "visits.csv"
    person = "patient_id"         # whose event it is; [source] names its own column of people

    [source]
    kind = "postgresql"           # or sqlite, duckdb: a path in place of the uri
    uri = "postgresql://reader@db.example/health"    # without a password, see below
    table = "people"              # or: query = "SELECT age, sex FROM people WHERE consent"

    [source]
    kind = "spark"                # needs parley[spark] and Java 17
    path = "hdfs://name/people"   # Parquet; or table = ..., or query = ..., in Spark's own SQL
    master = "spark://host:7077"  # what Spark's own configuration says if not given

Columns that a study does not name are not read for it. Several tables are written as several
`[[source]]`, each with its own settings; the rows of all of them take part, and no row may stand in
two of them. Events are those of the people of the `[source]` that they stand in. Files of Excel,
SPSS, Stata and SAS need parley[formats]. A Spark source is renamed and recoded in its query.

A condition (`where`) is written as in `parley query`, in the file's own names and codes, and is
decided for every row by itself.

The password comes from where libpq looks for it: PGPASSWORD, PGPASSFILE, a service file. Or the
whole address is taken from elsewhere: `uri_env` names an environment variable, `uri_file` a file
that only its owner can read.
"""

from __future__ import annotations

import datetime as dt
import itertools
import pkgutil
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from common.errors import InputError
from common.schema import Schema
from common.schema.events import Events
from common.schema.toml import Parser, a_table, date, read_table, text
from common.tables.reader import TableReader, check_readable
from party.sources import kinds
from party.sources.cells import CellCondition, Recoding
from party.sources.keyed import Hashes, KeyedReader, KeyedTable, Keys, read_people
from party.sources.linked import LinkedSource, require_one_row_each
from party.sources.people import PeopleLimit, PeopleSource, PeopleTable
from party.sources.shape import Shape, ShapedReader
from party.sources.source import HELD_BYTES, JoinedSource, Source, TableSource

SHAPE = frozenset({"columns", "recode", "person", "as_of", "events"})  # keys of most kinds
# The other keys are the options of a kind.
_FIELDS = SHAPE | {"path", "uri", "uri_env", "uri_file", "table", "query", "where"}
_TABLES = ("columns", "recode", "events")
_PARSERS: Mapping[str, Parser] = {"as_of": date, **dict.fromkeys(_TABLES, a_table)}


class SourceKind(ABC):
    """A kind of source: the keys of its settings, where its rows are, and how they are read.

    Every module of `party.sources.kinds` that has `KINDS` adds kinds of sources; nothing else in
    the program lists or compares their names.
    """

    name: str  # as in `kind = "csv"`
    keys: frozenset[str]  # that its table may have, besides `kind`
    is_file = True  # whether its address is a file of this machine
    reads_all = True  # whether its reader gives columns that a schema does not name
    in_order = True  # whether it always gives its rows in the same order

    def address(
        self, table: Mapping[str, Any], folder: Path, environment: Mapping[str, str]
    ) -> str:
        """Return where the rows are, by the settings; paths are relative to the folder."""
        if "path" not in table:
            raise InputError(f"source: a {self.name} source needs a path")
        return str(folder / table["path"])

    def query(self, table: Mapping[str, Any]) -> str:
        """Return the query for the rows of a database; empty for a file."""
        return ""

    @abstractmethod
    def reader(self, settings: SourceSettings, schema: Schema | None) -> TableReader:
        """Read the raw table; without a schema, all columns there are."""

    def open(self, settings: SourceSettings, schema: Schema, *, held_bytes: int) -> Source:
        """Read the source once; see `SourceSettings.open`."""
        return TableSource(settings.reader(schema), schema, held_bytes=held_bytes)

    def keyed(self, settings: SourceSettings, schema: Schema, keys: Keys) -> KeyedTable:
        """Return the table, whose rows are read with what joins and orders them."""
        # A database reads the columns of a schema only, and all of them without one.
        return KeyedReader(settings.reader(schema if self.reads_all else None), schema, keys)

    def people(self, settings: SourceSettings, keys: Keys) -> list[Hashes]:
        """Read who is in the table."""
        return read_people(settings.reader(None), keys)

    def check_readable(self, settings: SourceSettings) -> None:
        """Read the whole source once; see `SourceSettings.check_readable`."""
        # Of people, nothing public may depend on whether there are rows.
        check_readable(settings.reader(None), may_be_empty=bool(settings.person))


def table_or_query(table: Mapping[str, Any], mark: str) -> str:
    """Return the query that the settings of a database have, or that of a whole table."""
    if ("query" in table) == ("table" in table):
        raise InputError("source: give either table or query")
    if "query" in table:
        return str(table["query"])
    parts = str(table["table"]).split(".")
    quoted = ".".join(mark + part.replace(mark, 2 * mark) + mark for part in parts)
    return f"SELECT * FROM {quoted}"  # noqa: S608  # the owner's own table, quoted


@cache
def all_kinds() -> Mapping[str, SourceKind]:
    modules = (
        import_module(f"{kinds.__name__}.{info.name}")
        for info in pkgutil.iter_modules(kinds.__path__)
    )
    every: list[SourceKind] = [kind for module in modules for kind in module.KINDS]
    every.sort(key=lambda kind: (not kind.is_file, kind.name))
    return {kind.name: kind for kind in every}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """A source that can be opened."""

    kind: str
    address: str  # a path, or a libpq URI; may hold a password, so it is not in the repr
    query: str = ""  # of a database
    options: Mapping[str, str] = field(default_factory=dict)  # that only some kinds have
    as_of: dt.date | None = None  # the date the data is of, if its owner gave one
    shape: Shape = field(default_factory=Shape)
    person: str = ""  # the table's column that says whose row a row is; never an attribute
    events: SourceSettings | None = None  # of these people, for studies of linked tables

    @property
    def _kind(self) -> SourceKind:
        return all_kinds()[self.kind]

    def __repr__(self) -> str:
        return f"SourceSettings(kind={self.kind!r}, query={self.query!r})"

    @classmethod
    def from_table(
        cls,
        table: Mapping[str, Any],
        *,
        folder: Path,
        environment: Mapping[str, str],
        inside: str = "source",
    ) -> SourceSettings:
        """Read a `[source]` table; InputError names the key and what would do."""
        known, name = all_kinds(), table.get("kind")
        if not isinstance(name, str) or name not in known:
            raise InputError(f"{inside}: kind is {name!r:.100}. Choose one of: {', '.join(known)}")
        kind = known[name]
        keys = ("kind", *sorted(kind.keys))
        table = read_table(table, {key: _PARSERS.get(key, text) for key in keys}, inside=inside)
        events = None
        if "events" in table:
            events = cls._of_events(table, folder=folder, environment=environment, inside=inside)
        return cls(
            events=events,
            kind=kind.name,
            address=kind.address(table, folder, environment),
            query=kind.query(table),
            options={key: table[key] for key in kind.keys - _FIELDS if key in table},
            as_of=table.get("as_of"),
            shape=_shape(table),
            person=table.get("person", ""),
        )

    @classmethod
    def _of_events(
        cls, table: Mapping[str, Any], *, folder: Path, environment: Mapping[str, str], inside: str
    ) -> SourceSettings:
        events = cls.from_table(
            table["events"], folder=folder, environment=environment, inside=f"{inside}.events"
        )
        if events.events is not None:
            raise InputError(f"{inside}.events: events have no events of their own. Leave them out")
        if not events.person or "person" not in table:
            raise InputError(
                f"{inside}.events: name the column of people in both [{inside}] and "
                f'[{inside}.events], as person = "patient_id"'
            )
        return events

    def is_table_of(self, other: SourceSettings) -> bool:
        """Tell whether both read one file (and sheet), or ask one place the same query."""
        sheet, other_sheet = (source.options.get("sheet", "") for source in (self, other))
        return (
            self._place == other._place
            and self.query == other.query
            and (sheet == other_sheet or not (sheet and other_sheet))  # none is the first one
        )

    @property
    def _place(self) -> Hashable:
        path = Path(self.address)
        return (path.stat().st_dev, path.stat().st_ino) if path.exists() else self.address

    @property
    def names_people(self) -> bool:
        """Whether the settings say whose row a row is."""
        return bool(self.person)

    def check_readable(self) -> None:
        """Read the whole source once, without reference to a study.

        What is refused here is refused whatever a study asks for: a table that cannot be read at
        all. A source that passes gives codes to every study whose columns it has.
        """
        self._kind.check_readable(self)
        if self.events is not None:
            self.events.check_readable()
            people = self._kind.people(self, self._keys())
            require_one_row_each(people, where="source")

    def open(
        self,
        schema: Schema,
        *,
        held_bytes: int = HELD_BYTES,
        people: PeopleLimit | None = None,
        secret: bytes = b"",
    ) -> Source:
        """Read the source once; InputError if it cannot be read, or is not of the schema.

        Up to `held_bytes` of codes are held in memory. `people` is what a study agreed about
        people; None if it protects rows. By the `secret`, events without an order are chosen.
        """
        if schema.events is not None:
            return self._linked(schema, schema.events, held_bytes=held_bytes, secret=secret)
        self._check_person(schema)
        if people is not None:
            return PeopleSource([self.people(schema)], schema, people, as_of=self.as_of)
        return self._kind.open(self, schema, held_bytes=held_bytes)

    def _linked(
        self, schema: Schema, declared: Events, *, held_bytes: int, secret: bytes
    ) -> LinkedSource:
        """Join the people with their events."""
        if self.events is None:
            raise InputError(
                f"source: the study is about people and their {declared.name}. Say in "
                "[source.events] where those are, with person = ... there and in [source]"
            )
        people = self.keyed(schema.people, secret=secret)
        events = self.events.keyed(schema.of_events, order=declared.order, secret=secret)
        return LinkedSource(people, events, schema, held_bytes=held_bytes)

    def keyed(self, schema: Schema, *, order: str = "", secret: bytes = b"") -> KeyedTable:
        """Return the table, whose rows are read with their people."""
        self._check_person(schema)
        return self._kind.keyed(self, schema, self._keys(order, secret))

    def _keys(self, order: str = "", secret: bytes = b"") -> Keys:
        person, in_order = self.shape.study_name(self.person), self._kind.in_order
        return Keys(person=person, order=order, secret=secret, in_order=in_order)

    def people(self, schema: Schema) -> PeopleTable:
        """Return the table and its column of people; InputError if the settings name none."""
        self._check_person(schema)
        if not self.person:
            raise InputError(
                "source: the study protects people. Name the column that says whose row a row is, "
                'as in person = "patient_id"'
            )
        # A database reads the columns of a schema only, and all of them without one.
        reader = self.reader(schema if self._kind.reads_all else None)
        schema.check_columns(reader.names, where=reader.where)
        return PeopleTable(reader, self.shape.study_name(self.person))

    def _check_person(self, schema: Schema) -> None:
        if self.person and self.person in map(self.shape.own_name, schema.names):
            raise InputError(
                f"source.person: {self.person!r} is an attribute of the study, and who a row is "
                "must not be one. Ask for a study without it"
            )

    def reader(self, schema: Schema | None) -> TableReader:
        """Return a reader of the table in its shape; without a schema, of all its columns."""
        reader = self._kind.reader(self, self.shape.in_own_names(schema))
        return ShapedReader(reader, self.shape) if self.shape else reader


@dataclass(frozen=True, slots=True)
class SeveralSources:
    """Several tables, whose rows all take part; used like one."""

    sources: tuple[SourceSettings, ...]

    @property
    def kind(self) -> str:
        return " and ".join(source.kind for source in self.sources)

    @property
    def names_people(self) -> bool:
        return any(source.names_people for source in self.sources)

    def check_readable(self) -> None:
        for source in self.sources:
            source.check_readable()

    def open(
        self,
        schema: Schema,
        *,
        held_bytes: int = HELD_BYTES,
        people: PeopleLimit | None = None,
        secret: bytes = b"",
    ) -> Source:
        """Read every table once; each has all columns of the schema."""
        if people is not None:
            tables = [source.people(schema) for source in self.sources]
            return PeopleSource(tables, schema, people, as_of=None)
        part = held_bytes // len(self.sources)
        return JoinedSource(
            [source.open(schema, held_bytes=part, secret=secret) for source in self.sources]
        )


OwnersTable = SourceSettings | SeveralSources


def owners_table(source: object, *, folder: Path, environment: Mapping[str, str]) -> OwnersTable:
    """Read `[source]`, or several `[[source]]`; InputError names the key and what would do."""
    tables: list[Any] = source if isinstance(source, list) else [source]
    if not tables or not all(isinstance(table, dict) for table in tables):
        raise InputError("source: write [source], or [[source]] for each of several tables")
    sources = tuple(
        SourceSettings.from_table(table, folder=folder, environment=environment) for table in tables
    )
    _check_apart(sources)
    return sources[0] if len(sources) == 1 else SeveralSources(sources)


def _check_apart(sources: Sequence[SourceSettings]) -> None:
    """Refuse a table that stands twice: one of its rows would be counted twice."""
    for (first, one), (second, other) in itertools.combinations(enumerate(sources, start=1), 2):
        if one.is_table_of(other):
            raise InputError(
                f"source: table {second} is table {first} again, so a row would count twice. "
                "Name every table once, and choose its rows by one condition"
            )


def _shape(table: Mapping[str, Any]) -> Shape:
    named = table.get("columns", {})
    columns = read_table(named, dict.fromkeys(named, text), inside="source.columns")
    twice = [inside for inside, times in Counter(columns.values()).items() if times > 1]
    if twice:
        raise InputError(f"source.columns: {twice[0]!r} stands for two columns. Choose one")
    where = table.get("where")
    return Shape(
        columns=columns,
        recode={name: _recoding(name, codes) for name, codes in table.get("recode", {}).items()},
        where=None if where is None else CellCondition.parse(where),
    )


def _recoding(name: str, codes: object) -> Recoding:
    if not isinstance(codes, dict):
        raise InputError(f"source.recode: write the codes of {name!r} in [source.recode.{name}]")
    for old, new in codes.items():
        if not isinstance(new, str | int) or isinstance(new, bool):
            raise InputError(f"source.recode.{name}: {old} becomes a text or a number, not {new!r}")
    return Recoding({old: str(new) for old, new in codes.items()})
