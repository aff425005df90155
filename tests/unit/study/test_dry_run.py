"""The steps of a study and their costs, without rows."""

from fractions import Fraction

import pytest

from common.errors import InputError, LocalError
from common.methods.independent import ModelChoice
from common.methods.registry import run_of
from common.study import dry_run
from common.study.criteria import read_criteria
from common.study.dry_run import costs_without_rows, require_runnable, steps_without_rows
from tests.harness.run_script import chain_tables, drive, random_tables, study_of

TABLES = chain_tables(6, [300] * 3)
SMALL_TABLES = random_tables((2, 3, 2, 2), (40, 50, 60))


@pytest.mark.parametrize("profile", ["sound", "paper"])
def test_costs_are_those_of_a_run_on_rows(profile):
    study = study_of(TABLES, epsilon=Fraction(8), profile=profile)
    costs = costs_without_rows(study, run_of(study))
    driven = drive(run_of(study), study, TABLES)
    assert costs == {name: driven.spent(name) for name in TABLES}
    assert (max(costs.values()) > study.epsilon) == (profile == "paper")


def test_a_study_has_the_same_steps_every_time():
    study = study_of(TABLES, epsilon=Fraction(8))
    first, second = (list(steps_without_rows(study, run_of(study))) for _ in range(2))
    assert [step.canonical for step in first] == [step.canonical for step in second]


def test_more_integers_than_the_limit_are_refused(monkeypatch):
    monkeypatch.setattr(dry_run, "MOST_PLAN_CELLS", 10)
    study = study_of(TABLES, epsilon=Fraction(8))
    with pytest.raises(InputError, match="the integers that all its steps ask for"):
        list(steps_without_rows(study, run_of(study)))


SMALL = Fraction(1, 100)
# Its steps are within the range of the sampler, but for the last one, which measures a criterion.
TOO_NOISY = study_of(
    SMALL_TABLES, method="subn+", epsilon=SMALL, delta=Fraction(1, 10**9), rows_per_person=3,
    criteria=read_criteria([{"share": "a0 = 0", "within": "0.05"}]), criteria_epsilon=SMALL / 10,
)  # fmt: skip


def test_a_study_whose_noise_cannot_be_drawn_is_refused_by_name():
    run_of(TOO_NOISY)
    named = "epsilon: an answer needs noise of variance .* can be drawn. Choose a larger epsilon"
    with pytest.raises(InputError, match=named):
        require_runnable(TOO_NOISY, run_of(TOO_NOISY))


def test_models_of_other_parties_are_passed_over(monkeypatch):
    made = []
    without_rows = ModelChoice.without_rows

    def noted(choice, source):
        made.append(choice.rows)
        return without_rows(choice, source)

    monkeypatch.setattr(ModelChoice, "without_rows", noted)
    study = study_of(SMALL_TABLES, method="independent")
    steps = list(steps_without_rows(study, run_of(study), party="p1"))
    assert [step.parties for step in steps] == [("p0",), ("p1",), ("p2",)]
    assert made == [study.rows_of["p1"]]


def test_a_method_says_before_its_steps_are_made_that_there_are_too_many_tables(monkeypatch):
    monkeypatch.setattr(dry_run, "MOST_PLAN_TABLES", 3)
    study = study_of(SMALL_TABLES, method="dp-ccbn", epsilon=Fraction(100))
    named = "the tables that all its steps ask for: at most 3, not"
    with pytest.raises(InputError, match=named):
        next(steps_without_rows(study, run_of(study)))
    floor = study_of(SMALL_TABLES, method="floor")
    with pytest.raises(InputError, match=named):
        require_runnable(floor, run_of(floor))


def test_a_step_that_shapes_later_ones_is_not_passed_over():
    with pytest.raises(LocalError, match="later steps depend on the outcome"):
        run_of(study_of(SMALL_TABLES, method="subn+")).pass_over()
