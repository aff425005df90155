"""What a new study says of its estimates, from public facts alone."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.methods.dp_subn.decisions import Plan
from common.methods.dp_subn.forecast import forecast, tables_part
from common.methods.registry import cautions_of, run_of, with_forecast
from common.study.accounting import account
from common.study.document import Study
from tests.harness.run_script import chain_tables, drive, random_tables, study_of, with_settings

MIXED = (2, 3, 4, 2, 5)


def study(sizes=MIXED, rows=(3000, 3000), seed=1, **terms):
    return study_of(random_tables(sizes, list(rows), seed=seed), **terms)


@pytest.mark.parametrize(
    ("sizes", "epsilon", "part"),
    [
        ((2,) * 8, "8", "1/4"),
        ((2,) * 8, "1/2", "1/2"),
        ((2,) * 8, "1/5", "7/10"),
        ((16,) * 8, "8", "7/10"),
        ((16,) * 8, "1", "9/10"),
    ],
)
def test_the_tables_get_more_the_fewer_attributes_they_hold(sizes, epsilon, part):
    assert tables_part(study(sizes, epsilon=Fraction(epsilon))) == Fraction(part)


def test_no_row_has_a_say():
    for method in ("dp-subn", "dp-ccbn"):
        one, other = (with_forecast(study(seed=seed, method=method)) for seed in (1, 2))
        assert one.settings == other.settings
        assert one.canonical == other.canonical


@given(
    st.fractions("1/50", 20, max_denominator=997),
    st.sampled_from([MIXED, (2,) * 6, (9, 9, 9)]),
    st.sampled_from(["own", "binary"]),
)
@settings(max_examples=30, deadline=None)
def test_the_phases_cost_the_budget_exactly(epsilon, sizes, encoding):
    new = with_forecast(study(sizes, epsilon=epsilon, encoding=encoding))
    assert sum(Plan.of(new).epsilons) == epsilon


@pytest.mark.parametrize("sizes", [MIXED, (2,) * 6, (9, 9, 9, 9)])
@pytest.mark.parametrize("epsilon", ["1/50", "1/3", "8"])
def test_owners_pay_the_printed_epsilon_to_the_last_fraction(sizes, epsilon):
    tables = random_tables(sizes, [900, 800, 700])
    new = with_forecast(study_of(tables, epsilon=Fraction(epsilon)))
    driven = drive(run_of(new), new, tables)
    accountant = account(new, driven.steps)
    choosers = {step.exchange.chooser for step in driven.steps if step.choices}
    for name in tables:
        kept = 0 if name in choosers or not choosers else Plan.of(new).epsilons[1]
        assert accountant.spent(name) == new.epsilon - kept


@pytest.mark.parametrize("method", ["dp-subn", "dp-ccbn"])
def test_the_paper_has_no_forecast_and_other_settings_stay(method):
    paper = study(method=method, profile="paper")
    assert with_forecast(paper) == paper
    chosen = with_settings(study(method=method), consistency="off", budget=_split(method))
    assert {"consistency": "off", "budget": _split(method)}.items() <= dict(
        with_forecast(chosen).settings
    ).items()


def _split(method):
    return "1:2:3:4" if method == "dp-subn" else "2:3"


def test_the_forecast_is_part_of_the_file():
    new = with_forecast(study())
    assert dict(new.settings)["consistency"] == dict(new.settings)["reuse"] == "on"
    again = Study.from_toml(new.to_toml())
    assert again.settings == new.settings
    assert again.digest == new.digest != study().digest


def test_bits_that_hold_no_pair_of_columns_are_forecast_to_be_noise():
    tables = random_tables((16, 16, 16), [2000, 2000])
    new = with_forecast(study_of(tables, epsilon=Fraction(1), encoding="binary"))
    assert dict(new.settings)["degree"] == 0
    assert "forecast to be noise" in cautions_of(new)[0]
    driven = drive(run_of(new), new, tables)
    floor = study_of(tables, epsilon=Fraction(1), encoding="binary", method="floor")
    alone = drive(run_of(floor), floor, tables)
    assert [step.canonical for step in driven.steps] == [step.canonical for step in alone.steps]
    assert driven.model.as_json() == alone.model.as_json()
    for two in ((2,) * 6, (2, 2, 2, 2)):
        assert "degree" not in forecast(study(two, epsilon=Fraction(8), encoding="binary"))


@pytest.mark.parametrize("method", ["dp-subn", "dp-ccbn"])
def test_where_no_table_is_useful_the_columns_are_the_floors_and_the_study_says_so(method):
    tables = random_tables((30, 30, 30), [60, 60])
    new = with_forecast(study_of(tables, epsilon=Fraction(1, 10), method=method))
    assert "forecast to be noise" in cautions_of(new)[0]
    floor = study_of(tables, epsilon=Fraction(1, 10), method="floor")
    models = [drive(run_of(each), each, tables).model.as_json() for each in (new, floor)]
    assert models[0] == models[1]
    assert cautions_of(replace(new, settings=())) == []


def test_with_the_forecast_a_chain_is_closer_than_without():
    tables = chain_tables(8, [3000, 3000])
    errors = []
    for each in (study_of(tables), with_forecast(study_of(tables))):
        error = 0.0
        for seed in range(5):
            model = drive(run_of(each), each, tables, seed=f"{seed}").model
            for pair, law in zip(model.network.pairs, model.conditionals, strict=True):
                if pair.parents:
                    error += abs(float(law[0].max()) - 0.9)
        errors.append(error)
    assert errors[1] < errors[0]
