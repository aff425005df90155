"""Balanced rows: nothing stratified changes, and tables of pairs are nearer to the model's."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.methods.subn_plus import balance
from common.methods.subn_plus.balance import balanced
from common.methods.subn_plus.latent import LatentModel
from common.methods.subn_plus.strata import stratified
from common.privacy.randomness import SeededRandomSource


def drawn(classes, sizes, rows, seed):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(classes))
    laws = [rng.dirichlet(np.ones(size), classes) for size in sizes]
    source = SeededRandomSource(seed)
    *columns, of = stratified(weights, [*laws, np.eye(classes)], rows, source)
    return weights, laws, columns, of


def squares(columns, weights, laws, units, rows):
    """Return the squared error of all tables of pairs of different units, by enumeration."""
    total = 0.0
    for a, b in combinations(range(len(columns)), 2):
        if units[a] != units[b]:
            table = np.zeros((laws[a].shape[1], laws[b].shape[1]))
            np.add.at(table, (columns[a], columns[b]), 1)
            expected = rows * np.einsum("m,mi,mj->ij", weights, laws[a], laws[b])
            total += ((table - expected) ** 2).sum()
    return total


@settings(max_examples=40, deadline=None)
@given(
    rows=st.integers(0, 300),
    classes=st.integers(1, 5),
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=5),
    joined=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_classes_keep_their_values_and_units_their_rows(rows, classes, sizes, joined, seed):
    weights, laws, columns, of = drawn(classes, sizes, rows, seed)
    units = [0 if joined and a < 2 else a for a in range(len(sizes))]
    moved = balanced(columns, of, weights, laws, units, SeededRandomSource(seed))
    for unit in set(units):
        own = [a for a in range(len(sizes)) if units[a] == unit]
        before, after = (
            sorted(zip(of, *(kept[a] for a in own), strict=True)) for kept in (columns, moved)
        )
        assert before == after
    errors = [squares(kept, weights, laws, units, rows) for kept in (columns, moved)]
    # Errors are counted in sixteenths of a row: each of a few cells may be off by half of one.
    assert errors[1] <= errors[0] * 1.001 + 2 * sum(sizes) ** 2 * 0.05


def test_chance_is_taken_out_of_tables_of_pairs():
    rows, sizes = 4_000, (6, 5, 9, 2, 3)
    weights, laws, columns, of = drawn(4, sizes, rows, 3)
    moved = balanced(columns, of, weights, laws, range(5), SeededRandomSource(1))
    errors = [squares(kept, weights, laws, range(5), rows) for kept in (columns, moved)]
    assert errors[1] < errors[0] / 8
    again = balanced(columns, of, weights, laws, range(5), SeededRandomSource(1))
    assert all(map(np.array_equal, moved, again))


@pytest.mark.parametrize("limit", ["MOST_ROWS", "MOST_VALUES", "_MOST_CELLS", "_MOST_STEPS"])
def test_beyond_each_limit_rows_stay_as_they_are(limit, monkeypatch):
    weights, laws, columns, of = drawn(2, (3, 4), 50, 1)
    monkeypatch.setattr(balance, limit, 2)
    moved = balanced(columns, of, weights, laws, (0, 1), SeededRandomSource(1))
    assert all(map(np.array_equal, moved, columns))


def test_many_rows_are_those_of_the_strata_alone():
    weights, laws, _, _ = drawn(3, (3, 4), 10, 1)
    rows = balance.MOST_ROWS + 1
    model = LatentModel(weights, tuple(laws))
    plain = stratified(weights, laws, rows, SeededRandomSource(5))
    assert np.array_equal(model.sample(rows, SeededRandomSource(5)).columns, plain)
