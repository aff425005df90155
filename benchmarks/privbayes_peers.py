"""The public PrivBayes implementations, timed on the same rows as ours.

They live in an environment of their own, `.venv-peers`, with the versions of `peers.txt`, installed
without their declared dependencies because two of the three contradict each other there. They are
slow, so they get a sample of the rows of NLTCS, two parents, and a time limit; the table says so.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from benchmarks.privbayes_data import Dataset
from common.bayes.privbayes.model import PrivBayesModel
from common.privacy.randomness import RandomSource, SeededRandomSource
from common.schema.codes import Codes

HERE = Path(__file__).resolve().parent
ENVIRONMENT = HERE.parent / ".venv-peers"
PEERS = ("DataSynthesizer", "dpart", "dpmm")
ROWS = 2000
PARENTS = 2
EPSILON = Fraction(8, 5)
TARGETS = {"DataSynthesizer": 20.0}

Fit = Callable[[Dataset, Codes, Fraction, RandomSource], PrivBayesModel]
Distance = Callable[[Codes, Codes, int], float]


@dataclass(frozen=True)
class PeerResult:
    """One implementation on the sample; no seconds means that it did not finish."""

    name: str
    seconds: float | None
    distance: float | None
    times_ours: float | None
    note: str


def compare_with_peers(
    console: Console,
    datasets: Sequence[Dataset],
    fit: Fit,
    distance: Distance,
    limit_s: float,
) -> list[PeerResult]:
    """Fit and sample the same rows with ours and with every peer that runs here."""
    nltcs = next((each for each in datasets if each.name == "NLTCS"), None)
    if nltcs is None:
        console.print("skipped: the peers are compared on NLTCS, which is not here")
        return []
    # The file is sorted: its first rows are all alike.
    some = nltcs.codes.take(np.random.default_rng(1).permutation(nltcs.codes.rows)[:ROWS])
    results = [_ours(nltcs, some, fit, distance)]
    if problem := _install():
        console.print(f"skipped: the peers could not be installed: {problem}")
    else:
        ours = results[0].seconds or 0.0
        results += [_peer(name, some, distance, ours, limit_s) for name in PEERS]
    _show(console, results)
    return results


def _ours(dataset: Dataset, codes: Codes, fit: Fit, distance: Distance) -> PeerResult:
    for _ in range(2):  # the first run translates the kernels
        source = SeededRandomSource("peers")
        start = time.perf_counter()
        synthetic = fit(dataset, codes, EPSILON, source).sample(codes.rows, source)
        seconds = time.perf_counter() - start
    return PeerResult("parley", seconds, distance(codes, synthetic, 3), 1.0, "")


def _install() -> str | None:
    """Make the environment once; the problem, if there is one."""
    done = ENVIRONMENT / "installed"
    if done.is_file() and done.read_text() == (HERE / "peers.txt").read_text():
        return None
    python = ENVIRONMENT / "bin" / "python"
    wanted = str(HERE / "peers.txt")
    install = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", "-r", wanted]
    for command in ([sys.executable, "-m", "venv", str(ENVIRONMENT)], install):
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode:
            return (ran.stderr.strip() or "no reason given").splitlines()[-1]
    done.write_text((HERE / "peers.txt").read_text())
    return None


def _peer(name: str, codes: Codes, distance: Distance, ours: float, limit_s: float) -> PeerResult:
    with tempfile.TemporaryDirectory() as folder:
        rows, made = Path(folder, "rows.csv"), Path(folder, "made.csv")
        columns = {f"c{j}": column for j, column in enumerate(codes.columns)}
        pd.DataFrame(columns).to_csv(rows, index=False)
        worker = HERE / "privbayes_peer_worker.py"
        command = [str(p) for p in (ENVIRONMENT / "bin" / "python", worker, name, rows, made)]
        try:
            ran = subprocess.run(
                [*command, str(float(EPSILON)), str(PARENTS)],
                capture_output=True,
                text=True,
                check=False,
                timeout=limit_s,
            )
        except subprocess.TimeoutExpired:
            note = f"stopped after {limit_s:g} s"
            return PeerResult(name, None, None, limit_s / ours, note)
        if ran.returncode:
            return PeerResult(name, None, None, None, ran.stderr.strip().splitlines()[-1])
        seconds = float(json.loads(ran.stdout.splitlines()[-1])["seconds"])
        frame = pd.read_csv(made)
        drawn = [frame[f"c{j}"].to_numpy() for j in range(codes.width)]
    synthetic = Codes.from_columns(drawn, codes.sizes)
    return PeerResult(name, seconds, distance(codes, synthetic, 3), seconds / ours, "")


def _show(console: Console, results: Sequence[PeerResult]) -> None:
    table = Table(
        "implementation", "seconds", "3-way distance", "times ours", "target", "note",
        title=f"NLTCS, {ROWS:,} random rows, epsilon {float(EPSILON):g}, {PARENTS} parents",
    )  # fmt: skip
    for each in results:
        target = TARGETS.get(each.name)
        table.add_row(
            each.name,
            "-" if each.seconds is None else f"{each.seconds:.2f}",
            "-" if each.distance is None else f"{each.distance:.3f}",
            "-" if each.times_ours is None else f"{each.times_ours:,.0f}x",
            "" if target is None else f"{target:g}x",
            each.note,
        )
    console.print(table)
