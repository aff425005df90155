"""Projections keep the order asked for, and no table is larger than can be held."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InputError, LocalError
from common.marginals import MAX_CELLS, cell_count, project


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
