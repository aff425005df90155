"""The compared methods, run on tables of several owners without cryptography.

A method's plan is run once, by itself: the owners' exact answers are added up, and noise of the
same law as the protocol's is added to the sum. That is what the roles do with aggregation "clear",
without a copy of the plan and of the counting in every role, so that hundreds of runs are
affordable. It is NOT PRIVATE, and the noise is numpy's. `through_roles` runs the real thing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from math import exp

import numpy as np
from numpy.typing import NDArray

from benchmarks.privbayes import fit
from benchmarks.subn_data import Setting
from common.bayes.privbayes.decisions import Encoding
from common.crypto.identities.identity import Identity
from common.crypto.sums.plan import Aggregation, Noise
from common.crypto.sums.replacement import Marginal
from common.methods.registry import run_of
from common.privacy.noise_law import NoiseLaw
from common.privacy.randomness import RandomSource, SeededRandomSource
from common.schema.codes import Codes, concatenate
from common.study.document import Member, Study
from common.study.prior import Prior
from common.study.requests import TableRequest
from common.study.steps import ChoiceStep, Model, ReplaceStep, Step, SumStep
from parley.simulation.in_process import RowsInMemory, run_study

Counts = NDArray[np.int64]


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


PURE = Fraction(0)
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
}
LABELS = (*METHODS, CENTRAL)
VARIANTS: Mapping[str, Method] = {
    **METHODS,
    EXPECTING: Method("subn+", in_bits=False, settings=(("dependence", "expected"),)),
}


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
    study = replace(study_of(setting, tables, epsilon, VARIANTS[label]), delta=delta)
    return run_plan(study, tables, source).sample(rows, source)


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
        identities = {name: _nobody(name) for name in tables}
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
def _nobody(name: str) -> Identity:
    """Keys that nobody uses: a study cannot be written without."""
    return Identity.generate(SeededRandomSource(name))


def through_roles(
    setting: Setting, tables: Mapping[str, Codes], epsilon: Fraction, label: str, seed: str
) -> Codes:
    """The same, by the roles of a deployment, with aggregation in the clear."""
    source = SeededRandomSource(seed)
    identities = {name: Identity.generate(source) for name in tables}
    study = study_of(setting, tables, epsilon, METHODS[label], identities=identities)
    run = run_study(study, run_of, tables, identities, source=source)
    return run.model.sample(study.rows, source)


def run_plan(
    study: Study, tables: Mapping[str, Codes], source: RandomSource, prior: Prior | None = None
) -> Model:
    """Run the script of a study once, on exact sums and noise of the same law."""
    plan = run_of(study, prior)
    owners = _Owners(study, tables, np.random.default_rng(list(source.random_bytes(16))), source)
    while (step := plan.step()) is not None:
        plan.advance(owners.result(step))
    return plan.model()


@dataclass
class _Owners:
    """All parties together: what a step brings."""

    study: Study
    tables: Mapping[str, Codes]
    noise: np.random.Generator
    source: RandomSource
    shares: dict[Marginal, Counts] = field(default_factory=dict)

    def result(self, step: Step) -> Counts | bytes:
        """The published result of a step."""
        match step:
            case ChoiceStep():
                return step.choice.run(RowsInMemory(self.tables[step.party]), self.source)
            case SumStep():
                return self._exact(step) + self._noise(
                    step.request.cells, step.law, len(step.parties)
                )
            case ReplaceStep():
                return self._replace(step)

    def _exact(self, step: SumStep) -> Counts:
        rows = [self.tables[name] for name in step.parties]
        if isinstance(step.request, TableRequest):  # counts add up: count all rows at once
            rows = [concatenate(rows)]
        answers = [step.request.answer(RowsInMemory(table)) for table in rows]
        return np.asarray(np.sum(answers, axis=0), dtype=np.int64)

    def _noise(self, cells: int, law: NoiseLaw, parties: int) -> Counts:
        """The sum of K shares of which K - t make the whole noise; or one whole."""
        shares = 1.0
        if self.study.noise is Noise.DISTRIBUTED:
            shares = parties / (parties - min(self.study.colluders, parties - 1))
        if law.norm == 2:
            mean = law.variance() * shares / 2
            return self.noise.poisson(mean, cells) - self.noise.poisson(mean, cells)
        stop = 1 - exp(-1 / float(law.scale))
        draw: Callable[[], Counts] = lambda: self.noise.negative_binomial(shares, stop, cells)  # noqa: E731
        return draw() - draw()

    def _replace(self, step: ReplaceStep) -> Counts:
        """One party's counts and fresh share come in, the older share goes out."""
        exact = step.counts(RowsInMemory(self.tables[step.release.party]))
        parts = []
        for marginal in step.group.marginals:
            fresh = self._noise(exact[marginal].size, step.release.law, 1)
            parts.append(exact[marginal].ravel() + fresh - self.shares.get(marginal, 0))
            self.shares[marginal] = fresh
        return np.concatenate(parts)
