"""The compared methods, run on tables of several owners without cryptography.

A method's script is run in one copy on exact sums, under noise of the protocol's law from numpy, so
that hundreds of runs are affordable. It is NOT PRIVATE.

MST and AIM run centrally, on private-pgm's engine in an environment of its own. At our privacy
definition (`pure`): Laplace noise, epsilons that add up, one row replaced. And as their authors run
them (`delta`): Gaussian noise for (epsilon, delta), and neighbours that have a row more or less.
There, a replaced row is one removed and one added: it moves a marginal by sqrt(2) instead of 1 in
the L2 norm, and a score of the exponential mechanism by 2 instead of 1. In zCDP that is 2 times the
rho of the measurements and 4 times the rho of the selections: 8/3 in all for MST, 2.2 for AIM. So
each gets that part of the rho that epsilon and delta are worth. (Group privacy for all of it would
be 4 times rho: this is the kinder account.)
"""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
from scipy.optimize import minimize_scalar

from benchmarks.papers.one_copy import OneCopy
from benchmarks.privbayes import fit
from benchmarks.subn_data import Setting
from common.bayes.privbayes.decisions import Encoding
from common.crypto.identities.identity import Identity
from common.crypto.sums.plan import Aggregation, Noise
from common.methods.registry import methods
from common.privacy.randomness import SeededRandomSource
from common.schema.codes import Codes, concatenate
from common.study.document import Member, Study
from common.study.requests import Counts
from common.study.steps import SumStep

HERE = Path(__file__).resolve().parent
ENVIRONMENT = HERE.parent / ".venv-mbi"
PEER_LIMIT_S = 1800.0
PURE = Fraction(0)


@dataclass(frozen=True)
class Method:
    """A row of the tables.

    Attributes:
        name: as the study calls it.
        profile: whose noise.
        in_bits: whether it works on bits where the setting says so; the others keep the domains.
        settings: those of the study.
    """

    name: str
    profile: str = "sound"
    in_bits: bool = True
    settings: tuple[tuple[str, str | int], ...] = ()


CENTRAL = "privbayes, central"
FLOOR = "floor"
EXPECTING = "subn+, dependence expected"
METHODS: Mapping[str, Method] = {
    FLOOR: Method("floor", in_bits=False),
    "independent": Method("independent"),
    "dp-ccbn": Method("dp-ccbn", "paper"),
    "dp-subn paper": Method("dp-subn", "paper"),
    "dp-subn sound": Method("dp-subn"),
    "subn+": Method("subn+", in_bits=False),
    EXPECTING: Method("subn+", in_bits=False, settings=(("dependence", "expected"),)),
}
PEERS: Mapping[str, float] = {
    "MST, central, pure": 1.0,
    "AIM, central, pure": 1.0,
    "MST, central, delta": 8 / 3,
    "AIM, central, delta": 2.2,
}
"""By how much a replaced row costs more than what the worker reckons with."""


class PeerError(Exception):
    """A peer cannot be installed, fails, or takes too long."""


def can_promise(label: str, delta: str) -> bool:
    """Whether a method is run at this delta, written as in the table."""
    if label in PEERS:
        return label.endswith("pure") == (delta == "0")
    if delta == "0" or label == CENTRAL:
        return delta == "0"
    method = METHODS[label]
    return methods()[method.name].only_sums and method.profile != "paper"


def synthetic_rows(
    setting: Setting,
    tables: Mapping[str, Codes],
    epsilon: Fraction,
    label: str,
    seed: str,
    delta: Fraction = PURE,
) -> Codes:
    """As many synthetic rows as there are real ones."""
    source = SeededRandomSource(seed)
    rows = sum(table.rows for table in tables.values())
    if label == CENTRAL:
        dataset = setting.dataset
        if setting.encoding == "binary":
            dataset = replace(dataset, encoding=Encoding.BINARY)
        together = concatenate(list(tables.values()))
        return fit(dataset, together, epsilon, source).sample(rows, source)
    study = replace(study_of(setting, tables, epsilon, METHODS[label]), delta=delta)
    return QuickCopy(study, tables, source).run().sample(rows, source)


def study_of(
    setting: Setting,
    tables: Mapping[str, Codes],
    epsilon: Fraction,
    method: Method,
    aggregation: Aggregation = Aggregation.CLEAR,
    identities: Mapping[str, Identity] | None = None,
) -> Study:
    """The study that these owners would agree on."""
    if identities is None:
        identities = {name: _unused(name) for name in tables}
    members = tuple(
        Member(name=name, rows=table.rows, identity=identities[name].public)
        for name, table in tables.items()
    )
    return Study(
        name="benchmark",
        schema=setting.schema,
        members=members,
        epsilon=epsilon,
        method=method.name,
        profile=method.profile,
        noise=Noise.ONE_SHARE if method.profile == "paper" else Noise.DISTRIBUTED,
        aggregation=aggregation,
        encoding=setting.encoding if method.in_bits else "own",
        settings=method.settings,
    )


@cache
def _unused(name: str) -> Identity:
    """Keys that sign nothing: a study cannot be written without."""
    return Identity.generate(SeededRandomSource(name))


@dataclass
class QuickCopy(OneCopy):
    """A study in one copy whose sums get their noise at once, from numpy: NOT PRIVATE."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._quick = np.random.default_rng(list(self.source.random_bytes(16)))

    def noise(self, step: SumStep) -> Counts:
        """The sum of all shares: a Skellam or a difference of two negative binomial draws."""
        shares, law = float(self.study.noise_shares(len(step.parties))), step.law
        if law.norm == 2:
            mean = law.variance() * shares / 2
            return self._quick.poisson(mean, step.cells) - self._quick.poisson(mean, step.cells)
        stop = 1 - math.exp(-1 / float(law.scale))
        plus = self._quick.negative_binomial(shares, stop, step.cells)
        return plus - self._quick.negative_binomial(shares, stop, step.cells)


def rho_of(epsilon: float, delta: float) -> float:
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


def peer_rows(codes: Codes, label: str, epsilon: str, delta: str, seed: int) -> Codes:
    """Synthetic rows of a peer.

    Raises:
        PeerError: it cannot be installed, fails, or takes too long.
    """
    _install()
    pure = delta == "0"
    budget = (float(epsilon) if pure else rho_of(float(epsilon), float(delta))) / PEERS[label]
    with tempfile.TemporaryDirectory() as folder:
        rows, made = Path(folder, "rows.npz"), Path(folder, "made.npz")
        np.savez(rows, rows=np.array(codes.columns, dtype=np.int64), sizes=np.array(codes.sizes))
        _command(
            str(ENVIRONMENT / "bin" / "python"), str(HERE / "subn_mbi_worker.py"),
            label.split(",")[0], str(rows), str(made),
            "laplace" if pure else "gaussian", repr(budget), str(seed),
        )  # fmt: skip
        drawn = np.load(made)["rows"]
    return Codes.from_columns(list(drawn), codes.sizes)


def _install() -> None:
    """Make the environment of the peers once."""
    done, wanted = ENVIRONMENT / "installed", HERE / "mbi.txt"
    if done.is_file() and done.read_text() == wanted.read_text():
        return
    python = str(ENVIRONMENT / "bin" / "python")
    _command(sys.executable, "-m", "venv", str(ENVIRONMENT))
    _command(python, "-m", "pip", "install", "--quiet", "--no-deps", "-r", str(wanted))
    done.write_text(wanted.read_text())


def _command(*words: str) -> None:
    try:
        subprocess.run(words, capture_output=True, text=True, check=True, timeout=PEER_LIMIT_S)
    except subprocess.TimeoutExpired as error:
        raise PeerError(f"a peer: stopped after {PEER_LIMIT_S:g} s") from error
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip() or "no reason given").splitlines()[-1]
        raise PeerError(f"a peer: {last}") from error
