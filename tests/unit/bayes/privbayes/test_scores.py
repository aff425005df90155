"""The scores I, F and R against the papers' examples and independent algorithms."""

from itertools import product

import gmpy2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import linprog

from common.bayes.privbayes.scores import (
    Score,
    independence_distance,
    mutual_information,
    mutual_information_error,
    scores,
)
from common.errors import LocalError

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


# --- independent ways to compute F ---------------------------------------------------------------


def by_enumeration(table):
    """2 n F over all 2^m ways to give columns to rows."""
    zeros, ones = table
    rows = table.sum()
    given = (np.arange(2 ** len(zeros))[:, None] >> np.arange(len(zeros))) & 1
    covered = np.minimum(2 * (given @ zeros), rows) + np.minimum(2 * ((1 - given) @ ones), rows)
    return int(covered.max() - 2 * rows)


def by_pareto_states(table):
    """2 n F by the papers' dynamic program over non-dominated (a, b)."""
    states = [(0, 0)]
    for zero, one_ in table.T.tolist():
        reached = sorted({(a + zero, b) for a, b in states} | {(a, b + one_) for a, b in states})
        states, best = [], -1
        for a, b in reversed(reached):
            if b > best:
                states.append((a, b))
                best = b
    rows = int(table.sum())
    return max(min(2 * a, rows) + min(2 * b, rows) for a, b in states) - 2 * rows


def by_array(table):
    """2 n F by the dynamic program best[a] = largest b, with a capped at n/2."""
    rows = int(table.sum())
    cap = -(-rows // 2)
    best = np.full(cap + 1, -1)
    best[0] = 0
    for zero, one_ in table.T.tolist():
        fresh = np.where(best >= 0, best + one_, -1)
        moved = np.full(cap + 1, -1)
        if zero <= cap:
            moved[zero:] = best[: cap + 1 - zero]
        moved[cap] = max(moved[cap], best[max(0, cap - zero) :].max())
        best = np.maximum(fresh, moved)
    a = np.flatnonzero(best >= 0)
    return int((np.minimum(2 * a, rows) + np.minimum(2 * best[a], rows)).max() - 2 * rows)


def by_linear_programs(table):
    """F as the smallest L1 distance to a maximum joint distribution, over the definition itself."""
    rows, columns = table.sum(), table.shape[1]
    target = (table / rows).ravel()
    size = 2 * columns
    best = np.inf
    for owner in product(range(2), repeat=columns):
        # Variables: the joint q (size) and the distances t (size), t >= |q - target|.
        upper = [(0, None if owner[i % columns] == i // columns else 0) for i in range(size)]
        rows_sum = np.zeros((2, 2 * size))
        rows_sum[0, :columns] = rows_sum[1, columns:size] = 1
        identity = np.eye(size)
        result = linprog(
            np.r_[np.zeros(size), np.ones(size)],
            A_ub=np.block([[identity, -identity], [-identity, -identity]]),
            b_ub=np.r_[target, -target],
            A_eq=rows_sum,
            b_eq=[0.5, 0.5],
            bounds=upper + [(0, None)] * size,
        )
        if result.success:
            best = min(best, result.fun)
    return -best / 2


def test_score_f_takes_the_papers_trace():
    table = np.array([[6, 0, 0, 0], [1, 1, 1, 1]])
    assert by_pareto_states(table) == one(Score.MAXIMUM_JOINT, table) == -4


@settings(max_examples=400, deadline=None)
@given(
    st.integers(1, 7).flatmap(lambda m: hnp.arrays(np.int64, (2, m), elements=st.integers(0, 12))),
    st.integers(0, 15),
)
def test_score_f_equals_three_other_algorithms(table, skew):
    table = table + np.array([[skew], [0]]) * (table.sum(axis=0) % 2)
    if table.sum() == 0:
        table[0, 0] = 1
    found = one(Score.MAXIMUM_JOINT, table)
    assert found == by_enumeration(table) == by_pareto_states(table) == by_array(table)
    assert -table.sum() <= found <= 0


def test_score_f_equals_the_linear_program_of_its_definition():
    generator = np.random.default_rng(1)
    for _ in range(25):
        table = generator.integers(0, 6, (2, int(generator.integers(2, 4))))
        table[0, 0] += 1
        found = one(Score.MAXIMUM_JOINT, table) / (2 * table.sum())
        assert found == pytest.approx(by_linear_programs(table), abs=1e-9)


def test_score_f_of_large_sparse_tables_equals_the_array_program():
    generator = np.random.default_rng(2)
    tables = generator.poisson(generator.gamma(0.2, 300, (40, 2, 64)))
    found = scores(Score.MAXIMUM_JOINT, tables.astype(np.int64))
    assert found.tolist() == [by_array(table) for table in tables]


# --- properties ----------------------------------------------------------------------------------

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


def test_number_partitioning_as_printed_fails_and_with_two_empty_columns_holds():
    """[Zhang17, Thm 5.1] needs two more columns: rows c and d must have a home."""

    def score_f(weights, empty):
        table = np.zeros((4, len(weights) + empty))
        table[:2, : len(weights)] = np.array(weights) / (2 * sum(weights))
        best = np.inf
        for owner in product(range(4), repeat=table.shape[1]):
            held = [[table[x, p] for p, o in enumerate(owner) if o == x] for x in range(4)]
            if all(held):  # every row needs a column to put its quarter of the mass in
                best = min(best, sum(max(0.0, 0.25 - sum(cells)) for cells in held))
        return -best

    assert score_f([1, 1, 1, 1], 0) == pytest.approx(-0.75)
    assert score_f([3, 1, 1, 2, 2, 1], 0) == pytest.approx(-0.6)
    assert score_f([1, 1, 1, 1], 2) == pytest.approx(-0.5)
    assert score_f([1, 1, 1, 2], 2) == pytest.approx(-0.55)


def test_score_f_refuses_a_child_of_three_values():
    with pytest.raises(LocalError, match="binary child"):
        scores(Score.MAXIMUM_JOINT, np.ones((1, 3, 2), dtype=np.int64))


def test_independence_distance_is_exact_for_large_tables():
    half = 2**30 - 1
    table = np.array([[[half, 0], [0, half]]], dtype=np.int64)
    assert independence_distance(table)[0] == 2 * half**2
