"""A rehearsal shows every step, needs no data, and costs what the study will cost."""

import dataclasses
from fractions import Fraction

import pytest

from common.crypto.sums.plan import Aggregation
from common.errors import InputError, LocalError, PolicyError
from common.methods.independent import ModelChoice
from common.methods.registry import run_of
from common.privacy.randomness import SeededRandomSource
from common.study.criteria import read_criteria
from parley.simulation.in_process import run_study
from party.owner.dry_run import dry_run, require_runnable
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


SMALL = Fraction(1, 100)
# Its steps are within the range of the sampler, but for the last one, which measures a criterion.
TOO_NOISY = study_of(
    TABLES, method="subn+", epsilon=SMALL, delta=Fraction(1, 10**9), rows_per_person=3,
    criteria=read_criteria([{"share": "a0 = 0", "within": "0.05"}]), criteria_epsilon=SMALL / 10,
)  # fmt: skip


def test_a_study_whose_noise_cannot_be_drawn_is_refused_by_name():
    run_of(TOO_NOISY)
    named = "epsilon: an answer needs noise of variance .* can be drawn. Choose a larger epsilon"
    with pytest.raises(PolicyError, match=f"study 'test' cannot be carried out: {named}"):
        dry_run(TOO_NOISY, "p0", begin=run_of)
    with pytest.raises(InputError, match=named):
        require_runnable(TOO_NOISY, begin=run_of)


@pytest.mark.parametrize("error", [LocalError("no law"), ZeroDivisionError("by zero")])
def test_a_script_that_fails_is_no_study_to_try_again(error):
    def begin(study):
        raise error

    with pytest.raises(PolicyError, match=f"cannot be carried out: {error}"):
        dry_run(study_of(TABLES), "p0", begin=begin)


def test_models_of_other_parties_are_passed_over(monkeypatch):
    made = []
    without_rows = ModelChoice.without_rows

    def noted(choice, source):
        made.append(choice.rows)
        return without_rows(choice, source)

    monkeypatch.setattr(ModelChoice, "without_rows", noted)
    study = study_of(TABLES, method="independent")
    steps = dry_run(study, "p1", begin=run_of)
    assert [step.choices for step in steps] == [0, 1, 0]
    assert made == [study.rows_of["p1"]]


def test_a_method_says_before_its_steps_are_made_that_there_are_too_many_tables(monkeypatch):
    monkeypatch.setattr("party.owner.dry_run.MOST_PLAN_TABLES", 3)
    study = study_of(TABLES, method="dp-ccbn", epsilon=Fraction(100))
    named = "the tables that all its steps ask for: at most 3, not"
    with pytest.raises(PolicyError, match=named):
        dry_run(study, "p0", begin=lambda study: pytest.fail("its steps were made"))
    with pytest.raises(PolicyError, match=named):
        dry_run(study_of(TABLES, method="floor"), "p0", begin=run_of)
