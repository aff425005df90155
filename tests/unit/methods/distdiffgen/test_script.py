"""DistDiffGen: its settings, its budget, what it learns, and what it refuses."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from common.errors import InputError
from common.methods.distdiffgen.script import assumes, decisions
from common.methods.registry import run_of
from common.privacy.randomness import SeededRandomSource
from common.schema.codes import Codes
from common.study.accounting import account
from tests.harness.run_script import drive, random_tables, study_of

SIZES = (2, 4, 3, 5)


EPSILON = Fraction(8)


def study(tables, **changes):
    settings = {"target": "a0", **changes}
    return study_of(
        tables, method="distdiffgen", epsilon=EPSILON, settings=tuple(sorted(settings.items()))
    )


@pytest.mark.parametrize("choices", ["together", "in turn"])
@pytest.mark.parametrize("divisions", [0, 1, 4, 7, 100])
def test_the_printed_epsilon_is_spent_even_if_the_search_ends_early(divisions, choices):
    tables = random_tables(SIZES, [200, 150])
    agreed = study(tables, divisions=divisions, choices=choices)
    driven = drive(run_of(agreed), agreed, tables)
    accountant = account(agreed, driven.steps)
    assert max(accountant.spent(name) for name in tables) == EPSILON
    turns = [step.exchange.chooser for step in driven.steps if step.choices]
    assert turns[:4] == ["p0", "p1", "p0", "p1"][: len(turns)]


def test_what_decides_the_target_is_learnt():
    rng = np.random.default_rng(1)
    tables = {}
    for name in ("p0", "p1"):
        cause = rng.integers(0, 4, 2000)
        noise = [rng.integers(0, 4, 2000) for _ in range(2)]
        tables[name] = Codes.from_columns([cause // 2, noise[0], cause, noise[1]], [2, 4, 4, 4])
    agreed = study(tables, divisions=1)
    model = drive(run_of(agreed), agreed, tables).model
    drawn = model.sample(4000, SeededRandomSource("rows"))
    assert (drawn.columns[0] == drawn.columns[2] // 2).mean() > 0.95
    assert model.as_json()["groups"][1] == [[0, 1, 2, 3]]


def test_a_computation_too_large_to_be_sent_is_refused_before_the_study():
    tables = random_tables((60, *[200] * 30), [5, 5])
    with pytest.raises(InputError, match="two-party computation needs a message"):
        run_of(study(tables, score="gini", most_cells=1 << 24))
    run_of(study(tables, score="gini", most_cells=1 << 24, choices="in turn"))


def test_it_is_for_two_parties_and_a_target():
    tables = random_tables(SIZES, [20, 20, 20])
    with pytest.raises(InputError, match="for 2 parties, not 3"):
        run_of(study(tables))
    two = random_tables(SIZES, [20, 20])
    with pytest.raises(InputError, match="no attribute 'height'"):
        run_of(study(two, target="height"))
    with pytest.raises(InputError, match="target is missing"):
        run_of(replace(study(two), settings=()))


def test_choices_in_turn_cost_each_party_its_half_and_say_so():
    """Five choices of two parties: one makes three, the other two, both at one budget."""
    tables = random_tables((2,) * 7, [200, 150])
    agreed = study(tables, divisions=5, choices="in turn", budget="1:3")
    steps = drive(run_of(agreed), agreed, tables).steps
    spent = {name: Fraction(0) for name in tables}
    for step in steps[:-1]:
        spent[step.exchange.chooser] += step.epsilon
    assert set(spent.values()) == {EPSILON / 4}
    assert [step.name for step in steps[:2]] == ["division 1 of 5 by p0", "division 2 of 5 by p1"]


def test_what_protection_rests_on_depends_on_how_choices_are_made():
    tables = random_tables(SIZES, [20, 20])
    assert "follow the protocol of the two-party computation" in assumes(study(tables))
    assert assumes(study(tables, choices="in turn")) == ""
    told = {each.name: each.value for each in decisions(study(tables, divisions=3, score="gini"))}
    assert told == {
        "target": "a0",
        "divisions": "at most 3, by gini, chosen together",
        "counted cells": "at most 1,048,576",
    }
