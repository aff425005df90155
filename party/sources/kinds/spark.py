"""Tables of Apache Spark, counted where they are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common.errors import InputError
from common.schema import Schema
from party.sources.kind import Kind, table_or_query
from party.sources.settings import SourceSettings
from party.sources.source import Source, TableReader


class Spark(Kind):
    """Parquet files, a table or a query of Spark; it needs parley[spark] and Java 17."""

    name = "spark"
    keys = frozenset({"path", "table", "query", "master", "as_of"})
    is_file = False

    def address(
        self, table: Mapping[str, Any], folder: Path, environment: Mapping[str, str]
    ) -> str:
        """See `Kind`; empty where a table or a query is given."""
        if len({"path", "table", "query"} & set(table)) != 1:
            raise InputError("source: give one of path, table and query")
        path = str(table.get("path", ""))
        return path if "://" in path or not path else str(folder / path)

    def query(self, table: Mapping[str, Any]) -> str:
        return "" if "path" in table else table_or_query(table, "`")

    def reader(self, settings: SourceSettings, schema: Schema | None) -> TableReader:
        """Refuse: its rows stay where they are."""
        raise InputError("source: the rows of a spark source are not read, only counted")

    def open(self, settings: SourceSettings, schema: Schema, *, held_bytes: int) -> Source:
        from party.sources.spark import SparkSource, start_session, table_of

        return SparkSource(
            start_session(settings.options.get("master", "")),
            table_of(settings.address, settings.query),
            schema,
            where=f"spark: {settings.query or settings.address}",
            as_of=settings.as_of,
        )

    def check_readable(self, settings: SourceSettings) -> None:
        from party.sources.spark import check_table, start_session, table_of

        where = f"spark: {settings.query or settings.address}"
        session = start_session(settings.options.get("master", ""))
        check_table(session, table_of(settings.address, settings.query), where)


KINDS = (Spark(),)
