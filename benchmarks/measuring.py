"""What benchmarks share: results that are kept, tables that are shown, distances, turns."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.table import Table

import parley
from common.release.evaluation import total_variation
from common.release.fitted import FittedModel
from common.schema import Codes, Schema

RESULTS = Path(__file__).parent / "results"


def keep(name: str, found: object) -> None:
    """Write results/NAME.json; dataclasses are written as their fields."""
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(found, default=asdict, indent=1) + "\n"
    (RESULTS / f"{name}.json").write_text(text, encoding="utf-8")


def show(lines: Sequence[Mapping[str, object]], title: str = "") -> None:
    """Print a table with the keys of the first line as headings; texts stand left."""
    if not lines:
        return
    table = Table(title=title or None)
    for heading, value in lines[0].items():
        table.add_column(heading, justify="left" if isinstance(value, str) else "right")
    for line in lines:
        table.add_row(*map(_shown, line.values()))
    Console(width=130).print(table)


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def mean_distance(real: Codes, made: Codes, sets: Sequence[tuple[int, ...]]) -> float:
    """The mean total variation distance of the tables of some sets of attributes."""
    return statistics.fmean(total_variation(real, made, sets))


def released(
    table: pd.DataFrame, schema: Schema, *, method: str, epsilon: str, seed: int
) -> FittedModel:
    """A study of three owners, added up in the clear: the noise is the same, and it is quick."""
    parts = [table[part::3] for part in range(3)]
    return parley.simulate(
        parts, schema, epsilon=epsilon, method=method, aggregation="clear", seed=seed
    )


def seconds_in_turn(
    *jobs: Callable[[], object], turns: int, clock: Callable[[], float] = time.perf_counter
) -> list[list[float]]:
    """The seconds of each job, over turns in which each runs once."""
    seconds: list[list[float]] = [[] for _ in jobs]
    for _ in range(turns):
        for job, measured in zip(jobs, seconds, strict=True):
            start = clock()
            job()
            measured.append(clock() - start)
    return seconds


def fastest(job: Callable[[], object], turns: int = 3) -> float:
    """The seconds of the fastest of some runs."""
    (seconds,) = seconds_in_turn(job, turns=turns)
    return min(seconds)
