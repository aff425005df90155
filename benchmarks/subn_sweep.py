"""Runs that can be continued: every finished one is a line in benchmarks/results/subn.jsonl.

Runs are ordered so that a sweep that is stopped early has as many runs of one point as of another.
Results made by other code are used again, and counted, so that the tables can say so.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np
from rich.console import Console

from benchmarks.measuring import RESULTS
from benchmarks.privbayes import error_rate
from benchmarks.subn_data import RANDOM, Setting, split_rows
from benchmarks.subn_methods import synthetic_rows

CACHE = RESULTS / "subn.jsonl"
DISTANCES, CLASSIFIERS = "distances", "classifiers"
_SOURCES = ("common/methods", "common/bayes", "common/study")


@dataclass(frozen=True)
class Point:
    """What is averaged over runs: one method in one setting."""

    data: str
    parties: int
    epsilon: str
    method: str
    task: str = DISTANCES
    split: str = RANDOM


def code_digest() -> str:
    """Changes whenever a method's code does."""
    project = RESULTS.parents[1]
    digest = hashlib.sha256()
    for source in _SOURCES:
        place = project / source
        for path in sorted(place.glob("*.py")) if place.is_dir() else [place]:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


@dataclass
class Results:
    """Values by point and run, kept in a file of JSON lines."""

    path: Path = CACHE
    known: dict[Point, dict[int, dict[str, float]]] = field(default_factory=dict)
    other_code: int = 0
    code: str = field(default_factory=code_digest)

    def load(self) -> None:
        """Read what was measured before."""
        if not self.path.is_file():
            return
        for line in self.path.read_text().splitlines():
            entry = json.loads(line)
            self.known.setdefault(Point(**entry["point"]), {})[entry["run"]] = entry["values"]
            self.other_code += entry["code"] != self.code

    def add(self, point: Point, run: int, values: Mapping[str, float]) -> None:
        """Keep a finished run."""
        self.known.setdefault(point, {})[run] = dict(values)
        entry = {"point": asdict(point), "run": run, "values": dict(values), "code": self.code}
        self.path.parent.mkdir(exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(entry) + "\n")

    def has(self, point: Point, run: int) -> bool:
        """Whether this run is there."""
        return run in self.known.get(point, {})

    def values(self, point: Point, measure: str) -> list[float]:
        """The runs of a point, for one measure."""
        return [values[measure] for values in self.known.get(point, {}).values()]


def run_all(
    console: Console,
    settings: Mapping[str, Setting],
    wanted: Iterable[Point],
    runs: Callable[[Point], int],
    results: Results,
    measured: Callable[[Setting, Point, int], dict[str, float]] | None = None,
) -> None:
    """Make the runs that are not there yet.

    Args:
        console: told about every run.
        settings: by name.
        wanted: the points.
        runs: how many of each point.
        results: where they go.
        measured: how a run is made; `measure` if not given.
    """
    wanted = list(dict.fromkeys(wanted))
    todo = [
        (point, run)
        for run in range(max(map(runs, wanted), default=0))
        for point in wanted
        if run < runs(point) and not results.has(point, run)
    ]
    for number, (point, run) in enumerate(todo, start=1):
        start = time.perf_counter()
        values = (measured or measure)(settings[point.data], point, run)
        results.add(point, run, values)
        console.print(
            f"[{number}/{len(todo)}] {point.data} K={point.parties} eps {point.epsilon} "
            f"{point.method}, {point.task}, run {run + 1}: {time.perf_counter() - start:.1f} s",
            highlight=False,
        )


def measure(setting: Setting, point: Point, run: int) -> dict[str, float]:
    """One run of one point."""
    train, test = setting.halves
    codes = setting.dataset.codes if point.task == DISTANCES else train
    tables = split_rows(codes, point.parties, point.split, seed=run)
    start = time.perf_counter()
    made = synthetic_rows(setting, tables, Fraction(point.epsilon), point.method, f"{point} {run}")
    seconds = time.perf_counter() - start
    if point.task == DISTANCES:
        return {**setting.distances(made), "seconds": seconds}
    rates = {task[0]: error_rate(made, test, task) for task in setting.targets}
    return {**rates, "seconds": seconds}


def worse(values: list[float], floor: list[float]) -> bool:
    """Whether values lie above the floor's by more than two standard errors of the difference."""
    if min(len(values), len(floor)) < 2:
        return False
    spread = float(sum(np.var(runs, ddof=1) / len(runs) for runs in (values, floor)))
    return bool(np.mean(values) - np.mean(floor) > 2 * np.sqrt(spread))
