"""A table that Apache Spark holds: the rows are counted where they are, and only counts come back.

Spark runs `PartitionCounter` over the partitions (`mapInArrow`) and adds up the cells. The digest
of the rows comes with them, so every answer is known to be about the table of the snapshot. Spark
sends this project's own code to the executors, so that they run what the driver runs; they need
the libraries it stands on (numpy, numba, pandas, pyarrow and the database drivers): the same Python
environment, installed on the nodes or sent along with `spark.archives`.
"""

from __future__ import annotations

import atexit
import datetime as dt
import os
import re
import shutil
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

import common
import party
from common.errors import InputError
from common.schema import Codes, Schema
from common.schema.codes import NO_GROUPS, Groups
from common.tables.reader import TableReader
from party.sources.fingerprint import RowDigest
from party.sources.keyed import Hashes, KeyedRows, KeyedTable, Keys, keyed_names
from party.sources.partition import (
    PartitionCounter,
    PartitionEncoder,
    PartitionKeyer,
    gathered,
    packed_names,
    unpacked,
    unpacked_keys,
)
from party.sources.settings import SourceKind, SourceSettings, table_or_query
from party.sources.source import Snapshot, Source, data_changed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SHIPPED = "spark.parley.shipped"  # the packages that a session has already
_CODE = (".py", ".toml")
_Read = TypeVar("_Read")
_RAISED = re.compile(r"^(?:common\.errors\.InputError: |(?=[\w.]+: ))(.+)$", re.MULTILINE)


def start_session(master: str = "", options: dict[str, str] | None = None) -> SparkSession:
    """Return a session of Spark: the one that runs already, or a new one.

    An empty `master` leaves it to Spark's own configuration; `options` are properties over those of
    the configuration.

    Raises:
        InputError: Spark is not installed, or does not start.
    """
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError:
        raise InputError(
            "source: a spark source needs pyspark. Install it with pip install 'parley[spark]'"
        ) from None
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java", path=f"{home}/bin" if home else None) is None:
        raise InputError(
            "source: Spark needs Java 17 or newer, and there is none on this machine. Install one "
            "(such as openjdk-17-jre-headless), or let JAVA_HOME point to it"
        )
    builder = SparkSession.builder.appName("parley")
    if master:
        builder = builder.master(master)
    for name, value in (options or {}).items():
        builder = builder.config(name, value)
    try:
        with quiet():
            session = builder.getOrCreate()
    except (PySparkException, OSError, RuntimeError) as error:
        raise InputError(f"source: Spark does not start: {_first_line(error)}") from None
    if str(session.sparkContext.master).startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        session.sparkContext.pythonExec = sys.executable  # on this machine: this environment
    return session


class SparkSource(Source):
    """A `Source` over a table of Spark; opening it reads the table once."""

    def __init__(
        self,
        session: SparkSession,
        table: Callable[[SparkSession], DataFrame],
        schema: Schema,
        *,
        where: str,
        as_of: dt.date | None = None,
    ) -> None:
        self._session = session
        self._table = table
        self._schema = replace(schema, ignore=())
        self._where = where
        ship(session, common, party)
        with _reading(self._where), quiet():
            columns = table(session).columns
        schema.check_columns(columns, where=where)
        digest, _ = self._counted([])
        if digest.rows == 0:
            raise InputError(f"{where}: the table has no rows")
        self._snapshot = Snapshot(rows=digest.rows, digest=digest.hexdigest(), as_of=as_of)

    def chunks(self) -> Iterator[Codes]:
        """Yield all rows, a chunk at a time, brought to this machine."""
        digest = RowDigest(self._schema.sizes)
        packed = ", ".join(f"{name} binary" for name in packed_names(len(self._schema.names)))
        with _reading(self._where):
            with quiet():
                frame = self._columns().mapInArrow(PartitionEncoder(self._schema), packed)
            for row in frame.toLocalIterator(prefetchPartitions=True):
                codes = unpacked(row, self._schema)
                digest.add(codes)
                yield codes
        self._check(digest)

    def count(
        self, sets: Sequence[Sequence[int]], groups: Groups = NO_GROUPS
    ) -> list[NDArray[np.int64]]:
        digest, tables = self._counted(sets, groups)
        self._check(digest)
        return tables

    def _counted(
        self, sets: Sequence[Sequence[int]], groups: Groups = NO_GROUPS
    ) -> tuple[RowDigest, list[NDArray[np.int64]]]:
        positions = tuple(tuple(map(int, variables)) for variables in sets)
        request = PartitionCounter(self._schema, positions, dict(groups))
        with _reading(self._where), quiet():
            cells = self._columns().mapInArrow(request, "cell long, count long")
            sums = cells.groupBy("cell").agg({"count": "sum"}).toArrow()
        return gathered(sums.rename_columns(["cell", "count"]), self._schema.sizes, sets, groups)

    def _columns(self) -> DataFrame:
        """Select the attributes in order, by names that Spark cannot misread."""
        return _selected(self._table(self._session), self._schema.names)

    def _check(self, digest: RowDigest) -> None:
        if digest.hexdigest() != self._snapshot.digest:
            raise data_changed(self._where)


@dataclass(frozen=True, slots=True)
class SparkRows:
    """A `KeyedTable` of Spark: rows are encoded where they are, and codes come back."""

    session: SparkSession
    table: Callable[[SparkSession], DataFrame]
    schema: Schema
    keys: Keys
    where: str
    as_of: dt.date | None = None

    def __post_init__(self) -> None:
        """Refuse a table that lacks a column."""
        ship(self.session, common, party)
        with _reading(self.where), quiet():
            columns = self.table(self.session).columns
        self.schema.check_columns(columns, where=self.where)
        self.keys.check(columns, where=self.where)

    def mark(self) -> str | None:
        return None

    def attempt(self, read: Callable[[], _Read]) -> _Read:
        return read()

    def rows(self) -> Iterator[KeyedRows]:
        names = keyed_names(self.schema, self.keys)
        request = PartitionKeyer(replace(self.schema, ignore=()), self.keys)
        frame = self.table(self.session)
        width = len(self.schema.names) + 3
        for row in _mapped(frame, names, request, width=width, where=self.where):
            yield unpacked_keys(row, self.schema, self.keys)


def _mapped(
    frame: DataFrame, names: Sequence[str], request: PartitionKeyer, *, width: int, where: str
) -> Iterator[Sequence[bytes]]:
    """Yield what a request makes of every partition."""
    packed = ", ".join(f"{name} binary" for name in packed_names(width))
    with _reading(where):
        with quiet():
            mapped = _selected(frame, names).mapInArrow(request, packed)
        yield from mapped.toLocalIterator(prefetchPartitions=True)


def _selected(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """Select columns by names that Spark cannot misread."""
    quoted = ["`" + name.replace("`", "``") + "`" for name in names]
    return frame.select(*quoted).toDF(*packed_names(len(quoted)))


@contextmanager
def _reading(where: str) -> Iterator[None]:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise InputError(f"{where}: {_first_line(error)}") from None


def check_table(
    session: SparkSession,
    table: Callable[[SparkSession], DataFrame],
    where: str,
    *,
    may_be_empty: bool = False,
) -> None:
    """Read every column of a table once, and look at nothing; refuse an empty table."""
    with _reading(where), quiet():
        frame = table(session)
        frame.write.format("noop").mode("overwrite").save()
        if not may_be_empty and frame.isEmpty():
            raise InputError(f"{where}: the table has no rows")


def table_of(path: str = "", *, query: str = "") -> Callable[[SparkSession], DataFrame]:
    """Return how to open Parquet files anywhere Spark can read, or the result of a query."""

    def opened(session: SparkSession) -> DataFrame:
        if query:
            return session.sql(query)
        session.catalog.refreshByPath(path)  # what Spark remembers of files may be out of date
        return session.read.parquet(path)

    return opened


def ship(session: SparkSession, *packages: ModuleType) -> None:
    """Send packages of ours to the executors, each once in a session.

    Spark serves them from a folder for as long as it runs, since new executors may start at any
    time.
    """
    shipped = set(str(session.conf.get(_SHIPPED, "")).split())
    packages = tuple(package for package in packages if package.__name__ not in shipped)
    if not packages:
        return
    folder = Path(tempfile.mkdtemp(prefix="parley-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / f"{folder.name}.zip"  # Spark wants a name of its own for every file
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        for package in packages:
            root = Path(package.__path__[0])
            for file in sorted(file for file in root.rglob("*.*") if file.suffix in _CODE):
                zipped.write(file, file.relative_to(root.parent))
    session.sparkContext.addPyFile(str(path))
    names = sorted(shipped | {package.__name__ for package in packages})
    session.conf.set(_SHIPPED, " ".join(names))


@contextmanager
def quiet() -> Iterator[None]:
    """Silence Spark's warning about new versions of pandas: only Arrow is used of it here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
        yield


def _first_line(error: BaseException) -> str:
    """Return what an executor's Python complained about, or else how Spark's words begin."""
    _, traceback, python = str(error).partition("Traceback (most recent call last):")
    raised = _RAISED.search(python) if traceback else None
    if raised is not None:
        return raised[1].strip()
    return next((line.strip() for line in str(error).splitlines() if line.strip()), repr(error))


class Spark(SourceKind):
    """Parquet files, a table or a query of Spark; it needs parley[spark] and Java 17."""

    name = "spark"
    keys = frozenset({"path", "table", "query", "master", "as_of", "person", "events"})
    is_file = in_order = False

    def address(
        self, table: Mapping[str, Any], folder: Path, environment: Mapping[str, str]
    ) -> str:
        """Return the path; empty where a table or a query is given."""
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
        session, table, where = _table(settings)
        return SparkSource(session, table, schema, where=where, as_of=settings.as_of)

    def keyed(self, settings: SourceSettings, schema: Schema, keys: Keys) -> KeyedTable:
        session, table, where = _table(settings)
        return SparkRows(session, table, schema, keys, where, settings.as_of)

    def people(self, settings: SourceSettings, keys: Keys) -> list[Hashes]:
        session, table, where = _table(settings)
        ship(session, common, party)
        with _reading(where), quiet():
            frame = table(session)
            keys.check(frame.columns, where=where)
        rows = _mapped(frame, [keys.person], PartitionKeyer(None, keys), width=1, where=where)
        return [np.frombuffer(bytes(row[0]), dtype=np.uint64) for row in rows]

    def check_readable(self, settings: SourceSettings) -> None:
        check_table(*_table(settings), may_be_empty=bool(settings.person))


def _table(
    settings: SourceSettings,
) -> tuple[SparkSession, Callable[[SparkSession], DataFrame], str]:
    return (
        start_session(settings.options.get("master", "")),
        table_of(settings.address, query=settings.query),
        f"spark: {settings.query or settings.address}",
    )


KINDS = (Spark(),)
