"""Columns encoded by machine code: the same codes and the same complaints as without."""

import datetime as dt
import decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import InputError
from common.schema import Schema, quick_encoder
from common.schema.compilation import compiled
from common.schema.encoder import encode_column

WORDS = '[[attribute]]\nname = "x"\nkind = "categorical"\nvalues = ["a", "b", "7", "1.5"]\n'
LISTED = '[[attribute]]\nname = "x"\nkind = "ordinal"\nvalues = [7, 3, -2, 40]\n'
SPARSE = '[[attribute]]\nname = "x"\nkind = "ordinal"\nvalues = [7, 900000, -900000]\n'
TRUTH = '[[attribute]]\nname = "x"\nkind = "boolean"\n'
WHOLE = '[[attribute]]\nname = "x"\nkind = "integer"\nmin = -2\nmax = 9\nbins = 5\n'
WIDE = '[[attribute]]\nname = "x"\nkind = "integer"\nmin = -300000\nmax = 300000\nbins = 999\n'
EDGED = '[[attribute]]\nname = "x"\nkind = "integer"\nedges = [-5, 0, 3, 200000]\n'
REAL = '[[attribute]]\nname = "x"\nkind = "real"\nmin = -1\nmax = 2\nbins = 7\n'
REAL_EDGED = '[[attribute]]\nname = "x"\nkind = "real"\nedges = [-1, 0.5, 1.5, 2]\n'
DATE = '[[attribute]]\nname = "x"\nkind = "date"\nmin = 1970-01-01\nmax = 1970-03-01\nbins = 6\n'
TIME = (
    '[[attribute]]\nname = "x"\nkind = "datetime"\n'
    "min = 1970-01-01T00:00:00\nmax = 1970-03-01T00:00:00\nbins = 300\n"
)
BINNED = (WHOLE, WIDE, EDGED, REAL, REAL_EDGED, DATE, TIME)
SCHEMAS = (WORDS, LISTED, SPARSE, TRUTH, *BINNED)

small = st.integers(-12, 12) | st.sampled_from([40, 100, 126, -126])
whole = small | st.sampled_from([-(2**31), 2**31 - 1, 300_000, 300_001, -300_001, 900_000])
extreme = whole | st.sampled_from([2**63 - 1, -(2**63), 2**53])
real = (
    st.floats(-1.5, 2.5)
    | st.sampled_from([-1.0, 0.5, 2.0, 1 / 3, 2 / 7, float("nan"), float("inf"), -float("inf")])
    | st.integers(-3, 50).map(float)
)
word = st.sampled_from(["a", "b", "c", "", "7", " 7", "1.5", "true", "no", "1970-01-05"])
moment = st.integers(-(10**6), 10**7).map(lambda s: dt.datetime(1970, 1, 1) + dt.timedelta(0, s))
CELLS = [
    *((kind, small) for kind in (pa.int8(), pa.int16(), pa.float32())),
    *((kind, small.map(abs)) for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())),
    (pa.int32(), whole),
    (pa.int64(), extreme),
    (pa.uint64(), st.just(2**64 - 1) | small.map(abs)),
    (pa.float32(), real),
    (pa.float64(), real),
    (pa.decimal128(9, 2), st.integers(-300, 9000).map(lambda n: decimal.Decimal(n) / 100)),
    (pa.bool_(), st.booleans()),
    *((kind, word) for kind in (pa.string(), pa.large_string(), pa.string_view())),
    (pa.date32(), moment.map(dt.datetime.date)),
    (pa.date64(), moment.map(dt.datetime.date)),
    *((pa.timestamp(unit), moment) for unit in ("s", "ms", "us", "ns")),
    (pa.timestamp("us", tz="UTC"), moment),
    (pa.null(), st.none()),
]


@st.composite
def columns(draw):
    """A column of any type Arrow files hold: with nulls or not, from the middle, a dictionary."""
    kind, cell = draw(st.sampled_from(CELLS))
    cells = draw(st.lists(cell | st.none() if draw(st.booleans()) else cell, max_size=30))
    array = pa.array(cells, type=kind)
    dictionary = kind not in (pa.string_view(), pa.null()) and draw(st.booleans())
    if dictionary:
        array = array.dictionary_encode()
        index = draw(st.sampled_from([pa.int8(), pa.uint16(), pa.int32(), pa.int64()]))
        array = pa.DictionaryArray.from_arrays(array.indices.cast(index), array.dictionary)
    return array[draw(st.integers(0, 3)) :]


@st.composite
def schemas(draw):
    """A schema of one attribute, and what it says about empty cells and cells outside."""
    text = draw(st.sampled_from(SCHEMAS))
    text += "missing = true\n" if draw(st.booleans()) else ""
    said = draw(
        st.sampled_from(["", "other", "clip"] if text.startswith(BINNED) else ["", "other"])
    )
    return Schema.from_toml(text + (f"{said} = true\n" if said else ""))


def outcome(schema, table, *, compiled):
    try:
        codes = schema.encode(table, compiled=compiled)
    except InputError as error:
        return str(error)
    return codes.columns[0].dtype, codes.columns[0].tolist()


@settings(deadline=None, max_examples=250)
@given(schemas(), st.lists(columns(), min_size=1, max_size=3))
def test_codes_and_complaints_are_those_of_the_encoder(schema, parts):
    # One schema for all parts: what it remembers of one column must not leak into the next.
    for part in parts:
        table = pa.table({"x": part})
        assert outcome(schema, table, compiled=True) == outcome(schema, table, compiled=False)


@pytest.mark.parametrize("text", [WORDS, LISTED, *BINNED])
def test_columns_of_files_do_not_need_the_encoder(text, monkeypatch):
    schema = Schema.from_toml(text + "missing = true\n")
    cells = {
        "categorical": pa.array(["b", "a", None, "7"]).dictionary_encode(),
        "real": pa.array([0.5, None, float("nan"), -1.0]),
        "date": pa.array([3, None, 9], type=pa.date32()),
        "datetime": pa.array([10**9, None, 10**12], type=pa.timestamp("us")),
    }.get(schema.attributes[0].kind, pa.array([3, 7, None, 7]))
    expected = outcome(schema, pa.table({"x": cells}), compiled=False)
    monkeypatch.setattr("common.schema.schema.encode_column", None)
    assert outcome(schema, pa.table({"x": cells}), compiled=True) == expected


def test_a_dictionary_that_changes_between_batches_is_read_anew():
    schema = Schema.from_toml(WORDS)
    for words in (["a", "b"], ["b", "a"], ["b", "a", "7"], ["a", "b"]):
        table = pa.table({"x": pa.array(words).dictionary_encode()})
        assert outcome(schema, table, compiled=True)[1] == [["a", "b", "7"].index(w) for w in words]


def test_the_kernels_mean_in_python_what_they_mean_compiled(monkeypatch):
    monkeypatch.setattr("common.schema.quick_encoder.compiled", lambda kernel: kernel)
    for text, cells in ((WHOLE, [3, 9, None, -2]), (REAL, [0.1, None, 2.0, 1 / 7])):
        schema = Schema.from_toml(text + "missing = true\n")
        table = pa.table({"x": pa.array(cells)})
        column = encode_column(
            schema.attributes[0], table.column(0), where="", row_numbers=lambda rows: rows
        )
        assert np.array_equal(schema.encode(table, compiled=True).columns[0], column)
    assert max(schema.sizes) < quick_encoder.REFUSED


NONE = np.zeros(0, np.uint8)
LOWEST, HIGHEST = -(2**63), 2**63 - 1


def bitmap(valid, first_bit):
    """Arrow's: a bit a row, lowest first, from `first_bit` on."""
    return np.packbits([True] * first_bit + list(valid), bitorder="little")


@given(
    st.lists(st.integers(-9, 20) | st.sampled_from([LOWEST, HIGHEST]), min_size=1, max_size=20),
    st.lists(st.integers(0, 8) | st.just(quick_encoder.REFUSED), min_size=3, max_size=8),
    st.integers(-5, 5),
    st.integers(0, 9),
    st.randoms(use_true_random=False),
)
def test_a_table_is_looked_up_with_all_values_below_and_above(values, table, low, bit, chance):
    """Also of the smallest and the largest integer that there is."""
    valid = [chance.random() < 0.7 for _ in values]

    def wanted(value):
        return table[min(max(value - low + 1, 0), len(table) - 1)]

    for validity in (None, valid):
        cells = valid if validity else [True] * len(values)
        expected = [wanted(v) if there else 7 for v, there in zip(values, cells, strict=True)]
        codes = np.zeros(len(values), np.uint32)
        allowed = compiled(quick_encoder.look_up)(
            np.array(values, np.int64),
            low,
            np.array(table, np.uint32),
            7,
            bitmap(valid, bit) if validity else NONE,
            bit if validity else 0,
            codes,
        )
        assert codes.tolist() == expected
        assert allowed == (quick_encoder.REFUSED not in expected)


@given(
    st.integers(1, 9),
    st.lists(st.floats(-2, 12) | st.just(float("nan")), min_size=1, max_size=20),
    st.integers(0, 9),
    st.randoms(use_true_random=False),
)
def test_a_number_is_in_the_bin_that_a_search_finds_whether_it_is_guessed_or_searched(
    bins, numbers, bit, chance
):
    """Numbers on every edge, too: a guess may be one bin off, and is put right."""
    edges = [10 * place / bins for place in range(bins + 1)]
    numbers = [*numbers, *edges]
    first = np.array(edges[:-1])
    last = np.append(np.nextafter(first[1:], -np.inf), 10.0)
    valid = [chance.random() < 0.8 for _ in numbers]

    def wanted(number):
        if number != number:
            return 102
        if number < 0 or number > 10:
            return 100 if number < 0 else 101
        return int(np.searchsorted(first, number, side="right")) - 1

    expected = [wanted(n) if there else 102 for n, there in zip(numbers, valid, strict=True)]
    for guess in (bins / 10, 0.0):
        codes = np.zeros(len(numbers), np.uint16)
        special = np.array([100, 101, 102], np.uint32)
        allowed = compiled(quick_encoder.into_bins)(
            np.array(numbers), first, last, guess, special, bitmap(valid, bit), bit, codes
        )
        assert codes.tolist() == expected
        assert allowed
