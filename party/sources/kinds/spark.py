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
from party.sources.keyed import Hashes, KeyedRows, KeyedTable, Keys
from party.sources.partition import (
    PartitionCounter,
    PartitionEncoder,
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


@dataclass(frozen=True, slots=True)
class SparkTable:
    """Parquet files anywhere Spark can read, or the result of a query."""

    session: SparkSession
    path: str = ""
    query: str = ""

    @property
    def where(self) -> str:
        return f"spark: {self.query or self.path}"

    def frame(self) -> DataFrame:
        if self.query:
            return self.session.sql(self.query)
        # What Spark remembers of files may be out of date.
        self.session.catalog.refreshByPath(self.path)
        return self.session.read.parquet(self.path)

    def columns(self) -> list[str]:
        """Send our code to the executors; return the names of the columns."""
        ship(self.session, common, party)
        with _reading(self.where), quiet():
            return list(self.frame().columns)

    def selected(self, names: Sequence[str]) -> DataFrame:
        """Select columns in order, by names that Spark cannot misread."""
        quoted = ["`" + name.replace("`", "``") + "`" for name in names]
        return self.frame().select(*quoted).toDF(*packed_names(len(quoted)))

    def encoded(self, request: PartitionEncoder) -> Iterator[Sequence[bytes]]:
        """Yield what a request makes of every partition, brought to this machine."""
        packed = ", ".join(f"{name} binary" for name in packed_names(request.width))
        with _reading(self.where):
            with quiet():
                frame = self.selected(request.names).mapInArrow(request, packed)
            yield from frame.toLocalIterator(prefetchPartitions=True)

    def check(self, *, may_be_empty: bool = False) -> None:
        """Read every column once, and look at nothing; refuse an empty table."""
        with _reading(self.where), quiet():
            frame = self.frame()
            frame.write.format("noop").mode("overwrite").save()
            if not may_be_empty and frame.isEmpty():
                raise InputError(f"{self.where}: the table has no rows")


class SparkSource(Source):
    """A `Source` over a table of Spark; opening it reads the table once."""

    def __init__(self, table: SparkTable, schema: Schema, *, as_of: dt.date | None = None) -> None:
        self._table, self._schema = table, replace(schema, ignore=())
        schema.check_columns(table.columns(), where=table.where)
        digest, _ = self._counted([])
        if digest.rows == 0:
            raise InputError(f"{table.where}: the table has no rows")
        self._snapshot = Snapshot(rows=digest.rows, digest=digest.hexdigest(), as_of=as_of)

    def chunks(self) -> Iterator[Codes]:
        digest = RowDigest(self._schema.sizes)
        for row in self._table.encoded(PartitionEncoder(self._schema)):
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
        with _reading(self._table.where), quiet():
            frame = self._table.selected(self._schema.names)
            cells = frame.mapInArrow(request, "cell long, count long")
            sums = cells.groupBy("cell").agg({"count": "sum"}).toArrow()
        return gathered(sums.rename_columns(["cell", "count"]), self._schema.sizes, sets, groups)

    def _check(self, digest: RowDigest) -> None:
        if digest.hexdigest() != self._snapshot.digest:
            raise data_changed(self._table.where)


@dataclass(frozen=True, slots=True)
class SparkRows:
    """A `KeyedTable` of Spark: rows are encoded where they are, and codes come back."""

    table: SparkTable
    schema: Schema
    keys: Keys
    as_of: dt.date | None = None

    def __post_init__(self) -> None:
        """Refuse a table that lacks a column."""
        columns = self.table.columns()
        self.schema.check_columns(columns, where=self.where)
        self.keys.check(columns, where=self.where)

    @property
    def where(self) -> str:
        return self.table.where

    def mark(self) -> str | None:
        return None

    def attempt(self, read: Callable[[], _Read]) -> _Read:
        return read()

    def rows(self) -> Iterator[KeyedRows]:
        for row in self.table.encoded(PartitionEncoder(self.schema, self.keys)):
            yield unpacked_keys(row, self.schema, self.keys)


@contextmanager
def _reading(where: str) -> Iterator[None]:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise InputError(f"{where}: {_first_line(error)}") from None


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
        return SparkSource(_table(settings), schema, as_of=settings.as_of)

    def keyed(self, settings: SourceSettings, schema: Schema, keys: Keys) -> KeyedTable:
        return SparkRows(_table(settings), schema, keys, settings.as_of)

    def people(self, settings: SourceSettings, keys: Keys) -> list[Hashes]:
        table = _table(settings)
        keys.check(table.columns(), where=table.where)
        rows = table.encoded(PartitionEncoder(None, keys))
        return [np.frombuffer(bytes(row[0]), dtype=np.uint64) for row in rows]

    def check_readable(self, settings: SourceSettings) -> None:
        _table(settings).check(may_be_empty=bool(settings.person))


def _table(settings: SourceSettings) -> SparkTable:
    session = start_session(settings.options.get("master", ""))
    return SparkTable(session, settings.address, settings.query)


KINDS = (Spark(),)
