"""More rows than memory, out and in: `python -m benchmarks.scale [--full] [--repetitions N]`.

Out: synthetic rows drawn, decoded and written to Parquet in blocks, of a network (PrivBayes) and of
a mixture (subn+, the default method), against drawing and writing them in one piece. In: all 2-way
tables of the file that was written, decoded, encoded and counted on every core, against DuckDB,
which reads the same columns and does one of two things: it adds them up, or it hands the values
over. 5 million rows, and 100 million with `--full`.

Every job runs in a process of its own, so that its peak of memory is its own; the jobs take turns,
and medians are shown. Seconds are of the clock and of the processor; on a machine that others use,
the second is the one to compare. Loading the compiled loops is not timed.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import duckdb
import numpy as np

from benchmarks.counting import DOMAINS, skewed_codes
from benchmarks.measuring import (
    Spent,
    category,
    in_own_process,
    keep,
    number,
    schema_of,
    show,
    spending,
)
from common.fitted.drawing import write_stream
from common.fitted.model import FittedModel
from common.marginals import count
from common.methods.subn_plus.latent import LatentModel
from common.privacy.randomness import SeededRandomSource
from common.schema import Schema
from common.schema.decoder import decode_to_arrow
from common.tables.files import ParquetReader
from parley.models.single_owner import PrivBayes, Subn
from parley.reader.fitted import FittedPrivBayes
from party.sources.source import TableSource

FULL_ROWS = 100_000_000
_WARM_ROWS = 100_000
_FITTED_ROWS = 200_000
_GROUPS = 6  # of people, in the rows that a mixture is fitted to


@dataclass(kw_only=True)
class Measured(Spent):
    """One job."""

    job: str
    rows: int

    @property
    def nanoseconds(self) -> float:
        """Of the processor, per row."""
        return 1e9 * self.processor_seconds / self.rows


def schema() -> Schema:
    """Return fifteen attributes: eight of words, five of whole numbers, two of real ones."""
    parts = []
    for position, size in enumerate(DOMAINS):
        name = f"c{position}"
        if position % 3 == 2:
            parts.append(number(name, high=5 * size - 1, bins=size))
        elif position % 5 == 4:
            parts.append(number(name, high=size, bins=size, kind="real"))
        else:
            parts.append(category(name, [f"value {code}" for code in range(size)]))
    return schema_of(*parts)


def timed(job: str, rows: int, task: Callable[[], object]) -> Measured:
    """Measure a job's cost in this process."""
    with spending() as spent:
        task()
    return Measured(**asdict(spent), job=job, rows=rows)


def count_pairs(path: Path, rows: int) -> Measured:
    """Count every pair of attributes, from the file."""
    source = TableSource(ParquetReader(path, schema()), schema(), held_bytes=0)
    pairs = list(itertools.combinations(range(len(DOMAINS)), 2))
    few = skewed_codes(_WARM_ROWS, DOMAINS, seed=1)
    count(few, pairs)
    schema().encode(decode_to_arrow(schema(), few, SeededRandomSource(1)))
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
    """Fit a model of rows like those of the other job."""
    codes = skewed_codes(_FITTED_ROWS, DOMAINS, seed=1)
    table = schema().decode(codes, SeededRandomSource(1))
    return PrivBayes(epsilon=1, encoding="vanilla", seed=1).fit(table, schema())


def fitted_mixture() -> FittedModel:
    """Fit the default method to rows whose columns depend on each other."""
    rng = np.random.default_rng(1)
    laws = tuple(rng.dirichlet(np.full(size, 0.5), _GROUPS) for size in DOMAINS)
    codes = LatentModel(rng.dirichlet(np.ones(_GROUPS)), laws).sample(
        _FITTED_ROWS, SeededRandomSource(1)
    )
    table = schema().decode(codes, SeededRandomSource(1))
    return Subn(epsilon=1, delta="1e-9", seed=1).fit(table, schema())


def write_in_blocks(path: Path, rows: int) -> Measured:
    """Write rows from a network into a file, in blocks."""
    return _in_blocks("parley: rows of a network in blocks", fitted(), path, rows)


def write_mixture_in_blocks(path: Path, rows: int) -> Measured:
    """Write rows from a mixture into a file, in blocks."""
    return _in_blocks("parley: rows of a mixture in blocks", fitted_mixture(), path, rows)


def _in_blocks(job: str, model: FittedModel, path: Path, rows: int) -> Measured:
    write_stream(path, model, 1000)  # loads what is compiled
    return timed(job, rows, lambda: write_stream(path, model, rows))


def write_at_once(path: Path, rows: int) -> Measured:
    """Write rows from a model into a file at once, through pandas."""
    model = fitted()
    model.sample(1000)
    return timed(
        "parley: rows in one piece", rows, lambda: model.sample(rows).to_parquet(path, index=False)
    )


Job = tuple[Callable[[Path, int], Measured], Path, int]


def in_turns(jobs: list[Job], repetitions: int) -> list[Measured]:
    """Run every job in a process of its own, again and again; return the medians."""
    done = [
        [in_own_process(job, path, rows) for job, path, rows in jobs] for _ in range(repetitions)
    ]
    return [_median(list(each)) for each in zip(*done, strict=True)]


def _median(measured: list[Measured]) -> Measured:
    figures = {
        each.name: statistics.median(getattr(one, each.name) for one in measured)
        for each in fields(Spent)
    }
    return replace(measured[0], **figures)


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
        written: list[Job] = [
            (write_in_blocks, path, rows),
            (write_mixture_in_blocks, other, rows),
            (write_at_once, other, few),
        ]
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
    """Print one table; ratios are against its first line."""
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
