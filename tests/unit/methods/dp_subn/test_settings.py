"""The settings of the methods of [Su16]: read, refused, in the digest, and obeyed."""

from dataclasses import replace
from fractions import Fraction

import pytest

from common.errors import InputError
from common.methods.designs.nocd import printed_design
from common.methods.dp_subn.initialisation import printed_shares
from common.methods.dp_subn.script import views_of
from common.methods.dp_subn.settings import Settings
from common.methods.registry import cautions_of, run_of
from common.study.accounting import account
from common.study.document import Study
from common.study.steps import ChoiceStep, SumStep
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
    assert Settings.of(study).views == "printed"
    assert views_of(BITS, "printed") == printed_design(16).views
    step = run_of(study).step()
    assert isinstance(step, SumStep)
    assert step.links == printed_design(16).views
    assert len(run_of(replace(study, profile="sound")).step().links) < len(step.links)


@pytest.mark.parametrize(("d", "parties", "shares"), [(7, 3, [2, 2, 3]), (3, 5, [0, 0, 0, 0, 3])])
def test_attributes_are_shared_out_as_printed(d, parties, shares):
    assert printed_shares(d, parties) == shares


def test_profile_paper_divides_by_attributes_and_the_root_needs_no_draw():
    tables = chain_tables(6, [400, 400, 400])
    study = study_of(tables, epsilon=EPSILON, profile="paper")
    steps = drive(run_of(study), study, tables).steps
    turns = [step.choice for step in steps if isinstance(step, ChoiceStep)]
    assert [(turn.take, turn.parts) for turn in turns] == [(1, 2), (2, 2), (2, 2)]


def test_dp_ccbn_tells_of_its_cap_and_lifts_it():
    study = bits_study(method="dp-ccbn")
    capped = with_settings(study, most_cells=60)
    (words,) = cautions_of(capped)
    assert "lowered from" in words
    assert "most_cells in [dp-ccbn]" in words
    assert not cautions_of(study)
