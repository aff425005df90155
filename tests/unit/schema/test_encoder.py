"""A cell's code follows from that cell and the schema, whatever is next to it in a data frame."""

import functools

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import InputError
from common.schema.columns import arrow_column
from common.schema.encoder import describe, numbers_after
from tests.harness.cells import (
    ATTRIBUTES,
    BEYOND_DOUBLES,
    DATE,
    EDGED,
    EMPTY,
    FAR,
    LISTED,
    OBJECTS,
    PLAIN,
    SPELLED,
    TEXTS,
    TIME,
    TRUTH,
    WHOLE,
    WORDS,
    codes_of,
    schema_of,
)
from tests.harness.schemas import encoded, single

ANY = "other = true\nmissing = true\n"
SOME = [
    WORDS + ANY,
    SPELLED + ANY,
    FAR + ANY,
    LISTED + ANY,
    TRUTH + ANY,
    WHOLE,
    EDGED,
    DATE,
    TIME + ANY,
]
CELLS = [cell for group in OBJECTS for cell in group] + EMPTY
# One cell of every type that pandas makes another column of; the slow test has every pair.
NEXT_TO = [OBJECTS[at][0] for at in (0, 1, 6, 7, 8, 9, 11, 12, 13, 15, 18, 19)]
NEXT_TO += ["n/a", "0x1F", None]


@functools.cache
def forgiven(text):
    return schema_of(text, "x").forgiven().attributes[0]


def key(cell):
    return type(cell).__name__, repr(cell)


@functools.cache
def alone(text):
    """The code of every cell in a table of its own."""
    attribute = forgiven(text)
    return {key(c): codes_of(attribute, pd.Series([c], dtype=object))[0] for c in CELLS}


def assert_as_alone(column, cells, texts=SOME):
    array = arrow_column(column)
    for text in texts:
        expected = [alone(text)[key(cell)] for cell in cells]
        assert codes_of(forgiven(text), array) == expected, (text, column.dtype)


@pytest.mark.parametrize("group", OBJECTS, ids=lambda group: repr(group[0])[:20])
def test_no_cell_of_a_data_frame_has_a_part_in_the_code_of_another(group):
    assert_as_alone(pd.Series(group), group)
    for turn, other in enumerate(NEXT_TO):
        cells = [other, *group] if turn % 2 else [*group, other]
        assert_as_alone(pd.Series(cells), cells)


@pytest.mark.slow
@pytest.mark.parametrize("group", OBJECTS, ids=lambda group: repr(group[0])[:20])
def test_no_pair_of_cells_changes_a_code(group):
    for cell in group:
        for turn, other in enumerate(CELLS):
            cells = [cell, other] if turn % 2 else [other, cell]
            assert_as_alone(pd.Series(cells), cells)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(CELLS), min_size=1, max_size=8), st.sampled_from(ATTRIBUTES))
def test_no_mixture_of_cells_changes_a_code(cells, text):
    for column in (pd.Series(cells), pd.Series(cells, dtype=object)):
        assert_as_alone(column, cells, [text])
    try:
        category = pd.Series(cells, dtype=object).astype("category")
    except (ValueError, OverflowError, NotImplementedError, Warning):  # pandas cannot
        return
    # pandas takes equal cells for one category: True is 1 next to a 1.
    expected = [codes_of(forgiven(text), pd.Series([c], dtype=object))[0] for c in category]
    assert codes_of(forgiven(text), category) == expected


def test_a_text_that_cannot_be_written_is_outside_and_changes_no_other():
    attribute = forgiven(WORDS + ANY)
    assert codes_of(attribute, pd.Series(["a", "\ud800", "1"], dtype=object)) == [0, 7, 1]


def test_a_duration_that_pandas_does_not_know_is_outside_and_changes_no_other():
    cells = pd.Series(["a", np.timedelta64(5, "Y"), "1"], dtype=object)
    assert codes_of(forgiven(WORDS + ANY), cells) == [0, 7, 1]


def test_pandas_rounds_an_integer_next_to_a_float_and_the_code_is_that_of_the_rounded_one():
    attribute = forgiven(SPELLED + ANY)  # lists 9007199254740993
    assert codes_of(attribute, pd.Series([BEYOND_DOUBLES])) == [6]
    rounded = pd.Series([BEYOND_DOUBLES, 0.5])
    assert rounded[0] == BEYOND_DOUBLES - 1
    assert codes_of(attribute, rounded)[0] == 7


MOMENTS = [0, 1_706_704_215, -1, 2**55, -(2**55)]
TYPED = [
    *((kind, [0, 1, 7, 31, 40]) for kind in (pa.int8(), pa.uint16(), pa.int64(), pa.uint64())),
    (pa.int64(), [2**62, 2**63 - 1, -(2**63), BEYOND_DOUBLES, 20240131]),
    (pa.uint64(), [2**63, 2**64 - 1]),
    *((kind, [1.0, 0.5, -0.0, 0.1, float("nan"), float("inf")]) for kind in (
        pa.float16(), pa.float32(), pa.float64(),
    )),
    (pa.float64(), [12345678901.0, 1e19, -1e19, 9007199254740992.0, 20240131.0]),
    (pa.decimal128(20, 2), [1, 7, 31, 12345678901]),
    (pa.bool_(), [True, False]),
    *((kind, TEXTS[0] + TEXTS[3] + TEXTS[10]) for kind in (
        pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(),
        pa.binary_view(),
    )),
    (pa.binary(), [b"1", b"\xff", b"7.0", b"a"]),
    (pa.binary(2), [b"31", b"\xff\xfe", b" 7"]),
    (pa.time64("us"), [0, 43_200_000_000]),
    (pa.duration("s"), [0, 1]),
    (pa.list_(pa.int8()), [[1], []]),
    (pa.struct([("a", pa.int8())]), [{"a": 1}]),
    *((pa.timestamp(unit), MOMENTS) for unit in ("s", "us", "ns")),
    *((pa.timestamp("us", tz=zone), MOMENTS) for zone in ("UTC", "+01:00")),
    (pa.date32(), [0, 19_753, 2**31 - 1, -(2**31)]),
    (pa.date64(), [0, 1, -1, 19_753 * 86_400_000]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "cells"), TYPED, ids=lambda item: str(item)[:30])
def test_no_cell_of_an_arrow_column_has_a_part_in_the_code_of_another(kind, cells):
    whole = pa.array([*cells, None], type=kind)
    for text in SOME:
        schema = schema_of(text, "x").forgiven()
        wanted = [
            int(schema.encode(pa.table({"x": whole[at : at + 1]})).columns[0][0])
            for at in range(len(whole))
        ]
        for column in (whole, pa.concat_arrays([whole, whole])[len(whole) :]):
            codes = schema.encode(pa.table({"x": column}))
            assert codes.columns[0].tolist() == wanted, text


@pytest.mark.parametrize("text", PLAIN)
def test_a_strict_schema_refuses_a_cell_or_gives_it_the_forgiven_code(text):
    strict = schema_of(text, "x").attributes[0]
    fine = {"categorical": "1", "date": "2024-01-31", "datetime": "2024-01-31"}
    other = fine.get(strict.kind, "7" if strict.kind != "boolean" else "1")
    for cell in (cell for group in TEXTS for cell in group):
        outcomes = []
        for cells in ([cell], [cell, other], [other, cell]):
            try:
                outcomes.append(codes_of(strict, pa.array(cells))[cells.index(cell)])
            except InputError:
                outcomes.append(None)
        assert set(outcomes) <= {None, codes_of(forgiven(text), pa.array([cell]))[0]}, cell
        assert len(set(outcomes)) == 1, cell


def test_refused_cells_are_shown_first_five_with_their_rows():
    column = pd.Series(["a", "z0", "b", "z1", "z2", "z3", "z4", "z5"])
    with pytest.raises(InputError) as caught:
        single("categorical", values='["a", "b"]').encode(
            pd.DataFrame({"x": column}),
            where="people.csv",
            row_numbers=lambda rows: [r + 2 for r in rows],
        )
    text = str(caught.value)
    assert text.startswith("people.csv: attribute 'x': 6 cells are outside the domain a, b: ")
    assert "row 3: 'z0'; row 5: 'z1'; row 6: 'z2'; row 7: 'z3'; row 8: 'z4', ..." in text
    assert "z5" not in text


@pytest.mark.parametrize(
    ("schema", "column"),
    [
        (single("integer", min=0, max=9), pd.Series([1, np.nan])),
        (single("real", min=0, max=9), pd.Series([1, np.nan])),
        (single("real", min=0, max=9), pa.array([1.0, float("nan")])),
        (single("categorical", values='["a", "b"]', other="true"), pd.Series(["a", None])),
        (single("boolean"), pd.Series([True, None], dtype="boolean")),
        (
            single("date", min="2024-01-01", max="2024-01-09"),
            pd.to_datetime(pd.Series(["2024-01-02", None])),
        ),
        (single("integer", min=0, max=9), pa.array([1, None]).dictionary_encode()),
    ],
)
def test_an_empty_cell_is_refused_unless_the_schema_allows_it(schema, column):
    with pytest.raises(
        InputError, match=r"attribute 'x': 1 cell is empty \(row 1\).*missing = true"
    ):
        encoded(schema, column)


def test_a_time_zone_is_refused_with_advice():
    column = pd.Series(pd.to_datetime(["2024-01-01"], utc=True))
    with pytest.raises(InputError, match=r"a time zone: row 0: .*drop the zone"):
        encoded(single("date", min="2024-01-01", max="2024-01-09"), column)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (single("integer", min=0, max=99, bins=10), "0..99 (integer)"),
        (single("real", min=0.5, max=2, bins=3), "0.5..2.0"),
        (single("date", min="2024-01-01", max="2024-01-09"), "2024-01-01..2024-01-09 (date)"),
        (single("categorical", values='["a", "b, c", " d"]'), "a, 'b, c', ' d'"),
        (
            single("ordinal", values=list(range(9))),
            "0, 1, 2, 3, 4, 5, 6, 7, ... (9 values)",
        ),
    ],
)
def test_a_domain_is_described_in_a_few_words(schema, words):
    assert describe(schema.attributes[0]) == words


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        (pa.array(["7.0 ", "2"]), "row 0: 7.0. "),
        (pa.array([b"\xff", b"2"]), r"row 0: b'\xff'"),
        (pa.array(["x" * 100, "2"]), "row 0: '" + "x" * 56 + "..."),
        (pa.array([7.5, 2]), "row 0: 7.5. "),
    ],
)
def test_a_cell_is_shown_as_what_it_is_and_never_at_length(column, shown):
    with pytest.raises(InputError) as refused:
        encoded(single("integer", min=0, max=5), column)
    assert shown in str(refused.value)


def test_the_remedy_is_one_that_the_domain_has():
    with pytest.raises(InputError, match=r"other = true .* or clip = true"):
        encoded(single("integer", min=0, max=5), pa.array([9]))
    with pytest.raises(InputError, match="in the schema with other = true") as refused:
        encoded(single("categorical", values='["a", "b"]'), pa.array(["c"]))
    assert "clip" not in str(refused.value)


def test_rows_of_a_later_piece_of_a_table_have_their_own_numbers():
    numbers = numbers_after(100, lambda positions: [position + 2 for position in positions])
    assert numbers([0, 5]) == [102, 107]
