"""Proposed bins begin and end where people ask, and hold the data."""

import datetime as dt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.schema.round_bins import growing_numbers, round_dates, round_numbers

DAY_S = 86_400
EPOCH = dt.date(1970, 1, 1)
DATES = st.dates(dt.date(1700, 1, 1), dt.date.max)


def seconds(date):
    return (date - EPOCH).days * DAY_S


def days(binning):
    return [EPOCH + dt.timedelta(days=int(edge)) for edge in binning.edges]


@pytest.mark.parametrize(
    ("low", "high", "first", "last", "bins"),
    [
        (0, 99, 0, 99, 20),
        (17, 90, 15, 94, 16),
        (1, 7, 1, 7, 7),
        (1_660, 323_269, 0, 339_999, 17),
        (-12, 12, -12, 13, 13),
    ],
)
def test_whole_numbers_get_bins_of_round_widths(low, high, first, last, bins):
    found = round_numbers(low, high, whole=True)
    assert (found.low, found.high, found.count) == (first, last, bins)
    width = (last + 1 - first) // bins
    assert found.first.tolist() == list(range(first, last + 1, width))


def test_real_numbers_are_cut_where_one_would_write_it():
    found = round_numbers(7.8, 48.8, whole=False)
    assert found.edges == tuple(float(edge) for edge in range(6, 51, 2))
    found = round_numbers(-1.544, 2.652, whole=False)
    assert found.edges == tuple(round(-1.6 + 0.2 * k, 1) for k in range(23))


@given(st.lists(st.integers(-(2**40), 2**40), min_size=2, max_size=2, unique=True))
def test_whole_ranges_hold_the_data_in_a_sensible_number_of_bins(ends):
    low, high = min(ends), max(ends)
    found = round_numbers(low, high, whole=True)
    assert found.low <= low
    assert high <= found.high
    assert found.count <= 25
    assert found.count >= min(8, high - low + 1)


@given(st.lists(st.floats(-1e12, 1e12), min_size=2, max_size=2, unique=True))
def test_real_ranges_hold_the_data(ends):
    low, high = min(ends), max(ends)
    if high - low < 1e-9 * max(abs(low), abs(high), 1e-200):
        return  # refused, as too narrow to be cut
    found = round_numbers(low, high, whole=False)
    assert found.assign(np.array([low, high]))[1] is None
    assert found.count <= 26


@pytest.mark.parametrize(
    ("first", "last", "cut", "end"),
    [
        ((2023, 1, 9), (2023, 12, 23), (2023, 2, 1), (2023, 12, 31)),
        ((2010, 1, 2), (2023, 12, 28), (2011, 1, 1), (2023, 12, 31)),
        ((1931, 5, 4), (2004, 2, 29), (1935, 1, 1), (2004, 12, 31)),
        ((2015, 3, 1), (9999, 12, 31), (2020, 1, 1), (9999, 12, 31)),
    ],
)
def test_dates_are_cut_by_the_calendar(first, last, cut, end):
    found = days(
        round_dates(np.array([seconds(dt.date(*first)), seconds(dt.date(*last))]), by_day=True)
    )
    assert found[1] == dt.date(*cut)
    assert found[-1] == dt.date(*end)


def test_times_are_cut_at_midnight_and_the_last_second_is_inside():
    first, last = dt.date(2010, 1, 2), dt.date(2023, 12, 28)
    found = round_dates(np.array([seconds(first) + 543, seconds(last) + 84_000]), by_day=False)
    assert found.edges[1] == seconds(dt.date(2011, 1, 1))
    assert found.high == seconds(dt.date(2024, 1, 1)) - 1


@given(DATES, DATES, st.booleans())
def test_ranges_of_dates_hold_the_data(one, other, by_day):
    first, last = seconds(min(one, other)), seconds(max(one, other))
    found = round_dates(np.array([first, last]), by_day=by_day)
    unit = DAY_S if by_day else 1
    assert found.low <= first // unit
    assert last // unit <= found.high


def test_growing_bins_are_round_and_zero_has_its_own():
    found = growing_numbers(0, 400_000, common=900, decimals=0)
    assert found.edges == (
        0, 1, 700, 1_000, 1_500, 2_000, 3_000, 5_000, 7_000, 10_000, 15_000, 20_000, 30_000,
        50_000, 70_000, 100_000, 150_000, 200_000, 300_000, 500_000,
    )  # fmt: skip
    assert growing_numbers(0.0, 90.0, common=0.2, decimals=None).edges[:3] == (0.0, 0.2, 0.3)
    assert growing_numbers(0.0, 90.0, common=0.2, decimals=1).edges[:4] == (0.0, 0.1, 0.2, 0.3)
    assert growing_numbers(250, 400_000, common=900, decimals=0).low == 200


@given(
    numbers=st.lists(st.integers(0, 10**9), min_size=3).map(sorted).filter(lambda n: n[1] > 0),
    decimals=st.sampled_from([0, 1, 2, None]),
)
def test_growing_bins_hold_the_data(numbers, decimals):
    steps = 8 if decimals is None else 10**decimals
    cells = np.array(numbers if decimals == 0 else [n / steps for n in numbers])
    low, common, high = cells[0].item(), cells[1].item(), cells[-1].item()
    found = growing_numbers(low, high, common=common, decimals=decimals)
    _, outside = found.assign(cells)
    assert outside is None
    assert found.count <= 30
    if decimals:
        assert found.with_decimals(decimals).steps.min() >= 1
