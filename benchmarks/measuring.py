"""What benchmarks share: schemas, distances, seconds and memory, tables that are shown and kept."""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, ParamSpec, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_matrix, hstack

import parley
from benchmarks.research_tables import Target
from common.analysis.distances import total_variation
from common.fitted.model import FittedModel
from common.marginals import BinarySubsets, count
from common.schema import Codes, Schema
from parley.simulation.population import demo_schema_toml, make_population

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
Row = dict[str, object]
Measured = Iterator[tuple[Mapping[str, object], float]]  # labels of a line, and one measurement
Figures = Iterator[tuple[Mapping[str, object], str, float]]  # the same, and the column's heading
T = TypeVar("T")
P = ParamSpec("P")


def keep(name: str, found: object) -> None:
    """Write results/NAME.json; dataclasses are written as their fields."""
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(found, default=asdict, indent=1) + "\n"
    (RESULTS / f"{name}.json").write_text(text, encoding="utf-8")


def show(lines: Sequence[Mapping[str, object]], title: str = "") -> None:
    """Print a table with the keys of the lines as headings; texts stand left."""
    if not lines:
        return
    headings = {heading: value for line in reversed(lines) for heading, value in line.items()}
    table = Table(title=title or None)
    for heading in dict.fromkeys(heading for line in lines for heading in line):
        justify: Any = "left" if isinstance(headings[heading], str) else "right"
        table.add_column(heading, justify=justify)
    for line in lines:
        table.add_row(*(_shown(line.get(str(column.header), "")) for column in table.columns))
    Console(width=160).print(table)


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else str(value)


def verdict(figure: float, *, target: float, at_most: bool = False) -> str:
    """Say whether a figure reaches its target, and what the target is."""
    met = figure <= target if at_most else figure >= target
    return f"{'met' if met else 'MISSED'} ({'<=' if at_most else '>='} {target:g})"


def averaged(runs: int, measure: Callable[[int], Figures]) -> list[dict[str, Any]]:
    """Return a line for every set of labels, with the mean over the runs in every column.

    Args:
        runs: repetitions.
        measure: takes the number of a run; yields the labels of a line, the heading of a column,
            and what was measured.

    Returns:
        Lines in the order in which their labels first came. With more than one run, the last column
        is the largest standard error of a mean in the line.
    """
    found: dict[tuple[tuple[str, object], ...], dict[str, list[float]]] = {}
    for run in range(runs):
        for labels, heading, number in measure(run):
            line = found.setdefault(tuple(labels.items()), {})
            line.setdefault(heading, []).append(number)
    return [
        dict(labels) | {heading: fmean(each) for heading, each in line.items()} | _spread(line)
        for labels, line in found.items()
    ]


def sweep(
    columns: Mapping[str, T], runs: int, measure: Callable[[T, int], Measured]
) -> list[dict[str, Any]]:
    """Return the lines of `averaged`, with a column for every value that is swept, by heading."""
    return averaged(
        runs,
        lambda run: (
            (labels, heading, number)
            for heading, value in columns.items()
            for labels, number in measure(value, run)
        ),
    )


def _spread(line: Mapping[str, Sequence[float]]) -> Row:
    errors = [stdev(each) / len(each) ** 0.5 for each in line.values() if len(each) > 1]
    return {"± at most": max(errors)} if errors else {}


def schema_of(*attributes: str, more: str = "") -> Schema:
    """Return a schema of attributes, each the inside of an inline table, and more lines."""
    listed = "".join(f"  {{ {each} }},\n" for each in attributes)
    return Schema.from_toml(f"attribute = [\n{listed}]\n{more}")


def number(name: str, *, high: int, bins: int, low: int = 0, kind: str = "integer") -> str:
    """Return the attribute of a number in bins of equal width."""
    return f'name = "{name}", kind = "{kind}", min = {low}, max = {high}, bins = {bins}'


def category(name: str, values: Sequence[str]) -> str:
    """Return the attribute of some words."""
    return f'name = "{name}", kind = "categorical", values = {json.dumps(list(values))}'


def demo_population(rows: int, seed: int = 1) -> tuple[Schema, Codes]:
    """Return the schema and the rows of the simulated people of the demonstration."""
    schema = Schema.from_toml(demo_schema_toml())
    return schema, schema.encode(make_population(rows, seed=seed))


def mean_distance(real: Codes, made: Codes, sets: Sequence[tuple[int, ...]]) -> float:
    """Return the mean total variation distance of the tables of some sets of attributes."""
    return fmean(total_variation(real, made, sets))


def tables_of(
    codes: Codes, order: int, sets: Sequence[tuple[int, ...]] | None = None
) -> Iterator[NDArray[np.float64]]:
    """Yield every marginal of this many attributes, or some of them, as probabilities."""
    sets = list(combinations(range(codes.width), order)) if sets is None else list(sets)
    if set(codes.sizes) == {2}:
        yield from BinarySubsets(codes, order).tables(np.array(sets)) / codes.rows
    else:
        yield from (table / codes.rows for table in count(codes, sets))


def distance(real: Codes, synthetic: Codes, order: int) -> float:
    """Return the average total variation distance over all marginals of an order."""
    pairs = zip(tables_of(real, order), tables_of(synthetic, order), strict=True)
    return float(np.mean([np.abs(a - b).sum() / 2 for a, b in pairs]))


def error_rate(train: Codes, test: Codes, target: Target) -> float:
    """Return the error rate of a linear C-SVM (hinge loss, C = 1) on one-hot attributes."""
    from sklearn.linear_model import SGDClassifier  # sets environment variables when imported

    _, column, positive = target
    answers = positive(train.columns[column])
    truth = positive(test.columns[column])
    if answers.all() or not answers.any():  # nothing to learn: the only class is the answer
        return float((truth != answers[0]).mean())
    machine = SGDClassifier(
        loss="hinge", alpha=1.0 / train.rows, average=True, max_iter=10, tol=None, random_state=0
    )
    machine.fit(one_hot(train, column), answers)
    return float((machine.predict(one_hot(test, column)) != truth).mean())


def one_hot(codes: Codes, without: int) -> csr_matrix:
    """Make every value of every attribute but one a column of its own."""
    lines = np.arange(codes.rows)
    blocks = [
        csr_matrix((np.ones(codes.rows), (lines, column)), shape=(codes.rows, size))
        for place, (column, size) in enumerate(zip(codes.columns, codes.sizes, strict=True))
        if place != without
    ]
    return csr_matrix(hstack(blocks))


def released(
    table: pd.DataFrame, schema: Schema, *, method: str, epsilon: str, seed: int
) -> FittedModel:
    """Run a study of three owners with sums in the clear: quick, and the noise is the same."""
    parts = [table[part::3] for part in range(3)]
    return parley.simulate(
        parts, schema, epsilon=epsilon, method=method, aggregation="clear", seed=seed
    )


def seconds_in_turn(
    *jobs: Callable[[], object], turns: int, clock: Callable[[], float] = time.perf_counter
) -> list[list[float]]:
    """Return the seconds of each job, over turns in which each runs once."""
    seconds: list[list[float]] = [[] for _ in jobs]
    for _ in range(turns):
        for job, measured in zip(jobs, seconds, strict=True):
            start = clock()
            job()
            measured.append(clock() - start)
    return seconds


def fastest(job: Callable[[], object], turns: int = 3) -> float:
    """Return the seconds of the fastest of some runs."""
    (seconds,) = seconds_in_turn(job, turns=turns)
    return min(seconds)


@dataclass(kw_only=True)
class Spent:
    """What a block of code took: by the clock, by the processor in all threads, and in memory."""

    seconds: float = 0.0
    processor_seconds: float = 0.0
    peak_mib: float = 0.0


@contextmanager
def spending() -> Iterator[Spent]:
    """Measure a block; the figures are there when the block ends."""
    spent, clock, processor = Spent(), time.perf_counter(), time.process_time()
    yield spent
    spent.seconds = time.perf_counter() - clock
    spent.processor_seconds = time.process_time() - processor
    spent.peak_mib = _peak_mib()


def _peak_mib() -> float:
    """Return the most memory this process had; unlike `ru_maxrss`, without the parent's."""
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def in_own_process(job: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Run a job in a new process, so that its peak of memory is its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(job, arguments, named)
