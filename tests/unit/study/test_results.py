"""Sums as they are published: every cell comes back, in the fewest bytes, and in no other form."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import RemoteProtocolError
from common.study.results import encode_cells, read_cells

CELLS = st.lists(
    st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-300, 300)), min_size=1, max_size=40
)


@given(CELLS)
def test_every_cell_comes_back(cells):
    data = encode_cells(np.array(cells, np.int64))
    assert read_cells(data, len(cells)).tolist() == cells


@pytest.mark.parametrize("width", range(1, 9))
def test_cells_are_as_wide_as_the_largest_needs(width):
    low, high = -(1 << 8 * width - 1), (1 << 8 * width - 1) - 1
    for cell, beyond in ((low, low - 1), (high, high + 1)):
        assert len(encode_cells(np.array([0, cell, 1]))) == 3 * width
        if width < 8:
            assert len(encode_cells(np.array([0, beyond, 1]))) == 3 * (width + 1)


@pytest.mark.parametrize("data", [b"", b"\1\0\2", bytes(18), bytes(4), b"\1\0\2\0"])
def test_what_is_no_shortest_form_of_two_cells_is_refused(data):
    with pytest.raises(RemoteProtocolError, match="a sum of 2 cells"):
        read_cells(data, 2)
