"""Audits of whole studies by the exact likelihood ratio of everything that they publish.

A study publishes sums. The curator and t colluding owners, of whom the study may miss d more, know
every row but the protected ones and every share of noise but K - t - d. To them each published sum
is the protected rows' answer under exactly one law of noise, so between two neighbouring inputs the
log-likelihood ratio of the whole transcript is a sum of logarithms of known probabilities: exact,
run for run, without an estimate. Along the way every run has an exact Renyi divergence: steps are
independent given what was published before, so those of the steps that were taken add up.

    pure epsilon        in every run  |log-likelihood ratio| <= divergence of order inf <= epsilon
    (epsilon, delta)    in every run  divergence of order a <= a rho, for every order a

`python -m tests.harness.study_audit --seconds 60` prints the largest values, for docs/proofs.md.
"""

import argparse
import math
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache

import numpy as np

from common.crypto.sums import recovery, words
from common.crypto.sums.words import word_chunks
from common.methods.registry import run_of
from common.privacy.randomness import OsRandomSource
from common.schema import Schema
from common.schema.attribute import Attribute
from common.schema.binning import Binning
from common.schema.codes import PLACES, Codes, concatenate
from common.study.requests import RowsInMemory, read_cells
from curator.role import CuratorRole
from parley.simulation.in_process import run_study
from tests.harness.run_script import identities_of, schema_of, study_of

ORDERS = (2, 8, 32)  # of divergences under a delta; that under pure epsilon is infinite
PROTECTED = "p0"  # the owner of the rows that differ


@dataclass
class Run:
    """What one run published, as the adversary sees it."""

    ratio: float = 0.0  # the log-likelihood ratio, of the first input against the second
    divergences: Counter = field(default_factory=Counter)  # by order
    squares: float = 0.0  # of the noise, each divided by the variance of its law
    cells: int = 0
    steps: list = field(default_factory=list)

    def add(self, step, noise, moved):
        """Add a step whose noise the adversary would compute if the first input were the true one.

        `moved` is the first input's answer without the second's.
        """
        law = step.law
        self.ratio += float((log_pmf(law, noise) - log_pmf(law, noise + moved)).sum())
        sizes, counts = np.unique(np.abs(moved), return_counts=True)
        for order in ORDERS if law.name == "Skellam" else (math.inf,):
            self.divergences[order] += sum(
                int(count) * divergence(law, order, int(size))
                for size, count in zip(sizes, counts, strict=True)
            )
        self.steps.append(step.name)


def log_pmf(law, values):
    """Return the logarithm of the probability of each integer under a law of noise."""
    if law.name == "Skellam":
        return _skellam_log_pmf(law.scale)[np.abs(values)]
    root = math.exp(-1 / float(law.scale))
    return -np.abs(values) / float(law.scale) + math.log1p(-root) - math.log1p(root)


@cache
def _skellam_log_pmf(variance):
    """By ratios of Bessel functions from far out, I_k / I_(k-1) = 1 / (2 k / s + I_(k+1) / I_k)."""
    s = float(variance)
    most = int(80 + 30 * math.sqrt(s)) + 4000
    ratios = np.zeros(most + 400)
    for k in range(most + 398, 0, -1):
        ratios[k] = 1 / (2 * k / s + ratios[k + 1])
    relative = np.concatenate([[0.0], np.cumsum(np.log(ratios[1:most]))])
    return relative - math.log(1 + 2 * np.exp(relative[1:]).sum())


@cache
def divergence(law, order, size):
    """Return the Renyi divergence of an order between a cell's law and its law moved by `size`."""
    if order == math.inf:
        return size / float(law.scale)  # of Laplace noise; that of Skellam noise has no bound
    reach = int(12 * math.sqrt(law.variance()) + 2 * size * order + 200)
    values = np.arange(-reach, reach + 1)
    there, moved = log_pmf(law, values), log_pmf(law, values + size)
    terms = order * there - (order - 1) * moved
    top = terms.max()
    return (top + math.log(np.exp(terms - top).sum())) / (order - 1)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A study, and two inputs that differ in what it protects: a row, or all rows of a person."""

    name: str
    sizes: tuple
    changed: tuple  # the attributes in which the protected rows differ
    rows: int = 600  # of each owner
    terms: dict  # of the study: epsilon, delta, colluders, may_miss, people
    parties: int = 3
    binned: tuple = ()  # the attributes of numbers in bins, in which protected rows change ends

    @property
    def study(self):
        tables = self.tables(first=True)
        schema = schema_of(self.sizes)
        attributes = [
            Attribute(own.name, "integer", _bins(own.size)) if place in self.binned else own
            for place, own in enumerate(schema.attributes)
        ]
        return study_of(tables, method="subn+", schema=Schema(tuple(attributes)), **self.terms)

    def tables(self, *, first):
        """Return every owner's table; those of PROTECTED are the first or the second input."""
        rng = np.random.default_rng(3)
        tables = {}
        for number in range(self.parties):
            rows = rng.integers(0, self.sizes, (self.rows, len(self.sizes)))
            rows[:, 1] = rows[:, 0] % self.sizes[1]  # a relation to be found
            tables[f"p{number}"] = rows
        protected = max(1, self.terms.get("rows_per_person", 0))
        for number in range(self.terms.get("owners_per_person", 1)):
            tables[f"p{number}"][:protected] = [
                0 if first or place not in self.changed else size - 1
                for place, size in enumerate(self.sizes)
            ]
        return {
            name: self._codes(
                rows, protected * (at < self.terms.get("owners_per_person", 1)), first
            )
            for at, (name, rows) in enumerate(tables.items())
        }

    def _codes(self, rows, protected, first):
        codes = Codes.from_columns(list(rows.T.astype(np.intp)), self.sizes)
        if not self.binned:
            return codes
        inside = np.random.default_rng(4).integers(0, PLACES, len(rows)).astype(np.uint8)
        inside[:protected] = 0 if first else PLACES - 1
        places = (inside if place in self.binned else None for place in range(len(self.sizes)))
        return Codes(codes.columns, codes.sizes, places=tuple(places))


def _bins(size):
    return Binning.equal_width(0, 10 * size - 1, size, whole=True)


def honest_shares(study):
    """Return how many shares the adversary does not know in any sum: K - t - d."""
    return len(study.members) - study.colluders - study.may_miss


class ScriptAudit:
    """Runs of the script with exactly K - t - d honest shares in every sum, and no roles."""

    def __init__(self, case, *, factor=Fraction(1)):
        """Take a case; `factor` times the noise is drawn."""
        self.study, self._factor = case.study, factor
        self._source = OsRandomSource()
        self._pooled = [
            RowsInMemory(concatenate(list(case.tables(first=first).values())))
            for first in (True, False)
        ]
        self._answers = {}

    def run(self, *, first):
        run, script, makers = Run(), run_of(self.study), honest_shares(self.study)
        while (step := script.step()) is not None:
            answers = self._answer(step)
            law = step.law if self._factor == 1 else step.law.times(self._factor)
            shares = [
                law.draw_share(step.cells, makers=makers, source=self._source)
                for _ in range(makers)
            ]
            noise = np.sum(shares, axis=0)
            run.squares += float((noise.astype(float) ** 2).sum() / step.law.variance())
            run.cells += step.cells
            moved = answers[0] - answers[1]
            run.add(step, noise if first else noise - moved, moved)
            script.advance((answers[0 if first else 1] + noise).astype(np.int64))
        return run

    def _answer(self, step):
        key = step.request.canonical
        if key not in self._answers:
            self._answers[key] = [step.request.answer(rows) for rows in self._pooled]
        return self._answers[key]


class ProductAudit:
    """Runs of real roles: masks, recovery, an owner that goes missing, a colluder's share known."""

    def __init__(self, case, monkeypatch):
        """Take a case; noise is noted where the parties add it.

        The model is a function of what was published: it is not fitted.
        """
        monkeypatch.setattr(CuratorRole, "model", lambda role: None)
        self.case, self.study = case, case.study
        self._noise = {}

        def noting(plan, *, name, values, noise, masks):
            self._noise[plan.step, name] = noise.copy()
            return word_chunks(plan, name=name, values=values, noise=noise, masks=masks)

        monkeypatch.setattr(recovery, "word_chunks", noting)
        monkeypatch.setattr(words, "word_chunks", noting)

    def run(self, *, first):
        study, tables = self.study, [self.case.tables(first=each) for each in (True, False)]
        missing = {study.parties[-1]: 1} if study.may_miss else None
        done = run_study(
            study, run_of, tables[0 if first else 1], identities_of(tables[0]),
            source=OsRandomSource(), drop=missing,
        )  # fmt: skip
        run = Run()
        for number, (step, result) in enumerate(zip(done.steps, done.results, strict=True)):
            self._add(run, number, step, read_cells(result, step.cells), tables, first=first)
        return run

    def _add(self, run, number, step, published, tables, *, first):
        answers = [
            sum(step.request.answer(RowsInMemory(table[name])) for name in step.parties)
            for table in tables
        ]
        colluders = self.study.parties[1 : 1 + self.study.colluders]
        honest = [name for name in step.parties if name not in colluders]
        makers = honest_shares(self.study)
        assert len(honest) >= makers, "fewer honest shares than the noise is made for"
        known = [name for name in step.parties if name not in honest[:makers]]
        shares = sum(self._noise[number, name] for name in known)
        noise = published - answers[0 if first else 1] - shares
        run.squares += float((noise.astype(float) ** 2).sum() / step.law.variance())
        run.cells += step.cells
        moved = answers[0] - answers[1]
        run.add(step, noise if first else noise - moved, moved)


@dataclass
class Found:
    """The largest values over many runs, beside the claim."""

    study: object
    first: list = field(default_factory=list)
    second: list = field(default_factory=list)

    @property
    def runs(self):
        return self.first + self.second

    @property
    def largest_ratio(self):
        return max(abs(run.ratio) for run in self.runs)

    def largest_divergence(self, order):
        return max(run.divergences[order] for run in self.runs)

    @property
    def noise(self):
        """The mean square of the honest noise, in variances of its law; about 1."""
        return sum(run.squares for run in self.runs) / sum(run.cells for run in self.runs)

    @property
    def noise_error(self):
        """A standard deviation of `noise`: no law here has a kurtosis above 6 + 1 / variance."""
        return math.sqrt(8 / sum(run.cells for run in self.runs))

    @property
    def keeps_the_claim(self):
        """Whether every run does: no ratio and no divergence is above what the study promises."""
        if self.study.delta:
            rho = float(self.study.promise.budget)
            return all(self.largest_divergence(order) <= order * rho for order in ORDERS)
        largest = max(self.largest_ratio, self.largest_divergence(math.inf))
        return largest <= float(self.study.epsilon) + 1e-9

    @property
    def has_the_noise(self):
        """Whether the honest shares have the variance of their laws, by six deviations."""
        return abs(self.noise - 1) < 6 * self.noise_error


def audited(audit, *, runs=None, seconds=math.inf):
    """Run on both inputs in turn, for so many runs on each or so many seconds."""
    found, until = Found(audit.study), time.monotonic() + seconds
    while len(found.first) != runs and time.monotonic() < until:
        found.first.append(audit.run(first=True))
        found.second.append(audit.run(first=False))
    return found


PURE = {"epsilon": Fraction(2), "colluders": 1}
WITH_DELTA = {"epsilon": Fraction(3), "delta": Fraction(1, 10_000), "colluders": 1}
MIXED, BITS, WIDE = (3, 2, 3, 4, 2), (2,) * 6, (5, 4, 3, 7, 2, 6)
CASES = (
    Case(name="rows, t = 1", sizes=MIXED, changed=tuple(range(5)), terms=PURE),
    Case(name="rows, t = 1, up to five steps", sizes=WIDE, changed=tuple(range(6)), terms=PURE),
    Case(name="rows, t = 1, d = 1", sizes=BITS, changed=(0, 2, 4), parties=4,
         terms=PURE | {"may_miss": 1}),
    Case(name="people of 3 rows, t = 1", sizes=BITS, changed=tuple(range(6)),
         terms=PURE | {"rows_per_person": 3}),
    Case(name="rows, t = 1, delta", sizes=MIXED, changed=tuple(range(5)), terms=WITH_DELTA),
    Case(name="rows, t = 1, d = 1, delta", sizes=BITS, changed=(0, 2, 4), parties=4,
         terms=WITH_DELTA | {"may_miss": 1}),
    Case(name="people of 2 rows at 2 owners, t = 1, delta", sizes=MIXED, changed=tuple(range(5)),
         terms=WITH_DELTA | {"rows_per_person": 2, "owners_per_person": 2}),
    Case(name="rows, t = 1, totals in bins", sizes=MIXED, changed=(0, 1, 2), binned=(3,),
         terms=PURE),
    Case(name="people of 2 rows, t = 1, d = 1, totals, delta", sizes=BITS, changed=(0, 2),
         binned=(4, 5), parties=4, terms=WITH_DELTA | {"may_miss": 1, "rows_per_person": 2}),
)  # fmt: skip


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=float, default=60, help="for each case")
    seconds = options.parse_args().seconds
    sys.stdout.write("| case | runs | largest seen | claim | noise |\n|---|---|---|---|---|\n")
    for case in CASES:
        found = audited(ScriptAudit(case), seconds=seconds)
        if found.study.delta:
            rho = float(found.study.promise.budget)
            seen = ", ".join(f"{found.largest_divergence(order):.3f}" for order in ORDERS)
            claim = ", ".join(f"{order * rho:.3f}" for order in ORDERS)
        else:
            seen = f"{found.largest_ratio:.4f}, {found.largest_divergence(math.inf):.4f}"
            claim = f"{float(found.study.epsilon):.4f}"
        sys.stdout.write(
            f"| {case.name} | {len(found.runs):,} | {seen} | {claim} | {found.noise:.3f} |\n"
        )


if __name__ == "__main__":
    main()
