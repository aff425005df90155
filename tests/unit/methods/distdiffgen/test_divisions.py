"""Choices of DistDiffGen: two sensitivities, the law of a choice, and the circuit that makes it."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from common.crypto.two_party.gates import InTheOpen
from common.errors import RemoteProtocolError
from common.methods.distdiffgen.cuts import Cuts
from common.methods.distdiffgen.divisions import (
    SCORES,
    SENSITIVITY,
    DivisionChoice,
    JointDivision,
    impurities,
)
from common.privacy.randomness import SeededRandomSource
from common.schema.codes import Codes
from parley.simulation.in_process import RowsInMemory
from tests.harness.run_script import random_tables, schema_of

SIZES = (2, 4, 3, 5)


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


def test_without_rows_every_candidate_may_be_chosen_and_what_is_chosen_says_its_attributes():
    """A party that rehearses has no rows: its choices must not be those of any."""
    _, cuts = two_attributes()
    choice = DivisionChoice(cuts=cuts, score="max", most_cells=100, epsilon=Fraction(1))
    source = SeededRandomSource("none")
    assert {choice.without_rows(source) for _ in range(40)} == {b"[1,0]", b"[2,0]"}
    assert choice.links(b"[2,0]") == [(2, 0)]
    with pytest.raises(RemoteProtocolError, match="not among the candidates"):
        choice.check(b"[2, 0]")


def test_every_field_of_a_choice_is_in_its_canonical_bytes():
    _, cuts = two_attributes()
    one = joint(cuts, "max", 9, Fraction(1))
    changes = ({"score": "gini"}, {"most_cells": 7}, {"epsilon": Fraction(2)}, {"rows": (9, 8)})
    others = [replace(one, **change) for change in (*changes, {"cuts": cuts.divided((1, 0))})]
    assert len({each.canonical for each in (one, *others)}) == 6


def test_a_result_that_is_no_candidates_number_is_refused():
    choice = joint(Cuts.start(schema_of((2, 4, 3, 5)), 0), "max", 9, Fraction(1))
    assert choice.output_bits == 2
    assert choice.outcome(np.array([False, True])) == b"[3,0]"
    with pytest.raises(RemoteProtocolError, match="a division that does not exist"):
        choice.outcome(np.array([True, True]))
