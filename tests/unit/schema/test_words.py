"""What is a number, a date, a moment."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.schema import words
from common.schema.columns import real_numbers, whole_numbers
from tests.harness.cells import codes_of, schema_of

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


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7), ("+7", 7), ("-0", 0), ("-0.0", 0), ("7.0", 7), ("7.", 7), (".5", 0.5),
        ("1e3", 1000), (" 7\t", 7), ("007", 7), ("0x1F", None), ("1_000", None), ("٣", None),
        ("", None), (" ", None),
        ("9007199254740993", 9007199254740993), ("9007199254740993.0", 9007199254740992),
        ("1e400", float("inf")), ("-Infinity", -float("inf")), ("9" * 301, float("inf")),
        ("1.5", 1.5), ("1,5", None), ("nan(1)", None), ("--7", None), ("1e", None), ("e1", None),
    ],
)  # fmt: skip
def test_what_a_number_is(text, number):
    assert words.number(text.encode()) == number


def test_a_number_that_is_not_listed_is_the_listed_text_of_the_same_number():
    schema = schema_of(
        'kind = "categorical"\nvalues = ["1", "1.0", "01067", "0.50"]\nother = true\n', "x"
    )
    columns = {
        "1": [0], "1.0": [1], "1.00": [0], "1067": [2], "1067.0": [2], "0.5": [3], "5e-1": [3],
        "2": [4], "a": [4],
    }  # fmt: skip
    for text, codes in columns.items():
        assert codes_of(schema.attributes[0], pa.array([text])) == codes
    for number, code in ((1, 0), (1.0, 0), (1067, 2), (0.5, 3), (np.float32(1), 0), (3, 4)):
        assert codes_of(schema.attributes[0], pd.Series([number])) == [code]
