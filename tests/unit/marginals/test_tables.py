"""Projections keep the order asked for; a covering holds every set in fewer, small tables."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import InputError, LocalError
from common.marginals import tables
from common.marginals.tables import CACHED_CELLS, MAX_CELLS, cell_count, cover, project


@given(st.permutations(range(4)), st.integers(0, 4), st.sampled_from([np.int64, np.float64]))
def test_a_projection_sums_out_and_transposes(order, kept, dtype):
    table = np.random.default_rng(0).integers(0, 100, (2, 3, 4, 5)).astype(dtype)
    axes = order[:kept]
    projected = project(table, axes)
    letters = "abcd"
    expected = np.einsum(f"{letters}->{''.join(letters[a] for a in axes)}", table)
    assert projected.dtype == dtype
    np.testing.assert_array_equal(projected, expected)


def test_a_projection_shares_no_memory_with_its_table():
    table = np.ones((2, 3), dtype=np.int64)
    project(table, (0, 1))[0, 0] = 7
    assert table[0, 0] == 1


@pytest.mark.parametrize("axes", [(0, 0), (2,), (-1,)])
def test_axes_a_table_does_not_have_are_refused(axes):
    with pytest.raises(LocalError, match="distinct axes of a 2-way table"):
        project(np.ones((2, 3)), axes)


def test_the_largest_table_is_allowed_and_the_next_is_refused_with_its_size():
    assert cell_count([1 << 16, 1 << 15]) == MAX_CELLS
    with pytest.raises(InputError, match=r"2,147,516,416 cells \(65537 x 32768\)"):
        cell_count([(1 << 16) + 1, 1 << 15])


def test_a_table_of_no_attributes_has_one_cell():
    assert cell_count([]) == 1


@settings(max_examples=100, deadline=None)
@given(st.data(), st.lists(st.integers(1, 300), min_size=1, max_size=8))
def test_every_set_lies_in_its_home_and_homes_grow_only_within_the_cache(data, sizes):
    attributes = st.lists(st.integers(0, len(sizes) - 1), unique=True, max_size=4).map(tuple)
    sets = data.draw(st.lists(attributes, max_size=12))
    homes = cover(sets, sizes)
    asked = {tuple(sorted(each)) for each in sets if each}
    assert set(homes) == asked
    for each, home in homes.items():
        assert set(each) <= set(home)
        assert list(home) == sorted(set(home))
        assert home in asked or math.prod(sizes[a] for a in home) <= CACHED_CELLS
    assert len(set(homes.values())) <= len(asked)


def test_all_pairs_of_small_domains_need_a_third_of_the_tables():
    pairs = list(itertools.combinations(range(15), 2))
    assert len(set(cover(pairs, [10] * 15).values())) <= len(pairs) // 2
    assert set(cover(pairs, [2] * 15).values()) != set(pairs)


def test_a_request_of_very_many_sets_is_counted_as_asked(monkeypatch):
    monkeypatch.setattr(tables, "_MOST_SETS", 2)
    sets = [(0, 1), (1, 2), (2, 0)]
    assert cover(sets, [2, 2, 2]) == {(0, 1): (0, 1), (1, 2): (1, 2), (0, 2): (0, 2)}
