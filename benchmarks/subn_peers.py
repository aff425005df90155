"""MST and AIM on private-pgm's engine, run centrally.

At our privacy definition (`pure`): Laplace noise, epsilons that add up, one row replaced. And as
their authors run them (`delta`): Gaussian noise for (epsilon, delta), and neighbours that have a
row more or less; delta is 1e-9 here. There, a replaced row is one removed and one added: it moves a
marginal by sqrt(2) instead of 1 in the L2 norm, and a score of the exponential mechanism by 2
instead of 1. In zCDP that is 2 times the rho of the measurements and 4 times the rho of the
selections: 8/3 in all for MST, 2.2 for AIM. So each gets that part of the rho that epsilon and
delta are worth. (Group privacy for all of it would be 4 times rho: this is the kinder account.)
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from rich.console import Console
from scipy.optimize import minimize_scalar

from benchmarks.subn_data import IN_BITS, Setting
from benchmarks.subn_sweep import Point, Results
from common.schema.codes import Codes

HERE = Path(__file__).resolve().parent
ENVIRONMENT = HERE.parent / ".venv-mbi"
DELTA = 1e-9
PURE = "pure"
_LIMIT_S = 1800.0
PEERS: Mapping[str, float] = {
    "MST, central, pure": 1.0,
    "AIM, central, pure": 1.0,
    "MST, central, delta": 8 / 3,
    "AIM, central, delta": 2.2,
}
"""By how much a replaced row costs more than what the worker reckons with."""


def rho_of(epsilon: float, delta: float = DELTA) -> float:
    """The largest rho for which rho-zCDP implies (epsilon, delta) [Canonne20, Proposition 7]."""
    low, high = 0.0, epsilon + 1
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _delta_of(middle, epsilon) <= delta else (low, middle)
    return low


def _delta_of(rho: float, epsilon: float) -> float:
    if rho <= 0:
        return 0.0

    def exponent(log_order: float) -> float:
        order = 1 + math.exp(log_order)
        return (order - 1) * (order * rho - epsilon) + order * math.log1p(-1 / order) - log_order

    best = minimize_scalar(exponent, bounds=(-5, 15), method="bounded")
    return math.exp(min(float(best.fun), 0.0))


def run_peers(
    console: Console,
    settings: Mapping[str, Setting],
    arguments: argparse.Namespace,
    results: Results,
) -> None:
    """Make the peers' runs that are not there, within their time limits."""
    if problem := _install():
        console.print(f"skipped: the peers could not be installed: {problem}")
        return
    for run in range(arguments.peer_runs):
        for label in arguments.peers:
            for name in [name for name in settings if name != IN_BITS]:
                slow = False
                for epsilon in arguments.epsilons:
                    point = Point(name, 1, epsilon, label)
                    if slow or results.has(point, run):
                        continue
                    values = _run(settings[name], label, epsilon, run, arguments.peer_limit)
                    if isinstance(values, str):
                        console.print(f"{label} on {name}, epsilon {epsilon}: {values}")
                        slow = True  # larger budgets take longer still
                        continue
                    results.add(point, run, values)
                    console.print(f"{label}, {name}, epsilon {epsilon}: {values}", highlight=False)


def _install() -> str | None:
    """Make the environment once; the problem, if there is one."""
    done, wanted = ENVIRONMENT / "installed", HERE / "mbi.txt"
    if done.is_file() and done.read_text() == wanted.read_text():
        return None
    python = str(ENVIRONMENT / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet", "--no-deps", "-r", str(wanted)]
    for command in ([sys.executable, "-m", "venv", str(ENVIRONMENT)], install):
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode:
            return (ran.stderr.strip() or "no reason given").splitlines()[-1]
    done.write_text(wanted.read_text())
    return None


def peer_rows(setting: Setting, label: str, epsilon: str, seed: int) -> Codes:
    """Synthetic rows of a peer, within its time limit."""
    if problem := _install():
        raise SystemExit(f"the peers could not be installed: {problem}")
    made = _draw(setting, label, epsilon, seed, _LIMIT_S)
    if isinstance(made, str):
        raise SystemExit(f"{label}: {made}")
    return made[0]


def _run(
    setting: Setting, label: str, epsilon: str, seed: int, limit_s: float
) -> dict[str, float] | str:
    made = _draw(setting, label, epsilon, seed, limit_s)
    if isinstance(made, str):
        return made
    return {**setting.distances(made[0]), "seconds": made[1]}


def _draw(
    setting: Setting, label: str, epsilon: str, seed: int, limit_s: float
) -> tuple[Codes, float] | str:
    codes = setting.dataset.codes
    pure = label.endswith(PURE)
    budget = (float(epsilon) if pure else rho_of(float(epsilon))) / PEERS[label]
    with tempfile.TemporaryDirectory() as folder:
        rows, made = Path(folder, "rows.npz"), Path(folder, "made.npz")
        np.savez(rows, rows=np.array(codes.columns, dtype=np.int64), sizes=np.array(codes.sizes))
        worker = [str(ENVIRONMENT / "bin" / "python"), str(HERE / "subn_mbi_worker.py")]
        command = [
            *worker, label.split(",")[0], str(rows), str(made),
            "laplace" if pure else "gaussian", repr(budget), str(seed),
        ]  # fmt: skip
        try:
            ran = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=limit_s
            )
        except subprocess.TimeoutExpired:
            return f"stopped after {limit_s:g} s"
        if ran.returncode:
            return ran.stderr.strip().splitlines()[-1]
        seconds = float(json.loads(ran.stdout.splitlines()[-1])["seconds"])
        drawn = np.load(made)["rows"]
    return Codes.from_columns(list(drawn), codes.sizes), seconds
