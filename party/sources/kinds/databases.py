"""SQLite, DuckDB and PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common.errors import InputError
from common.files import read_private
from common.schema import Schema
from party.sources.kind import SHAPE, Kind, table_or_query
from party.sources.settings import SourceSettings
from party.sources.source import TableReader

_HAS_PASSWORD = re.compile(r"://[^/@:]*:[^/@]+@|password\s*=")


class Database(Kind):
    """A database in a file."""

    reads_all = False
    keys = SHAPE | {"path", "table", "query"}

    def __init__(self, name: str) -> None:
        self.name = name

    def query(self, table: Mapping[str, Any]) -> str:
        return table_or_query(table, '"')

    def reader(self, settings: SourceSettings, schema: Schema | None) -> TableReader:
        from party.sources.sql import SqlReader  # the drivers are slow to load

        address, query = settings.address, settings.query
        return SqlReader(self.name, address, query, schema, as_of=settings.as_of)


class Server(Database):
    """A database behind an address, which may hold a password."""

    is_file = False
    keys = SHAPE | {"uri", "uri_env", "uri_file", "table", "query"}

    def address(
        self, table: Mapping[str, Any], folder: Path, environment: Mapping[str, str]
    ) -> str:
        given = [key for key in ("uri", "uri_env", "uri_file") if key in table]
        if len(given) != 1:
            raise InputError("source: give one of uri, uri_env and uri_file")
        value = table[given[0]]
        if given == ["uri_env"]:
            if value not in environment:
                raise InputError(f"source: the environment variable {value} is not set")
            return environment[value]
        if given == ["uri_file"]:
            return read_private(folder / value, remedy="change the password").decode().strip()
        if _HAS_PASSWORD.search(value):
            raise InputError(
                "source: uri holds a password, which does not belong into a settings file; leave "
                "it to PGPASSWORD or PGPASSFILE, or use uri_env or uri_file"
            )
        return str(value)


KINDS = (Database("sqlite"), Database("duckdb"), Server("postgresql"))
