"""The compared methods, run on tables of several owners without the protocol.

In a deployment the curator and every party run a copy of the script, and sums travel between them.
Here one copy is asked, and every step is answered with what the roles would publish: exact counts
of all rows together, under noise of the same law. So a study of ten owners costs what one costs.
`QuickCopy` draws that noise from numpy, so that hundreds of runs are affordable. It is NOT PRIVATE.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property

import numpy as np

from benchmarks.peers import MARGINAL_PEERS
from benchmarks.privbayes import fit
from benchmarks.subn_data import Setting
from common.bayes.form import Model
from common.bayes.privbayes.decisions import Encoding
from common.crypto.identities.identity import Identity
from common.crypto.sums.plan import Aggregation, Noise, SumPlan
from common.methods.prior import Prior
from common.methods.registry import methods, run_of, with_forecast
from common.privacy.randomness import RandomSource, SeededRandomSource
from common.schema import Schema
from common.schema.codes import Codes, concatenate
from common.study.document import Study
from common.study.members import Member
from common.study.requests import Counts
from common.study.steps import Step
from tests.harness.run_script import Driver


@dataclass(frozen=True)
class Method:
    """A row of the tables.

    Attributes:
        name: as the study calls it.
        profile: whose noise.
        settings: those of the study; the others are left to the method's forecast.
        in_bits: whether it works on bits where the setting says so; the others keep the domains.
        cohorts: in how many releases dp-subn updates its structure.
    """

    name: str
    profile: str = "sound"
    settings: tuple[tuple[str, str | int], ...] = ()
    in_bits: bool = True
    cohorts: int = 1


CENTRAL = "privbayes, central"
FLOOR = "floor"
METHODS: Mapping[str, Method] = {
    FLOOR: Method("floor", in_bits=False),
    "independent": Method("independent"),
    "dp-ccbn": Method("dp-ccbn", "paper"),
    "dp-subn paper": Method("dp-subn", "paper"),
    "dp-subn sound": Method("dp-subn"),
    "dp-subn sound, ten cohorts": Method("dp-subn", cohorts=10),
    "dp-subn sound, no look": Method("dp-subn", settings=(("views", "optimal"),)),
    "dp-subn sound, as measured": Method(
        "dp-subn",
        settings=(
            ("budget", "1:1:1:1"),
            ("consistency", "off"),
            ("reuse", "off"),
            ("views", "optimal"),
        ),
    ),
    "subn+": Method("subn+", in_bits=False),
    "subn+, dependence expected": Method(
        "subn+", settings=(("dependence", "expected"),), in_bits=False
    ),
}


def can_promise(label: str, delta: str) -> bool:
    """Return whether a method is run at this delta, written as in the table."""
    if label in MARGINAL_PEERS:
        return label.endswith("pure") == (delta == "0")
    if delta == "0" or label == CENTRAL:
        return delta == "0"
    method = METHODS[label]
    return methods()[method.name].only_sums and method.profile != "paper"


@cache
def identity_of(name: str) -> Identity:
    """Return keys for one run; a study cannot be written without."""
    return Identity.generate(SeededRandomSource(name))


def identities_of(tables: Mapping[str, Codes]) -> dict[str, Identity]:
    """Return the keys of the owners of some tables."""
    return {name: identity_of(name) for name in tables}


def agreed(
    schema: Schema, tables: Mapping[str, Codes], *, epsilon: Fraction, **terms: object
) -> Study:
    """Return the study that the owners of some tables would agree on; sums in the clear."""
    chosen: dict[str, object] = {"name": "benchmark", "aggregation": Aggregation.CLEAR, **terms}
    members = tuple(
        Member(name=name, rows=table.rows, identity=identity_of(name).public)
        for name, table in tables.items()
    )
    return Study(schema=schema, members=members, epsilon=epsilon, **chosen)  # type: ignore[arg-type]


def study_of(
    setting: Setting,
    tables: Mapping[str, Codes],
    epsilon: Fraction,
    method: Method,
    **terms: object,
) -> Study:
    """Return a new study of a table of the benchmarks by one of the methods."""
    study = agreed(
        setting.schema,
        tables,
        epsilon=epsilon,
        method=method.name,
        profile=method.profile,
        noise=Noise.ONE_SHARE if method.profile == "paper" else Noise.DISTRIBUTED,
        encoding=setting.encoding if method.in_bits else "own",
        settings=method.settings,
        cohorts=method.cohorts,
        **terms,
    )
    return with_forecast(study)


class OneCopy(Driver):
    """All owners of a study at once; `prior` is the release that the study names as its prior."""

    def __init__(
        self,
        study: Study,
        tables: Mapping[str, Codes],
        source: RandomSource,
        prior: Prior | None = None,
    ) -> None:
        super().__init__(study, tables, source)
        self._prior = prior

    def model(self) -> Model:
        """Run the study; return what it learns."""
        learnt: Model = self.run(run_of(self.study, self._prior)).model
        return learnt

    def noise(self, step: Step, plan: SumPlan) -> Counts:
        """Draw one share, or a distributed share of every party."""
        parties, cells = len(step.parties), step.cells
        if self.study.noise is Noise.ONE_SHARE:
            return step.noise_law.draw(cells, self.source)
        makers = max(1, parties - min(self.study.colluders, parties - 1))
        total = np.zeros(cells, np.int64)
        for _ in range(parties):
            total += step.noise_law.draw_share(cells, makers=makers, source=self.source)
        return total


class QuickCopy(OneCopy):
    """A study in one copy whose sums get their noise at once, from numpy: NOT PRIVATE."""

    @cached_property
    def _quick(self) -> np.random.Generator:
        return np.random.default_rng(list(self.source.random_bytes(16)))

    def noise(self, step: Step, plan: SumPlan) -> Counts:
        """Draw the sum of all shares: a Skellam or a difference of two negative binomial draws."""
        shares, law = float(self.study.noise_shares(len(step.parties))), step.noise_law
        if law.norm == 2:
            mean = law.variance() * shares / 2
            return self._quick.poisson(mean, step.cells) - self._quick.poisson(mean, step.cells)
        stop = 1 - math.exp(-1 / float(law.scale))
        plus = self._quick.negative_binomial(shares, stop, step.cells)
        return plus - self._quick.negative_binomial(shares, stop, step.cells)


def synthetic_rows(
    setting: Setting,
    tables: Mapping[str, Codes],
    label: str,
    *,
    epsilon: Fraction,
    delta: Fraction,
    seed: str,
) -> Codes:
    """Return as many synthetic rows as there are real ones."""
    source = SeededRandomSource(seed)
    rows = sum(table.rows for table in tables.values())
    if label == CENTRAL:
        dataset = setting.dataset
        if setting.encoding == "binary":
            dataset = replace(dataset, encoding=Encoding.BINARY)
        together = concatenate(list(tables.values()))
        return fit(dataset, together, epsilon, source).sample(rows, source)
    study = study_of(setting, tables, epsilon, METHODS[label], delta=delta)
    return QuickCopy(study, tables, source).model().sample(rows, source)
