"""The steps of a study and their costs, without rows."""

from fractions import Fraction

import pytest

from common.errors import InputError
from common.methods.registry import run_of
from common.study import dry_run
from common.study.dry_run import costs_without_rows, steps_without_rows
from tests.harness.run_script import chain_tables, drive, study_of

TABLES = chain_tables(6, [300] * 3)


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
