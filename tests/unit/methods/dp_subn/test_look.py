"""Phase 1 by halves: what it sees, what it costs, and where its two ways lead."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import InputError
from common.marginals import count
from common.methods.dp_subn.decisions import HALVES, SubnDecisions
from common.methods.dp_subn.forecast import look_part, shown
from common.methods.dp_subn.look import facts_of, look
from common.methods.registry import run_of, with_forecast
from common.privacy.randomness import SeededRandomSource
from common.schema.codes import Codes, concatenate
from common.study.accounting import account
from common.study.dry_run import costs_without_rows, steps_without_rows
from parley.simulation.in_process import RowsInMemory
from tests.harness.run_script import chain_tables, drive, random_tables, study_of, with_settings

ROWS = 6000
FORM = (2, 3, 4, 2, 5)
BITS = (2,) * 8


def by_halves(tables, budget="1:1:1:9", **terms):
    return with_settings(
        study_of(tables, **terms), budget=budget, views=HALVES, consistency="on", reuse="on"
    )


def ways(driven):
    """Return the phases of a run, in order."""
    return list(dict.fromkeys(step.phase for step in driven.steps))


NETWORK = ["first margins", "look", "initial structure", "structure update", "parameters"]
COLUMNS = ["first margins", "look", "margins"]


def columns_that_depend(strength, seed, *, width=8, rows=ROWS):
    """Return bits that all agree with a hidden one, so that pairs are off by `strength`."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, 2, rows)
    flips = rng.random((width, rows)) < (1 - np.sqrt(2 * strength)) / 2
    return Codes.from_columns([hidden ^ own for own in flips], (2,) * width)


def looked(table, epsilon, part, seed):
    """Return the look at one owner's table."""
    study = study_of({"p0": table}, epsilon=epsilon)
    script, source = look(facts_of(study), epsilon * part), SeededRandomSource(seed)
    step = next(script)
    while True:
        exact = step.request.answer(RowsInMemory(table))
        try:
            step = script.send(exact + step.law.draw(len(exact), source))
        except StopIteration as end:
            return end.value


def test_a_chain_leads_to_a_network_and_independent_columns_to_margins():
    for tables, expected in (
        (chain_tables(8, [3000, 3000]), NETWORK),
        (random_tables(FORM, [3000, 3000]), COLUMNS),
    ):
        study = by_halves(tables, epsilon=Fraction(2))
        assert ways(drive(run_of(study), study, tables)) == expected


def test_the_look_sees_what_its_forecast_says_and_seldom_more():
    """Twice the dependence that it is forecast to show is seen; a third is not, nor is chance."""
    epsilon, part, runs = Fraction(1), Fraction(1, 10), 40
    table = columns_that_depend(0.0, 0)
    least = shown(facts_of(study_of({"p0": table}, epsilon=epsilon)), part)
    assert 0.02 < least < 0.2
    seen = {
        times: sum(
            looked(
                columns_that_depend(times * least, seed), epsilon, part, f"{times} {seed}"
            ).sees_dependence
            for seed in range(runs)
        )
        for times in (0, 1 / 3, 2)
    }
    assert seen[0] <= runs * 0.2
    assert seen[1 / 3] <= runs * 0.35
    assert seen[2] >= runs * 0.95


def test_the_look_orders_pairs_by_their_dependence():
    rng = np.random.default_rng(4)
    one, other = rng.integers(0, 4, 9000), rng.integers(0, 3, 9000)
    near = np.where(rng.random(9000) < 0.8, one, rng.integers(0, 4, 9000))
    table = Codes.from_columns([one, other, near, rng.integers(0, 2, 9000)], (4, 3, 4, 2))
    found = looked(table, Fraction(4), Fraction(1, 2), "order")
    information = found.information
    assert (information == information.T).all()
    assert information.min() == 0
    assert information[0, 2] == information.max() > 10 * np.sort(information, axis=None)[-3]
    assert (information * (1 << 30) == np.rint(information * (1 << 30))).all()
    covered = sorted(attribute for own in found.measured for attribute in own.variables)
    assert covered == [0, 1, 2, 3]


@pytest.mark.parametrize("parties", [1, 3, 10])
@given(
    st.fractions("1/2", 20, max_denominator=997),
    st.tuples(*[st.fractions("1/9", 9, max_denominator=23)] * 4),
    st.sampled_from(["chain", "mixed"]),
)
@settings(max_examples=8, deadline=None)
def test_either_way_costs_the_budget_to_the_last_fraction(parties, epsilon, budget, kind):
    """An owner without a choice keeps its part, and pays no more than it was told before."""
    rows = [1800 // parties] * parties
    tables = chain_tables(6, rows) if kind == "chain" else random_tables(FORM, rows)
    study = by_halves(tables, budget=":".join(map(str, budget)), epsilon=epsilon)
    driven = drive(run_of(study), study, tables)
    spent, told = account(study, driven.steps), costs_without_rows(study, run_of(study))
    choice = SubnDecisions.of(study).epsilons[1] if SubnDecisions.of(study).network.parents else 0
    choices = len(tables["p0"].sizes) - 1
    choosers = {step.exchange.chooser for step in driven.steps if step.choices}
    network = bool(choosers)
    for name in tables:
        kept = choice if parties > choices and not (network and name in choosers) else 0
        assert spent.spent(name) == epsilon - kept <= told[name]


@pytest.mark.parametrize("cohorts", [1, 3])
def test_an_owner_is_shown_the_way_of_the_network(cohorts):
    """Choices on its own rows, and sums of few owners: it must know before it approves."""
    tables = random_tables(FORM, [2000] * 3)
    study = by_halves(tables, epsilon=Fraction(2), cohorts=cohorts)
    steps = list(steps_without_rows(study, run_of(study)))
    assert list(dict.fromkeys(step.phase for step in steps)) == NETWORK
    assert min(step.owners_with("p0") for step in steps if "p0" in step.parties) <= 3 // cohorts


@pytest.mark.parametrize("kind", ["chain", "mixed"])
def test_copies_that_see_the_same_sums_go_the_same_way(kind):
    tables = chain_tables(8, [2000] * 3) if kind == "chain" else random_tables(FORM, [2000] * 3)
    study = by_halves(tables, epsilon=Fraction(2))
    driven = drive(run_of(study), study, tables)
    assert ways(driven) == (NETWORK if kind == "chain" else COLUMNS)
    assert driven.fed_to(run_of(study)).as_json() == driven.model.as_json()


@pytest.mark.parametrize("kind", ["chain", "mixed"])
def test_a_replaced_row_moves_no_sum_by_more_than_it_says(kind):
    tables = chain_tables(6, [800, 700]) if kind == "chain" else random_tables(FORM, [800, 700])
    study = by_halves(tables, epsilon=Fraction(4))
    driven = drive(run_of(study), study, tables)
    before, rng = tables["p0"], np.random.default_rng(2)
    for _ in range(20):
        columns = [column.copy() for column in before.columns]
        for column, size in zip(columns, before.sizes, strict=True):
            column[7] = rng.integers(size)
        after = Codes(tuple(columns), before.sizes)
        for step in driven.steps:
            if step.choices:
                continue
            one, other = (step.request.answer(RowsInMemory(each)) for each in (before, after))
            assert np.abs(one - other).sum() <= step.sensitivity.l1


def error_of(model, codes, sets, seed):
    drawn = model.sample(codes.rows, SeededRandomSource(seed))
    pairs = zip(count(codes, sets), count(drawn, sets), strict=True)
    return np.mean([np.abs(one - other).sum() / 2 / codes.rows for one, other in pairs])


@pytest.mark.parametrize("sizes", [BITS, (2, 3, 9, 16, 16, 4), (16,) * 6])
def test_independent_columns_are_no_worse_than_the_floor(sizes):
    tables = random_tables(sizes, [4000, 4000])
    codes = concatenate(list(tables.values()))
    sets = [(a, b) for b in range(len(sizes)) for a in range(b)]
    epsilon, errors = Fraction(1, 2), {}
    for method in ("dp-subn", "floor"):
        study = with_forecast(study_of(tables, epsilon=epsilon, method=method))
        errors[method] = [
            error_of(drive(run_of(study), study, tables, seed=seed).model, codes, sets, seed)
            for seed in map(str, range(10))
        ]
    spread = np.sqrt(sum(np.var(own, ddof=1) / len(own) for own in errors.values()))
    assert np.mean(errors["dp-subn"]) < np.mean(errors["floor"]) + 2 * spread


def test_the_paper_and_bits_have_no_halves():
    tables = random_tables(FORM, [300, 300])
    for terms in ({"encoding": "binary"}, {"profile": "paper"}):
        with pytest.raises(InputError, match="views: halves"):
            run_of(by_halves(tables, **terms))
        study = study_of(tables, **terms)
        assert dict(with_forecast(study).settings).get("views") != HALVES


def test_a_study_that_names_other_views_has_no_look():
    tables = random_tables(FORM, [60, 60])
    study = with_forecast(with_settings(study_of(tables, epsilon=Fraction(8)), views="optimal"))
    assert dict(study.settings) == {
        "budget": "1:1:1:7", "consistency": "on", "reuse": "on", "views": "optimal",
    }  # fmt: skip
    assert not any(step.phase == "look" for step in steps_without_rows(study, run_of(study)))


def test_a_single_attribute_is_a_margin_in_any_case():
    tables = random_tables((7,), [100, 100])
    for study in (by_halves(tables), with_forecast(study_of(tables))):
        driven = drive(run_of(study), study, tables)
        assert [step.phase for step in driven.steps] == ["margins"]


def test_a_look_that_would_show_nothing_is_not_made():
    tables = random_tables(FORM, [60, 60])
    study = with_forecast(study_of(tables, epsilon=Fraction(1)))
    assert look_part(study) == 0
    assert dict(study.settings)["degree"] == 0
    driven = drive(run_of(study), study, tables)
    assert {step.phase.partition(" of ")[0] for step in driven.steps} == {"margins"}
    assert account(study, driven.steps).spent("p0") == study.epsilon
