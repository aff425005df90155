"""What DP-SUBN settles before any row is looked at: degrees, caps that are told, and the bound."""

from dataclasses import replace
from fractions import Fraction

import pytest

from common.methods.dp_subn.decisions import Plan, bound, decisions
from common.methods.registry import cautions_of, method_of, run_of
from common.study.accounting import account, statement_of
from party.owner.dry_run import dry_run
from tests.harness.run_script import chain_tables, drive, random_tables, study_of, with_settings

BITS = (2,) * 16
EPSILON = Fraction(8)


def bits_study(rows=(400, 400, 400), **changes):
    return study_of(chain_tables(6, list(rows)), epsilon=EPSILON, **changes)


def test_degrees_that_are_given_are_taken_and_a_cap_that_lowers_them_is_told():
    plan = Plan.of(with_settings(bits_study(), degree=2, frontier_degree=3))
    assert (plan.network.parents, plan.frontier.parents) == (2, 3)
    capped = with_settings(bits_study(), degree=4, most_parents=2)
    assert Plan.of(capped).network.parents == 2
    (words, *_) = cautions_of(capped)
    assert "2 parents, lowered from 4" in words
    assert "most_parents" in words
    assert not cautions_of(with_settings(bits_study(), degree=2))


def test_on_own_domains_a_cap_of_cells_is_told_too():
    study = study_of(random_tables((4, 5, 6, 3), [5000]), epsilon=Fraction(50))
    capped = with_settings(study, most_cells=24)
    assert not cautions_of(study)
    assert any("24 cells a table, lowered from" in words for words in cautions_of(capped))


def test_the_literal_reading_of_usefulness_takes_all_of_epsilon():
    study = study_of(random_tables(BITS, [3000] * 3), epsilon=Fraction(1, 5))
    phase, total = Plan.of(study), Plan.of(with_settings(study, usefulness="total"))
    assert total.network.parents > phase.network.parents
    quarter = with_settings(replace(study, epsilon=Fraction(4, 5)), usefulness="phase")
    assert Plan.of(quarter).network == total.network


@pytest.mark.parametrize("parties", [1, 2, 5])
@pytest.mark.parametrize("settings", [{}, {"budget": "1:2:3:2"}])
def test_the_bound_is_the_papers_formula_repaired_and_what_is_delivered(parties, settings):
    tables = chain_tables(6, [300] * parties)
    study = with_settings(study_of(tables, epsilon=EPSILON, profile="paper"), **settings)
    e1, e2, e3, e4 = Plan.of(study).epsilons
    bounds = bound(study)
    for turn, name in enumerate(tables):
        assert bounds[name] == e1 + e2 + (parties - turn) * e3 + e4
    accountant = account(study, drive(run_of(study), study, tables).steps)
    document = statement_of(study, method_of(study), accountant, source_private=True).as_dict()
    assert document["exact"]["epsilon_delivered"] == str(bounds["p0"])
    assert document["exact"]["parties"] == {name: str(each) for name, each in bounds.items()}
    for name in tables:
        assert accountant.spent(name) <= bounds[name]
        assert document["exact"]["realised"][name] == str(accountant.spent(name))


def test_an_owner_reviews_the_bound():
    """What the dry run adds up to is the bound, but for a turn that draws no parents."""
    study = bits_study(profile="paper")
    for name in ("p0", "p1", "p2"):
        steps = dry_run(study, name, begin=run_of)
        assert sum((step.cost for step in steps), Fraction(0)) == bound(study)[name]


def test_profile_sound_has_no_bound_beside_what_is_charged():
    assert bound(bits_study()) is None


def decided(study):
    return {each.name: each.value for each in decisions(study)}


def test_decisions_say_the_budget_of_each_phase_and_how_the_structure_is_updated():
    told = decided(with_settings(bits_study(), budget="1:1:2:4"))
    assert told["budget"] == (
        "correlations 1, initial structure 1, structure update 2, parameters 4"
    )
    assert told["structure update"] == "1 cohort"
    assert "noise replacement" in decided(bits_study(profile="paper"))["structure update"]
    assert told["largest family (k, for the network)"].endswith("usefulness by phase)")


def test_a_budget_for_single_columns_only_is_said_and_has_no_bound():
    poor = replace(bits_study(rows=(3, 3, 3), profile="paper"), epsilon=Fraction(1, 100))
    (only,) = decisions(poor)
    assert only.value.startswith("0: the budget carries no table of two attributes")
    assert bound(poor) is None
