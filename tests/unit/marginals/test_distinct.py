"""Collapsed rows stand for the rows they came from."""

from collections import Counter as Dictionary

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from common.marginals import Counter, count, distinct_rows
from common.schema.codes import Codes


def random_codes(rows, sizes, seed=0):
    generator = np.random.default_rng(seed)
    return Codes.from_columns([generator.integers(0, s, rows) for s in sizes], sizes)


def rows_of(codes):
    return list(zip(*(column.tolist() for column in codes.columns), strict=True))


@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 50),
    st.lists(st.sampled_from([1, 2, 3, 300]), min_size=1, max_size=6),
    st.integers(0, 2**32),
)
def test_distinct_rows_are_the_keys_of_a_dictionary_in_order(rows, sizes, seed):
    codes = random_codes(rows, sizes, seed)
    distinct, weights = distinct_rows(codes)
    assert weights.dtype == np.int64
    assert distinct.sizes == codes.sizes
    expected = sorted(Dictionary(rows_of(codes)).items())
    assert list(zip(rows_of(distinct), weights.tolist(), strict=True)) == expected


def test_rows_wider_than_one_key_are_told_apart_by_every_column():
    width = 10
    sizes = [60_000] * width
    base = np.full(3 * width, 59_999)
    columns = [base.copy() for _ in range(width)]
    for attribute in range(width):
        columns[attribute][3 * attribute + 1] = 0
    codes = Codes.from_columns(columns, sizes)
    distinct, weights = distinct_rows(codes)
    assert dict(zip(rows_of(distinct), weights.tolist(), strict=True)) == Dictionary(rows_of(codes))
    assert distinct.rows == width + 1
    assert rows_of(distinct) == sorted(rows_of(distinct))


def test_a_counter_collapses_rows_that_repeat_and_counts_them_all():
    codes = random_codes(5_000, [2, 3, 4])
    counter = Counter(codes)
    assert (counter.rows, counter.rows_held, counter.sizes) == (5_000, 24, (2, 3, 4))
    sets = [(2, 0), (1,), (), (0, 1, 2)]
    for table, expected in zip(counter.count(sets), count(codes, sets), strict=True):
        np.testing.assert_array_equal(table, expected)


def test_a_counter_keeps_rows_that_hardly_repeat():
    codes = random_codes(2_000, [300, 300, 2])
    counter = Counter(codes, threads=1)
    assert counter.rows_held == 2_000
    for table, expected in zip(counter.count([(2, 1)]), count(codes, [(2, 1)]), strict=True):
        np.testing.assert_array_equal(table, expected)


def test_a_sample_that_repeats_by_accident_does_not_collapse_the_rows():
    values = np.arange(65_536)
    values[::4] = 0  # every fourth row, which is what a sample of 16,384 looks at
    codes = Codes.from_columns([values // 256, values % 256], [256, 256])
    counter = Counter(codes)
    assert counter.rows_held == 65_536
    np.testing.assert_array_equal(counter.count([(0, 1)])[0], count(codes, [(0, 1)])[0])


def test_a_counter_of_no_rows_gives_zeros():
    counter = Counter(random_codes(0, [2, 3]))
    assert not counter.count([(0, 1)])[0].any()
    assert counter.rows == 0
