"""From codes back to values and their types."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import LocalError
from common.privacy.randomness import SeededRandomSource
from common.schema import Codes
from tests.unit.schema.every_kind import SCHEMA, encoded, single


@given(st.integers(0, 2**32))
def test_decoded_values_encode_to_the_codes_they_came_from(seed):
    generator = np.random.default_rng(seed)
    codes = Codes.from_columns(
        [generator.integers(0, size, 40) for size in SCHEMA.sizes], SCHEMA.sizes
    )
    frame = SCHEMA.decode(codes, SeededRandomSource(seed))
    for again in (frame, pa.Table.from_pandas(frame), frame.astype(object)):
        for before, after in zip(codes.columns, SCHEMA.encode(again).columns, strict=True):
            np.testing.assert_array_equal(before, after)


def test_decoded_types_depend_on_the_schema_and_not_on_the_rows():
    codes = Codes.from_columns([np.zeros(2, int)] * 7, SCHEMA.sizes)
    frame = SCHEMA.decode(codes, SeededRandomSource(1))
    assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == {
        "age": "int64",
        "work": "str",
        "income": "float64",
        "smokes": "bool",
        "born": "datetime64[s]",
        "seen": "datetime64[s]",
        "grade": "int64",
    }
    optional = single("integer", min=0, max=9, missing="true")
    full = optional.decode(Codes.from_columns([np.array([0, 1])], [11]), SeededRandomSource(1))
    assert str(full.dtypes["x"]) == "Int64"


def test_missing_and_other_decode_to_empty_cells_and_the_label():
    work = single("categorical", values='["a", "b"]', missing="true", other="true")
    words = work.decode(Codes.from_columns([np.array([2, 3])], [4]), SeededRandomSource(1))["x"]
    assert words[0] == "(other)"
    assert pd.isna(words[1])
    for schema in (
        single("integer", min=0, max=1, missing="true", other="true"),
        single("boolean", missing="true", other="true"),
        single("date", min="2024-01-01", max="2024-01-02", missing="true", other="true"),
        single("categorical", values="[1, 2]", missing="true", other="true"),
    ):
        codes = Codes.from_columns([np.array([0, 2, 3])], [4])
        cells = schema.decode(codes, SeededRandomSource(1))["x"]
        assert cells.isna().tolist() == [False, True, True]


def test_other_numbers_come_back_as_other_though_decoded_to_empty_cells():
    schema = single("integer", min=0, max=9, bins=2, other="true")
    codes = Codes.from_columns([np.array([0, 2, 1])], [3])
    assert encoded(schema, schema.decode(codes, SeededRandomSource(1))["x"]) == [0, 2, 1]


def test_codes_of_another_schema_are_not_decoded():
    with pytest.raises(LocalError, match="not of this schema"):
        SCHEMA.decode(Codes.from_columns([np.array([0])], [2]), SeededRandomSource(1))
