"""A kind of source: the keys of its settings, where its rows are, and how they are read.

Every module of `party.sources.kinds` that has `KINDS` adds kinds of sources; nothing else in the
program lists or compares their names.
"""

from __future__ import annotations

import datetime as dt
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from common.errors import InputError
from common.schema import Schema
from common.tables.reader import TableReader, check_readable
from party.sources import kinds
from party.sources.keyed import Hashes, KeyedReader, KeyedTable, Keys, read_people
from party.sources.source import Source, TableSource

SHAPE = frozenset({"columns", "recode", "person", "as_of", "events"})  # keys of most kinds


class TableSettings(Protocol):
    """What an owner's settings say of one table (`party.sources.settings`)."""

    @property
    def address(self) -> str:
        """A path, or the URI of a database."""

    @property
    def query(self) -> str:
        """The query for the rows of a database; empty for a file."""

    @property
    def options(self) -> Mapping[str, str]:
        """The keys that only some kinds have."""

    @property
    def as_of(self) -> dt.date | None:
        """The date the data is of, if its owner gave one."""

    @property
    def person(self) -> str:
        """The column that says whose row a row is; empty if none does."""

    def reader(self, schema: Schema | None) -> TableReader:
        """Return a reader of the table in its owner's shape."""


class SourceKind(ABC):
    """A kind of source."""

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
    def reader(self, settings: TableSettings, schema: Schema | None) -> TableReader:
        """Read the raw table; without a schema, all columns there are."""

    def open(self, settings: TableSettings, schema: Schema, *, held_bytes: int) -> Source:
        """Read the source once; see `SourceSettings.open`."""
        return TableSource(settings.reader(schema), schema, held_bytes=held_bytes)

    def keyed(self, settings: TableSettings, schema: Schema, keys: Keys) -> KeyedTable:
        """Return the table, whose rows are read with what joins and orders them."""
        # A database reads the columns of a schema only, and all of them without one.
        return KeyedReader(settings.reader(schema if self.reads_all else None), schema, keys)

    def people(self, settings: TableSettings, keys: Keys) -> list[Hashes]:
        """Read who is in the table."""
        return read_people(settings.reader(None), keys)

    def check_readable(self, settings: TableSettings) -> None:
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
    """Return every kind of source by its name."""
    modules = (
        import_module(f"{kinds.__name__}.{info.name}")
        for info in pkgutil.iter_modules(kinds.__path__)
    )
    every: list[SourceKind] = [kind for module in modules for kind in module.KINDS]
    every.sort(key=lambda kind: (not kind.is_file, kind.name))
    return {kind.name: kind for kind in every}
