"""What a request counts, and how its answer is cut into tables."""

from itertools import combinations

import numpy as np
import pytest

from common.marginals import count
from common.methods.variables import Variables
from common.schema.encodings import binarise
from common.study.requests import BitRows, TableRequest, split_tables
from parley.simulation.in_process import RowsInMemory
from tests.harness.run_script import random_tables

MIXED = (2, 3, 9, 5)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("fraction", [1, 40])  # many tables come from subsets, few are counted
def test_bits_are_counted_as_binarised_rows_are(order, fraction):
    (table,) = random_tables(MIXED, [500]).values()
    bits = binarise(table)
    sets = list(combinations(range(bits.width), order))[::fraction]
    sets = [tuple(reversed(each)) for each in sets]
    rows = BitRows(RowsInMemory(table))
    assert rows.rows == 500
    for got, want in zip(rows.count(sets), count(bits, sets), strict=True):
        assert np.array_equal(got, want)


def test_an_answer_is_cut_into_the_tables_it_was_made_of():
    (table,) = random_tables(MIXED, [500]).values()
    for variables in (Variables(MIXED), Variables(MIXED, in_bits=True)):
        request = variables.request([(0,), (2, 1), (3, 0, 1)])
        vector = request.answer(RowsInMemory(table))
        assert vector.shape == (request.cells,)
        truth = variables.rows(RowsInMemory(table)).count(request.sets)
        for got, want in zip(split_tables(request.tables, vector), truth, strict=True):
            assert np.array_equal(got, want)


def test_the_same_tables_of_bits_are_another_request():
    sets = ((0, 1), (2,))
    own, bits = (TableRequest(sets, (2, 2, 2), in_bits=b).canonical for b in (False, True))
    assert own != bits
