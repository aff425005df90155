"""Who counts: fetching rows from PostgreSQL against GROUP BY: `python -m benchmarks.postgresql`.

A server of its own on a local socket; the jobs take turns, and medians of the clock are shown. From
them come the constants of `party.sources.source`: what a row in a GROUP BY and a cell in the
fingerprint cost, in cells fetched.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import adbc_driver_postgresql.dbapi  # type: ignore[import-untyped]  # has no stubs

from benchmarks.measuring import category, keep, number, schema_of, seconds_in_turn, show
from common.schema import Schema
from party.sources.kinds.databases import SqlReader

_SIZES = {"sex": 2, "age": 100, "ward": 12, "year": 26, "smokes": 2, "state": 50}


def server_programs() -> Path | None:
    """Return the folder of initdb and pg_ctl; None if there is no server on this machine."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    initdb = str(found[-1]) if found else shutil.which("initdb")
    return None if initdb is None else Path(initdb).parent


@dataclass(frozen=True)
class Server:
    """A running server.

    Attributes:
        folder: of its socket.
        password: of its owner.
    """

    folder: Path
    password: str

    def uri(
        self, user: str = "owner", password: str | None = None, database: str = "postgres"
    ) -> str:
        """Return an address of the server; `password` with its colon, the owner's if not given."""
        word = f":{self.password}" if password is None else password
        return f"postgresql://{user}{word}@/{database}?host={self.folder}"

    def execute(self, *statements: str) -> None:
        """Run statements as the owner, in one transaction."""
        with closing(adbc_driver_postgresql.dbapi.connect(self.uri())) as connection:
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
            connection.commit()


@contextmanager
def running_server(programs: Path, password: str) -> Iterator[Server]:
    """Run a server for as long as it is needed."""
    # A server refuses to run as root, and the path of a socket is short.
    as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    folder = Path(tempfile.mkdtemp(prefix="pg."))
    try:
        secret = folder / "password"
        secret.write_text(password)
        if as_user:
            for path in (folder, secret):
                shutil.chown(path, "postgres")

        def run(program: str, *arguments: str | Path) -> None:
            subprocess.run(
                [*as_user, programs / program, "-D", folder / "data", *arguments],
                check=True, stdout=subprocess.DEVNULL, cwd="/",
            )  # fmt: skip

        run("initdb", "-U", "owner", "-A", "scram-sha-256", f"--pwfile={secret}", "--no-sync")
        options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
        run("pg_ctl", "-w", "-l", folder / "log", "-o", options, "start")
        try:
            yield Server(folder, password)
        finally:
            run("pg_ctl", "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)


def schema() -> Schema:
    """Return six attributes: two of words, four of whole numbers."""
    return schema_of(
        *(
            category(name, [f"{name} {code}" for code in range(size)])
            if name in ("sex", "ward")
            else number(name, high=size - 1, bins=size)
            for name, size in _SIZES.items()
        )
    )


def table_statement(rows: int) -> str:
    """Write the statement that makes the table."""
    columns = []
    for prime, (name, size) in zip((7, 31, 13, 101, 3, 17), _SIZES.items(), strict=True):
        code = f"(i::bigint * {prime} % 10007 % {size})"
        word = f"'{name} ' || {code}" if name in ("sex", "ward") else f"{code}::int"
        columns.append(f"{word} AS {name}")
    shown = ", ".join(columns)
    return f"CREATE TABLE people AS SELECT {shown} FROM generate_series(1, {rows}) AS i"  # noqa: S608  # our own numbers


def jobs(reader: SqlReader) -> list[Callable[[], object]]:
    """Fetching every row; the fingerprint; the fingerprint and five GROUP BYs of two columns."""
    pairs = [list(pair) for pair in itertools.combinations(_SIZES, 2)][:5]
    return [
        lambda: [list(part.read()) for part in reader.parts(list(_SIZES))],
        lambda: reader.groups([]),
        lambda: reader.groups(pairs),
    ]


def main() -> None:
    """Run the jobs in turns, print the table, and keep the figures."""
    parser = argparse.ArgumentParser(description="fetching rows against GROUP BY in PostgreSQL")
    parser.add_argument("--rows", type=int, default=600_000)
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    programs = server_programs()
    if programs is None:
        raise SystemExit("no PostgreSQL server here: install the package postgresql")
    with running_server(programs, "correct-horse") as server:
        server.execute(table_statement(options.rows), "ANALYZE people")
        query = "SELECT * FROM people"
        reader = SqlReader("postgresql", address=server.uri(), query=query, schema=schema())
        seconds = seconds_in_turn(*jobs(reader), turns=options.repetitions)
    report(options.rows, *map(statistics.median, seconds))


def report(rows: int, fetched: float, fingerprint: float, grouped: float) -> None:
    """Print the costs, in nanoseconds and in cells fetched."""
    cells = rows * len(_SIZES)
    costs = {
        "a cell fetched": 1e9 * fetched / cells,
        "a cell in the fingerprint": 1e9 * fingerprint / cells,
        "a row in one GROUP BY": 1e9 * (grouped - fingerprint) / 5 / rows,
    }
    title = f"{rows:,} rows x {len(_SIZES)}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    in_cells = costs["a cell fetched"]
    lines = [{"what": w, "ns": ns, "in cells fetched": ns / in_cells} for w, ns in costs.items()]
    show(lines, title)
    keep("postgresql", {"rows": rows, "nanoseconds": costs})


if __name__ == "__main__":
    main()
