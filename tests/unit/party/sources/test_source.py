"""Every source gives the same rows, the same counts and the same digest, and notices a change."""

import datetime as dt
import os
import sqlite3
from itertools import combinations
from types import SimpleNamespace

import duckdb
import numpy as np
import pandas as pd
import pytest

from common.errors import InputError, PolicyError
from common.marginals import count
from common.schema.codes import concatenate
from common.tables import files, reader
from common.tables.files import CsvReader, ParquetReader
from party.sources import SourceSettings, TableSource
from party.sources.fingerprint import RowDigest
from party.sources.kinds import databases
from party.sources.source import JoinedSource
from tests.harness.people import ROWS, people, schema_of

SCHEMA = schema_of("sex", "age", "income", "since")
HELD, STREAMED = 1 << 28, 0


def as_csv(frame, folder):
    frame.to_csv(folder / "people.csv", index=False)
    return {"kind": "csv", "path": "people.csv"}


def as_parquet(frame, folder):
    frame.to_parquet(folder / "people.parquet", row_group_size=700, index=False)
    return {"kind": "parquet", "path": "people.parquet"}


def as_sqlite(frame, folder):
    path = folder / "people.sqlite"
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    frame.astype({"since": str}).to_sql("people", connection, index=False)
    connection.close()
    return {"kind": "sqlite", "path": "people.sqlite", "table": "people"}


def as_duckdb(frame, folder):
    path = folder / "people.duckdb"
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as connection:
        connection.register("frame", frame)
        connection.execute("CREATE TABLE people AS SELECT * FROM frame")
    return {"kind": "duckdb", "path": "people.duckdb", "query": "SELECT * FROM people;"}


WRITERS = [as_csv, as_parquet, as_sqlite, as_duckdb]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Chunks smaller than the tables of these tests."""
    monkeypatch.setattr(reader, "CHUNK_ROWS", 512)
    monkeypatch.setattr(files, "_BATCH_ROWS", 200)
    monkeypatch.setattr(files, "_PART_ROWS", 1000)
    monkeypatch.setattr(files, "_BLOCK_BYTES", 1 << 13)
    options = {**databases._STATEMENT_OPTIONS, "sqlite": {"adbc.sqlite.query.batch_rows": 300}}
    monkeypatch.setattr(databases, "_STATEMENT_OPTIONS", options)


@pytest.fixture(params=WRITERS, ids=lambda writer: writer.__name__[3:])
def place(request, tmp_path):
    """A kind of source: `place.write(frame)`, then `place.open(held)`."""

    def write(frame):
        result.table = request.param(frame, tmp_path)

    def open_it(held=HELD):
        settings = SourceSettings.from_table(result.table, folder=tmp_path, environment={})
        return settings.open(SCHEMA, held_bytes=held)

    result = SimpleNamespace(write=write, open=open_it, kind=request.param.__name__[3:])
    result.write(people())
    return result


def expected_codes(frame):
    return SCHEMA.encode(frame)


@pytest.mark.parametrize("held", [HELD, STREAMED])
def test_every_kind_of_source_gives_the_same_counts_again_and_again(place, held):
    sets = [(), (0,), *combinations(range(4), 2), (3, 1, 0), (1, 5), (0, 3, 7)]
    expected = count(expected_codes(people()).placed, sets)
    opened = place.open(held)
    assert opened.rows == opened.snapshot.rows == ROWS
    for _ in range(2):
        for table, wanted in zip(opened.count(sets), expected, strict=True):
            assert np.array_equal(table, wanted)


@pytest.mark.parametrize("held", [HELD, STREAMED])
def test_every_kind_of_source_gives_every_row(place, held):
    opened = place.open(held)
    rows = concatenate(list(opened.chunks()))
    for column, wanted in zip(rows.columns, expected_codes(people()).columns, strict=True):
        assert np.array_equal(column, wanted)
    for places, wanted in zip(rows.places, expected_codes(people()).places, strict=True):
        assert places is wanted or np.array_equal(places, wanted)
    assert opened.codes().rows == ROWS


def test_a_table_that_is_not_held_comes_in_chunks(place):
    assert len(list(place.open(STREAMED).chunks())) > 1


def test_the_digest_is_the_same_wherever_the_rows_are_and_in_whatever_order(place):
    first = place.open().snapshot.digest
    digest = RowDigest(SCHEMA.sizes)
    digest.add(expected_codes(people()))
    assert first == digest.hexdigest()
    place.write(people().sample(frac=1, random_state=1))
    assert place.open(STREAMED).snapshot.digest == first


@pytest.mark.parametrize(
    "change",
    [
        lambda frame: frame.assign(sex=["M", *frame["sex"][1:]]),
        lambda frame: frame.iloc[1:],
        lambda frame: pd.concat([frame, frame.iloc[:1]]),
    ],
    ids=["a cell", "a row less", "a row twice"],
)
def test_a_table_that_changes_during_the_study_is_refused(place, change):
    frame = people()
    frame.loc[0, "sex"] = "F"
    place.write(frame)
    opened = place.open(STREAMED)
    place.write(change(frame))
    with pytest.raises(PolicyError, match="changed during the study"):
        opened.count([(1,)])
    with pytest.raises(PolicyError, match="changed during the study"):
        list(opened.chunks())


def test_a_held_table_stays_what_it_was(place):
    opened = place.open(HELD)
    before = opened.count([(0, 1)])[0]
    place.write(people(seed=6))
    assert np.array_equal(opened.count([(0, 1)])[0], before)


def test_a_source_that_disappears_is_refused(place, tmp_path):
    opened = place.open(STREAMED)
    (tmp_path / place.table["path"]).unlink()
    with pytest.raises((PolicyError, InputError), match=r"changed|cannot be read any more"):
        opened.count([(0,)])


def test_a_cell_outside_the_domain_is_named_with_its_row(place):
    frame = people()
    frame.loc[2500, "age"] = 120
    place.write(frame)
    line = 2502 if place.kind == "csv" else 2501
    with pytest.raises(InputError, match=rf"people.*'age'.*row {line:,}: 120"):
        place.open()


def test_a_missing_column_and_an_empty_table_are_refused(place):
    place.write(people().drop(columns="age"))
    with pytest.raises(InputError, match='missing column "age"'):
        place.open()
    place.write(people().iloc[:0])
    with pytest.raises(InputError, match="no rows"):
        place.open()


def test_a_csv_whose_cells_need_the_schema_to_be_read_is_read_as_text(tmp_path):
    frame = people().astype({"age": object})
    frame.loc[2900, "age"] = "33.0"
    as_csv(frame, tmp_path)
    opened = TableSource(CsvReader(tmp_path / "people.csv", SCHEMA), SCHEMA, held_bytes=STREAMED)
    expected = count(expected_codes(frame.assign(age=frame["age"].astype(float))), [(1,)])[0]
    for _ in range(2):
        assert np.array_equal(opened.count([(1,)])[0], expected)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("id;sex;age;income;since\n1;F;3;4\n", "row 2 has 4"),
        ("id,sex,age,income,since\n1,F,3,4,2001-01-01\n1,F,3,4\n", "row 3 has 4"),
        ("id,sex,age,income,since\n1,\"F,3,4,2001-01-01\n", "quotation mark"),
        ("id,sex,age,income,since\n1,\xff,3,4,2001-01-01\n", "row 2 has the byte 0xff"),
        ("", "empty"),
    ],
)  # fmt: skip
def test_a_broken_csv_is_diagnosed(tmp_path, text, named):
    path = tmp_path / "people.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=named):
        TableSource(CsvReader(path, SCHEMA), SCHEMA)


def test_a_broken_parquet_file_is_refused(tmp_path):
    path = tmp_path / "people.parquet"
    path.write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(InputError, match="not a readable Parquet file"):
        ParquetReader(path, SCHEMA)


def test_the_date_of_a_file_is_the_day_it_was_written_or_the_one_given(tmp_path):
    table = as_csv(people(), tmp_path)
    noon = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC).timestamp()
    os.utime(tmp_path / "people.csv", (noon, noon))
    for extra, expected in (({}, "2024-02-29"), ({"as_of": dt.date(2023, 1, 1)}, "2023-01-01")):
        settings = SourceSettings.from_table({**table, **extra}, folder=tmp_path, environment={})
        assert str(settings.open(SCHEMA).snapshot.as_of) == expected


def test_a_database_file_is_never_written(tmp_path):
    for writer in (as_sqlite, as_duckdb):
        table = writer(people(), tmp_path)
        before = (tmp_path / table["path"]).read_bytes()
        SourceSettings.from_table(table, folder=tmp_path, environment={}).open(SCHEMA)
        assert (tmp_path / table["path"]).read_bytes() == before


@pytest.mark.parametrize(
    ("table", "named"),
    [
        ({}, "kind is None"),
        ({"kind": "oracle"}, "one of: csv"),
        ({"kind": "csv"}, "needs a path"),
        ({"kind": "csv", "path": 3}, "source.path: expected a text"),
        ({"kind": "csv", "path": "x", "table": "t"}, "unknown key 'source.table'; known: kind, "),
        ({"kind": "csv", "path": "x", "as_of": "2020-01-01"}, "source.as_of: expected a date"),
        ({"kind": "sqlite", "path": "x"}, "either table or query"),
        ({"kind": "sqlite", "path": "x", "table": "t", "query": "q"}, "either table or query"),
        ({"kind": "postgresql", "table": "t"}, "one of uri"),
        ({"kind": "postgresql", "table": "t", "uri_env": "NOT_THERE"}, "NOT_THERE is not set"),
        ({"kind": "postgresql", "table": "t", "uri_file": "none"}, "cannot be read"),
        ({"kind": "postgresql", "table": "t", "uri": "postgresql://a:pw@h/d"}, "password"),
        ({"kind": "postgresql", "table": "t", "uri": "host=h password=pw"}, "password"),
    ],
)
def test_settings_that_make_no_sense_are_refused_by_name(tmp_path, table, named):
    with pytest.raises(InputError, match=named):
        SourceSettings.from_table(table, folder=tmp_path, environment={})


def test_a_missing_file_is_named(tmp_path):
    for table in (
        {"kind": "csv", "path": "none.csv"},
        {"kind": "parquet", "path": "none.parquet"},
        {"kind": "sqlite", "path": "none.sqlite", "table": "t"},
        {"kind": "duckdb", "path": "none.duckdb", "table": "t"},
    ):
        settings = SourceSettings.from_table(table, folder=tmp_path, environment={})
        with pytest.raises(InputError, match=r"no .*file"):
            settings.open(SCHEMA)
    assert list(tmp_path.iterdir()) == []


TWO = schema_of("sex", "age")
DAYS = [dt.date(2020, 1, 1), dt.date(2024, 1, 1)]


@pytest.fixture
def opened(tmp_path):
    """Opens a file of so many people, as they were on a day."""

    def make(rows, as_of=None):
        people(rows, seed=rows).to_csv(tmp_path / f"{rows}.csv", index=False)
        table = {"kind": "csv", "path": f"{rows}.csv"}
        if as_of is not None:
            table["as_of"] = as_of
        return SourceSettings.from_table(table, folder=tmp_path, environment={}).open(TWO)

    return make


def test_rows_counts_and_chunks_are_those_of_all_tables(opened):
    tables = [opened(50), opened(1), opened(70)]
    joined = JoinedSource(tables)
    assert joined.rows == joined.snapshot.rows == 121
    held = [joined.codes(), concatenate(list(joined.chunks()))]
    expected = TWO.encode(people(50, seed=50)).columns[1].tolist()
    for codes in held:
        assert codes.columns[1][:50].tolist() == expected
        assert codes.rows == 121
    sets = [(0,), (1,), (0, 1)]
    for together, *apart in zip(joined.count(sets), *(t.count(sets) for t in tables), strict=True):
        np.testing.assert_array_equal(together, sum(apart))


def test_the_digest_does_not_depend_on_the_order_and_does_on_every_table(opened):
    one, two, three = opened(50), opened(60), opened(70)
    digests = {
        JoinedSource(tables).snapshot.digest
        for tables in ([one, two], [one, three], [two, three], [one, one], [one, two, three])
    }
    assert len(digests) == 5
    assert JoinedSource([two, one]).snapshot.digest == JoinedSource([one, two]).snapshot.digest
    assert one.snapshot.digest not in digests


def test_the_oldest_table_dates_all_of_them_and_the_newest_is_told_where_it_is_another(opened):
    old, new = (opened(50 + place, day) for place, day in enumerate(DAYS))
    both = JoinedSource([new, old]).snapshot
    assert (both.as_of, both.newest) == tuple(DAYS)
    same = JoinedSource([old, opened(60, DAYS[0])]).snapshot
    assert (same.as_of, same.newest) == (DAYS[0], None)
