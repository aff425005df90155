"""More rows than memory, out and in: `python -m benchmarks.scale [--full] [--repetitions N]`.

Out: synthetic rows drawn, decoded and written to Parquet in blocks, against drawing and writing
them in one piece. In: all 2-way tables of the file that was written, decoded, encoded and counted
on every core, against DuckDB, which reads the same columns and does one of two things: it adds them
up, or it hands the values over. 5 million rows, and 100 million with `--full`.

Every job runs in a process of its own, so that its peak of memory is its own; the jobs take turns,
and medians are shown. Seconds are of the clock and of the processor; on a machine that others use,
the second is the one to compare. Loading the compiled loops is not timed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb

from benchmarks.counting import DOMAINS, skewed_codes
from benchmarks.measuring import keep, show
from common.marginals import count
from common.privacy.randomness import SeededRandomSource
from common.release.fitted_privbayes import FittedPrivBayes
from common.release.streaming import write_stream
from common.schema import Schema
from common.schema.decoder import decode_to_arrow
from parley.models.privbayes import PrivBayes
from party.sources.kinds.files import ParquetReader
from party.sources.source import TableSource

FULL_ROWS = 100_000_000
_WARM_ROWS = 100_000
_FITTED_ROWS = 200_000


@dataclass(frozen=True)
class Measured:
    """One job."""

    job: str
    rows: int
    seconds: float
    processor_seconds: float
    peak_mib: float

    @property
    def nanoseconds(self) -> float:
        """Of the processor, per row."""
        return 1e9 * self.processor_seconds / self.rows


def schema() -> Schema:
    """Fifteen attributes: eight of words, five of whole numbers, two of real ones."""
    parts = []
    for position, size in enumerate(DOMAINS):
        name = f'[[attribute]]\nname = "c{position}"\n'
        if position % 3 == 2:
            parts.append(f'{name}kind = "integer"\nmin = 0\nmax = {5 * size - 1}\nbins = {size}\n')
        elif position % 5 == 4:
            parts.append(f'{name}kind = "real"\nmin = 0\nmax = {size}\nbins = {size}\n')
        else:
            words = json.dumps([f"value {code}" for code in range(size)])
            parts.append(f'{name}kind = "categorical"\nvalues = {words}\n')
    return Schema.from_toml("\n".join(parts))


def timed(job: str, rows: int, task: Callable[[], object]) -> Measured:
    """A job's cost in this process."""
    clock, processor = time.perf_counter(), time.process_time()
    task()
    clock, processor = time.perf_counter() - clock, time.process_time() - processor
    return Measured(job, rows, clock, processor, peak_mib())


def peak_mib() -> float:
    """The most memory this process had. Unlike `ru_maxrss`, it does not begin with the parent's."""
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def count_pairs(path: Path, rows: int) -> Measured:
    """Every pair of attributes, from the file."""
    source = TableSource(ParquetReader(path, schema()), schema(), held_bytes=0)
    pairs = list(itertools.combinations(range(len(DOMAINS)), 2))
    few = skewed_codes(_WARM_ROWS, DOMAINS, seed=1)
    count(few, pairs)
    schema().encode(decode_to_arrow(schema(), few, SeededRandomSource(1)), compiled=True)
    return timed("parley: all 105 two-way tables", rows, lambda: source.count(pairs))


def quiet_duckdb() -> duckdb.DuckDBPyConnection:
    """DuckDB without its progress bar."""
    return duckdb.connect().execute("SET enable_progress_bar = false")


def scan_and_add(path: Path, rows: int) -> Measured:
    """DuckDB adds every column up: the cheapest thing that looks at every value."""
    sums = ", ".join(
        f"sum(length({a.name}))" if a.kind == "categorical" else f"sum({a.name})"
        for a in schema().attributes
    )
    statement = f"SELECT {sums} FROM '{path}'"  # noqa: S608  # our own file
    connection = quiet_duckdb()
    return timed(
        "DuckDB: sum of every column", rows, lambda: connection.execute(statement).fetchall()
    )


def scan_and_hand_over(path: Path, rows: int) -> Measured:
    """DuckDB gives every value to Python, as Arrow batches."""

    def run() -> None:
        relation = quiet_duckdb().table_function("read_parquet", [str(path)])
        for _ in relation.to_arrow_reader(1 << 17):
            pass

    return timed("DuckDB: values as Arrow batches", rows, run)


def fitted() -> FittedPrivBayes:
    """A model of rows like those of the other job."""
    codes = skewed_codes(_FITTED_ROWS, DOMAINS, seed=1)
    table = schema().decode(codes, SeededRandomSource(1))
    return PrivBayes(epsilon=1, encoding="vanilla", seed=1).fit(table, schema())


def write_in_blocks(path: Path, rows: int) -> Measured:
    """Rows from a model into a file, in blocks."""
    model = fitted()
    write_stream(path, model, 1000)  # loads what is compiled
    return timed("parley: rows in blocks", rows, lambda: write_stream(path, model, rows))


def write_at_once(path: Path, rows: int) -> Measured:
    """The same in one piece, through pandas."""
    model = fitted()
    model.sample(1000)
    return timed(
        "parley: rows in one piece", rows, lambda: model.sample(rows).to_parquet(path, index=False)
    )


Job = tuple[Callable[[Path, int], Measured], Path, int]


def median(measured: list[Measured]) -> Measured:
    """The median of every figure of a job."""
    first = measured[0]
    figures = [
        statistics.median(getattr(each, name) for each in measured)
        for name in ("seconds", "processor_seconds", "peak_mib")
    ]
    return Measured(first.job, first.rows, *figures)


def in_turns(jobs: list[Job], repetitions: int) -> list[Measured]:
    """Every job in a process of its own, again and again."""
    done: list[list[Measured]] = [[] for _ in jobs]
    processes = multiprocessing.get_context("spawn")
    for _ in range(repetitions):
        for (job, path, rows), measured in zip(jobs, done, strict=True):
            with processes.Pool(1) as pool:
                measured.append(pool.apply(job, (path, rows)))
    return [median(each) for each in done]


def main() -> None:
    """Run the jobs, print the tables, and keep the figures."""
    parser = argparse.ArgumentParser(description="more rows than memory, out and in")
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--full", action="store_true", help=f"{FULL_ROWS:,} rows")
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()
    rows = FULL_ROWS if options.full else options.rows
    with tempfile.TemporaryDirectory() as folder:
        path, other = Path(folder) / "table.parquet", Path(folder) / "other.parquet"
        few = min(rows, 1_000_000)
        written: list[Job] = [(write_in_blocks, path, rows), (write_at_once, other, few)]
        out = in_turns(written, options.repetitions)
        report("Out", out, path.stat().st_size / rows)
        read: list[Job] = [
            (count_pairs, path, rows),
            (scan_and_add, path, rows),
            (scan_and_hand_over, path, rows),
        ]
        into = in_turns(read, options.repetitions)
        report("In", into, path.stat().st_size / rows)
    keep("scale", [*out, *into])


def report(title: str, group: list[Measured], row_bytes: float) -> None:
    """One table; ratios are against its first line."""
    load = os.getloadavg()[0]
    words = f"{title}: {os.cpu_count()} cores, load {load:.1f}, {row_bytes:.1f} bytes a row"
    show(
        [
            {
                "job": each.job,
                "rows": each.rows,
                "seconds": each.seconds,
                "rows/s": each.rows / each.seconds,
                "ns of processor/row": each.nanoseconds,
                "ours/it": group[0].nanoseconds / each.nanoseconds,
                "MiB": each.peak_mib,
            }
            for each in group
        ],
        words,
    )


if __name__ == "__main__":
    main()
