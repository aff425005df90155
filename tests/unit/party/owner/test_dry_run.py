"""A rehearsal shows every step, needs no data, and costs what the study will cost."""

import dataclasses
from fractions import Fraction

import pytest

from common.crypto.sums.plan import Aggregation
from common.errors import LocalError, PolicyError
from common.methods.registry import run_of
from common.privacy.randomness import SeededRandomSource
from parley.simulation.in_process import run_study
from party.owner.dry_run import dry_run
from tests.harness.run_script import chain_tables, identities_of, random_tables, study_of

TABLES = random_tables((2, 3, 2, 2), (40, 50, 60))


@pytest.mark.parametrize("method", ["floor", "dp-subn", "dp-ccbn", "independent"])
@pytest.mark.parametrize("profile", ["sound", "paper"])
def test_the_rehearsed_cost_is_that_of_the_study(method, profile):
    study = study_of(TABLES, method=method, profile=profile, aggregation=Aggregation.CLEAR)
    run = run_study(study, run_of, TABLES, identities_of(TABLES), source=SeededRandomSource("run"))
    for party in TABLES:
        rehearsed = dry_run(study, party, begin=run_of)
        assert len(rehearsed) == len(run.steps)
        cost = sum((step.cost for step in rehearsed), Fraction(0))
        spent = sum((charge.epsilon for charge in run.charges[party]), Fraction(0))
        assert cost == spent if (method, profile) != ("dp-subn", "paper") else cost >= spent


@pytest.mark.parametrize("parties", [1, 2, 3, 6])
def test_what_a_rehearsal_shows_is_enough_where_the_cost_depends_on_what_is_found(parties):
    """The paper's replacement costs early parties again whenever a table comes back."""
    tables = chain_tables(4, [360 // parties] * parties)
    study = study_of(
        tables, profile="paper", epsilon=Fraction(4), aggregation=Aggregation.CLEAR, colluders=0
    )
    run = run_study(study, run_of, tables, identities_of(tables), source=SeededRandomSource("r"))
    for turn, party in enumerate(tables):
        cost = sum(step.cost for step in dry_run(study, party, begin=run_of))
        assert cost <= 4 + (parties - 1 - turn), "nothing is counted twice"
        assert cost >= sum(charge.epsilon for charge in run.charges[party])


def test_a_rehearsal_is_the_same_every_time():
    study = study_of(TABLES)
    assert dry_run(study, "p0", begin=run_of) == dry_run(study, "p0", begin=run_of)
    other = dataclasses.replace(study, epsilon=Fraction(1, 2))
    assert dry_run(other, "p0", begin=run_of) != dry_run(study, "p0", begin=run_of)


@pytest.mark.parametrize("error", [LocalError("no law"), ZeroDivisionError("by zero")])
def test_a_script_that_fails_is_no_study_to_try_again(error):
    def begin(study):
        raise error

    with pytest.raises(PolicyError, match=f"cannot be carried out: {error}"):
        dry_run(study_of(TABLES), "p0", begin=begin)
