"""Columns of any layout: what their cells hold is what their texts mean."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.schema import words
from common.schema.columns import (
    arrow_column,
    either,
    excluding,
    is_text,
    null_mask,
    real_numbers,
    whole_numbers,
)

FIGURES = st.text(alphabet="0123456789+-.eE \t", max_size=8) | st.integers().map(str)


DATES = st.from_regex(
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([ T][0-9]{1,2}(:?[0-9]{2}(:?[0-9]{2}([.,][0-9]{0,8})?)?)?)?",
    fullmatch=True,
) | st.datetimes().map(lambda moment: moment.isoformat())


@settings(max_examples=150)
@given(st.lists(FIGURES | st.floats(allow_nan=False).map(str), min_size=1, max_size=3))
def test_arrow_reads_numbers_as_the_grammar_does(texts):
    for column in (texts, [*texts, "x"]):
        array = pa.array(column)
        whole, empty, wrong = whole_numbers("integer", array, None)
        real, no, not_real = real_numbers(array, None)
        for at, text in enumerate(texts):
            absent = wrong is not None and wrong[at]
            missing = empty is not None and empty[at]
            found = words.whole(text.encode())
            assert (None if absent or missing else whole[at]) == found
            number = words.real(text.encode())
            absent = (not_real is not None and not_real[at]) or (no is not None and no[at])
            assert (None if absent else real[at]) == number


@settings(max_examples=100)
@given(DATES)
def test_arrow_reads_moments_as_the_grammar_does(text):
    for column in ([text], [text, "x"]):
        seconds, _, wrong = whole_numbers("datetime", pa.array(column), None)
        absent = wrong is not None and wrong[0]
        assert (None if absent else seconds[0]) == words.moment(text.encode())


TEXTS = ["1", "", "x", None, "1", " 7 "]


@pytest.mark.parametrize(
    "column",
    [
        pa.chunked_array([["1", "", "x"], [None, "1", " 7 "]]),
        pa.chunked_array([], pa.string()),
        pa.array(TEXTS).dictionary_encode(),
        pa.array(TEXTS, pa.large_string()),
        pa.array(TEXTS, pa.string_view()),
        pa.array([t and t.encode() for t in TEXTS], pa.binary()),
        pa.array([t and t.encode() for t in TEXTS], pa.large_binary()),
        pa.array([t and t.encode() for t in TEXTS], pa.binary_view()),
        pa.array(["1"] * 3 + [None] * 3).cast(pa.string()),
        pd.Series(TEXTS, dtype=object),
        pd.Series(TEXTS, dtype="string"),
        pd.Series(TEXTS, dtype="category"),
    ],
    ids=lambda column: str(getattr(column, "dtype", None) or column.type)[:20],
)
def test_a_text_is_read_alike_in_every_layout(column):
    array = arrow_column(column)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    assert is_text(array.type)
    held = column.to_pylist() if hasattr(column, "to_pylist") else TEXTS
    plain = [cell.decode() if isinstance(cell, bytes) else cell for cell in held]
    assert array.to_pylist() == plain
    numbers, empty, wrong = whole_numbers("integer", array, null_mask(array))
    for at, cell in enumerate(plain):
        assert bool(empty is not None and empty[at]) == (not cell)
        assert bool(wrong is not None and wrong[at]) == (cell == "x")
        if cell and cell != "x":
            assert numbers[at] == int(cell)


@pytest.mark.parametrize(
    ("array", "numbers", "wrong"),
    [
        (pa.array([2.0, 2.5, -0.0]), [2, 2, 0], [False, True, False]),
        (pa.array([2**64 - 1], pa.uint64()), [2**63 - 1], [False]),
        (pa.array([1e300, -1e300]), [2**62, -(2**62)], [False, False]),
        (pa.array([Decimal("3"), Decimal("3.5")]), [3, 3], [False, True]),
        (pa.array([True, False]), [0, 0], [True, True]),
    ],
)
def test_whole_numbers_of_other_types_are_those_of_their_texts(array, numbers, wrong):
    found, _, not_whole = whole_numbers("integer", array, None)
    assert found.tolist() == numbers
    assert (np.zeros(len(array), bool) if not_whole is None else not_whole).tolist() == wrong


def test_a_nan_is_an_empty_cell_and_an_infinity_is_a_number():
    numbers, empty, wrong = real_numbers(pa.array([1.0, float("nan"), float("inf")]), None)
    assert empty.tolist() == [False, True, False]
    assert wrong is None
    assert numbers[2] == float("inf")


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_moments_round_down_in_every_unit_and_a_zone_has_none(unit):
    moments = [dt.datetime(1969, 12, 31, 23, 59, 59), dt.datetime(2024, 2, 29, 12)]
    array = pa.array(moments, pa.timestamp(unit))
    days, _, _ = whole_numbers("date", array, None)
    assert days.tolist() == [-1, 19_782]
    seconds, _, _ = whole_numbers("datetime", array, None)
    assert seconds.tolist() == [-1, 19_782 * 86_400 + 43_200]
    zoned = pa.array(moments, pa.timestamp(unit, "UTC"))
    _, _, wrong = whole_numbers("date", zoned, None)
    assert wrong.all()


def test_masks_are_joined_without_one_where_no_cell_is_set():
    one, other = np.array([True, False]), np.array([True, True])
    assert either(None, None) is None
    assert either(one, None) is one
    assert either(None, one) is one
    assert either(one, other).tolist() == [True, True]
    assert excluding(other, one).tolist() == [False, True]
    assert excluding(None, one) is None
    assert excluding(one, None) is one
