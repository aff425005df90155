"""DistDiffGen: its two sensitivities, the law of a choice, its budget, and what it learns."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from common.crypto.two_party.gates import InTheOpen
from common.errors import InputError, RemoteProtocolError
from common.methods.distdiffgen.cuts import Cuts, leaf_request
from common.methods.distdiffgen.divisions import (
    SCORES,
    SENSITIVITY,
    DivisionChoice,
    JointDivision,
    impurities,
)
from common.methods.registry import run_of
from common.privacy.randomness import SeededRandomSource
from common.schema.codes import Codes
from common.schema.hierarchy import Node
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
    worst = {"max": 0, "gini": 0}
    for rows in range(1, 6):
        for kept in product(range(rows), repeat=len(cells)):
            if sum(kept) != rows - 1:
                continue
            scores = []
            for cell in cells:
                table = np.array(kept, np.int64).reshape(2, 3)
                table[cell] += 1
                scores.append((int(table.max(axis=1).sum()), int(impurities(table).sum())))
            spread = np.ptp(np.array(scores), axis=0)
            worst = {"max": max(worst["max"], spread[0]), "gini": max(worst["gini"], spread[1])}
    assert worst["max"] == SENSITIVITY["max"]
    assert 8 < worst["gini"] <= SENSITIVITY["gini"]


def test_a_group_far_from_empty_comes_close_to_the_sensitivity_of_gini():
    table = np.array([[10_000, 0], [0, 0]], np.int64)
    one, other = table.copy(), table.copy()
    one[0, 0] += 1
    other[0, 1] += 1
    assert 16 <= impurities(other).sum() - impurities(one).sum() <= SENSITIVITY["gini"]


@pytest.mark.parametrize("score", SCORES)
def test_choices_in_turn_follow_the_exponential_mechanism(score):
    """Of two attributes: the frequency accepts epsilon, not 0.7 or 1.3 times it."""
    codes, cuts = two_attributes()
    free = DivisionChoice(cuts=cuts, score=score, most_cells=100, epsilon=Fraction(1))
    better, worse = free.scores(free.by_class(RowsInMemory(codes))).tolist()
    epsilon = Fraction(np.log(3)) * 2 * SENSITIVITY[score] / (better - worse)
    choice = replace(free, epsilon=epsilon)
    source, draws = SeededRandomSource(score), 3000
    wins = sum(choice.run(RowsInMemory(codes), source) == b"[1,0]" for _ in range(draws))
    error = np.sqrt(0.75 * 0.25 / draws)
    assert abs(wins / draws - 0.75) < 4 * error
    for factor in (0.7, 1.3):
        assert abs(wins / draws - 3**factor / (1 + 3**factor)) > 4 * error


def test_choices_together_follow_report_noisy_max_with_both_noises():
    """The chance that the better of two attributes wins, of a sum of four exact laws."""
    codes, cuts = two_attributes()
    free = joint(cuts, "max", codes.rows, Fraction(1))
    better, worse = free.scores(free.by_class(RowsInMemory(codes))).tolist()
    gap = better - worse
    epsilon = Fraction(3, gap)
    choice = replace(free, epsilon=epsilon)
    source, draws = SeededRandomSource("together"), 2500
    wins = sum(choice.run(RowsInMemory(codes), source) == b"[1,0]" for _ in range(draws))
    chances = {f: chance_of_winning(gap, 2 / float(epsilon) / f) for f in (0.7, 1, 1.3)}
    error = np.sqrt(chances[1] * (1 - chances[1]) / draws)
    assert abs(wins / draws - chances[1]) < 4 * error
    for factor in (0.7, 1.3):
        assert abs(wins / draws - chances[factor]) > 4 * error


def chance_of_winning(gap, scale):
    """P(four discrete Laplace noises of this scale add up to at least -gap)."""
    reach = np.arange(-int(40 * scale), int(40 * scale) + 1)
    law = np.exp(-np.abs(reach) / scale)
    law /= law.sum()
    two = np.convolve(law, law)
    four = np.convolve(two, two)
    return four[len(four) // 2 - gap :].sum()


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("epsilon", ["1/2", "2"])
def test_a_joint_choice_is_private_against_who_knows_the_other_noise(score, epsilon):
    """Exact chances of every candidate on two neighbours, given the noise of one owner."""
    moved, epsilon = SENSITIVITY[score], Fraction(epsilon)
    scale = float(2 * moved / epsilon)
    reach = np.arange(-int(40 * scale), int(40 * scale) + 1)
    law = np.exp(-np.abs(reach) / scale)
    law /= law.sum()
    for scores, neighbour in (
        (np.array([0, moved]), np.array([moved, 0])),
        (np.array([3, 3]), np.array([3 + moved, 3 - moved])),
        (np.array([5 * moved, 0]), np.array([4 * moved, moved])),
    ):
        both = np.convolve(law, law)  # of the difference of two noises
        for first in (0, 1):
            chances = []
            for each in (scores, neighbour):
                gap = each[first] - each[1 - first] - first  # the first of equals wins
                chances.append(both[max(0, len(both) // 2 - gap) :].sum())
            one, other = chances
            assert one <= np.exp(float(epsilon)) * other * (1 + 1e-9)
            assert other <= np.exp(float(epsilon)) * one * (1 + 1e-9)


def two_attributes():
    target = np.repeat([0, 1], 100)
    good = target ^ (np.arange(200) % 10 == 0)
    bad = np.arange(200) % 2
    codes = Codes.from_columns([target, good, bad], [2, 2, 2])
    return codes, Cuts.start(schema_of([2, 2, 2]), 0)


def joint(cuts, score, rows, epsilon):
    return JointDivision(
        cuts=cuts, score=score, most_cells=10_000, epsilon=epsilon, rows=(rows, rows)
    )


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("rows", [1, 7, 300])
@pytest.mark.parametrize("target", range(4))
def test_the_circuit_chooses_what_the_open_choice_would(score, rows, target):
    """Both owners' inputs in one circuit, against sums, scores and noise in plain integers."""
    tables = random_tables(SIZES, [rows, rows], seed=rows + target)
    cuts = Cuts.start(schema_of(SIZES), target)
    choice = joint(cuts, score, rows, Fraction(1))
    data = [RowsInMemory(table) for table in tables.values()]
    for run in range(5):
        sources = [(SeededRandomSource(f"{run} {side}"), side) for side in (0, 1)]
        inputs = [choice.inputs(data[side], source) for source, side in sources]
        found = choice.outcome(choice.outputs(InTheOpen(), *inputs))
        noises = [
            choice.law.draw(len(choice.candidates), SeededRandomSource(f"{run} {side}"))
            for side in (0, 1)
        ]
        noisy = choice.scores(sum(choice.by_class(each) for each in data)) + sum(noises)
        assert choice.division(found) == choice.candidates[int(np.argmax(noisy))]


@pytest.mark.parametrize("choices", ["together", "in turn"])
@pytest.mark.parametrize("divisions", [0, 1, 4, 7, 100])
def test_the_printed_epsilon_is_spent_even_if_the_search_ends_early(divisions, choices):
    tables = random_tables(SIZES, [200, 150])
    agreed = study(tables, divisions=divisions, choices=choices)
    driven = drive(run_of(agreed), agreed, tables)
    accountant = account(agreed, driven.steps)
    assert max(accountant.spent(name) for name in tables) == EPSILON
    turns = [step.party for step in driven.steps if isinstance(step, ChoiceStep)]
    assert turns[:4] == ["p0", "p1", "p0", "p1"][: len(turns)]


def test_counts_are_those_of_the_groups():
    (table,) = random_tables(SIZES, [300]).values()
    cuts = Cuts.start(schema_of(SIZES), 0).divided((1, 0)).divided((3, 0))
    counted = leaf_request(cuts, SIZES).answer(RowsInMemory(table)).reshape(2, 4, 1, 5)
    for t, a, b in product(range(2), range(4), range(5)):
        same = (table.columns[0] == t) & (table.columns[1] == a) & (table.columns[3] == b)
        assert counted[t, a, 0, b] == same.sum()


def test_values_in_another_order_than_their_codes_are_groups():
    """Rules are about codes: cells in the order of a hierarchy must not be taken for theirs."""
    values = [Node(str(code), code=code) for code in range(3)]
    cuts = Cuts(((values[2], values[0], values[1]), tuple(values[:2])), 1)
    request = leaf_request(cuts, (3, 2))
    assert request.tables[0].grouped == (True, False)
    rows = Codes.from_columns([np.array([2, 2, 0]), np.array([0, 1, 1])], (3, 2))
    counted = request.answer(RowsInMemory(rows)).reshape(3, 2)
    assert counted.tolist() == [[1, 1], [0, 1], [0, 0]]


def test_no_division_passes_the_cells():
    cuts = Cuts.start(schema_of(SIZES), 0)
    assert {a for a, _ in cuts.divisions(1000)} == {1, 2, 3}
    assert {a for a, _ in cuts.divisions(8)} == {1, 2}
    assert cuts.divisions(5) == []
    choice = DivisionChoice(cuts=cuts, score="max", most_cells=8, epsilon=Fraction(1))
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
