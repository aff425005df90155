"""A study in one copy of its script against the roles of a deployment, and its noise."""

from fractions import Fraction

import numpy as np
import pytest

from benchmarks.subn_methods import OneCopy
from common.crypto.identities.identity import Identity
from common.crypto.sums.plan import Aggregation, Noise
from common.methods.registry import run_of
from common.privacy.randomness import SeededRandomSource
from common.schema import Schema
from common.schema.attribute import Attribute, Listed
from common.schema.codes import Codes
from common.study.document import Study
from common.study.members import Member
from common.study.requests import encode_cells
from parley.simulation.in_process import run_study

NAMES = ("north", "east", "south")
WIDTH = 6
IDENTITIES = {name: Identity.generate(SeededRandomSource(name)) for name in NAMES}
NO_NOISE = Fraction(10**7)


def tables(rows=400):
    rng = np.random.default_rng(5)
    found = {}
    for name in NAMES:
        first = rng.integers(0, 2, rows)
        flips = (0.1, 0.2, 0.3, 0.4, 0.45)
        columns = [first, *(first ^ (rng.random(rows) < flip) for flip in flips)]
        found[name] = Codes.from_columns(columns, [2] * WIDTH)
    return found


def study(method, profile, epsilon, **more):
    values = Listed(("0", "1"))
    return Study(
        name="one copy",
        schema=Schema(tuple(Attribute(f"c{i}", "categorical", values) for i in range(WIDTH))),
        members=tuple(
            Member(name=name, rows=own.rows, identity=IDENTITIES[name].public)
            for name, own in tables().items()
        ),
        epsilon=epsilon,
        method=method,
        profile=profile,
        noise=Noise.ONE_SHARE if profile == "paper" else Noise.DISTRIBUTED,
        aggregation=Aggregation.CLEAR,
        **more,
    )


@pytest.mark.parametrize(
    ("method", "profile", "more"),
    [
        ("dp-subn", "paper", {"settings": (("degree", 1), ("frontier_degree", 2))}),
        ("dp-subn", "sound", {"settings": (("degree", 1),), "cohorts": 2}),
        ("dp-ccbn", "paper", {}),
    ],
)
def test_without_noise_it_publishes_what_the_roles_publish(method, profile, more):
    """The parties' choices are random, so those of the roles are taken over."""
    own = tables()
    agreed = study(method, profile, NO_NOISE, **more)
    roles = run_study(agreed, run_of, own, IDENTITIES, source=SeededRandomSource("roles"))

    class Repeated(OneCopy):
        def choose(self, step, run):
            return roles.results[len(self.steps)]

    copy = Repeated(agreed, own, SeededRandomSource("copy"))
    copy.model()
    assert [step.name for step in copy.steps] == [step.name for step in roles.steps]
    assert [
        result if isinstance(result, bytes) else encode_cells(result) for result in copy.results
    ] == list(roles.results)


@pytest.mark.parametrize(("profile", "copies"), [("paper", 1), ("sound", Fraction(3, 2))])
def test_sums_carry_the_noise_of_the_study(profile, copies):
    """The variance of the first sum: neither 0.7 nor 1.3 times the scale would pass."""
    own = tables()
    agreed = study("dp-ccbn", profile, Fraction(1))
    exact, loud = [], []
    for seed in range(60):
        copy = OneCopy(agreed, own, SeededRandomSource(f"{seed}"))
        copy.model()
        step = copy.steps[0]
        exact.append(step.request.answer(copy.rows(*step.parties)))
        loud.append(copy.results[0])
    noise = np.array(loud) - np.array(exact)
    assert agreed.noise_shares(3) == copies
    expected = step.law.variance(copies)
    assert 0.8 < noise.var() / expected < 1.25
