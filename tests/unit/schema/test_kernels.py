"""The loops of encoding, against searches in Python."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from common.schema import Schema, kernels
from common.schema.compilation import compiled
from common.schema.encoder import encode_column

WHOLE = '[[attribute]]\nname = "x"\nkind = "integer"\nmin = -2\nmax = 9\nbins = 5\n'
REAL = '[[attribute]]\nname = "x"\nkind = "real"\nmin = -1\nmax = 2\nbins = 7\n'


def test_the_kernels_mean_in_python_what_they_mean_compiled(monkeypatch):
    monkeypatch.setattr("common.schema.quick_encoder.compiled", lambda kernel: kernel)
    for text, cells in ((WHOLE, [3, 9, None, -2]), (REAL, [0.1, None, 2.0, 1 / 7])):
        schema = Schema.from_toml(text + "missing = true\n")
        table = pa.table({"x": pa.array(cells)})
        column = encode_column(
            schema.attributes[0], table.column(0), where="", row_numbers=lambda rows: rows
        )
        assert np.array_equal(schema.encode(table, compiled=True).columns[0], column)
    assert max(schema.sizes) < kernels.REFUSED


NONE = np.zeros(0, np.uint8)
LOWEST, HIGHEST = -(2**63), 2**63 - 1


def bitmap(valid, first_bit):
    """Arrow's: a bit a row, lowest first, from `first_bit` on."""
    return np.packbits([True] * first_bit + list(valid), bitorder="little")


@given(
    st.lists(st.integers(-9, 20) | st.sampled_from([LOWEST, HIGHEST]), min_size=1, max_size=20),
    st.lists(st.integers(0, 8) | st.just(kernels.REFUSED), min_size=3, max_size=8),
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
        allowed = compiled(kernels.look_up)(
            np.array(values, np.int64),
            low,
            np.array(table, np.uint32),
            7,
            bitmap(valid, bit) if validity else NONE,
            bit if validity else 0,
            codes,
        )
        assert codes.tolist() == expected
        assert allowed == (kernels.REFUSED not in expected)


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
        allowed = compiled(kernels.into_bins)(
            np.array(numbers), first, last, guess, special, bitmap(valid, bit), bit, codes
        )
        assert codes.tolist() == expected
        assert allowed
