"""What DP-SUBN settles before any row: settings, families, degrees, caps, and what it costs."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import InputError
from common.methods.designs.nocd import printed_design
from common.methods.dp_subn.decisions import (
    FamilyLimit,
    SubnDecisions,
    SubnSettings,
    candidate_families,
    decisions,
    frontier_limit,
    network_limit,
)
from common.methods.dp_subn.initialisation import printed_turns
from common.methods.dp_subn.script import views_of
from common.methods.registry import cautions_of, method_of, run_of
from common.study.accounting import account, statement_of
from common.study.document import Study
from common.study.dry_run import costs_without_rows
from party.owner.dry_run import dry_run
from tests.harness.run_script import chain_tables, drive, random_tables, study_of, with_settings

BITS = (2,) * 16
EPSILON = Fraction(8)


def bits_study(rows=(400, 400, 400), **changes):
    return study_of(chain_tables(6, list(rows)), epsilon=EPSILON, **changes)


def test_settings_are_in_the_file_and_in_the_digest():
    plain = bits_study()
    chosen = with_settings(plain, budget="1:1:2:4", degree=2)
    again = Study.from_toml(chosen.to_toml())
    assert again == chosen
    assert again.digest == chosen.digest != plain.digest
    assert '["dp-subn"]' in chosen.to_toml()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"buget": "1:1:1:1"}, "unknown key 'dp-subn.buget' .did you mean 'budget'"),
        ({"budget": "1:1:1"}, "has 3 parts, not 4"),
        ({"budget": "1:0:1:1"}, "expected a number above 0"),
        ({"views": "best"}, "is not one of optimal, printed"),
        ({"degree": -1}, "from 0 to 16"),
        ({"most_candidate_cells": 1 << 40}, "expected a whole number"),
        ({"theta_tables": "x"}, "theta_tables"),
    ],
)
def test_a_setting_that_cannot_be_had_is_refused_by_name(settings, words):
    with pytest.raises(InputError, match=words):
        run_of(with_settings(bits_study(), **settings))


def test_a_method_without_settings_refuses_them():
    with pytest.raises(InputError, match="no settings"):
        run_of(with_settings(bits_study(method="floor"), degree=1))


def test_a_table_of_another_method_is_an_unknown_key():
    text = (
        bits_study().to_toml().replace("\n[[party]]", '\n["dp-ccbn"]\ntheta = "6"\n\n[[party]]', 1)
    )
    with pytest.raises(InputError, match="unknown key 'dp-ccbn'"):
        Study.from_toml(text)


def test_the_budget_is_divided_as_the_study_says():
    study = with_settings(bits_study(), budget="1:2:1:4")
    tables = chain_tables(6, [400, 400, 400])
    accountant = account(study, drive(run_of(study), study, tables).steps)
    by_step = {charge.step: max(charge.costs.values()) for charge in accountant.charges}
    assert by_step["correlations"] == EPSILON / 8
    assert by_step["initial structure by p0"] == EPSILON / 4
    assert by_step["parameters"] == EPSILON / 2
    assert accountant.spent("p0") == EPSILON


def test_profile_paper_has_the_views_that_are_printed():
    study = study_of(random_tables(BITS, [3000]), epsilon=EPSILON, profile="paper")
    assert SubnSettings.of(study).views == "printed"
    assert views_of(BITS, "printed") == printed_design(16).views
    step = run_of(study).step()
    assert step.counts_all
    assert step.links == printed_design(16).views
    assert len(run_of(replace(study, profile="sound")).step().links) < len(step.links)


@pytest.mark.parametrize(("d", "parties", "shares"), [(7, 3, [2, 2, 3]), (3, 5, [0, 0, 0, 0, 3])])
def test_attributes_are_shared_out_as_printed(d, parties, shares):
    assert printed_turns(attributes=d, parties=parties) == shares


def test_profile_paper_divides_by_attributes_and_the_root_needs_no_draw():
    tables = chain_tables(6, [400, 400, 400])
    study = study_of(tables, epsilon=EPSILON, profile="paper")
    steps = drive(run_of(study), study, tables).steps
    turns = [step.exchange.choice for step in steps if step.choices]
    assert [(turn.take, turn.parts) for turn in turns] == [(1, 2), (2, 2), (2, 2)]


def test_dp_ccbn_tells_of_its_cap_and_lifts_it():
    study = bits_study(method="dp-ccbn")
    capped = with_settings(study, most_cells=60)
    (words,) = cautions_of(capped)
    assert "lowered from" in words
    assert "most_cells in [dp-ccbn]" in words
    assert not cautions_of(study)


@settings(deadline=None)
@given(
    st.lists(st.integers(1, 6), min_size=2, max_size=6),
    st.data(),
    st.integers(0, 4),
    st.integers(0, 80),
)
def test_candidates_are_exactly_the_families_that_a_check_accepts(sizes, data, parents, cells):
    placed = data.draw(st.lists(st.sampled_from(range(len(sizes))), unique=True, min_size=1))
    limit = FamilyLimit(parents, cells)
    offered = set(candidate_families(sizes, placed, limit))
    waiting = set(range(len(sizes))) - set(placed)
    accepted = {
        (child, *chosen)
        for child in waiting
        for chosen in _subsets(sorted(placed))
        if limit.maximal(sizes, child, chosen, placed)
    }
    assert offered == accepted


def _subsets(items):
    for mask in range(1 << len(items)):
        yield [item for i, item in enumerate(items) if mask >> i & 1]


def test_limits_on_binary_data_are_the_papers_degrees():
    # N * eps_4 / ((d-k) * 2^(k+2)) >= 6 on Adult's 52 bits: k = 2 at epsilon 0.8, k = 3 at 1.6.
    sizes = (2,) * 52
    for epsilon, degree in ((Fraction(1, 5), 2), (Fraction(2, 5), 3), (Fraction(1, 1000), 0)):
        limit = network_limit(sizes, 45_222, epsilon)
        assert limit == FamilyLimit(degree, 2 << degree)
        assert frontier_limit(sizes, 45_222, epsilon, limit).parents >= degree


def test_limits_stay_enumerable_at_any_budget():
    huge = Fraction(10**12)
    assert network_limit((2,) * 52, 10**6, huge).parents <= 10
    limit = network_limit((2, 3, 100, 40, 7) * 4, 10**6, huge)
    assert limit.cells <= 1 << 16
    assert frontier_limit((2, 3, 100, 40, 7) * 4, 10**6, huge, limit).cells <= 1 << 16


def test_degrees_that_are_given_are_taken_and_a_cap_that_lowers_them_is_told():
    plan = SubnDecisions.of(with_settings(bits_study(), degree=2, frontier_degree=3))
    assert (plan.network.parents, plan.frontier.parents) == (2, 3)
    capped = with_settings(bits_study(), degree=4, most_parents=2)
    assert SubnDecisions.of(capped).network.parents == 2
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
    phase, total = (
        SubnDecisions.of(study),
        SubnDecisions.of(with_settings(study, usefulness="total")),
    )
    assert total.network.parents > phase.network.parents
    quarter = with_settings(replace(study, epsilon=Fraction(4, 5)), usefulness="phase")
    assert SubnDecisions.of(quarter).network == total.network


@pytest.mark.parametrize("parties", [1, 2, 5, 9])
@pytest.mark.parametrize("settings", [{}, {"budget": "1:2:3:2"}])
def test_what_is_charged_is_the_papers_formula_repaired_and_what_is_delivered(parties, settings):
    """eps_1 + eps_2 + (K - j + 1) eps_3 + eps_4 for party j; a turn without a draw has no eps_2."""
    tables = chain_tables(6, [300] * parties)
    study = with_settings(study_of(tables, epsilon=EPSILON, profile="paper"), **settings)
    e1, e2, e3, e4 = SubnDecisions.of(study).epsilons
    takes = printed_turns(attributes=6, parties=parties)
    draws = [take - (take > 0 and not any(takes[:turn])) for turn, take in enumerate(takes)]
    expected = {
        name: e1 + (e2 if draws[turn] else 0) + (parties - turn) * e3 + e4
        for turn, name in enumerate(tables)
    }
    accountant = account(study, drive(run_of(study), study, tables).steps)
    assert {name: accountant.spent(name) for name in tables} == expected
    document = statement_of(study, method_of(study), accountant, source_private=True).as_dict()
    assert document["exact"]["epsilon_delivered"] == str(expected["p0"])
    assert document["exact"]["parties"] == {name: str(cost) for name, cost in expected.items()}
    assert costs_without_rows(study, run_of(study)) == expected
    for name in tables:
        assert accountant.realised(name) <= expected[name]
        assert document["exact"]["realised"][name] == str(accountant.realised(name))


def test_a_run_may_realise_less_than_it_charges():
    """Which tables are new in a later turn depends on the noise, so try some."""
    tables = chain_tables(6, [300] * 3)
    study = study_of(tables, epsilon=EPSILON, profile="paper")
    realised, charged = set(), set()
    for seed in range(6):
        steps = drive(run_of(study), study, tables, seed).steps
        accountant = account(study, steps)
        realised.add(accountant.realised("p0"))
        charged.add(accountant.spent("p0"))
    assert len(charged) == 1
    assert len(realised) > 1
    assert max(realised) <= min(charged)


def test_an_owner_reviews_what_will_be_charged():
    study = bits_study(profile="paper")
    for name, cost in costs_without_rows(study, run_of(study)).items():
        steps = dry_run(study, name, begin=run_of)
        assert sum((step.cost for step in steps), Fraction(0)) == cost


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


def test_a_budget_for_single_columns_only_is_said_and_costs_no_more():
    poor = replace(bits_study(rows=(3, 3, 3), profile="paper"), epsilon=Fraction(1, 100))
    (only,) = decisions(poor)
    assert only.value.startswith("0: the budget carries no table of two attributes")
    assert set(costs_without_rows(poor, run_of(poor)).values()) == {Fraction(1, 100)}
