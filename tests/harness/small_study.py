"""A small study and a small plan that uses every kind of step."""

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pytest

from common.crypto.identities.identity import Identity
from common.crypto.paillier.keys import generate_key_pair
from common.crypto.sums.plan import Aggregation, Noise
from common.crypto.sums.replacement import Coverages, Statistics
from common.errors import RemoteProtocolError
from common.exchanges.choice import choice_step
from common.exchanges.replacement import replacement_step
from common.exchanges.sums import sum_step
from common.privacy.noise_law import DiscreteLaplace
from common.privacy.randomness import OsRandomSource, SeededRandomSource
from common.privacy.sensitivity import Sensitivity
from common.schema import Schema
from common.schema.codes import Codes
from common.study.document import Study
from common.study.members import Member
from common.study.requests import TableRequest

SCHEMA = Schema.from_toml(
    """
attribute = [
  { name = "a", kind = "boolean" },
  { name = "b", kind = "categorical", values = ["x", "y", "z"] },
]
"""
)
SIZES = (2, 3)


@dataclass(frozen=True)
class LargestOfB:
    """A stand-in for a mechanism: publishes a fixed word, so that tests know it."""

    def run(self, data, source):
        return b"chosen"

    canonical = b"a fixed word"

    def without_rows(self, source):
        return b"chosen"

    def check(self, payload):
        if payload != b"chosen":
            raise RemoteProtocolError("not a choice")

    def links(self, payload):
        return ()


@dataclass
class EveryKindOfStep:
    """Tables of all parties, one party's choice, then noise replacement party by party."""

    study: Study
    results: list = field(default_factory=list)
    coverages: Coverages = field(default_factory=Coverages)
    statistics: Statistics = field(default_factory=Statistics)
    totals: list = field(default_factory=list)
    steps: list = field(default_factory=list)

    def __post_init__(self):
        self.names = self.study.parties
        self.rows = self.study.rows_of
        self.turn = 0
        self.current = None

    def step(self):
        if not self.results:
            return sum_step(
                name="tables",
                phase="counting",
                parties=self.names,
                request=TableRequest(((0,), (0, 1)), SIZES),
                sensitivity=Sensitivity.moving(4),
                law=DiscreteLaplace(Fraction(8, self.study.epsilon)),  # half of the budget
            )
        if len(self.results) == 1:
            return choice_step(
                name="choice",
                phase="choosing",
                party=self.names[-1],
                choice=LargestOfB(),
                epsilon=Fraction(1, 8),
                mechanism="a fixed word",
            )
        if self.turn == len(self.names):
            return None
        if self.current is None:
            marginals = {(1,): 3} if self.turn == 0 else {(1,): 3, (0,): 2}
            party = self.names[self.turn]
            self.current = self.coverages.open_turn(
                party=party,
                rows=self.rows[party],
                marginals=marginals,
                law=DiscreteLaplace(Fraction(16)),
            )
        group = self.current.groups[len(self.totals)]
        return replacement_step(
            name=f"turn {self.turn} group {len(self.totals)}",
            phase="replacing",
            turn=self.current,
            group=group,
            request=TableRequest(tuple(group.marginals), SIZES),
            turns=self.names[: self.turn + 1],
        )

    def step_without(self, missing):
        return self.step()

    def leave_out(self, missing):
        assert not missing

    def advance(self, result):
        step = self.step()
        if len(self.results) == 1 and result != b"chosen":
            raise RemoteProtocolError("not a choice")
        self.steps.append(step)
        self.results.append(result)
        if len(self.results) <= 2:
            return
        self.totals.append(result)
        if len(self.totals) == len(self.current.groups):
            self.statistics.apply(self.current, self.totals)
            self.coverages, self.current, self.totals = self.current.coverages, None, []
            self.turn += 1

    def model(self):
        return self


@dataclass
class Sums:
    """Three sums of all parties that are left."""

    study: Study
    results: list = field(default_factory=list)
    steps: list = field(default_factory=list)
    missing: frozenset = frozenset()
    number: int = 3

    def step(self):
        return self.step_without(())

    def step_without(self, missing):
        if len(self.results) == self.number:
            return None
        names = [name for name in self.study.parties if name not in self.missing.union(missing)]
        return sum_step(
            name=f"tables {len(self.results)}",
            phase="counting",
            parties=tuple(names),
            request=TableRequest(((0,), (0, 1)), SIZES),
            sensitivity=Sensitivity.moving(4),
            law=self.study.promise.law(
                self.study.promise.budget / self.number, Sensitivity.moving(4)
            ),
        )

    def leave_out(self, missing):
        self.missing = self.missing.union(missing)

    def advance(self, result):
        self.steps.append(self.step())
        self.results.append(result)

    def model(self):
        return self


def make_study(identities, rows, **changes):
    fields = {
        "name": "test",
        "schema": SCHEMA,
        "members": tuple(
            Member(name=name, rows=rows[name], identity=identity.public)
            for name, identity in identities.items()
        ),
        "epsilon": Fraction(2),
        "aggregation": Aggregation.MASKED,
        **changes,
    }
    return Study(**fields)


@pytest.fixture(scope="session")
def identities():
    source = SeededRandomSource("identities")
    return {name: Identity.generate(source) for name in ("north", "east", "south")}


@pytest.fixture(scope="session")
def tables(identities):
    rng = np.random.default_rng(7)
    return {
        name: Codes.from_columns([rng.integers(0, s, 40 + 10 * i) for s in SIZES], SIZES)
        for i, name in enumerate(identities)
    }


@pytest.fixture(scope="session")
def rows(tables):
    return {name: table.rows for name, table in tables.items()}


@pytest.fixture(scope="session")
def paillier_key():
    return generate_key_pair(2048, OsRandomSource())


@pytest.fixture
def masked_study(identities, rows):
    return make_study(identities, rows, noise=Noise.DISTRIBUTED)


@pytest.fixture
def one_share_study(identities, rows):
    return make_study(
        identities, rows, aggregation=Aggregation.PAILLIER, noise=Noise.ONE_SHARE, profile="paper"
    )
