"""Plans with declared tables: exact costs, own groups, joint tables that drown, small ones."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.methods.subn_plus import plans
from common.methods.subn_plus.declared import (
    AS_EXACT,
    DECLARED,
    SMALL_TABLE,
    TableGroups,
    _with_declared,
    declared_plan,
    declared_sets,
    deviation,
    plan_of,
    tables_for,
    worst,
)
from common.methods.subn_plus.facts import PublicFacts
from common.methods.subn_plus.requests import GroupedTables, TablesTogether
from common.methods.subn_plus.script import measure
from common.privacy import sensitivity
from common.privacy.promise import Promise
from common.schema.codes import Codes
from common.study.requests import RowsInMemory
from common.study.script import ScriptRun, drive

SIZES = st.lists(st.integers(1, 20), min_size=2, max_size=10)


def facts(sizes, declared=(), *, rows=5000, epsilon=Fraction(1), delta=Fraction(0), others=None):
    return PublicFacts(
        sizes=tuple(sizes),
        parties=("north", "east", "south"),
        rows=rows,
        promise=Promise(epsilon, delta),
        noise_shares=Fraction(3, 2),
        ordered=tuple(sizes),
        declared=tuple(declared),
        others=others,
    )


@st.composite
def facts_with_sets(draw):
    sizes = draw(SIZES)
    columns = st.lists(st.integers(0, len(sizes) - 1), min_size=1, max_size=4, unique=True)
    sets = draw(st.lists(columns.map(lambda own: tuple(sorted(own))), min_size=1, max_size=6))
    return facts(
        sizes,
        sorted(set(sets)),
        rows=draw(st.sampled_from([60, 2000, 45_000])),
        epsilon=draw(st.sampled_from([Fraction(3, 10), Fraction(1), Fraction(3)])),
        delta=draw(st.sampled_from([Fraction(0), Fraction(1, 10**9)])),
        others=draw(st.sampled_from([None, Fraction(0), Fraction(1, 7), Fraction(9, 10)])),
    )


@given(facts_with_sets())
@settings(max_examples=60, deadline=None)
def test_costs_add_up_to_the_budget_and_the_plan_is_the_same_each_time(own):
    plan = plan_of(own)
    assert sum(ask.cost for ask in plan.asks) == own.budget
    assert all(ask.cost > 0 for ask in plan.asks)
    declared_plan.cache_clear()
    assert plan_of(replace(own)) == plan
    asked = [ask.what for ask in plan.asks]
    if DECLARED in asked[1:]:
        assert asked[asked.index(DECLARED) - 1] == plans.MARGINS


@given(facts_with_sets())
@settings(max_examples=40, deadline=None)
def test_every_declared_set_lies_in_a_table_or_its_pairs_do(own):
    declared = tables_for(own, own.budget / 2)
    tables = [set(table.attributes) for table in declared.tables]
    for columns in declared_sets(own):
        wanted = combinations(columns, 2) if columns in declared.by_pairs else [columns]
        assert all(any(set(each) <= table for table in tables) for each in wanted)
    for table in declared.tables:
        assert all(1 < width <= own.sizes[a]
                   for a, width in zip(table.attributes, table.widths, strict=True))  # fmt: skip


@given(facts_with_sets())
@settings(max_examples=15, deadline=None)
def test_a_script_spends_all_of_the_budget_whatever_comes_back(own):
    rng = np.random.default_rng(own.rows)
    steps = drive(
        ScriptRun(measure(own)), lambda step: rng.integers(-9, own.rows, step.cells)
    ).steps
    spent = sum(step.costs["north"] for step in steps)
    assert own.budget * (1 - Fraction(1, 10**9)) <= spent <= own.budget


def test_the_sensitivity_of_declared_tables_is_that_of_all_replaced_rows():
    sizes = (3, 2, 4)
    groups = ((0, 0, 1), (0, 1), (0, 1, 1, 2))
    whole = tuple(tuple(range(size)) for size in sizes)
    request = TablesTogether(
        (GroupedTables(((0, 1),), groups), GroupedTables(((0, 2),), whole),
         GroupedTables(((0, 1, 2),), groups))
    )  # fmt: skip
    rows = list(product(*map(range, sizes)))
    answers = [
        request.answer(RowsInMemory(Codes.from_columns([np.array([v]) for v in row], sizes)))
        for row in rows
    ]
    moved = [(one - other) for one in answers for other in answers]
    bound = sensitivity.histograms(3)
    assert max(int(np.abs(own).sum()) for own in moved) == bound.l1
    assert max(int((own**2).sum()) for own in moved) == bound.l2_squared


def test_nothing_is_declared_and_the_plan_is_the_one_without():
    own = facts([8] * 6)
    assert plan_of(own) == plans.best_plan(own)
    assert plan_of(replace(own, declared=((2,),))) == plans.best_plan(own)


def test_without_a_part_for_others_only_margins_and_declared_tables_are_asked_for():
    plan = plan_of(facts([8] * 6, [(0, 1)], rows=45_000, others=Fraction(0)))
    assert [ask.what for ask in plan.asks] == [plans.MARGINS, DECLARED]


def test_other_pairs_get_more_where_declared_tables_are_clear_and_nothing_where_they_drown():
    clear = plan_of(facts([8] * 8, [(0, 1)], rows=300_000))
    assert clear.cost(DECLARED) < Fraction(1, 2)
    noisy = plan_of(facts([8] * 8, [(0, 1)], rows=3000, epsilon=Fraction(3, 10)))
    assert [ask.what for ask in noisy.asks] == [plans.MARGINS, DECLARED]


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**9)])
@pytest.mark.parametrize("epsilon", [Fraction(3, 10), Fraction(1), Fraction(3)])
def test_means_stay_exact_beside_analyses_or_get_what_they_are_worth(epsilon, delta):
    """A percent of a mean is worth a percent of a relation: no other fraction is better."""
    own = facts(
        [16, 7, 41, 2, 8, 5, 9, 3], [(0, 1), (2, 3)], epsilon=epsilon, delta=delta, others=0
    )
    plain = replace(own, declared=(), others=None)
    plan, declared = declared_plan(own)

    def means(plan):
        cost = plan.cost(plans.MARGINS) or plan.cost(plans.VIEWS)
        noise = deviation(own, cost, len(plan.blocks))
        return np.mean([2 * np.sqrt(noise**2 * size + 1 / own.rows) for size in own.sizes])

    exact = means(plan) <= AS_EXACT * means(plans.best_plan(plain))
    share = plan.cost(plans.MARGINS) / own.budget
    for other in (share - Fraction(1, 20), share + Fraction(1, 20)):
        changed, tables = _with_declared(own, plain, other, Fraction(0))
        better = means(changed) * worst(own, tables) < means(plan) * worst(own, declared)
        assert not better or (exact and other > share)
    assert exact or share > Fraction(3, 10)


def test_a_joint_table_that_would_be_noise_is_measured_by_its_pairs():
    drowned = tables_for(facts([16, 6, 6], [(0, 1, 2)], rows=500), Fraction(1, 4))
    assert drowned.by_pairs == ((0, 1, 2),)
    assert [table.attributes for table in drowned.tables] == [(0, 1), (0, 2), (1, 2)]
    clear = tables_for(facts([16, 6, 6], [(0, 1, 2)], rows=100_000), Fraction(1, 4))
    assert clear.by_pairs == ()


def test_more_budget_makes_finer_groups():
    own = facts([100, 100], [(0, 1)])
    groups = [tables_for(own, Fraction(part, 100)).tables[0].groups for part in (1, 10, 100)]
    assert groups == sorted(groups)
    assert groups[0] < groups[-1]


def test_sets_that_lie_in_one_small_table_are_one_table():
    own = facts([2, 3, 2, 50], [(0, 1), (0, 2), (1, 2)])
    (table,) = tables_for(own, Fraction(1, 2)).tables
    assert table.attributes == (0, 1, 2)
    assert prod(own.sizes[a] for a in table.attributes) <= SMALL_TABLE
    apart = facts([50, 50, 50], [(0, 1), (0, 2), (1, 2)])
    assert len(tables_for(apart, Fraction(1, 2)).tables) == 3


def test_where_all_columns_are_counted_together_at_any_rate_nothing_is_declared():
    plan, declared = declared_plan(facts([2] * 5, [(0, 1)]))
    assert declared is None
    assert plan.name == "table"


def test_rare_values_in_an_order_share_a_group_and_others_keep_theirs():
    own = replace(facts([6, 6], [(0, 1)]), ordered=(6, 0))
    histogram = np.array([2400, 2300, 100, 80, 70, 50])
    groupings = TableGroups(own, [histogram, histogram])
    assert groupings.width(0, groups=6) < 6
    assert groupings.width(1, groups=6) == 6


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**9)])
def test_the_forecast_reach_is_about_the_error_of_a_correlation(delta):
    """Noise of the law in an independent table moves a correlation as far as is forecast."""
    own = facts([5, 5], [(0, 1)], delta=delta)
    declared = tables_for(own, own.budget / 2)
    cells = declared.tables[0].widths
    noise = deviation(own, own.budget / 2, 1)
    rng = np.random.default_rng(1)
    scores = [(np.arange(w) - (w - 1) / 2) / np.sqrt((w * w - 1) / 12) for w in cells]
    off = [scores[0] @ rng.normal(0, noise, cells) @ scores[1] for _ in range(400)]
    expected = 2 * np.hypot(np.std(off), own.rows**-0.5)  # the rows are a sample, too
    assert expected == pytest.approx(declared.reach(own, (0, 1)), rel=0.1)
