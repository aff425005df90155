"""The scores I, F and R against the papers' examples and independent algorithms."""

import gmpy2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from common.bayes.privbayes.scores import (
    Score,
    independence_distance,
    mutual_information,
    mutual_information_error,
    scores,
)

# (joint distribution times 100, I in bits, F, R)
EXAMPLES = {
    "example 4.4 left": ([[50, 0, 0], [0, 50, 0]], 1, 0, 0.5),
    "example 4.4 right": ([[0, 20, 30], [50, 0, 0]], 1, 0, 0.5),
    "table 3a": ([[60, 0, 0, 0], [10, 10, 10, 10]], 0.5567796494, -0.2, 0.36),
    "table 3b": ([[50, 0, 0, 0], [0, 30, 10, 10]], 1, 0, 0.5),
    "skewed": ([[30, 20], [10, 40]], 0.1245112498, -0.3, 0.2),
    "symmetric": ([[40, 10], [10, 40]], 0.2780719051, -0.2, 0.3),
    "four columns": ([[5, 5, 30, 10], [20, 10, 5, 15]], 0.2319504801, -0.25, 0.25),
    "uniform 2x2": ([[25, 25], [25, 25]], 0, -0.5, 0),
    "point mass": ([[100, 0], [0, 0]], 0, -0.5, 0),
    "diagonal": ([[50, 0], [0, 50]], 1, 0, 0.5),
}


def one(score, table):
    return scores(score, np.array([table], dtype=np.int64))[0]


def in_paper_units(table):
    table = np.array(table)
    rows = table.sum()
    return (
        one(Score.MUTUAL_INFORMATION, table) / rows,
        one(Score.MAXIMUM_JOINT, table) / (2 * rows),
        one(Score.INDEPENDENCE, table) / rows**2,
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_scores_equal_the_papers_examples(name):
    table, *expected = EXAMPLES[name]
    assert in_paper_units(table) == pytest.approx(expected, abs=1e-9)


def test_uniform_2x4_has_the_lowest_scores():
    assert in_paper_units([[1, 1, 1, 1], [1, 1, 1, 1]]) == pytest.approx((0, -0.5, 0), abs=1e-12)


@pytest.mark.parametrize(
    ("rows", "information", "f", "r"),
    [
        (4, 0.8112781245, -0.25, 0.375),
        (5, 0.7219280949, None, None),
        (9, 0.5032583348, None, None),
        (10, 0.4689955936, None, None),
        (100, 0.0807931359, -0.49, 0.0198),
    ],
)
def test_extremal_pair_of_lemma_4_1(rows, information, f, r):
    assert in_paper_units([[0, 0], [0, rows]])[0] == pytest.approx(0, abs=1e-12)
    found = in_paper_units([[1, 0], [0, rows - 1]])
    assert found[0] == pytest.approx(information, abs=1e-9)
    if f is not None:
        assert found[1:] == pytest.approx((f, r), abs=1e-9)


def test_table_6_is_extremal_for_general_domains():
    for rows, gap in [(5, 1.1019550009), (9, 0.8021423277), (101, 0.1406115436)]:
        h = (rows - 1) // 2
        before = in_general([[1, 0, 0], [0, 0, h], [0, h, 0]])
        after = in_general([[0, 0, 0], [0, 0, h], [0, h, 1]])
        assert before - after == pytest.approx(gap, abs=1e-9)
    assert in_general([[1, 0, 0], [0, 0, 2], [0, 2, 0]]) == pytest.approx(1.5219280949, abs=1e-9)
    assert in_general([[0, 0, 0], [0, 0, 2], [0, 2, 1]]) == pytest.approx(0.4199730940, abs=1e-9)


def test_table_7_is_extremal_for_a_binary_child():
    before, after = [[1, 0, 0], [0, 100, 0]], [[0, 0, 0], [0, 100, 1]]
    assert in_general(after) == pytest.approx(0, abs=1e-12)
    assert in_general(before) == pytest.approx(0.0801360473, abs=1e-9)


def in_general(table):
    return one(Score.MUTUAL_INFORMATION, table) / np.sum(table)


tables = st.tuples(st.integers(2, 4), st.integers(1, 6)).flatmap(
    lambda shape: hnp.arrays(np.int64, shape, elements=st.integers(0, 30))
)


@settings(max_examples=300, deadline=None)
@given(tables)
def test_scores_stay_in_their_ranges_and_respect_pinsker(table):
    table[0, 0] += 1
    rows, q = int(table.sum()), min(table.shape)
    information = one(Score.MUTUAL_INFORMATION, table) / rows
    distance = one(Score.INDEPENDENCE, table) / rows**2
    error = mutual_information_error(rows=rows, cells=table.size) / rows
    assert -error <= information <= np.log2(q) + error
    assert 0 <= distance <= 1 - 1 / q
    assert distance**2 <= np.log(2) / 2 * information + error
    assert (information < 1e-9) == (distance == 0)
    assert one(Score.INDEPENDENCE, table.T) == one(Score.INDEPENDENCE, table)
    assert one(Score.MUTUAL_INFORMATION, table.T) == pytest.approx(information * rows, abs=1e-6)


@settings(max_examples=300, deadline=None)
@given(hnp.arrays(np.int64, (2, 5), elements=st.integers(0, 20)), st.permutations(range(5)))
def test_merging_columns_never_raises_a_score_and_their_order_does_not_matter(table, order):
    table[1, 4] += 1
    merged = np.hstack([table[:, :3], table[:, 3:].sum(axis=1, keepdims=True)])
    for score in Score:
        whole = one(score, table)
        assert one(score, merged) <= whole + 1e-6
        assert one(score, table[:, list(order)]) == pytest.approx(whole, abs=1e-6)
        assert one(score, table[::-1]) == pytest.approx(whole, abs=1e-6)


def test_mutual_information_stays_within_its_error_bound():
    def terms(counts):
        return sum(int(c) * gmpy2.log2(int(c)) for c in counts.ravel() if c)

    generator = np.random.default_rng(3)
    with gmpy2.context(precision=200):
        for _ in range(20):
            table = generator.integers(0, 5000, (4, 9))
            rows = int(table.sum())
            exact = terms(table) - terms(table.sum(0)) - terms(table.sum(1))
            exact += rows * gmpy2.log2(rows)
            gap = abs(exact - float(mutual_information(table[None])[0]))
            assert gap <= mutual_information_error(rows=rows, cells=table.size)


def test_independence_distance_is_exact_for_large_tables():
    half = 2**30 - 1
    table = np.array([[[half, 0], [0, half]]], dtype=np.int64)
    assert independence_distance(table)[0] == 2 * half**2
