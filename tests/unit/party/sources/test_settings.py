"""Settings of sources that cannot be meant are refused."""

import pytest

from common.errors import InputError
from common.tables import reader
from party.sources.settings import (
    SHAPE,
    SourceSettings,
    all_kinds,
    owners_table,
    table_or_query,
)
from tests.unit.party.sources.shaped import as_csv, as_sqlite, frame


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(reader, "CHUNK_ROWS", 17)
    monkeypatch.setattr("common.tables.formats._BLOCK_ROWS", 11)
    monkeypatch.setattr("common.tables.files._BATCH_ROWS", 7)


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


def refusal_of(tmp_path, *tables):
    with pytest.raises(InputError) as refused:
        owners_table(list(tables), folder=tmp_path, environment={})
    return str(refused.value)


def test_the_same_table_twice_is_refused(tmp_path):
    table = as_csv(frame(), tmp_path)
    (tmp_path / "link.csv").symlink_to(tmp_path / table["path"])
    (tmp_path / "hard.csv").hardlink_to(tmp_path / table["path"])
    other = {**table, "path": "other.csv"}
    for again in (
        table,
        {**table, "path": f"./{table['path']}", "where": "age > 3"},
        {**table, "path": "link.csv"},
        {**table, "path": "hard.csv"},
    ):
        assert "table 3 is table 1 again" in refusal_of(tmp_path, table, other, again)
    database = as_sqlite(frame(), tmp_path)
    assert "table 2 is table 1 again" in refusal_of(tmp_path, database, database)


def test_two_sheets_and_two_queries_are_two_tables(tmp_path):
    def book(**more):
        return {"kind": "excel", "path": "a.xlsx", **more}

    owners_table([book(sheet="a"), book(sheet="b")], folder=tmp_path, environment={})
    assert "again" in refusal_of(tmp_path, book(sheet="a"), book())  # the first may be that one
    database = as_sqlite(frame(), tmp_path)
    del database["table"]
    queries = ("SELECT * FROM t WHERE age < 9", "SELECT * FROM t WHERE age >= 9")
    tables = [{**database, "query": query} for query in queries]
    owners_table(tables, folder=tmp_path, environment={})


def test_every_kind_is_there_files_first_and_by_name():
    names = list(all_kinds())
    assert names == [
        "csv", "duckdb", "excel", "parquet", "sas", "spss", "sqlite", "stata", "postgresql",
        "spark",
    ]  # fmt: skip
    files = [kind.is_file for kind in all_kinds().values()]
    assert files == sorted(files, reverse=True)


def test_what_is_read_here_can_be_renamed_recoded_and_dated():
    for name, kind in all_kinds().items():
        assert (kind.keys >= SHAPE) == (name != "spark")
        assert ("where" in kind.keys) == (kind.is_file and kind.reads_all)


@pytest.mark.parametrize("table", [{}, {"table": "t", "query": "SELECT 1"}])
def test_a_database_has_a_table_or_a_query(table):
    with pytest.raises(InputError, match="give either table or query"):
        table_or_query(table, '"')
