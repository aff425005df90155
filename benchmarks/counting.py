"""Counting against pandas and DuckDB, on data made here: `python -m benchmarks.counting`.

Two jobs. All 2-way tables of 10,000,000 x 15 categorical rows, for which we aim at 4 times DuckDB
and 30 times pandas; and all 4-way tables of 45,222 x 52 binary rows, at 20 times either. A peer
that would take hours is timed on a slice of the tables and extrapolated; the table says so. The
peers' tables are loaded before the clock starts, and ours are encoded: loading is another matter.
"""

from __future__ import annotations

import argparse
import itertools
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial

import duckdb
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.measuring import fastest, keep, show, verdict
from common.marginals import BinarySubsets, count
from common.schema.codes import Codes

DOMAINS = (16, 8, 16, 16, 7, 15, 6, 5, 2, 10, 10, 12, 9, 4, 20)

AttributeSets = Sequence[tuple[int, ...]]


@dataclass(frozen=True)
class Timing:
    """How long one engine takes for all the tables of a job."""

    job: str
    engine: str
    seconds: float
    measured: str
    times_ours: float
    target: str  # whether we are as much faster as we aim to be


def skewed_codes(rows: int, sizes: Sequence[int], seed: int) -> Codes:
    """Draw rows whose low codes are frequent, each column leaning on the one before."""
    generator = np.random.default_rng(seed)
    columns: list[NDArray[np.int64]] = []
    position = generator.random(rows)
    for size in sizes:
        position = (position + generator.random(rows)) / 2
        columns.append((position**2 * size).astype(np.int64))
    return Codes.from_columns(columns, sizes)


def name(attribute: int) -> str:
    """Return the column name the peers see."""
    return f"c{attribute}"


class Peers:
    """The same rows in pandas and in DuckDB."""

    def __init__(self, codes: Codes) -> None:
        self.frame = pd.DataFrame({name(j): column for j, column in enumerate(codes.columns)})
        self.sizes = codes.sizes
        self.database = duckdb.connect()
        self.database.register("frame", self.frame)
        self.database.execute("CREATE TABLE t AS SELECT * FROM frame")

    def duckdb_tables(self, sets: AttributeSets) -> list[NDArray[np.int64]]:
        """Count by GROUP BY, all cores; one query for all tables gains a third at most."""
        tables = []
        for attributes in sets:
            keys = ", ".join(map(name, attributes))
            cells = self.database.execute(
                f"SELECT {keys}, count(*) AS n FROM t GROUP BY {keys}"  # noqa: S608  # own names
            ).fetchnumpy()
            table = np.zeros([self.sizes[a] for a in attributes], dtype=np.int64)
            table[tuple(cells[name(a)] for a in attributes)] = cells["n"]
            tables.append(table)
        return tables

    def pandas_tables(self, sets: AttributeSets) -> list[NDArray[np.int64]]:
        """Count by groupby(...).size()."""
        tables = []
        for attributes in sets:
            cells = self.frame.groupby([name(a) for a in attributes], sort=False).size()
            table = np.zeros([self.sizes[a] for a in attributes], dtype=np.int64)
            table[tuple(cells.index.get_level_values(name(a)) for a in attributes)] = cells
            tables.append(table)
        return tables


def compare(
    job: str,
    peers: Peers,
    ours: Callable[[], Sequence[NDArray[np.int64]] | NDArray[np.int64]],
    sets: AttributeSets,
    slices: dict[str, int],
    targets: dict[str, float],
) -> list[Timing]:
    """Time us on all sets, and each peer on its slice, spread over them; all must agree."""
    seconds = fastest(ours)
    tables = ours()
    timings = [Timing(job, "parley", seconds, f"all {len(sets):,}", 1.0, "")]
    engines = {"DuckDB": peers.duckdb_tables, "pandas": peers.pandas_tables}
    for engine, run in engines.items():
        places = range(0, len(sets), max(1, len(sets) // slices[engine]))[: slices[engine]]
        sliced = [sets[place] for place in places]
        for place, table in zip(places[:3], run(sliced[:3]), strict=True):
            np.testing.assert_array_equal(tables[place], table, err_msg=f"{engine} {sets[place]}")
        whole = fastest(partial(run, sliced)) * len(sets) / len(sliced)
        extrapolated = "all" if len(sliced) == len(sets) else "extrapolated from"
        ratio, measured = whole / seconds, f"{extrapolated} {len(sliced):,}"
        target = verdict(ratio, target=targets[engine])
        timings.append(Timing(job, engine, whole, measured, ratio, target))
    return timings


def pairs_job(rows: int) -> list[Timing]:
    """Time all 2-way tables of many categorical rows."""
    codes = skewed_codes(rows, DOMAINS, seed=1)
    pairs = list(itertools.combinations(range(len(DOMAINS)), 2))
    count(codes.take(slice(0, 100_000)), pairs)  # compiled once per machine, then read from disk
    return compare(
        f"all {len(pairs)} 2-way tables, {rows:,} x {len(DOMAINS)}",
        Peers(codes),
        lambda: count(codes, pairs),
        pairs,
        slices={"DuckDB": len(pairs), "pandas": 5},
        targets={"DuckDB": 4, "pandas": 30},
    )


def binary_job(rows: int, width: int = 52) -> list[Timing]:
    """Time all 4-way tables of binary rows."""
    codes = skewed_codes(rows, [2] * width, seed=2)
    sets = list(itertools.combinations(range(width), 4))
    as_array = np.array(sets)
    BinarySubsets(codes.take(slice(0, 64)), 4)
    return compare(
        f"all {len(sets):,} 4-way tables, {rows:,} x {width} bits",
        Peers(codes),
        lambda: BinarySubsets(codes, 4).tables(as_array),
        sets,
        slices={"DuckDB": 300, "pandas": 100},
        targets={"DuckDB": 20, "pandas": 20},
    )


def main() -> None:
    """Run both jobs, print the table, and keep the figures."""
    parser = argparse.ArgumentParser(description="counting against pandas and DuckDB")
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the 2-way job")
    parser.add_argument("--binary-rows", type=int, default=45_222, help="rows of the 4-way job")
    options = parser.parse_args()
    timings = [*pairs_job(options.rows), *binary_job(options.binary_rows)]
    words = f"Counting, best of 3, {os.cpu_count()} cores, Python {platform.python_version()}"
    show([asdict(each) for each in timings], words)
    keep("counting", timings)


if __name__ == "__main__":
    main()
