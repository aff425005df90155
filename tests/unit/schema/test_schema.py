"""From tables to codes and back: every column type, every refusal with its rows, every dtype."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from common.errors import InputError
from common.schema import Schema
from tests.harness.schemas import EVERY_KIND as SCHEMA
from tests.harness.schemas import encoded, single

FRAME = pd.DataFrame(
    {
        "grade": [1, 5, 3],
        "seen": pd.to_datetime(
            ["2024-01-01T00:00:00", "2024-01-01T12:00:01", "2024-01-02T00:00:00"]
        ),
        "born": [dt.date(2000, 1, 1), dt.date(2000, 12, 31), dt.date(2000, 2, 1)],
        "smokes": [True, False, True],
        "income": [0.0, np.nan, 2.5],
        "work": ["State", None, "Elsewhere"],
        "age": [0, 99, 50],
    }
)
CODES = [[0, 9, 5], [1, 4, 3], [0, 4, 0], [1, 0, 1], [0, 11, 1], [0, 1, 1], [1, 0, 2]]


def test_a_frame_is_encoded_in_the_order_of_the_schema():
    codes = SCHEMA.encode(FRAME)
    assert [column.tolist() for column in codes.columns] == CODES
    assert codes.sizes == SCHEMA.sizes


def test_arrow_and_pandas_give_the_same_codes():
    table = pa.Table.from_pandas(FRAME)
    chunked = pa.concat_tables([table.slice(0, 1), table.slice(1)])
    for form in (table, chunked, table.to_pandas(types_mapper=pd.ArrowDtype)):
        assert [column.tolist() for column in SCHEMA.encode(form).columns] == CODES


def test_text_columns_are_parsed_as_their_kind():
    text = pa.table(
        {name: FRAME[name].astype(object).map(str, na_action="ignore") for name in FRAME}
    )
    assert [column.tolist() for column in SCHEMA.encode(text).columns] == CODES


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([10, 20], dtype="int8"),
        pd.Series([10, 20], dtype="uint64"),
        pd.Series([10, 20], dtype="Int32"),
        pd.Series([10.0, 20.0]),
        pd.Series(["10", " 20"]),
        pd.Series(["10.0", "20"]),
        pd.Series([10, "20"], dtype=object),
        pd.Series([10, 20]).astype("category"),
        pd.Series(["10", "20"]).astype("category"),
        pd.Series([Decimal(10), Decimal(20)]),
        pa.array([10, 20], pa.int16()),
        pa.chunked_array([[10], [20]]),
        pa.array(["10", "20"]).dictionary_encode(),
        pa.array(["10", "20"], pa.string_view()),
    ],
    ids=lambda column: str(getattr(column, "dtype", getattr(column, "type", ""))),
)
def test_whole_numbers_are_read_from_every_type_of_column(column):
    assert encoded(single("integer", min=10, max=20, bins=2), column) == [0, 1]
    assert encoded(single("categorical", values="[20, 10]"), column) == [1, 0]
    assert encoded(single("real", min=10, max=20, bins=2), column) == [0, 1]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([True, False]),
        pd.Series([True, False], dtype="boolean"),
        pd.Series([1, 0]),
        pd.Series([1.0, 0.0]),
        pd.Series(["yes", "No"]),
        pd.Series(["TRUE", "f"], dtype=object),
        pd.Series(["True", "False"]).astype("category"),
    ],
    ids=lambda column: str(column.dtype),
)
def test_booleans_are_read_from_every_type_of_column(column):
    assert encoded(single("boolean"), column) == [1, 0]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["2024-01-01", "2024-12-31"]),
        pd.Series([dt.date(2024, 1, 1), dt.date(2024, 12, 31)]),
        pd.Series(pd.to_datetime(["2024-01-01 03:00:00", "2024-12-31 23:59:59"])),
        pd.Series(pd.to_datetime(["2024-01-01", "2024-12-31"])).astype("datetime64[ns]"),
        pd.Series(["2024-01-01", "2024-12-31T23:59:59.5"]),
        pa.array([dt.date(2024, 1, 1), dt.date(2024, 12, 31)], pa.date64()),
    ],
)
def test_dates_are_read_from_every_type_of_column(column):
    assert encoded(single("date", min="2024-01-01", max="2024-12-31", bins=12), column) == [0, 11]


def test_moments_before_1970_round_down():
    schema = single("date", min="1969-12-30", max="1970-01-01", bins=3)
    assert encoded(schema, pd.Series(pd.to_datetime(["1969-12-31T23:00", "1969-12-30T01:00"]))) == [
        1,
        0,
    ]


def test_integers_match_values_listed_as_text():
    schema = single("categorical", values='["0", "1"]', missing="true")
    for column in (pd.Series([1, 0]), pd.Series([1.0, 0.0]), pd.Series([True, False]).astype(int)):
        assert encoded(schema, column) == [1, 0]
    assert encoded(schema, pd.Series([1.0, np.nan])) == [1, 2]
    assert encoded(single("categorical", values='["False", "True"]'), pd.Series([True, False])) == [
        1,
        0,
    ]


def test_far_apart_integers_are_found():
    schema = single("categorical", values="[9_000_000_000, -5, 3]", other="true")
    assert encoded(schema, pd.Series([3, 9_000_000_000, -5, 4, 2**62])) == [2, 0, 1, 3, 3]


def test_numbers_outside_the_range_are_refused_or_other_or_clipped():
    column = pd.Series([-5, 3, 200])
    with pytest.raises(InputError, match=r"2 cells are outside the domain 0\.\.9"):
        encoded(single("integer", min=0, max=9, bins=2), column)
    assert encoded(single("integer", min=0, max=9, bins=2, other="true"), column) == [2, 0, 2]
    assert encoded(single("integer", min=0, max=9, bins=2, clip="true"), column) == [0, 0, 1]
    reals = pd.Series([-np.inf, 0.5, np.inf])
    assert encoded(single("real", min=0, max=1, bins=2, clip="true"), reals) == [0, 0, 1]
    huge = pd.Series([0, 2**64 - 1], dtype="uint64")
    assert encoded(single("integer", min=0, max=9, bins=2, clip="true"), huge) == [0, 1]


def test_clipping_does_not_excuse_what_is_not_a_number():
    with pytest.raises(InputError, match="row 1: 'abc'"):
        encoded(single("integer", min=0, max=9, clip="true"), pd.Series(["5", "abc"]))


def test_other_takes_whatever_is_not_in_the_domain():
    assert encoded(single("integer", min=0, max=1, other="true"), pd.Series(["1", "x", "0.5"])) == [
        1,
        2,
        2,
    ]
    assert encoded(single("boolean", other="true"), pd.Series(["maybe", "yes"])) == [2, 1]
    dates = single("date", min="2024-01-01", max="2024-01-02", other="true")
    assert encoded(dates, pd.Series(["soon", "2024-01-02"])) == [2, 1]


def test_a_column_of_nothing_but_empty_cells_is_all_missing():
    schema = single("integer", min=0, max=9, bins=2, missing="true")
    assert encoded(schema, pd.Series([None, None])) == [2, 2]
    assert encoded(schema, pa.nulls(2)) == [2, 2]
    assert encoded(schema, pa.array([None, None], pa.string()).dictionary_encode()) == [2, 2]


def test_a_text_of_no_characters_is_an_empty_cell():
    column = pd.Series(["1", "", "2"])
    assert encoded(single("categorical", values='["1", "2"]', missing="true"), column) == [0, 2, 1]
    numbers = single("integer", min=1, max=2, missing="true")
    for form in (column, column.astype("category")):
        assert encoded(numbers, form) == [0, 2, 1]
    with pytest.raises(InputError, match="1 cell is empty"):
        encoded(single("categorical", values='["1", "2"]', other="true"), column)


def test_fractions_are_not_whole_numbers():
    with pytest.raises(InputError, match=r"row 1: 17\.5"):
        encoded(single("integer", min=0, max=99), pd.Series([17.0, 17.5]))


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ("date", pd.Series([1, 2])),
        ("real", pd.Series([True, False])),
        ("integer", pd.Series([True, False])),
    ],
)
def test_a_column_of_another_kind_is_refused(kind, column):
    ends = {"min": "2024-01-01", "max": "2024-01-09"} if kind == "date" else {"min": 0, "max": 9}
    with pytest.raises(InputError, match="2 cells are outside the domain"):
        encoded(single(kind, **ends), column)
    schema = single(kind, **ends, other="true")
    assert encoded(schema, column) == [schema.sizes[0] - 1] * 2


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (FRAME.drop(columns="age"), 'missing column "age"'),
        (FRAME.rename(columns={"age": "Age"}), "missing column \"age\" .did you mean 'Age'"),
        (pd.concat([FRAME, FRAME[["age"]]], axis=1), 'duplicate column "age"'),
        (FRAME.iloc[:0], "no rows"),
    ],
)
def test_a_table_of_the_wrong_shape_is_refused(frame, message):
    with pytest.raises(InputError, match=f"^people.csv: .*{message}"):
        SCHEMA.encode(frame, where="people.csv")


@pytest.mark.parametrize("ignore", [(), ("id", "note")])
def test_columns_that_are_no_attribute_are_not_read(ignore):
    schema = Schema(SCHEMA.attributes, ignore=ignore)
    assert schema.encode(FRAME.assign(id=object())).columns[0].tolist() == CODES[0]


def test_codes_outlive_the_table_they_came_from():
    frame = pd.DataFrame({"x": np.array([True, False])})
    codes = single("boolean").encode(frame)
    frame.loc[:, "x"] = False
    assert codes.columns[0].tolist() == [1, 0]
