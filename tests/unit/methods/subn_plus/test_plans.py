"""What subn+ decides before any row is looked at: shares, designs, and the noise to expect."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from common.errors import LocalError
from common.methods.designs.nocd import best_design
from common.methods.dp_subn.information import pair_tables
from common.methods.subn_plus.facts import PublicFacts, halves_noise, margin_noise, view_noise
from common.methods.subn_plus.plans import (
    CROSSED,
    CROSSED_BELOW,
    CROSSED_CELLS,
    DETAILS,
    FEW_GROUPS,
    GROUPS_BELOW,
    HALVES,
    HALVES_BELOW,
    MARGINS,
    MOST_GROUPS,
    PAIRS,
    PLANS,
    THREE_GROUPS_BELOW,
    TRIPLES,
    VIEW_CELLS,
    VIEWS,
    WHOLE_WORTH,
    Ask,
    best_plan,
    clearest,
    finest_design,
)
from common.methods.subn_plus.requests import Agreements
from common.privacy.promise import Promise
from common.privacy.randomness import SeededRandomSource
from common.privacy.sampling.discrete_laplace import discrete_laplace
from tests.harness.run_script import random_tables, study_of
from tests.unit.methods.subn_plus.test_requests import facts as facts_with_delta


def facts(sizes, rows=40_000, epsilon=Fraction(1), **more) -> PublicFacts:
    return PublicFacts(
        sizes=tuple(sizes), parties=("a", "b"), rows=rows, promise=Promise(epsilon), **more
    )


def asked(plan, what):
    """Return the plan's only sum of this kind; one of no cost and no groups if it has none."""
    return next((ask for ask in plan.asks if ask.what == what), Ask(what, Fraction(0)))


FACTS = [
    facts([2] * 11, rows=24_000),
    facts([16] * 15),
    facts([16] * 14 + [2], rows=5000),
    facts([7] * 40, rows=3_000_000),
    facts([3, 1, 2], rows=50),
    facts_with_delta([16] * 12, 40_000, Fraction(1)),
    facts_with_delta([3] * 76, 8000, Fraction(1)),
    facts_with_delta([2] * 16, 20_000, Fraction(4)),
]


@pytest.mark.parametrize("given", FACTS)
def test_every_plan_costs_exactly_the_budget_under_either_law(given):
    made = [plan for make in PLANS.values() if (plan := make(given)) is not None]
    assert made
    for plan in made:
        assert sum(ask.cost for ask in plan.asks) == given.budget
        assert all(ask.cost > 0 for ask in plan.asks)
    assert best_plan(given).cell_noise == min(plan.cell_noise for plan in made)


def test_where_margins_are_hard_to_see_they_get_everything():
    plan = best_plan(facts([16] * 15, rows=1000, epsilon=Fraction(1, 10)))
    assert plan.asks == (Ask(MARGINS, Fraction(1, 10)),)


def test_where_even_blocks_drown_every_attribute_is_counted_by_itself():
    plan = best_plan(facts([2] * 6, rows=10, epsilon=Fraction(1, 10)))
    assert plan.blocks == tuple((a,) for a in range(6))
    assert plan.asks == (Ask(MARGINS, Fraction(1, 10)),)


def test_more_noise_shares_are_forecast_as_more_noise():
    one, four = (facts([16] * 15, noise_shares=Fraction(shares)) for shares in (1, 4))
    blocks = best_plan(one).blocks
    assert margin_noise(four, blocks) == pytest.approx(2 * margin_noise(one, blocks))


@pytest.mark.parametrize("epsilon", [Fraction(2, 5), Fraction(4, 5), Fraction(8, 5)])
def test_views_have_as_many_groups_as_their_noise_allows(epsilon):
    sizes = [16] * 15
    plan = best_plan(facts(sizes, epsilon=epsilon))
    views = asked(plan, VIEWS)
    noise = view_noise(plan.design, facts(sizes, epsilon=epsilon), views.cost)
    assert plan.design.sizes == (views.groups,) * 15
    assert noise <= (GROUPS_BELOW if views.groups > 3 else THREE_GROUPS_BELOW)
    finer = best_design((views.groups + 1,) * 15, cell_limit=VIEW_CELLS)
    assert (
        views.groups == max(sizes)
        or view_noise(finer, facts(sizes, epsilon=epsilon), views.cost) > GROUPS_BELOW
    )


def test_every_role_of_a_study_finds_the_designs_that_the_first_one_computed():
    given = facts([64] * 10, rows=10**9)

    def after_margins(groups):
        return tuple(max(width - 1, 2) for width in given.widths(groups))

    def search():
        before, after = (
            finest_design(given, given.budget, widths) for widths in (given.widths, after_margins)
        )
        return before[0], after[0], best_design.cache_info().misses

    best_design.cache_clear()
    first = search()
    assert first[:2] == (MOST_GROUPS, MOST_GROUPS)
    assert first[2] > 60  # so many different designs, and none of them a second time:
    assert search() == first


def test_few_rows_are_looked_at_in_halves_with_most_of_the_budget_on_margins():
    sizes = [16] * 14 + [2]
    given = facts(sizes, rows=5000)
    plan = best_plan(given)
    limit, parts = HALVES_BELOW[1]
    assert plan.name == "halves"
    assert [ask.what for ask in plan.asks] == [MARGINS, HALVES, CROSSED, DETAILS]
    assert [ask.cost for ask in plan.asks] == [given.budget * part for part in parts]
    assert sum(parts) == sum(HALVES_BELOW[2][1]) == 1
    assert sorted(a for view in plan.design.views for a in view) == list(range(15))
    assert halves_noise(given, asked(plan, HALVES).cost) <= limit
    assert best_plan(facts(sizes, rows=2000)).name == "margins"
    halves = PLANS["halves"](facts_with_delta(sizes, 5000, Fraction(1)))
    assert [ask.what for ask in halves.asks] == [MARGINS, HALVES, DETAILS]
    assert halves.design is None


def test_tables_across_the_blocks_of_margins_are_asked_where_pairs_would_drown():
    given = facts([2, 3] * 9 + [24, 24], rows=5000)
    plan = best_plan(given)
    assert plan.name == "crossed"
    assert sum(ask.cost for ask in plan.asks) == given.budget
    views = plan.design.views
    assert sorted(a for view in views for a in view) == list(range(20))
    assert max(map(plan.design.cells, views)) <= CROSSED_CELLS
    for block in plan.blocks:
        assert sum(bool(set(block) & set(view)) for view in views) == min(len(block), len(views))
    noisy = facts([2, 3] * 9 + [24, 24], rows=1000)
    assert margin_noise(noisy, noisy.alone) > CROSSED_BELOW
    assert best_plan(noisy).name == "margins"
    assert best_plan(facts_with_delta([2, 3] * 9 + [24, 24], 5000, Fraction(1))).name != "crossed"


def test_the_forecast_noise_of_halves_is_that_of_their_tables():
    given = facts([2] * 6, rows=1000, noise_shares=Fraction(2))
    request, source = Agreements(((0, 1),) * 6), SeededRandomSource("halves")
    drawn = [
        sum(discrete_laplace(Fraction(9), request.cells, source) for _ in range(2))
        for _ in range(300)
    ]
    # A table of halves with known margins is off by half of what the agreement is, in four cells.
    norms = [4 * np.abs(noise) / 2 / 2 for noise in drawn]
    forecast = halves_noise(given, Fraction(1))
    assert np.sqrt(np.mean(np.square(norms))) / given.rows == pytest.approx(forecast, rel=0.1)


def test_the_forecast_noise_of_pairs_is_that_of_noisy_views():
    given = facts([3, 2, 4, 2, 2], rows=1000, noise_shares=Fraction(2))
    design = best_design(given.sizes, cell_limit=VIEW_CELLS)
    source, scale = SeededRandomSource("forecast"), Fraction(2 * len(design.views))
    seen = []
    for _ in range(300):
        noise = [
            sum(discrete_laplace(scale, design.cells(view), source) for _ in range(2))
            for view in design.views
        ]
        tables = [
            values.reshape([given.sizes[a] for a in view]).astype(float)
            for view, values in zip(design.views, noise, strict=True)
        ]
        pairs = pair_tables(design.views, tables).values()
        seen.append(np.mean([np.sqrt(table.size * (table**2).sum()) / 2 for table in pairs]))
    # The root of a mean square is a little more than the mean of the norms.
    forecast = view_noise(design, given, Fraction(1))
    assert 0.85 < np.mean(seen) / given.rows / forecast < 1.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"sizes": ()},
        {"rows": 0},
        {"promise": Promise(Fraction(0))},
        {"noise_shares": Fraction(1, 2)},
    ],
)
def test_impossible_facts_are_refused(wrong):
    with pytest.raises(LocalError):
        PublicFacts(
            **{
                "sizes": (2,),
                "parties": ("a",),
                "rows": 1,
                "promise": Promise(Fraction(1)),
                **wrong,
            }
        )


@pytest.mark.parametrize(
    ("columns", "rows", "name"),
    [
        (23, 47_461, "table"),  # the views show everything
        (60, 30_000, "margins"),  # pairs would be mostly noise
        (60, 200_000, "forest"),  # views show margins badly
        (200, 100_000, "margins"),  # pairs would be mostly noise
        (200, 1_000_000, "forest"),  # too many for the mixture's classes
    ],
)
def test_wide_tables_ask_for_what_can_be_seen(columns, rows, name):
    assert best_plan(facts([2] * columns, rows, noise_shares=Fraction(2))).name == name


def test_a_wide_table_of_few_rows_is_sieved_with_a_delta():
    assert best_plan(facts_with_delta([2, 9] * 38, 8_000, Fraction(1))).name == "sieve"
    assert best_plan(facts_with_delta([2, 9] * 20, 80_000, Fraction(1))).name != "sieve"
    assert best_plan(facts_with_delta([2, 9] * 100, 8_000, Fraction(1))).name == "margins"


def test_the_plan_is_finer_the_more_there_is_to_spend():
    groups, triples = [], []
    for epsilon in (Fraction(1, 100), Fraction(1, 10), Fraction(1), Fraction(10), Fraction(100)):
        plan = PLANS["contrasts"](facts_with_delta([16] * 12, 40_000, epsilon))
        groups.append(asked(plan, PAIRS).groups if plan else 0)
        triples.append(asked(plan, TRIPLES).groups if plan else 0)
    assert groups == sorted(groups)
    assert triples == sorted(triples)
    assert (groups[0], groups[-1], triples[0]) == (0, 16, 0)
    assert triples[-1] > 4


def test_pairs_are_asked_in_two_groups_or_more_beside_triples():
    """A budget that just allows pairs in two groups allows no triples beside them."""
    for epsilon in range(8, 81):
        plan = PLANS["contrasts"](facts_with_delta([10] * 10 + [2], 442, Fraction(epsilon, 8)))
        if plan is not None:
            assert asked(plan, PAIRS).groups >= 2
            assert (asked(plan, TRIPLES).cost > 0) == (asked(plan, TRIPLES).groups >= 2)


@pytest.mark.parametrize(
    ("columns", "size", "rows", "pure"),
    [
        (4, 2, 10_000, True),
        (6, 2, 5000, True),
        (11, 2, 24_000, True),  # the whole table, of all orders
        (20, 2, 5000, False),
        (14, 16, 40_000, False),
    ],
)
def test_a_delta_is_left_out_where_columns_are_few(columns, size, rows, pure):
    tables = random_tables((size,) * columns, [rows // 2] * 2)
    study = study_of(tables, method="subn+", epsilon=Fraction(1))
    assert clearest(study) is study
    with_delta = replace(study, delta=Fraction(1, 10**9))
    assert clearest(with_delta) == (study if pure else with_delta)


@pytest.mark.parametrize(("sizes", "views"), [([4] * 5 + [2], 1), ([2] * 11, 1), ([2] * 12, 13)])
def test_one_view_of_all_columns_is_asked_where_several_show_pairs_hardly_better(sizes, views):
    given = facts(sizes, rows=24_000)
    plan = best_plan(given)
    assert (plan.name, len(plan.design.views)) == ("table", views)
    several = best_design(given.sizes, cell_limit=VIEW_CELLS)
    noise = view_noise(plan.design, given, given.budget)
    assert noise <= WHOLE_WORTH * view_noise(several, given, given.budget)


def test_contrasts_have_more_than_a_few_groups_only_where_these_can_be_seen():
    asks = {
        rows: asked(PLANS["contrasts"](facts_with_delta([40] * 12, rows, Fraction(1))), PAIRS)
        for rows in (40_000, 400_000)
    }
    assert asks[40_000].groups == FEW_GROUPS
    assert asks[400_000].groups > FEW_GROUPS
