"""`dependence = "expected"`: a study that knows of dependence spends nothing on finding out."""

from fractions import Fraction

import pytest

from common.errors import InputError
from common.methods.registry import run_of
from common.methods.subn_plus.facts import EXPECTED, UNKNOWN, decisions, ordered_values
from common.privacy.randomness import SeededRandomSource
from common.schema import Schema
from common.schema.codes import concatenate
from parley.simulation.in_process import RowsInMemory
from tests.harness.run_script import random_tables, study_of

TABLES = random_tables((16, 12, 9, 16), (15_000, 15_000))


def study(dependence, delta=Fraction(0)):
    return study_of(TABLES, method="subn+", settings=(("dependence", dependence),), delta=delta)


def steps_of(given):
    """The steps with noise, on columns that depend on nothing, and what they cost a party."""
    run, rows, names, spent = run_of(given), concatenate(list(TABLES.values())), [], Fraction(0)
    while (step := run.step()) is not None:
        exact = step.request.answer(RowsInMemory(rows))
        run.advance(exact + step.law.draw(len(exact), SeededRandomSource(step.name)))
        names.append(step.name)
        spent += step.costs["p0"]
    return names, spent


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**9)])
def test_a_study_that_expects_dependence_does_not_look_for_it(delta):
    looking, cost = steps_of(study(UNKNOWN, delta))
    assert "look" in looking
    assert "correlations" not in looking
    assert cost <= study(UNKNOWN, delta).promise.budget
    asking, cost = steps_of(study(EXPECTED, delta))
    assert asking[:2] == ["margins", "correlations"]
    assert "look" not in asking
    budget = study(EXPECTED, delta).promise.budget
    assert budget * Fraction(99, 100) < cost <= budget


def test_the_setting_is_shown_and_signed():
    (shown,) = decisions(study(EXPECTED))
    assert "no sum" in shown.value
    assert study(EXPECTED).digest != study(UNKNOWN).digest


@pytest.mark.parametrize("settings", [(("dependence", "maybe"),), (("look", "no"),)])
def test_other_settings_are_refused(settings):
    with pytest.raises(InputError, match=r"subn\+\.(dependence|look)"):
        run_of(study_of(TABLES, method="subn+", settings=settings))


def test_special_codes_and_unordered_values_are_in_no_order():
    schema = Schema.from_toml(
        '[[attribute]]\nname = "a"\nkind = "integer"\nmin = 0\nmax = 9\nbins = 5\nmissing = true\n'
        '[[attribute]]\nname = "b"\nkind = "categorical"\nvalues = ["x", "y"]\n'
    )
    assert [ordered_values(own) for own in schema.attributes] == [5, 0]
