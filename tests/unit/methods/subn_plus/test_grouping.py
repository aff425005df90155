from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from common.methods.subn_plus.grouping import (
    GroupedTables,
    even_groups,
    halves,
    without_noise_floor,
)
from common.schema import limits
from common.schema.codes import Codes
from common.study.requests import split_tables
from parley.simulation.in_process import RowsInMemory

counts = st.lists(st.integers(-50, 400), min_size=1, max_size=9).map(np.array)


@given(counts, st.integers(0, 1000))
def test_the_noise_floor_leaves_at_most_the_rows_and_no_less_than_needed(values, rows):
    left = without_noise_floor(values, rows)
    assert (left >= 0).all()
    assert left.sum() <= rows
    taken = int(values.max()) - int(left.max())
    if taken > 0:
        assert np.maximum(values - (taken - 1), 0).sum() > rows or taken == values.max()


@settings(deadline=None)
@given(counts)
def test_halves_are_the_first_of_the_most_even_cuts(values):
    chosen = halves(values, 500)
    size = len(values)
    weights = without_noise_floor(values, 500)
    cost = {cut: abs(int(weights[:cut].sum() - weights[cut:].sum())) for cut in range(1, size)}
    first = min((cut for cut in cost if cost[cut] == min(cost.values())), default=1)
    assert chosen == (0,) * first + (1,) * (size - first)


def test_billions_of_rows_do_not_overflow():
    rows = 10**4 * limits.MOST_ROWS
    values = np.array([4, 1, 1, 3]) * (rows // 9)
    assert halves(values, rows) == (0, 1, 1, 1)
    assert even_groups(values, rows, 3) == (0, 1, 1, 2)
    many = np.full(1000, rows // 1000)
    assert even_groups(many, rows, 64) == tuple((2 * v + 1) * 64 // 2000 for v in range(1000))


def test_grouped_tables_are_the_tables_summed_over_the_groups_and_add_up_over_parties():
    rng = np.random.default_rng(2)
    table = Codes.from_columns([rng.integers(0, s, 300) for s in (4, 2, 5)], (4, 2, 5))
    request = GroupedTables(((2, 0), (1,), (0, 1, 2)), ((0, 0, 1, 1), (0, 1), (0, 1, 1, 1, 2)))
    assert (request.sizes, request.cells) == ((2, 2, 3), 6 + 2 + 12)
    whole = request.answer(RowsInMemory(table))
    parts = [table.take(slice(0, 100)), table.take(slice(100, 300))]
    assert (whole == sum(request.answer(RowsInMemory(part)) for part in parts)).all()
    first, second, _ = split_tables(request.tables, whole)
    expected = np.zeros((3, 2), dtype=int)
    for x, z in zip(table.columns[0], table.columns[2], strict=True):
        expected[request.groups[2][z], request.groups[0][x]] += 1
    assert (first == expected).all()
    assert (second == np.bincount(table.columns[1])).all()
    assert request.map_of(1) is None
    assert list(request.map_of(0)) == [0, 0, 1, 1]
    other = GroupedTables(request.sets, request.groups[::-1])
    assert other.canonical != request.canonical
    assert request.limit(300) == 300


def test_ungrouped_tables_are_plain_counts():
    table = Codes.from_columns([np.array([0, 1, 1])], (2,))
    request = GroupedTables(((0,),), ((0, 1),))
    assert list(request.answer(RowsInMemory(table))) == [1, 2]


@given(
    st.lists(st.integers(-50, 1000), min_size=1, max_size=30),
    st.integers(1, 3000),
    st.integers(2, 12),
)
def test_even_groups_are_runs_and_at_least_two(counts, rows, groups):
    found = even_groups(np.array(counts), rows, groups)
    assert len(found) == len(counts)
    assert all(b - a in (0, 1) for a, b in pairwise(found))
    assert found[0] == 0
    assert min(2, len(counts)) <= max(found) + 1 <= max(groups, min(2, len(counts)))


def test_one_frequent_value_leaves_few_groups():
    assert even_groups(np.array([9000, 100, 100, 100, 100, 100]), 9500, 5) == (0, 1, 1, 1, 1, 1)
    assert even_groups(np.array([10] * 6), 60, 3) == (0, 0, 1, 1, 2, 2)
