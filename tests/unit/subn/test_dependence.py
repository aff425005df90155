from fractions import Fraction
from itertools import combinations, product
from math import floor, pi, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.privacy import sensitivity
from common.schema.codes import Codes
from common.subn.dependence import DependenceScores, group_weights
from parley.in_process import RowsInMemory

SIZES = (3, 2, 4)
GROUPS = ((0, 1, 1), (0, 1), (0, 0, 1, 2))
WEIGHTS = ((3, 4), (1, 6), (2, 0, 5))
REQUEST = DependenceScores(GROUPS, WEIGHTS)

row = st.tuples(*(st.integers(0, size - 1) for size in SIZES))


def answer(rows) -> np.ndarray:
    columns = [np.array([r[a] for r in rows], dtype=np.int64) for a in range(3)]
    return REQUEST.answer(RowsInMemory(Codes.from_columns(columns, SIZES)))


@given(st.lists(row, min_size=1, max_size=12))
def test_scores_are_the_rounded_distances_by_brute_force(rows):
    for (a, b), score in zip(combinations(range(3), 2), answer(rows), strict=True):
        distance = Fraction(0)
        for i, j in product(range(len(WEIGHTS[a])), range(len(WEIGHTS[b]))):
            seen = sum(GROUPS[a][r[a]] == i and GROUPS[b][r[b]] == j for r in rows)
            share = Fraction(WEIGHTS[a][i] * WEIGHTS[b][j], sum(WEIGHTS[a]) * sum(WEIGHTS[b]))
            distance += abs(seen - len(rows) * share)
        assert score == floor(distance / 2)
        assert 0 <= score <= REQUEST.limit(len(rows))


def test_no_replaced_row_moves_the_scores_by_more_than_the_sensitivity():
    # Brute force: every table of two rows, every replacement of one of them.
    values = list(product(*map(range, SIZES)))
    exact = {(x, y): answer([x, y]) for x in values for y in values}
    moved = max(
        int(np.abs(exact[x, y] - exact[x, z]).sum()) for x in values for y in values for z in values
    )
    assert moved <= sensitivity.distance_to_reference(REQUEST.cells) == 3
    assert moved >= 2  # the bound is not idle


@given(st.lists(row, min_size=1, max_size=30), row)
def test_a_replaced_row_of_a_longer_table_stays_within_the_sensitivity(rows, other):
    assert np.abs(answer(rows) - answer([other, *rows[1:]])).sum() <= REQUEST.cells


def test_independent_attributes_score_about_nothing_and_equal_ones_much():
    rng = np.random.default_rng(5)
    rows, parties = 30_000, 3
    x, y = rng.integers(0, 4, rows), rng.integers(0, 4, rows)
    table = Codes.from_columns([x, y, x], (4, 4, 4))
    request = DependenceScores((tuple(range(4)),) * 3, ((1, 1, 1, 1),) * 3)
    total = sum(request.answer(RowsInMemory(table.take(slice(i, None, 3)))) for i in range(parties))
    apart, equal, again = request.in_excess(total, rows, parties)
    chance = 16 / 2 * sqrt(2 / pi * rows * parties / 16 * (15 / 16))
    assert abs(apart) < 0.5 * chance
    assert total[0] - apart == pytest.approx(chance, rel=0.01)
    assert equal == pytest.approx(0.75 * rows, abs=2 * chance)
    assert abs(again) < 0.5 * chance


def test_weights_of_groups_are_never_all_zero():
    assert group_weights(np.array([5, -3, 7, 2]), (0, 0, 1, 1), 14) == (5, 9)
    assert group_weights(np.array([-5, -3, -7]), (0, 1, 1), 14) == (1, 1)


def test_products_beyond_64_bits_are_exact():
    huge = 10**10
    request = DependenceScores(((0, 1), (0, 1)), ((huge, huge), (huge, huge)))
    table = Codes.from_columns([np.array([0, 1]), np.array([0, 1])], (2, 2))
    assert request.answer(RowsInMemory(table)).tolist() == [1]
