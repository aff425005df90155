"""From codes back to values and their types."""

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import LocalError
from common.privacy.randomness import SeededRandomSource
from common.schema import Codes
from common.schema.decoder import shape_like
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


WORDS = {"values": '["a", "b"]'}
NUMBERS = {"values": "[1, 2]"}
AGES = {"min": 0, "max": 99}
DAYS = {"min": "2024-01-01", "max": "2024-12-31"}
TIMES = {"min": "2024-01-01T00:00:00", "max": "2024-12-31T00:00:00"}


@pytest.mark.parametrize(
    ("kind", "keys", "template"),
    [
        ("integer", AGES, pd.Series([1], dtype="int32")),
        ("integer", AGES, pd.Series([1], dtype="UInt8")),
        ("integer", AGES, pd.Series([1.0, np.nan])),
        ("integer", AGES, pd.Series(["1"])),
        ("integer", AGES, pd.Series([1]).astype("int64[pyarrow]")),
        ("real", {"min": 0, "max": 1}, pd.Series([1], dtype="float32")),
        ("boolean", {}, pd.Series([True], dtype="boolean")),
        ("boolean", {}, pd.Series([1])),
        ("boolean", {}, pd.Series(["yes"])),
        ("categorical", WORDS, pd.Series(["b"], dtype=object)),
        ("categorical", WORDS, pd.Series(["b"], dtype="string")),
        ("categorical", WORDS, pd.Series(["b"], dtype=pd.ArrowDtype(pa.string()))),
        ("categorical", WORDS, pd.Series(pd.Categorical(["b"], ["b", "a", "c"]))),
        ("categorical", NUMBERS, pd.Series(pd.Categorical([2], [2, 1]))),
        ("categorical", NUMBERS, pd.Series([1], dtype="int16")),
        ("date", DAYS, pd.Series([dt.date(2024, 1, 1)])),
        ("date", DAYS, pd.Series(["2024-01-01"])),
        ("date", DAYS, pd.Series([dt.date(2024, 1, 1)], dtype="date32[pyarrow]")),
        ("date", DAYS, pd.Series(["2024-01-01"], dtype="datetime64[ns]")),
        ("datetime", TIMES, pd.Series(["2024-01-01"], dtype="datetime64[us]")),
    ],
    ids=lambda item: str(item.dtype) if isinstance(item, pd.Series) else "",
)
def test_a_template_gives_its_types_back(kind, keys, template):
    schema = single(kind, **keys)
    size = schema.sizes[0]
    codes = Codes.from_columns([np.arange(50) % size], [size])
    shaped = shape_like(schema.decode(codes, SeededRandomSource(1))["x"], template)
    assert shaped.dtype == template.dtype
    assert type(shaped.iloc[0]) is type(template.iloc[0])
    if kind != "real":  # single precision may leave the bin
        np.testing.assert_array_equal(schema.encode(shaped.to_frame()).columns[0], codes.columns[0])


def test_a_template_that_cannot_hold_an_empty_cell_gets_its_nullable_sibling():
    schema = single("integer", min=0, max=9, bins=2, missing="true")
    codes = Codes.from_columns([np.array([0, 2])], [3])
    decoded = schema.decode(codes, SeededRandomSource(1))["x"]
    assert str(shape_like(decoded, pd.Series([1], dtype="int16")).dtype) == "Int16"
    words = single("categorical", values='["a", "b"]', other="true")
    decoded = words.decode(codes, SeededRandomSource(1))["x"]
    shaped = shape_like(decoded, pd.Series(pd.Categorical(["a"], ["b", "a"])))
    assert shaped.cat.categories.tolist() == ["b", "a", "(other)"]


def test_numbers_too_large_for_the_template_keep_their_own_type():
    schema = single("integer", min=1_000, max=2_000)
    codes = Codes.from_columns([np.array([0, 15])], [16])
    decoded = schema.decode(codes, SeededRandomSource(1))["x"]
    assert encoded(schema, shape_like(decoded, pd.Series([1], dtype="int8"))) == [0, 15]


def test_codes_of_another_schema_are_not_decoded():
    with pytest.raises(LocalError, match="not of this schema"):
        SCHEMA.decode(Codes.from_columns([np.array([0])], [2]), SeededRandomSource(1))
