"""What a new study says of its estimates, from public facts alone."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.marginals import count
from common.methods.dp_subn.decisions import SubnDecisions
from common.methods.dp_subn.forecast import forecast, look_part, saved, tables_part
from common.methods.dp_subn.look import facts_of
from common.methods.registry import cautions_of, run_of, with_forecast
from common.privacy.randomness import SeededRandomSource
from common.schema.codes import concatenate
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
    assert sum(SubnDecisions.of(new).epsilons) == epsilon


@pytest.mark.parametrize("sizes", [MIXED, (2,) * 6, (9, 9, 9, 9)])
@pytest.mark.parametrize("epsilon", ["1/50", "1/3", "8"])
def test_owners_pay_the_printed_epsilon_to_the_last_fraction(sizes, epsilon):
    tables = random_tables(sizes, [900, 800, 700])
    new = with_forecast(study_of(tables, epsilon=Fraction(epsilon)))
    driven = drive(run_of(new), new, tables)
    accountant = account(new, driven.steps)
    choosers = {step.exchange.chooser for step in driven.steps if step.choices}
    for name in tables:
        kept = 0 if name in choosers or not choosers else SubnDecisions.of(new).epsilons[1]
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
    only_margins(new, tables)
    for two in ((2,) * 6, (2, 2, 2, 2)):
        assert "degree" not in forecast(study(two, epsilon=Fraction(8), encoding="binary"))


def only_margins(study, tables):
    """Check that all of the budget buys margins in the attributes' own domains."""
    driven = drive(run_of(study), study, tables)
    assert {step.phase.removesuffix(" of large domains") for step in driven.steps} == {"margins"}
    asked = sorted(a for step in driven.steps for own in step.request.sets for a in own)
    assert asked == list(range(len(study.schema.sizes)))
    assert account(study, driven.steps).spent("p0") == study.promise.budget
    assert driven.model.sample(50, SeededRandomSource(1)).sizes == study.schema.sizes


@pytest.mark.parametrize("method", ["dp-subn", "dp-ccbn"])
def test_where_no_table_is_useful_there_are_margins_and_the_study_says_so(method):
    tables = random_tables((30, 30, 30), [60, 60])
    new = with_forecast(study_of(tables, epsilon=Fraction(1, 10), method=method))
    assert "forecast to be noise" in cautions_of(new)[0]
    only_margins(new, tables)
    assert cautions_of(replace(new, settings=())) == []


def test_with_a_delta_they_are_the_floors():
    tables = random_tables((30, 30, 30), [60, 60])
    terms = {"epsilon": Fraction(1, 10), "delta": Fraction(1, 10**6)}
    new, floor = (
        with_forecast(study_of(tables, method=method, **terms)) for method in ("dp-ccbn", "floor")
    )
    models = [drive(run_of(each), each, tables).model.as_json() for each in (new, floor)]
    assert models[0] == models[1]


@pytest.mark.parametrize(
    ("sizes", "rows", "epsilon", "part"),
    [
        ((16,) * 6, 30_000, "1", "1/12"),  # blocks save nothing
        ((2,) * 16, 30_000, "1", "1/12"),  # clear as it is
        ((2,) * 16, 50_000, "1/5", "9/60"),  # as much as it takes
        ((2,) * 16, 20_000, "1/5", "13/60"),  # as much as blocks save
        ((2,) * 16, 3_000, "1/5", "0"),  # would show nothing
    ],
)
def test_the_look_gets_what_it_takes_to_see_and_no_more_than_blocks_save(
    sizes, rows, epsilon, part
):
    new = study(sizes, rows=(rows // 2, rows // 2), epsilon=Fraction(epsilon))
    assert look_part(new) == Fraction(part)
    assert look_part(new) <= max(Fraction(1, 12), Fraction(saved(facts_of(new))))
    if look_part(new):
        assert SubnDecisions.of(with_forecast(new)).epsilons[0] == new.epsilon * Fraction(part)


@pytest.mark.parametrize(("parties", "least"), [(2, Fraction(1, 20)), (7, Fraction(0))])
def test_few_choices_among_many_owners_get_little(parties, least):
    new = study((2,) * 6, rows=(2000,) * parties, epsilon=Fraction(8))
    choice = SubnDecisions.of(with_forecast(new)).epsilons[1] / new.epsilon
    assert least < choice
    assert (choice <= Fraction(1, 40)) is (parties == 7)


def test_with_the_forecast_a_chain_is_closer_than_without():
    tables = chain_tables(8, [3000, 3000])
    codes = concatenate(list(tables.values()))
    pairs = [(a, b) for b in range(8) for a in range(b)]
    errors = []
    for each in (study_of(tables), with_forecast(study_of(tables))):
        error = 0.0
        for seed in map(str, range(8)):
            model = drive(run_of(each), each, tables, seed=seed).model
            drawn = model.sample(codes.rows, SeededRandomSource(seed))
            for one, other in zip(count(codes, pairs), count(drawn, pairs), strict=True):
                error += float(np.abs(one - other).sum())
        errors.append(error)
    assert errors[1] < 0.9 * errors[0]
