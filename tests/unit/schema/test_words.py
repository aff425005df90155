"""What is a number, a date, a moment."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from common.schema import words
from tests.harness.cells import codes_of, schema_of


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
