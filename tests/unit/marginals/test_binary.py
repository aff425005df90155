"""Every table of binary attributes, assembled from subset counts, equals the plain count."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import InputError, LocalError
from common.marginals import binary
from common.marginals.binary import BinarySubsets, packed
from common.marginals.counting import count
from common.schema.codes import Codes


def random_bits(rows, width, seed=0):
    generator = np.random.default_rng(seed)
    chances = generator.random(width)
    return Codes.from_columns([generator.random(rows) < p for p in chances], [2] * width)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 200), st.integers(1, 7), st.data())
def test_every_table_equals_the_plain_count(rows, width, data):
    codes = random_bits(rows, width, data.draw(st.integers(0, 2**32)))
    order = data.draw(st.integers(1, width))
    subsets = BinarySubsets(codes, order, threads=data.draw(st.integers(1, 2)))
    for size in range(order + 1):
        sets = list(itertools.permutations(range(width), size))[:200]
        tables = subsets.tables(np.array(sets).reshape(len(sets), size))
        assert tables.dtype == np.int64
        assert tables.shape == (len(sets), *(2,) * size)
        expected = np.stack(count(codes, sets))
        assert np.array_equal(tables, expected)


@pytest.mark.parametrize("rows", [0, 1, 63, 64, 65, 128 * 3 + 1])
def test_rows_beside_a_word_or_block_boundary_are_counted_once(rows, monkeypatch):
    monkeypatch.setattr(binary, "_BLOCK_WORDS", 2)
    codes = Codes.from_columns([np.ones(rows, int), np.zeros(rows, int)], [2, 2])
    (table,) = BinarySubsets(codes, 2).tables([(0, 1)])
    np.testing.assert_array_equal(table, [[0, 0], [rows, 0]])


def test_high_order_of_many_attributes_ranks_without_overflow():
    codes = random_bits(500, 20, seed=2)
    subsets = BinarySubsets(codes, 5)
    sets = [(15, 16, 17, 18, 19), (19, 3, 0, 7, 11)]
    for table, expected in zip(subsets.tables(sets), count(codes, sets), strict=True):
        np.testing.assert_array_equal(table, expected)


def test_packing_keeps_every_bit():
    codes = random_bits(130, 3)
    bits = np.unpackbits(packed(codes).view(np.uint8), axis=1, bitorder="little")
    for attribute, column in enumerate(codes.columns):
        np.testing.assert_array_equal(bits[attribute, :130], column)
        assert not bits[attribute, 130:].any()


def test_attributes_of_more_than_two_values_are_refused():
    codes = Codes.from_columns([np.array([0, 2])], [3])
    with pytest.raises(LocalError, match="two values"):
        BinarySubsets(codes, 1)


@pytest.mark.parametrize("order", [0, 4])
def test_an_order_beyond_the_attributes_is_refused(order):
    with pytest.raises(LocalError, match=rf"order {order} is not in 1\.\.3"):
        BinarySubsets(random_bits(5, 3), order)


@pytest.mark.parametrize("sets", [[(0, 0)], [(0, 3)], [(-1, 0)], [(0, 1, 2)], [0, 1]])
def test_sets_that_were_not_counted_are_refused(sets):
    with pytest.raises(LocalError):
        BinarySubsets(random_bits(5, 3), 2).tables(sets)


def test_too_many_subsets_are_refused_with_their_number():
    subsets = sum(math.comb(100, m) for m in range(9))
    with pytest.raises(InputError, match=f"{subsets:,} subsets"):
        BinarySubsets(random_bits(1, 100), 8)
