"""Owners' tables as they are: renamed, recoded, filtered and put together, row by row."""

import datetime as dt
import sqlite3

import duckdb
import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyreadstat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import InputError
from common.schema import Schema
from party.sources import parts, source
from party.sources.cells import Recoding, distinct
from party.sources.condition import Condition
from party.sources.settings import SourceSettings, owners_table

SCHEMA = Schema.from_toml("""
[[attribute]]
name = "sex"
kind = "categorical"
values = ["Male", "Female"]
missing = true
[[attribute]]
name = "age"
kind = "integer"
min = 0
max = 99
bins = 10
[[attribute]]
name = "since"
kind = "date"
min = 2020-01-01
max = 2023-12-31
bins = 4
""")
ROWS = 60
SETS = [(0,), (1,), (2,), (0, 1), (2, 0)]
COLUMNS = {"sex": "GESCHL", "since": "visit"}
RECODE = {"sex": {"1": "Male", "2": "Female", "9": ""}}
DAY = dt.date(2020, 1, 1)


def frame(seed=1):
    """An owner's own table: names, codes, and columns that are no concern of a study's."""
    source = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "patient": [f"P{at}" for at in range(ROWS)],
            "GESCHL": source.choice([1, 2, 9], ROWS),
            "age": source.integers(0, 100, ROWS),
            "visit": [DAY + dt.timedelta(days=int(d)) for d in source.integers(0, 1400, ROWS)],
            "consent": source.choice(["yes", "no"], ROWS),
        }
    )


def expected(table):
    """The study's table, as an owner would make it by hand."""
    sexes = {1: "Male", 2: "Female", 9: None}
    sex = pd.Series([sexes[code] for code in table["GESCHL"]], dtype=object)
    return pd.DataFrame({"sex": sex, "age": list(table["age"]), "since": list(table["visit"])})


def as_csv(table, folder):
    table.to_csv(folder / "t.csv", index=False)
    return {"kind": "csv", "path": "t.csv"}


def as_parquet(table, folder):
    table.to_parquet(folder / "t.parquet", row_group_size=13, index=False)
    return {"kind": "parquet", "path": "t.parquet"}


def as_sqlite(table, folder):
    (folder / "t.sqlite").unlink(missing_ok=True)
    connection = sqlite3.connect(folder / "t.sqlite")
    table.astype({"visit": str}).to_sql("t", connection, index=False)
    connection.close()
    return {"kind": "sqlite", "path": "t.sqlite", "table": "t"}


def as_duckdb(table, folder):
    (folder / "t.duckdb").unlink(missing_ok=True)
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.register("frame", table)
        connection.execute("CREATE TABLE t AS SELECT * FROM frame")
    return {"kind": "duckdb", "path": "t.duckdb", "table": "t"}


def as_excel(table, folder):
    book = openpyxl.Workbook()
    sheet = book.active
    for row in [list(table.columns), *table.astype(object).values.tolist()]:
        sheet.append(row)
    book.save(folder / "t.xlsx")
    return {"kind": "excel", "path": "t.xlsx"}


def as_spss(table, folder):
    pyreadstat.write_sav(table, str(folder / "t.sav"))
    return {"kind": "spss", "path": "t.sav"}


def as_stata(table, folder):
    pyreadstat.write_dta(table, str(folder / "t.dta"))
    return {"kind": "stata", "path": "t.dta"}


def as_sas(table, folder):
    pyreadstat.write_xport(table, str(folder / "t.xpt"))
    return {"kind": "sas", "path": "t.xpt"}


FILES = [as_csv, as_parquet, as_excel, as_spss, as_stata, as_sas]
WRITERS = [*FILES, as_sqlite, as_duckdb]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(parts, "CHUNK_ROWS", 17)
    monkeypatch.setattr("common.schema.formats._BLOCK_ROWS", 11)
    monkeypatch.setattr("party.sources.files._BATCH_ROWS", 7)


def opened(table, folder, schema=SCHEMA, held=1 << 20, **extra):
    made = owners_table({**table, **extra}, folder=folder, environment={})
    made.check_readable()
    return made.open(schema, held_bytes=held)


def assert_counts(found, table):
    for one, other in zip(found.count(SETS), _counts(table), strict=True):
        assert np.array_equal(one, other)


def _counts(table):
    columns = [column.astype(int) for column in SCHEMA.encode(table).columns]
    tables = [np.zeros([SCHEMA.sizes[a] for a in each], dtype=np.int64) for each in SETS]
    for counts, each in zip(tables, SETS, strict=True):
        np.add.at(counts, tuple(columns[a] for a in each), 1)
    return tables


@pytest.mark.parametrize("held", [1 << 20, 0])
@pytest.mark.parametrize("write", WRITERS, ids=lambda each: each.__name__[3:])
def test_every_kind_of_table_is_renamed_and_recoded_and_the_rest_is_not_read(
    tmp_path, write, held, monkeypatch
):
    monkeypatch.setattr(source, "is_cheaper", lambda *_: True)
    place = opened(write(frame(), tmp_path), tmp_path, held=held, columns=COLUMNS, recode=RECODE)
    for _ in range(2):  # a database that counts does so from the second time on
        assert_counts(place, expected(frame()))
    assert place.rows == ROWS


@pytest.mark.parametrize("held", [1 << 20, 0])
@pytest.mark.parametrize("write", FILES, ids=lambda each: each.__name__[3:])
def test_a_condition_takes_the_rows_for_which_it_holds(tmp_path, write, held):
    table = frame()
    where = "consent = yes and (GESCHL in (1, 2) or not age < 50) and visit >= 2020-06-01"
    kept = table[
        (table["consent"] == "yes")
        & (table["GESCHL"].isin([1, 2]) | ~(table["age"] < 50))
        & (table["visit"] >= dt.date(2020, 6, 1))
    ]
    assert 5 < len(kept) < ROWS
    place = opened(
        write(table, tmp_path), tmp_path, held=held, columns=COLUMNS, recode=RECODE, where=where
    )
    assert place.rows == len(kept)
    assert_counts(place, expected(kept))


def test_the_rows_of_several_tables_take_part(tmp_path):
    (tmp_path / "one").mkdir()
    first = {
        **as_csv(frame(1), tmp_path / "one"),
        "path": "one/t.csv",
        "as_of": dt.date(2020, 1, 1),
    }
    second = {**as_parquet(frame(2), tmp_path), "as_of": dt.date(2024, 1, 1)}
    shape = {"columns": COLUMNS, "recode": RECODE}
    both = owners_table([{**first, **shape}, {**second, **shape}], folder=tmp_path, environment={})
    both.check()
    both.check_readable()
    place = both.open(SCHEMA)
    assert both.kind == "csv and parquet"
    assert place.rows == place.codes().rows == sum(c.rows for c in place.chunks()) == 2 * ROWS
    assert (place.snapshot.as_of.year, place.snapshot.newest.year) == (2020, 2024)
    assert_counts(place, pd.concat([expected(frame(1)), expected(frame(2))], ignore_index=True))
    other = owners_table([{**second, **shape}, {**first, **shape}], folder=tmp_path, environment={})
    assert other.open(SCHEMA).snapshot.digest == place.snapshot.digest


def test_an_error_names_the_row_of_the_file_and_not_of_the_rows_taken(tmp_path):
    (tmp_path / "t.csv").write_text("age,use\n1,no\n2,yes\n3,no\n400,yes\n")
    schema = Schema(SCHEMA.attributes[1:2])
    with pytest.raises(InputError, match=r"t.csv where use = yes: .*row 5: 400"):
        opened({"kind": "csv", "path": "t.csv", "where": "use = yes"}, tmp_path, schema)


BAD = [
    ({"columns": {"sex": "SEX"}}, "no column 'SEX'"),
    ({"columns": {"sex": 3}}, "source.columns.sex: expected a text"),
    ({"columns": {"sex": "age", "old": "age"}}, "stands for two"),
    ({"recode": {"sex": "x"}}, r"\[source.recode.sex\]"),
    ({"recode": {"sex": {"1": True}}}, "becomes a text or a number"),
    ({"where": "nothing = 1"}, "no column 'nothing'"),
    ({"where": "age ="}, "expected a value after"),
    ({"where": "age 3"}, "expected one of"),
    ({"where": "age < old"}, "expected a number or a date"),
    ({"where": "(age = 3"}, r"expected '\)'"),
    ({"where": "age = 3 age = 4"}, "expected 'and', 'or' or the end"),
    ({"where": 'age = "3'}, "never closed"),
    ({"where": "(" * 200 + "age = 3"}, "more than 64 parentheses"),
    ({"where": "not " * 200 + "age = 3"}, "more than 64 parentheses"),
    ({"where": "age = 1000"}, "no rows"),
]


@pytest.mark.parametrize(("extra", "named"), BAD, ids=lambda each: str(each)[:30])
def test_settings_that_cannot_be_meant_are_refused_whatever_the_study(tmp_path, extra, named):
    with pytest.raises(InputError, match=named):
        owners_table(
            {**as_csv(frame(), tmp_path), **extra}, folder=tmp_path, environment={}
        ).check_readable()


def test_a_database_has_a_query_and_no_condition(tmp_path):
    with pytest.raises(InputError, match=r"unknown key 'source\.where'"):
        SourceSettings.from_table(
            {**as_sqlite(frame(), tmp_path), "where": "age = 3"}, folder=tmp_path, environment={}
        )


CELLS = [
    None, "", "1", "1.0", " 1", "01", "yes", "Yes", "nan", "inf", "-0", "2020-01-31", "é", "\xff",
    "20200131", "1e400", "0x1",
]  # fmt: skip
CONDITIONS = [
    "a = 1", "a != 1", "a < 2", "a >= 1", "a <= 2020-06-01", "a in (yes, 1)", "a is missing",
    "a is not missing", "not a = yes", "a = '' or a = é", "a > -1 and not (a = 1 or a is missing)",
]  # fmt: skip


@given(
    rows=st.lists(st.sampled_from(CELLS), min_size=1, max_size=12),
    other=st.sampled_from(CELLS),
    text=st.sampled_from(CONDITIONS),
    data=st.data(),
)
@settings(max_examples=150, deadline=None)
def test_a_row_is_taken_for_what_is_in_it_alone(rows, other, text, data):
    condition = Condition.parse(text)
    alone = [bool(condition.holds({"a": pa.array([cell], pa.string())})[0]) for cell in rows]
    assert condition.holds({"a": pa.array(rows, pa.string())}).tolist() == alone
    place = data.draw(st.integers(0, len(rows) - 1))
    changed = [*rows[:place], other, *rows[place + 1 :]]
    found = condition.holds({"a": pa.array(changed, pa.string()).dictionary_encode()}).tolist()
    assert found[:place] + found[place + 1 :] == alone[:place] + alone[place + 1 :]


@given(rows=st.lists(st.sampled_from(CELLS), min_size=1, max_size=12))
def test_a_cell_is_recoded_for_what_is_in_it_alone(rows):
    recoding = Recoding({"1": "one", "yes": "", "": "unknown", "2020-01-31": "1"})
    places, words = distinct(recoding.applied(pa.chunked_array([pa.array(rows, pa.string())])))
    found = [words[place] for place in places]
    assert found == [recoding.of(cell.encode() if cell else None) for cell in rows]
    meant = {"1": b"one", "1.0": b"one", " 1": b"one", "01": b"one", "yes": None}
    meant |= {None: b"unknown", "": b"unknown", "2020-01-31": b"1"}
    for cell, word in zip(rows, found, strict=True):
        assert word == (meant[cell] if cell in meant else cell.encode())


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (pa.array([1, None, 3]), [b"1", None, b"3"]),
        (pa.array([1.0, float("nan"), 0.5]), [b"1", None, b"0.5"]),
        (pa.array([True, None]), [b"True", None]),
        (pa.array([dt.date(2020, 1, 31)]), [b"2020-01-31"]),
        (pa.array([dt.datetime(2020, 1, 31, 12)]), [b"2020-01-31 12:00:00"]),
        (pa.array([[1], [2]]), [None, None]),
        (pa.nulls(2), [None, None]),
        (pa.array([b"\xff"]), [b"\xff"]),
    ],
)
def test_every_cell_has_the_text_that_a_file_would_hold(cells, expected):
    places, words = distinct(cells)
    assert [words[place] for place in places] == expected
