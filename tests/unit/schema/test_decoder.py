"""From codes back to values and their types."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import LocalError
from common.privacy.randomness import SeededRandomSource
from common.schema import Codes, Schema
from common.schema.decoder import decode_to_arrow
from tests.harness.schemas import EVERY_KIND as SCHEMA
from tests.harness.schemas import encoded, single


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


@given(st.integers(0, 2**32))
def test_rows_with_places_keep_them(seed):
    drawn = [np.random.default_rng(seed).integers(0, size, 40) for size in SCHEMA.sizes]
    rows = SCHEMA.decode(Codes.from_columns(drawn, SCHEMA.sizes), SeededRandomSource(seed))
    codes = SCHEMA.encode(rows)
    again = SCHEMA.encode(SCHEMA.decode(codes, SeededRandomSource(1)))
    assert any(places is not None for places in codes.places)
    for before, after in zip(codes.placed.columns, again.placed.columns, strict=True):
        # A bin of more whole numbers than there are places keeps them up to one.
        assert np.abs(before.astype(int) - after.astype(int)).max() <= 1
    for before, after in zip(codes.columns, again.columns, strict=True):
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


def schema_of(kind, edges, more=""):
    return Schema.from_toml(
        f'[[attribute]]\nname = "amount"\nkind = "{kind}"\nedges = {edges}\n{more}'
    )


def decoded(schema, codes, *, arrow):
    source = SeededRandomSource(3)
    table = decode_to_arrow(schema, codes, source) if arrow else schema.decode(codes, source)
    return (table.to_pandas() if arrow else table)["amount"]


def coded(schema, codes):
    return Codes.from_columns([np.asarray(codes)], schema.sizes)


@pytest.mark.parametrize("kind", ["integer", "real"])
@pytest.mark.parametrize("arrow", [False, True])
def test_a_falling_density_falls_inside_bins(kind, arrow):
    """Exponential amounts in wide bins: the mean of the real numbers is missed by far less."""
    real = np.random.default_rng(1).exponential(1000, 60_000).clip(0, 7999)
    schema = schema_of(kind, [0, 1000, 2000, 3000, 4000, 6000, 8000])
    bins = np.digitize(real, [1000, 2000, 3000, 4000, 6000])
    codes = coded(schema, bins)
    found = decoded(schema, codes, arrow=arrow)
    assert schema.encode(found.to_frame()).columns[0].tolist() == bins.tolist()
    second = (bins == 1) | (bins == 2)
    flat = (schema.attributes[0].domain.centre(bins[second])).astype(float).mean()
    off = abs(found[second].astype(float).mean() - real[second].mean())
    assert off < 0.5 * abs(flat - real[second].mean())


@pytest.mark.parametrize("arrow", [False, True])
def test_a_flat_table_a_peak_and_the_ends_stay_flat(arrow):
    schema = schema_of("integer", [0, 100, 200, 300, 400, 500])
    for counts in ([4000] * 5, [0, 500, 9000, 500, 0]):
        codes = coded(schema, np.repeat(np.arange(5), counts))
        found = decoded(schema, codes, arrow=arrow)
        for number in np.flatnonzero(np.array(counts) >= 4000):
            inside = found[codes.columns[0] == number].astype(float) - 100 * number
            assert abs(inside.mean() - 49.5) < 4 * 29 / np.sqrt(len(inside))


@pytest.mark.parametrize("arrow", [False, True])
def test_empty_cells_are_in_no_bin(arrow):
    schema = schema_of("integer", [0, 100, 200, 300], "missing = true\n")
    codes = coded(schema, np.repeat([0, 1, 2, 3], [8000, 4000, 0, 20_000]))
    found = decoded(schema, codes, arrow=arrow)
    assert found.isna().sum() == 20_000
    inside = found[codes.columns[0] == 1].astype(float)
    assert inside.mean() < 145  # falling towards the empty bin


def test_the_density_is_the_straight_line_that_it_should_be():
    """Counts 3, 2, 1: from 5/4 to 3/4 in the middle bin, so its lower half has 9/16."""
    schema = schema_of("real", [0.0, 1.0, 2.0, 3.0])
    codes = coded(schema, np.repeat([0, 1, 2], [30_000, 20_000, 10_000]))
    found = decoded(schema, codes, arrow=False)[codes.columns[0] == 1]
    assert (found < 1.5).mean() == pytest.approx(9 / 16, abs=0.015)
