"""Other projects' implementations, each in an environment and a process of its own.

The environments are made on first use, with the versions of a requirements file, installed without
their declared dependencies: some of them contradict each other. Workers import nothing of this
project. To compare with (epsilon, delta) peers, `rho_of` says how much rho-zCDP that is.
"""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import minimize_scalar

from benchmarks.measuring import HERE
from common.schema.codes import Codes

MOST_SECONDS = 7200.0
MARGINAL_PEERS: Mapping[str, float] = {
    "MST, central, pure": 1.0,
    "AIM, central, pure": 1.0,
    "MST, central, delta": 8 / 3,
    "AIM, central, delta": 2.2,
}
"""By how much a replaced row costs more than what the worker reckons with.

MST and AIM run on private-pgm's engine. At our privacy definition (`pure`): Laplace noise, epsilons
that add up, one row replaced. And as their authors run them (`delta`): Gaussian noise for (epsilon,
delta), and neighbours that have a row more or less. There, a replaced row is one removed and one
added: it moves a marginal by sqrt(2) instead of 1 in the L2 norm, and a score of the exponential
mechanism by 2 instead of 1. In zCDP that is 2 times the rho of the measurements and 4 times the rho
of the selections: 8/3 in all for MST, 2.2 for AIM. So each gets that part of the rho that epsilon
and delta are worth. (Group privacy for all of it would be 4 times rho: this is the kinder account.)
"""


class PeerError(Exception):
    """A peer cannot be installed, fails, or takes too long."""


class PeerTimeoutError(PeerError):
    """A peer takes too long."""


@dataclass(frozen=True)
class Peers:
    """An environment: its folder, its requirements, and the script that runs in it."""

    folder: Path
    requirements: Path
    worker: Path

    def run(self, *words: object, most_seconds: float = MOST_SECONDS) -> str:
        """Run the worker; return what it printed.

        Raises:
            PeerError: the peer cannot be installed, fails, or takes too long.
        """
        self._install()
        python = str(self.folder / "bin" / "python")
        return _run([python, str(self.worker), *map(str, words)], most_seconds)

    def _install(self) -> None:
        done, wanted = self.folder / "installed", self.requirements.read_text()
        if done.is_file() and done.read_text() == wanted:
            return
        _run([sys.executable, "-m", "venv", str(self.folder)], MOST_SECONDS)
        install = ["-m", "pip", "install", "--quiet", "--no-deps", "-r", str(self.requirements)]
        _run([str(self.folder / "bin" / "python"), *install], MOST_SECONDS)
        done.write_text(wanted)


def _run(words: list[str], most_seconds: float) -> str:
    try:
        ran = subprocess.run(
            words, capture_output=True, text=True, check=True, timeout=most_seconds
        )
    except subprocess.TimeoutExpired as error:
        raise PeerTimeoutError(f"stopped after {most_seconds:g} s") from error
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip() or "no reason given").splitlines()[-1]
        raise PeerError(last) from error
    return ran.stdout


PRIVBAYES = Peers(
    HERE.parent / ".venv-peers", HERE / "peers.txt", HERE / "privbayes_peer_worker.py"
)
TABLES = Peers(HERE.parent / ".venv-tables", HERE / "tables.txt", HERE / "package_tables_worker.py")
MBI = Peers(HERE.parent / ".venv-mbi", HERE / "mbi.txt", HERE / "subn_mbi_worker.py")


def peer_rows(codes: Codes, label: str, *, epsilon: str, delta: str, seed: int) -> Codes:
    """Return synthetic rows of MST or AIM, or raise PeerError."""
    pure = delta == "0"
    budget = float(epsilon) if pure else rho_of(float(epsilon), float(delta))
    with tempfile.TemporaryDirectory() as folder:
        rows, made = Path(folder, "rows.npz"), Path(folder, "made.npz")
        np.savez(rows, rows=np.array(codes.columns, dtype=np.int64), sizes=np.array(codes.sizes))
        noise, budget = "laplace" if pure else "gaussian", budget / MARGINAL_PEERS[label]
        MBI.run(label.split(",")[0], rows, made, noise, repr(budget), seed)
        drawn = np.load(made)["rows"]
    return Codes.from_columns(list(drawn), codes.sizes)


def rho_of(epsilon: float, delta: float) -> float:
    """Return the largest rho whose zCDP implies (epsilon, delta) [Canonne20, Proposition 7]."""
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
