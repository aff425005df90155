"""Bits: natural and Gray codes come back, and patterns that stand for no value never do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import LocalError
from common.schema.codes import Codes
from common.schema.encodings import binarise, bit_count, bit_positions, debinarise


@pytest.mark.parametrize("gray", [False, True])
@pytest.mark.parametrize("size", [*range(2, 42), 256, 257, 65_536])
def test_every_code_survives_the_round_trip(size, gray):
    codes = Codes.from_columns([np.arange(size)], [size])
    bits = binarise(codes, gray=gray)
    assert bits.width == bit_count(size) == int(np.ceil(np.log2(size)))
    (column,), valid = debinarise(bits, codes.sizes, gray=gray)
    assert valid.all()
    assert column.dtype == codes.columns[0].dtype
    np.testing.assert_array_equal(column, codes.columns[0])


def test_the_papers_eight_bins_have_their_printed_codes():
    codes = Codes.from_columns([np.arange(8)], [8])
    for gray, printed in (
        (False, "000 001 010 011 100 101 110 111"),
        (True, "000 001 011 010 110 111 101 100"),
    ):
        rows = np.stack(binarise(codes, gray=gray).columns, axis=1)
        assert " ".join("".join(map(str, row)) for row in rows) == printed


@pytest.mark.parametrize("size", range(2, 42))
def test_gray_neighbours_differ_in_one_bit(size):
    bits = np.stack(binarise(Codes.from_columns([np.arange(size)], [size]), gray=True).columns)
    assert (np.abs(np.diff(bits.astype(int), axis=1)).sum(axis=0) == 1).all()


@given(st.lists(st.integers(2, 41), min_size=1, max_size=4), st.booleans(), st.integers(0, 99))
def test_patterns_without_a_value_are_masked_and_never_reach_the_codes(sizes, gray, seed):
    width = sum(bit_count(size) for size in sizes)
    random = np.random.default_rng(seed).integers(0, 2, (width, 200), dtype=np.uint8)
    bits = Codes(tuple(random), (2,) * width)
    columns, valid = debinarise(bits, sizes, gray=gray)
    codes = Codes(columns, tuple(sizes))  # refuses a code outside its domain
    # Exactly the rows that say they are valid are those whose bits come back.
    again = np.stack(binarise(codes, gray=gray).columns)
    np.testing.assert_array_equal((again == random).all(axis=0), valid)


def test_several_attributes_keep_their_bits_apart():
    assert bit_positions([2, 5, 16]) == [range(1), range(1, 4), range(4, 8)]
    codes = Codes.from_columns([np.array([1]), np.array([4]), np.array([9])], [2, 5, 16])
    assert [int(bit[0]) for bit in binarise(codes).columns] == [1, 1, 0, 0, 1, 0, 0, 1]


def test_bits_that_do_not_fit_the_attributes_are_refused():
    with pytest.raises(LocalError, match="do not make"):
        debinarise(Codes.from_columns([np.array([0])], [2]), [3])
    with pytest.raises(LocalError, match="do not make"):
        debinarise(Codes.from_columns([np.array([0])], [3]), [2])
