"""What a request counts, and how its answer is cut into tables."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import RemoteProtocolError
from common.marginals import count
from common.methods.network_model import Variables
from common.schema.codes import binarise
from common.study.requests import RowsInMemory, TableRequest, encode_cells, read_cells, split_tables
from tests.harness.run_script import random_tables

MIXED = (2, 3, 9, 5)


def test_an_answer_is_cut_into_the_tables_it_was_made_of():
    (table,) = random_tables(MIXED, [500]).values()
    for variables in (Variables(MIXED), Variables(MIXED, in_bits=True)):
        request = variables.request([(0,), (2, 1), (3, 0, 1)])
        vector = request.answer(RowsInMemory(table))
        assert vector.shape == (request.cells,)
        truth = count(binarise(table) if variables.in_bits else table, request.sets)
        for got, want in zip(split_tables(request.tables, vector), truth, strict=True):
            assert np.array_equal(got, want)


def test_the_same_tables_of_bits_are_another_request():
    sets = ((0, 1), (2,))
    own, bits = (TableRequest(sets, (2, 2, 2), in_bits=b).canonical for b in (False, True))
    assert own != bits


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
