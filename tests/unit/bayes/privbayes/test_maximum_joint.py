"""Score F against its definition and three other algorithms."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import linprog

from common.bayes.privbayes.scores import doubled_maximum_joint_scores
from common.errors import LocalError


def doubled(table):
    return int(doubled_maximum_joint_scores(np.array([table], dtype=np.int64))[0])


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
    assert by_pareto_states(table) == doubled(table) == -4


@settings(max_examples=400, deadline=None)
@given(
    st.integers(1, 7).flatmap(lambda m: hnp.arrays(np.int64, (2, m), elements=st.integers(0, 12))),
    st.integers(0, 15),
)
def test_score_f_equals_three_other_algorithms(table, skew):
    table = table + np.array([[skew], [0]]) * (table.sum(axis=0) % 2)
    if table.sum() == 0:
        table[0, 0] = 1
    found = doubled(table)
    assert found == by_enumeration(table) == by_pareto_states(table) == by_array(table)
    assert -table.sum() <= found <= 0


def test_score_f_equals_the_linear_program_of_its_definition():
    generator = np.random.default_rng(1)
    for _ in range(25):
        table = generator.integers(0, 6, (2, int(generator.integers(2, 4))))
        table[0, 0] += 1
        found = doubled(table) / (2 * table.sum())
        assert found == pytest.approx(by_linear_programs(table), abs=1e-9)


def test_score_f_of_large_sparse_tables_equals_the_array_program():
    generator = np.random.default_rng(2)
    tables = generator.poisson(generator.gamma(0.2, 300, (40, 2, 64)))
    found = doubled_maximum_joint_scores(tables.astype(np.int64))
    assert found.tolist() == [by_array(table) for table in tables]


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
        doubled_maximum_joint_scores(np.ones((1, 3, 2), dtype=np.int64))


def test_many_tables_score_as_each_alone():
    """More tables than one task holds, so that threads share them; some need the knapsack."""
    generator = np.random.default_rng(4)
    tables = generator.integers(0, 9, (300, 2, 5))
    tables[::3, 0] += 7
    assert doubled_maximum_joint_scores(tables).tolist() == [by_enumeration(t) for t in tables]
