"""Tables in PostgreSQL, SQLite and DuckDB, through one library: ADBC, Apache Arrow's drivers.

ADBC gives the result of a query as a stream of Arrow batches, without a Python object per row; from
PostgreSQL by COPY in binary form, which the server streams. Nothing is ever written: the session is
read-only where the database has read-only sessions.

What a cell is read as follows from the declared type of its column, never from other cells. SQLite
has no such types, and a cell of its own storage class in every row: there every cell is read as
text. Elsewhere numbers, booleans, dates, times and bytes are read as such, and every other type as
the text that the database makes of it.

The password of a database never stands in the study, in the settings or on a command line. It comes
from where libpq looks for it (PGPASSWORD, PGPASSFILE, a service file), or the whole address comes
from an environment variable or from a file that only its owner can read.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import pyarrow as pa

from common.errors import InputError, naming_extras
from common.files import read_private
from common.schema import Schema
from common.schema.columns import is_number
from common.tables.reader import Part, TableReader, parts_of_stream
from party.sources.settings import SHAPE, SourceKind, SourceSettings, table_or_query

if TYPE_CHECKING:
    import adbc_driver_manager.dbapi

# In a URI, between colon and the last at sign before the path, or as a parameter; or in a list of
# words and values.
_PASSWORD = re.compile(r"://[^/@:]*:(?P<user>[^/]+)@|password\s*=\s*(?P<key>'[^']*'|[^&\s]+)")
_HAS_PASSWORD = re.compile(r"://[^/@:]*:[^/@]+@|password\s*=")
_STATEMENT_OPTIONS = {
    "postgresql": {"adbc.postgresql.batch_size_hint_bytes": 1 << 22},
    "sqlite": {"adbc.sqlite.query.batch_rows": 1 << 16},
    "duckdb": {},
}


class SqlReader(TableReader):
    """The rows of a query, a SELECT; without a schema all columns can be read."""

    def __init__(
        self,
        kind: str,
        *,
        address: str,  # a libpq URI, or the path of a database file
        query: str,
        schema: Schema | None,
        as_of: dt.date | None = None,
    ) -> None:
        self._kind = kind
        self._address = address
        self._query = query.strip().rstrip(";")
        self._as_of = as_of
        # Asking for no rows tells the names of the columns.
        with self._running(f"SELECT * FROM ({self._query}) AS source LIMIT 0") as rows:  # noqa: S608  # the owner's own query
            self._names = list[str](rows.schema.names)
            self._cells = {field.name: _expression(kind, field) for field in rows.schema}
        if schema is not None:
            schema.check_columns(self._names, where=self.where)
            self._names = list(schema.names)

    @property
    def where(self) -> str:
        """The kind of database and the query, without the address."""
        words = " ".join(self._query.split())
        return f"{self._kind}: {words if len(words) <= 80 else words[:77] + '...'}"

    def parts(self, names: Sequence[str]) -> Iterator[Part]:
        return parts_of_stream(self._batches(names))

    def _batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        columns = ", ".join(f"{self._cells[name]} AS {_quoted(name)}" for name in names)
        with self._running(f"SELECT {columns} FROM ({self._query}) AS source") as rows:  # noqa: S608  # the owner's own query
            yield from map(_plain, rows)

    def explain(self, error: pa.ArrowInvalid) -> InputError:
        return self._refused(error)

    @contextmanager
    def _running(self, query: str) -> Iterator[pa.RecordBatchReader]:
        """Stream the rows of a query, on a connection of its own."""
        with self._session() as cursor:
            cursor.execute(query)
            yield cursor.fetch_record_batch()

    @contextmanager
    def _session(self) -> Iterator[adbc_driver_manager.dbapi.Cursor]:
        """Open a connection that cannot write and sees one state of the database.

        What the driver complains of inside of the block is refused as the database's answer.
        """
        options = _STATEMENT_OPTIONS[self._kind]
        with naming_extras(f"source: kind {self._kind!r}"):
            import adbc_driver_manager  # slow to load
        try:
            with (
                closing(_connect(self._kind, self._address)) as connection,
                closing(connection.cursor(adbc_stmt_kwargs=options)) as cursor,
            ):
                if self._kind == "postgresql":
                    cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                yield cursor
        except (adbc_driver_manager.Error, OSError, pa.ArrowInvalid) as error:
            raise self._refused(error) from None

    def _refused(self, error: Exception) -> InputError:
        """Return the driver's complaint without secrets (libpq quotes what it reads)."""
        words = str(error).strip().replace(self._address, "(address)")
        for password in _PASSWORD.finditer(self._address):
            secret = (password["user"] or password["key"]).strip("'")
            for form in (secret, unquote(secret)):
                words = words.replace(form, "(password)")
        return InputError(
            f"{self.where}: the database refused: {words}. Check the address, the right to read "
            "and the query"
        )


def _connect(kind: str, address: str) -> adbc_driver_manager.dbapi.Connection:
    """Open a connection, a read-only one where the database has them."""
    with naming_extras(f"source: kind {kind!r}"):  # the drivers are slow to load
        import adbc_driver_manager.dbapi
        import adbc_driver_postgresql.dbapi  # type: ignore[import-untyped]  # has no stubs
        import adbc_driver_sqlite.dbapi

    if kind == "postgresql":
        connection: adbc_driver_manager.dbapi.Connection
        connection = adbc_driver_postgresql.dbapi.connect(address)
        return connection
    if not Path(address).is_file():
        raise FileNotFoundError(f"there is no file {address}")
    if kind == "sqlite":
        return adbc_driver_sqlite.dbapi.connect(f"file:{quote(address)}?mode=ro")
    with naming_extras(f"source: kind {kind!r}"):
        import adbc_driver_duckdb  # type: ignore[import-untyped]  # a part of duckdb

    return adbc_driver_manager.dbapi.connect(
        driver=adbc_driver_duckdb.driver_path(),
        entrypoint="duckdb_adbc_init",
        db_kwargs={"path": address, "access_mode": "READ_ONLY"},
    )


def _expression(kind: str, field: pa.Field) -> str:
    """Return what is read of a column: something whose type its cells have no part in."""
    column, dtype = _quoted(field.name), field.type
    if kind == "sqlite":
        # All 17 digits of a double; never NULL, or the driver would guess at the type of NULLs.
        real = (
            f"CASE typeof({column}) WHEN 'real' THEN printf('%!.17g', {column}) ELSE {column} END"
        )
        return f"ifnull(CAST({real} AS TEXT), '')"
    if kind == "postgresql" and (pa.types.is_date(dtype) or pa.types.is_timestamp(dtype)):
        # The driver's 64 bits overflow at infinity, and it would be before all times.
        return f"CASE WHEN {column} > '9999-12-31' THEN '9999-12-31' ELSE {column} END"
    times = pa.types.is_date(dtype) or pa.types.is_timestamp(dtype) or pa.types.is_time(dtype)
    simple = (
        pa.types.is_boolean(dtype) or pa.types.is_binary(dtype) or pa.types.is_dictionary(dtype)
    )
    if is_number(dtype) or times or simple:
        return column
    return f"{column}::text"


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return columns of the driver's own types as what they are stored in."""
    columns = [c.storage if isinstance(c, pa.ExtensionArray) else c for c in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class SqlDatabase(SourceKind):
    """A database in a file."""

    reads_all = in_order = False
    keys = SHAPE | {"path", "table", "query"}

    def __init__(self, name: str) -> None:
        self.name = name

    def query(self, table: Mapping[str, Any]) -> str:
        return table_or_query(table, '"')

    def reader(self, settings: SourceSettings, schema: Schema | None) -> TableReader:
        return SqlReader(
            self.name,
            address=settings.address,
            query=settings.query,
            schema=schema,
            as_of=settings.as_of,
        )


class Server(SqlDatabase):
    """A database behind an address, which may hold a password."""

    is_file = False
    keys = SHAPE | {"uri", "uri_env", "uri_file", "table", "query"}

    def address(
        self, table: Mapping[str, Any], folder: Path, environment: Mapping[str, str]
    ) -> str:
        keys = [key for key in ("uri", "uri_env", "uri_file") if key in table]
        if len(keys) != 1:
            raise InputError("source: give one of uri, uri_env and uri_file")
        value = table[keys[0]]
        if keys == ["uri_env"]:
            if value not in environment:
                raise InputError(f"source: the environment variable {value} is not set")
            return environment[value]
        if keys == ["uri_file"]:
            return read_private(folder / value, remedy="change the password").decode().strip()
        if _HAS_PASSWORD.search(value):
            raise InputError(
                "source: uri holds a password, which does not belong in a settings file. Leave it "
                "to PGPASSWORD or PGPASSFILE, or use uri_env or uri_file"
            )
        return str(value)


KINDS = (SqlDatabase("sqlite"), SqlDatabase("duckdb"), Server("postgresql"))
