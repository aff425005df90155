"""Codes: checked once, so that everything downstream may index with them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import LocalError
from common.schema.codes import Codes, code_dtype, concatenate


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
