"""Codes: checked once, so that all that follows may index with them; and bits that come back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import LocalError
from common.schema.codes import (
    MIDDLE,
    PLACES,
    Codes,
    binarise,
    bit_count,
    bit_positions,
    code_dtype,
    concatenate,
    debinarise,
)


@pytest.mark.parametrize(
    ("size", "dtype"),
    [(1, np.uint8), (2, np.uint8), (256, np.uint8), (257, np.uint16), (65_536, np.uint16)],
)
def test_a_code_takes_the_narrowest_type(size, dtype):
    assert code_dtype(size) is dtype


@pytest.mark.parametrize("size", [-1, 0, 65_537])
def test_a_domain_that_cannot_be_coded_is_refused(size):
    with pytest.raises(LocalError, match="1 to 65,536"):
        code_dtype(size)


def test_columns_of_any_integer_type_become_narrow_contiguous_codes():
    wide = np.arange(20, dtype=np.int64)[::2]
    codes = Codes.from_columns([wide, np.arange(10) * 30], [19, 271])
    assert [column.dtype for column in codes.columns] == [np.uint8, np.uint16]
    assert all(column.flags.c_contiguous for column in codes.columns)
    assert (codes.rows, codes.width) == (10, 2)
    assert codes.columns[0].tolist() == wide.tolist()


@pytest.mark.parametrize("bad", [[-1, 0], [0, 3], [70_000, 0]])
def test_values_outside_the_domain_are_refused_not_wrapped(bad):
    with pytest.raises(LocalError, match=r"0\.\.2"):
        Codes.from_columns([np.array(bad)], [3])


@pytest.mark.parametrize(
    ("columns", "sizes", "message"),
    [
        ([np.zeros(2, np.uint8)], (2, 2), "1 columns but 2"),
        ([np.zeros(2, np.uint8), np.zeros(3, np.uint8)], (2, 2), "3 rows, not 2"),
        ([np.zeros(2, np.int64)], (2,), "uint8"),
        ([np.zeros(2, np.uint8)], (300,), "uint16"),
        ([np.zeros((2, 1), np.uint8)], (2,), "shape"),
        ([np.array([0, 2], np.uint8)], (2,), "not below 2"),
    ],
)
def test_a_table_that_is_not_codes_is_refused(columns, sizes, message):
    with pytest.raises(LocalError, match=message):
        Codes(tuple(columns), sizes)


def test_a_table_without_columns_or_rows_is_a_table():
    assert Codes((), ()).rows == 0
    assert Codes.from_columns([np.array([], dtype=np.int64)], [2]).rows == 0


def test_select_shares_memory_and_keeps_the_order_asked_for():
    codes = Codes.from_columns([np.array([0, 1]), np.array([2, 0])], [2, 3])
    swapped = codes.select([1, 0])
    assert swapped.sizes == (3, 2)
    assert swapped.columns[0] is codes.columns[1]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 299)), min_size=1), st.data())
def test_rows_taken_and_put_together_again_are_the_same_table(rows, data):
    codes = Codes.from_columns(np.array(rows).T, [5, 300])
    cut = data.draw(st.integers(0, len(rows)))
    again = concatenate([codes.take(slice(0, cut)), codes.take(np.arange(cut, len(rows)))])
    assert again.sizes == codes.sizes
    for before, after in zip(codes.columns, again.columns, strict=True):
        assert before.dtype == after.dtype
        np.testing.assert_array_equal(before, after)


def test_tables_of_different_domains_are_not_concatenated():
    one, other = (Codes.from_columns([np.array([0])], [size]) for size in (2, 3))
    for tables in ([one, other], []):
        with pytest.raises(LocalError, match="same domains"):
            concatenate(tables)


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


def test_places_go_with_their_rows_and_are_in_the_middle_where_there_are_none():
    inside = np.array([0, 254, 9], dtype=np.uint8)
    table = Codes.from_columns([np.array([0, 1, 1]), np.array([2, 0, 1])], [2, 3])
    placed = Codes(table.columns, table.sizes, places=(inside, None))
    assert placed.take(np.array([2, 0])).places[0].tolist() == [9, 0]
    assert placed.select([1, 0]).places[1] is inside
    assert placed.in_groups({0: [0, 0]}).places is placed.places
    assert placed.placed.sizes == (2, 3, PLACES, PLACES)
    assert placed.placed.columns[3].tolist() == [MIDDLE] * 3
    both = concatenate([table, placed])
    assert both.places[0].tolist() == [MIDDLE] * 3 + [0, 254, 9]
    assert both.places[1] is None
    assert concatenate([table, table]).places == ()
    assert placed.nbytes == table.nbytes + 3
    with pytest.raises(LocalError, match="one byte for each row"):
        Codes(table.columns, table.sizes, places=(inside[:2], None))
