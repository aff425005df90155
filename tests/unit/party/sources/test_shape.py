"""Owners' tables as they are: renamed, recoded, filtered and put together, row by row."""

import datetime as dt

import duckdb
import numpy as np
import openpyxl
import pandas as pd
import pyreadstat
import pytest

from common.errors import InputError
from common.schema import Schema
from common.tables import reader
from party.sources.settings import owners_table
from tests.unit.party.sources.shaped import ROWS, as_csv, as_sqlite, expected, frame

SCHEMA = Schema.from_toml("""
attribute = [
  { name = "sex", kind = "categorical", values = ["Male", "Female"], missing = true },
  { name = "age", kind = "integer", min = 0, max = 99, bins = 10 },
  { name = "since", kind = "date", min = 2020-01-01, max = 2023-12-31, bins = 4 },
]
""")
SETS = [(0,), (1,), (2,), (0, 1), (2, 0)]
COLUMNS = {"sex": "GESCHL", "since": "visit"}
RECODE = {"sex": {"1": "Male", "2": "Female", "9": ""}}


def as_parquet(table, folder):
    table.to_parquet(folder / "t.parquet", row_group_size=13, index=False)
    return {"kind": "parquet", "path": "t.parquet"}


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
    monkeypatch.setattr(reader, "CHUNK_ROWS", 17)
    monkeypatch.setattr("common.tables.formats._BLOCK_ROWS", 11)
    monkeypatch.setattr("common.tables.files._BATCH_ROWS", 7)


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
def test_every_kind_of_table_is_renamed_and_recoded_and_the_rest_is_not_read(tmp_path, write, held):
    place = opened(write(frame(), tmp_path), tmp_path, held=held, columns=COLUMNS, recode=RECODE)
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
