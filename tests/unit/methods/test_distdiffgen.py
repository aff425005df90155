"""DistDiffGen: its two sensitivities, the law of a choice, its budget, and what it learns."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from common.errors import InputError, RemoteProtocolError
from common.methods.distdiffgen import Cuts, DivisionChoice, LeafRequest, purity
from common.methods.registry import run_of
from common.privacy.randomness import SeededRandomSource
from common.schema.codes import Codes
from common.study.accounting import account
from common.study.steps import ChoiceStep
from parley.simulation.in_process import RowsInMemory
from tests.harness.run_script import drive, random_tables, schema_of, study_of

SIZES = (2, 4, 3, 5)
EPSILON = Fraction(8)


def study(tables, **changes):
    settings = {"target": "a0", **changes}
    return study_of(
        tables, method="distdiffgen", epsilon=EPSILON, settings=tuple(sorted(settings.items()))
    )


def test_no_replaced_row_moves_a_score_by_more_than_its_sensitivity():
    """All pairs of neighbouring tables of up to 5 rows, two children, three classes."""
    cells = list(product(range(2), range(3)))
    worst = {"max": 0.0, "gini": 0.0}
    for rows in range(1, 6):
        for kept in product(range(rows), repeat=len(cells)):
            if sum(kept) != rows - 1:
                continue
            scores = []
            for cell in cells:
                table = np.array(kept, np.int64).reshape(2, 3)
                table[cell] += 1
                scores.append((int(table.max(axis=1).sum()), purity(table)))
            spread = np.ptp(np.array(scores), axis=0)
            worst = {"max": max(worst["max"], spread[0]), "gini": max(worst["gini"], spread[1])}
    assert worst["max"] == 1
    assert 1 < worst["gini"] <= 2 + 1e-9


def test_a_group_far_from_empty_comes_close_to_the_sensitivity_of_gini():
    table = np.array([[10_000, 0], [0, 0]], np.int64)
    one, other = table.copy(), table.copy()
    one[0, 0] += 1
    other[0, 1] += 1
    assert 1.99 < purity(one) - purity(other) <= 2


@pytest.mark.parametrize("score", ["max", "gini"])
def test_choices_follow_the_exponential_mechanism(score):
    """Of two attributes: the frequency accepts epsilon, not 0.7 or 1.3 times it."""
    target = np.repeat([0, 1], 100)
    good = target ^ (np.arange(200) % 10 == 0)
    bad = np.arange(200) % 2
    codes = Codes.from_columns([target, good, bad], [2, 2, 2])
    cuts = Cuts.start(schema_of([2, 2, 2]), 0)
    gap = 180 - 100 if score == "max" else _purity_of(target, good) - _purity_of(target, bad)
    moved = 1 if score == "max" else 2
    epsilon = Fraction(np.log(3)) * 2 * moved / Fraction(gap)
    choice = DivisionChoice(cuts=cuts, score=score, most_cells=100, rows=200, epsilon=epsilon)
    source, draws = SeededRandomSource(score), 3000
    wins = sum(choice.run(RowsInMemory(codes), source) == b"[1,0]" for _ in range(draws))
    error = np.sqrt(0.75 * 0.25 / draws)
    assert abs(wins / draws - 0.75) < 4 * error
    for factor in (0.7, 1.3):
        assert abs(wins / draws - 3**factor / (1 + 3**factor)) > 4 * error


def _purity_of(target, attribute):
    table = np.array([[np.sum((attribute == a) & (target == t)) for t in (0, 1)] for a in (0, 1)])
    return purity(table)


@pytest.mark.parametrize("divisions", [0, 1, 4, 7, 100])
def test_the_printed_epsilon_is_spent_even_if_the_search_ends_early(divisions):
    tables = random_tables(SIZES, [200, 150])
    agreed = study(tables, divisions=divisions)
    driven = drive(run_of(agreed), agreed, tables)
    accountant = account(agreed, driven.steps)
    assert max(accountant.spent(name) for name in tables) == EPSILON
    turns = [step.party for step in driven.steps if isinstance(step, ChoiceStep)]
    assert turns[:4] == ["p0", "p1", "p0", "p1"][: len(turns)]


def test_counts_are_those_of_the_groups():
    (table,) = random_tables(SIZES, [300]).values()
    cuts = Cuts.start(schema_of(SIZES), 0).divided((1, 0)).divided((3, 0))
    counted = LeafRequest(cuts, SIZES).answer(RowsInMemory(table)).reshape(2, 4, 1, 5)
    for t, a, b in product(range(2), range(4), range(5)):
        same = (table.columns[0] == t) & (table.columns[1] == a) & (table.columns[3] == b)
        assert counted[t, a, 0, b] == same.sum()


def test_no_division_passes_the_cells():
    cuts = Cuts.start(schema_of(SIZES), 0)
    assert {a for a, _ in cuts.divisions(1000)} == {1, 2, 3}
    assert {a for a, _ in cuts.divisions(8)} == {1, 2}
    assert cuts.divisions(5) == []
    choice = DivisionChoice(cuts=cuts, score="max", most_cells=8, rows=1, epsilon=Fraction(1))
    with pytest.raises(RemoteProtocolError):
        choice.check(b"[3,0]")


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


def test_it_is_for_two_parties_and_a_target():
    tables = random_tables(SIZES, [20, 20, 20])
    with pytest.raises(InputError, match="for 2 parties, not 3"):
        run_of(study(tables))
    two = random_tables(SIZES, [20, 20])
    with pytest.raises(InputError, match="no attribute 'height'"):
        run_of(study(two, target="height"))
    with pytest.raises(InputError, match="target: is missing"):
        run_of(replace(study(two), settings=()))
