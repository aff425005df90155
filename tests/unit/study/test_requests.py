"""What a request counts, and how its answer is cut into tables."""

import numpy as np

from common.marginals import count
from common.methods.network_model import Variables
from common.schema.codes import binarise
from common.study.requests import RowsInMemory, TableRequest, split_tables
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
