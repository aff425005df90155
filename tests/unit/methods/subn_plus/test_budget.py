"""What subn+ decides before any row is looked at: shares, designs, and the noise to expect."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from common.errors import LocalError
from common.methods.designs.nocd import best_design
from common.methods.dp_subn.information import pair_tables
from common.methods.subn_plus.budget import (
    EARLY_BELOW,
    GROUPS_BELOW,
    MOST_VIEW_GROUPS,
    THREE_GROUPS_BELOW,
    VIEW_CELLS,
    decide_budget,
    delta_advice,
    finest_design,
    plan_contrasts,
)
from common.methods.subn_plus.facts import PublicFacts, halves_noise, margin_noise, view_noise
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


def test_where_margins_are_hard_to_see_they_get_everything():
    budget = decide_budget(facts([16] * 15, rows=1000, epsilon=Fraction(1, 10)))
    assert (budget.margins, budget.correlations, budget.pairs) == (Fraction(1, 10), 0, 0)


def test_where_even_blocks_drown_every_attribute_is_counted_by_itself():
    budget = decide_budget(facts([2] * 6, rows=10, epsilon=Fraction(1, 10)))
    assert budget.blocks == tuple((a,) for a in range(6))
    assert budget.margins == Fraction(1, 10)


def test_more_noise_shares_are_forecast_as_more_noise():
    one, four = (facts([16] * 15, noise_shares=Fraction(shares)) for shares in (1, 4))
    blocks = decide_budget(one).blocks
    assert margin_noise(four, blocks) == pytest.approx(2 * margin_noise(one, blocks))


@pytest.mark.parametrize("epsilon", [Fraction(2, 5), Fraction(4, 5), Fraction(8, 5)])
def test_views_have_as_many_groups_as_their_noise_allows(epsilon):
    sizes = [16] * 15
    budget = decide_budget(facts(sizes, epsilon=epsilon))
    noise = view_noise(budget.design, facts(sizes, epsilon=epsilon), budget.correlations)
    assert budget.design.sizes == (budget.groups,) * 15
    assert noise <= (GROUPS_BELOW if budget.groups > 3 else THREE_GROUPS_BELOW)
    finer = best_design((budget.groups + 1,) * 15, cell_limit=VIEW_CELLS)
    assert (
        budget.groups == max(sizes)
        or view_noise(finer, facts(sizes, epsilon=epsilon), budget.correlations) > GROUPS_BELOW
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
    assert first[:2] == (MOST_VIEW_GROUPS, MOST_VIEW_GROUPS)
    assert first[2] > 60  # so many different designs, and none of them a second time:
    assert search() == first


def test_few_rows_are_looked_at_in_halves_with_most_of_the_budget_on_margins():
    given = facts([16] * 14 + [2], rows=5000)
    budget = decide_budget(given)
    assert (budget.design, budget.groups, budget.margins) == (None, 2, Fraction(39, 50))
    assert budget.margins + budget.correlations + budget.pairs == given.budget
    assert halves_noise(given, budget.correlations) <= EARLY_BELOW
    assert decide_budget(facts([16] * 14 + [2], rows=2000)).correlations == 0


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
    ("columns", "rows", "margins", "groups"),
    [
        (23, 47_461, 0, 2),  # the views show everything
        (60, 30_000, 1, 0),  # pairs would be mostly noise
        (60, 200_000, Fraction(2, 5), 2),  # views show margins badly: a forest
        (200, 100_000, 1, 0),  # pairs would be mostly noise
        (200, 1_000_000, Fraction(2, 5), 2),  # too many for the mixture's classes: a forest
    ],
)
def test_wide_tables_ask_for_what_can_be_seen(columns, rows, margins, groups):
    budget = decide_budget(facts([2] * columns, rows, noise_shares=Fraction(2)))
    assert (budget.margins, budget.groups) == (margins, groups)
    assert budget.forest == (margins == Fraction(2, 5))
    assert budget.margins + budget.correlations + budget.pairs == 1


def test_the_plan_is_finer_the_more_there_is_to_spend():
    groups, triples = [], []
    for epsilon in (Fraction(1, 100), Fraction(1, 10), Fraction(1), Fraction(10), Fraction(100)):
        plan = plan_contrasts(facts_with_delta([16] * 12, 40_000, epsilon))
        groups.append(plan.pair_groups if plan else 0)
        triples.append(plan.triple_groups if plan else 0)
    assert groups == sorted(groups)
    assert triples == sorted(triples)
    assert (groups[0], groups[-1], triples[0]) == (0, 16, 0)
    assert triples[-1] > 4


def test_pairs_are_asked_in_two_groups_or_more_beside_triples():
    """A budget that just allows pairs in two groups allows no triples beside them."""
    for epsilon in range(8, 81):
        plan = plan_contrasts(facts_with_delta([10] * 10 + [2], 442, Fraction(epsilon, 8)))
        if plan is not None:
            assert plan.pair_groups >= 2
            assert (plan.triples > 0) == (plan.triple_groups >= 2)


@pytest.mark.parametrize(
    ("columns", "size", "rows", "advised"),
    [(4, 2, 10_000, True), (6, 2, 5000, True), (20, 2, 5000, False), (14, 16, 40_000, False)],
)
def test_a_delta_is_advised_against_where_columns_are_few(columns, size, rows, advised):
    tables = random_tables((size,) * columns, [rows // 2] * 2)
    study = study_of(tables, method="subn+", epsilon=Fraction(2, 5))
    assert delta_advice(study) is None
    assert (delta_advice(replace(study, delta=Fraction(1, 10**9))) is not None) == advised
