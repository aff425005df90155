"""Many columns: `python -m benchmarks.wide [--rows 100000] [--only binary [--columns 60]]`.

Studies of three owners over 200 binary columns and over 60 mixed ones (`wide_population`), with the
cryptography of a deployment: how long they take, and how far 2-way marginals are from the true
ones, against the floor (a histogram per column) in the same run. "On edges" are the pairs that
depend on each other by construction; with `--shuffled` columns none does.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.scale import peak_mib
from benchmarks.subn_data import shuffled
from benchmarks.wide_population import WidePopulation, binary_sizes, mixed_sizes, wide_population
from common.crypto.identities.identity import Identity
from common.crypto.sums.plan import Aggregation
from common.marginals import count
from common.methods.registry import run_of
from common.privacy.randomness import OsRandomSource
from common.schema import Codes
from common.study.document import Member, Study
from parley.simulation.in_process import run_study

RESULTS = Path(__file__).parent / "results" / "wide.json"
TABLES = {"binary": (binary_sizes, 200), "mixed": (mixed_sizes, 60)}
RUNS = (
    ("floor", "masked"), ("subn+", "masked"), ("subn+", "paillier"), ("dp-subn", "masked"),
    ("dp-subn", "paillier"),
)  # fmt: skip
_OWNERS = 3
_MOST_PAIRS = 1_500


@dataclass(frozen=True)
class Measured:
    """One study; distances are mean total variation distances of marginals."""

    table: str
    method: str
    aggregation: str
    rows: int
    seconds: float
    processor_seconds: float
    peak_mib: float
    cells: int
    one_way: float
    two_way: float
    on_edges: float


def run(table: str, method: str, aggregation: str, options: argparse.Namespace) -> Measured:
    """One study from rows to rows."""
    sizes_of, usual = TABLES[table]
    rows: int = options.rows
    population = wide_population(sizes_of(options.columns or usual), seed=1)
    real = population.rows(rows, seed=2)
    real = shuffled(real) if options.shuffled else real
    parts = np.array_split(np.arange(rows), _OWNERS)
    tables = {f"owner {i}": real.take(part) for i, part in enumerate(parts)}
    source = OsRandomSource()
    identities = {name: Identity.generate(source) for name in tables}
    study = Study(
        name="wide",
        schema=population.schema,
        members=tuple(
            Member(name=name, rows=own.rows, identity=identities[name].public)
            for name, own in tables.items()
        ),
        epsilon=Fraction(options.epsilon),
        method=method,
        aggregation=Aggregation(aggregation),
    )
    clock, processor = time.perf_counter(), time.process_time()
    done = run_study(study, run_of, tables, identities, source=source)
    made = done.model.sample(rows, source)
    clock, processor = time.perf_counter() - clock, time.process_time() - processor
    sent = sum(sum(phase.sent.values()) for phase in done.traffic.values())
    return Measured(
        table, method, aggregation, rows, clock, processor, peak_mib(), sent // (8 * _OWNERS),
        *distances(population, real, made),
    )  # fmt: skip


def distances(population: WidePopulation, real: Codes, made: Codes) -> tuple[float, float, float]:
    """Of columns, of a sample of all pairs, and of the pairs that depend on each other."""
    width = len(population.sizes)
    pairs = list(combinations(range(width), 2))
    chosen = np.random.default_rng(0).choice(
        len(pairs), min(_MOST_PAIRS, len(pairs)), replace=False
    )
    kinds = (
        [(column,) for column in range(width)],
        [pairs[i] for i in chosen],
        [(parent, child) for child, own in enumerate(population.parents) for parent in own],
    )
    first, second, third = (
        float(
            np.mean(
                [
                    np.abs(one / real.rows - other / made.rows).sum() / 2
                    for one, other in zip(count(real, sets), count(made, sets), strict=True)
                ]
            )
        )
        for sets in kinds
    )
    return first, second, third


def main() -> None:
    """Every study in a process of its own, so that its memory is its own."""
    parser = argparse.ArgumentParser(description="many columns")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--only", choices=sorted(TABLES))
    parser.add_argument("--columns", type=int, help="200 binary or 60 mixed ones by default")
    parser.add_argument("--shuffled", action="store_true", help="columns without dependence")
    options = parser.parse_args()
    done = []
    for table in [options.only] if options.only else TABLES:
        for method, aggregation in RUNS:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                done.append(pool.apply(run, (table, method, aggregation, options)))
            print(done[-1], flush=True)
    show(done)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps([asdict(each) for each in done], indent=1) + "\n")


def show(done: list[Measured]) -> None:
    """One table."""
    table = Table(title=f"{done[0].rows:,} rows of {_OWNERS} owners")
    for heading in (
        "table",
        "method",
        "sums",
        "s",
        "processor s",
        "MiB",
        "1-way",
        "2-way",
        "edges",
    ):
        table.add_column(heading)
    for each in done:
        table.add_row(
            each.table, each.method, each.aggregation, f"{each.seconds:.0f}",
            f"{each.processor_seconds:.0f}", f"{each.peak_mib:,.0f}", f"{each.one_way:.4f}",
            f"{each.two_way:.4f}", f"{each.on_edges:.3f}",
        )  # fmt: skip
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
