"""Studies whose promise is to a person: sensitivities, noise, costs and the statement."""

from fractions import Fraction

import numpy as np
import pytest

from common.crypto.identities.identity import Identity
from common.crypto.sums.plan import Aggregation
from common.errors import InputError
from common.methods.registry import method_of, methods, run_of
from common.privacy.randomness import OsRandomSource
from common.schema import Schema
from common.schema.codes import Codes
from common.study.accounting import account, statement_of
from common.study.analyses import Analysis
from common.study.document import Study
from common.study.members import Member
from parley.simulation.in_process import run_study

SCHEMA = Schema.from_toml(
    "".join(
        f'[[attribute]]\nname = "{name}"\nkind = "ordinal"\nvalues = [0, 1, 2]\n' for name in "abcd"
    )
)
IDENTITIES = {name: Identity.generate(OsRandomSource()) for name in ("north", "east", "south")}


def study(**changes):
    given = {
        "name": "visits", "schema": SCHEMA, "epsilon": Fraction(1), "method": "floor",
        "aggregation": Aggregation.MASKED, "rows_per_person": 3,
        "members": tuple(
            Member(name=name, rows=300, identity=identity.public)
            for name, identity in IDENTITIES.items()
        ),
    } | changes  # fmt: skip
    if given["method"] == "answers":
        given["analyses"] = (Analysis("relation", ("a", "b")),)
    return Study(**given)


SUMS = [name for name, method in methods().items() if method.only_sums]


def finished(own):
    rng = np.random.default_rng(1)
    tables = {
        name: Codes.from_columns([rng.integers(0, 3, 300) for _ in range(4)], (3, 3, 3, 3))
        for name in IDENTITIES
    }
    return run_study(own, run_of, tables, IDENTITIES, source=OsRandomSource())


@pytest.mark.parametrize("method", SUMS)
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**6)])
@pytest.mark.parametrize("owners", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_every_step_is_calibrated_to_all_rows_of_a_person(method, delta, owners):
    own = study(method=method, delta=delta, owners_per_person=owners)
    factor = 3 * owners
    run = finished(own)
    assert run.steps
    total = Fraction(0)
    for step in run.steps:
        (moved,) = set(step.sensitivities.values())
        assert moved.l1 % factor == 0
        assert moved.l2_squared % factor**2 == 0
        assert moved.l2_squared >= factor * moved.l1  # a row moves a count by 1 or more, or not
        assert step.costs["north"] == step.law.cost(moved)
        assert step.costs["north"] > step.law.cost(
            type(moved)(moved.l1 / factor, moved.l2_squared / factor**2)
        )
        total += step.costs["north"]
    assert total <= own.promise.budget
    assert total > Fraction(99, 100) * own.promise.budget
    charged = sum(charge.epsilon + charge.rho for charge in run.charges["north"])
    assert charged == total


def test_the_noise_of_a_person_is_that_of_a_row_at_a_part_of_the_budget():
    people, rows = run_of(study()).step(), run_of(study(rows_per_person=0)).step()
    assert people.law.scale == 3 * rows.law.scale
    assert people.costs == rows.costs
    single = run_of(study(rows_per_person=1)).step()
    assert (single.law, single.sensitivity) == (rows.law, rows.sensitivity)


@pytest.mark.parametrize("method", sorted({*methods()} - {*SUMS, "distdiffgen"}))
def test_methods_that_choose_are_refused_by_name(method):
    with pytest.raises(InputError, match=f"rows_per_person: {method} also chooses"):
        run_of(study(method=method))
    run_of(study(method=method, rows_per_person=1))


def test_people_are_in_the_digest_and_in_the_file():
    own = study(owners_per_person=2)
    assert Study.from_toml(own.to_toml()) == own
    assert len({each.digest for each in (own, study(), study(rows_per_person=0))}) == 3


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"rows_per_person": -1}, "rows_per_person: -1"),
        ({"rows_per_person": 301}, "rows_per_person: 301"),
        ({"owners_per_person": 4}, "owners_per_person: 1 to 3"),
        ({"rows_per_person": 0, "owners_per_person": 2}, "say rows_per_person"),
        ({"profile": "paper"}, "rows_per_person: the paper's noise"),
    ],
)
def test_what_cannot_be_is_refused(changes, told):
    with pytest.raises(InputError, match=told):
        study(**changes)


def test_the_statement_is_about_people():
    own = study(owners_per_person=2)
    steps = finished(own).steps
    statement = statement_of(own, method_of(own), account(own, steps), source_private=True)
    words = statement.as_dict()
    assert words["unit_of_privacy"] == (
        "one person, with up to 3 rows of each of 2 parties' tables"
    )
    assert "all rows of one person" in words["neighbours"]
    assert words["epsilon_delivered"] == 1.0
    assert "under several identifiers" in words["not_promised"][0]
