"""Where the time of a study goes: `make bench-study`, or `python -m benchmarks.study --large`.

Whole commands, as a user types them: `parley simulate` in one process and over gRPC, on Adult
where the research tables are there and on simulated people elsewhere, then what a reader of the
release waits for. Parts are those of OUT-times.json, in seconds of the clock. `processor` is of
the command and its child processes: where the machine has other work, it is the figure to compare.

`--large` adds studies that take minutes: epsilon 100, and 1,000 owners in one process.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from benchmarks.measuring import Row, demo_population, keep, show
from benchmarks.research_tables import available
from benchmarks.subn_data import Setting
from common.privacy.randomness import SeededRandomSource

_PARTS = ("starting", "reading", "study", "fitting", "writing")
_DELTA = "1e-9"


@dataclass(frozen=True)
class Case:
    """One way to run a study."""

    name: str
    options: tuple[str, ...]


_CASES = (
    Case("masked, epsilon 1", ("--epsilon", "1")),
    Case("masked, epsilon 1, delta", ("--epsilon", "1", "--delta", _DELTA)),
    Case(
        "paillier, 10 owners, delta",
        ("--epsilon", "1", "--delta", _DELTA, "--aggregation", "paillier", "--parties", "10"),
    ),
    Case("masked over gRPC, epsilon 1", ("--epsilon", "1", "--transport", "grpc")),
)
_LARGE = (
    Case("masked, epsilon 100", ("--epsilon", "100")),
    Case("masked, epsilon 100, delta", ("--epsilon", "100", "--delta", _DELTA)),
    Case("masked, 100 owners", ("--epsilon", "1", "--parties", "100")),
    Case("masked, 1,000 owners", ("--epsilon", "1", "--parties", "1000")),
)


def _write_table(folder: Path) -> str:
    """Write table.csv and schema.toml; return what the table is."""
    tables, _ = available()
    adult = next((each for each in tables if each.name.lower() == "adult"), None)
    if adult is None:
        schema, codes = demo_population(45_000)
        frame, name = schema.decode(codes, SeededRandomSource("rows")), "simulated people"
    else:
        schema, name = Setting("adult", adult).schema, "Adult"
        columns = zip(schema.names, adult.codes.columns, strict=True)
        frame = pd.DataFrame({name: column.astype(str) for name, column in columns})
    frame.to_csv(folder / "table.csv", index=False)
    (folder / "schema.toml").write_text(schema.to_toml(), encoding="utf-8")
    return f"{name}, {len(frame):,} rows, {frame.shape[1]} columns"


def _run(words: Sequence[str], folder: Path) -> tuple[float, float]:
    """Run a command of parley; return the seconds of the clock and of the processor."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    root = str(Path(__file__).resolve().parents[1])
    subprocess.run(
        [sys.executable, "-m", "parley", *words],
        cwd=folder, env=os.environ | {"PYTHONPATH": root}, check=True, capture_output=True,
    )  # fmt: skip
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, processor


def simulated(case: Case, folder: Path) -> Row:
    """Run one study; its line of the table."""
    out = f"release-{case.name.replace(' ', '-')}"
    owners = () if "--parties" in case.options else ("--parties", "3")
    how = () if "--aggregation" in case.options else ("--aggregation", "masked")
    words = ["simulate", "table.csv", "--schema", "schema.toml", *owners, *how, *case.options]
    clock, processor = _run([*words, "--out", out], folder)
    parts = json.loads((folder / f"{out}-times.json").read_text())["command"]
    return {
        "run": case.name,
        **{part: parts.get(part) for part in _PARTS},
        "told": sum(parts.get(part, 0.0) for part in _PARTS),
        "clock": clock,
        "processor": processor,
    }


def read(case: Case, folder: Path) -> list[Row]:
    """Run what a reader of the release runs."""
    out = f"release-{case.name.replace(' ', '-')}"
    with (folder / "table.csv").open(encoding="utf-8") as table:
        (column, *_), (value, *_) = (table.readline().strip().split(",") for _ in range(2))
    asked = ["estimate", out, "--share", f"{column} = {value}"]
    commands = {
        "verify": ["verify", out, "--unsigned"],
        "describe": ["describe", out],
        "draw 100,000 rows": ["draw", out, "--rows", "100000", "--out", f"{out}.drawn.csv"],
        "estimate, first": asked,
        "estimate, again": asked,
    }
    lines: list[Row] = []
    for name, words in commands.items():
        clock, processor = _run(words, folder)
        lines.append({"command": name, "of": case.name, "clock": clock, "processor": processor})
    return lines


def main() -> None:
    """Print both tables and write them."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--large", action="store_true", help="studies of minutes, too")
    options.add_argument("--only", help="studies whose name has this in it")
    chosen = options.parse_args()
    cases = [
        case
        for case in (*_CASES, *(_LARGE if chosen.large else ()))
        if chosen.only is None or chosen.only in case.name
    ]
    with tempfile.TemporaryDirectory(prefix="parley-study-") as scratch:
        folder = Path(scratch)
        table = _write_table(folder)
        studies = [simulated(case, folder) for case in cases]
        show(studies, f"{table}: seconds")
        commands = [line for case in cases[:2] for line in read(case, folder)]
        show(commands, "commands of a reader: seconds")
    keep("study", {"table": table, "studies": studies, "commands": commands})


if __name__ == "__main__":
    main()
