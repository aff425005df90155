"""Who counts: fetching rows from PostgreSQL against GROUP BY: `python -m benchmarks.postgresql`.

A server of its own on a local socket; the jobs take turns, and medians of the clock are shown. From
them come the constants of `party.sources.grouping`: what a row in a GROUP BY and a cell in the
fingerprint cost, in cells fetched.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.postgresql_server import running_server, server_programs
from common.schema import Schema
from party.sources.sql import SqlReader

RESULTS = Path(__file__).parent / "results" / "postgresql.json"
_SIZES = {"sex": 2, "age": 100, "ward": 12, "year": 26, "smokes": 2, "state": 50}


def schema() -> Schema:
    """Six attributes: two of words, four of whole numbers."""
    parts = []
    for name, size in _SIZES.items():
        if name in ("sex", "ward"):
            values = json.dumps([f"{name} {code}" for code in range(size)])
            parts.append(f'[[attribute]]\nname = "{name}"\nkind = "categorical"\nvalues = {values}')
        else:
            domain = f"min = 0\nmax = {size - 1}\nbins = {size}"
            parts.append(f'[[attribute]]\nname = "{name}"\nkind = "integer"\n{domain}')
    return Schema.from_toml("\n".join(parts))


def table_statement(rows: int) -> str:
    """The statement that makes the table."""
    columns = []
    for prime, (name, size) in zip((7, 31, 13, 101, 3, 17), _SIZES.items(), strict=True):
        code = f"(i::bigint * {prime} % 10007 % {size})"
        word = f"'{name} ' || {code}" if name in ("sex", "ward") else f"{code}::int"
        columns.append(f"{word} AS {name}")
    shown = ", ".join(columns)
    return f"CREATE TABLE people AS SELECT {shown} FROM generate_series(1, {rows}) AS i"  # noqa: S608  # our own numbers


def jobs(reader: SqlReader) -> dict[str, Callable[[], object]]:
    """What is timed, by what it is divided by."""
    pairs = [list(pair) for pair in itertools.combinations(_SIZES, 2)][:5]
    return {
        "fetch every row, per cell": lambda: [
            list(part.read()) for part in reader.parts(list(_SIZES))
        ],
        "fingerprint, per cell": reader.fingerprint,
        "fingerprint and 5 GROUP BYs of 2 columns": lambda: reader.groups(pairs),
    }


def main() -> None:
    """Run the jobs in turns, print the table, and keep the figures."""
    parser = argparse.ArgumentParser(description="fetching rows against GROUP BY in PostgreSQL")
    parser.add_argument("--rows", type=int, default=600_000)
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    programs = server_programs()
    if programs is None:
        raise SystemExit("no PostgreSQL server here: install the package postgresql")
    seconds: dict[str, list[float]] = {}
    with running_server(programs, "correct-horse") as server:
        server.execute(table_statement(options.rows), "ANALYZE people")
        reader = SqlReader("postgresql", server.uri(), "SELECT * FROM people", schema())
        for _ in range(options.repetitions):
            for name, job in jobs(reader).items():
                start = time.perf_counter()
                job()
                seconds.setdefault(name, []).append(time.perf_counter() - start)
    show(options.rows, [statistics.median(times) for times in seconds.values()])


def show(rows: int, medians: list[float]) -> None:
    """The costs, in nanoseconds and in cells fetched."""
    fetched, fingerprint, grouped = medians
    cells = rows * len(_SIZES)
    cell = 1e9 * fetched / cells
    costs = {
        "a cell fetched": cell,
        "a cell in the fingerprint": 1e9 * fingerprint / cells,
        "a row in one GROUP BY": 1e9 * (grouped - fingerprint) / 5 / rows,
    }
    title = f"{rows:,} rows x {len(_SIZES)}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    table = Table(title=title)
    for heading in ("what", "ns", "in cells fetched"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for what, nanoseconds in costs.items():
        table.add_row(what, f"{nanoseconds:,.0f}", f"{nanoseconds / cell:.2f}")
    Console().print(table)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"rows": rows, "nanoseconds": costs}, indent=1) + "\n")


if __name__ == "__main__":
    main()
