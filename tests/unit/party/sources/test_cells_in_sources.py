"""A cell's code follows from that cell and the schema, whatever else its source holds."""

import csv
import datetime as dt
import functools
import gzip
import sqlite3

import duckdb
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import InputError
from common.marginals import count
from common.schema import Schema
from common.schema.codes import concatenate
from common.tables import files, read_table, reader
from common.tables.csv_file import CsvFile
from party.sources import SourceSettings
from party.sources.kinds import databases
from tests.harness.cells import DATE, EDGED, SPELLED, TEXTS, WHOLE, WORDS, every_kind, schema_of

ANY = "other = true\nmissing = true\n"
SOME = [WORDS + ANY, SPELLED + ANY, WHOLE, EDGED, DATE + ANY]
NEXT_TO = ["n/a", "7.5", "0x1F", None]
MIXED = [  # what SQLite may hold in one column
    [1, 7, 31, 0], [1.0, 7.0, 0.0], [12345678901.0, 0.1 + 0.2, 1e16], [0.5, 1.5],
    [float("inf"), -float("inf"), 1e19], [2**62, 2**63 - 1, -(2**63)],
    [b"1", b"\xff\x00", b"7.0"], *TEXTS,
]  # fmt: skip


@functools.cache
def code_of(text, cell):
    """The code of a cell in a table of its own, in memory."""
    schema = schema_of(text, "x").forgiven()
    return int(schema.encode(pa.table({"x": pa.array([cell])})).columns[0][0])


def opened(table, schema, folder, held_bytes=1 << 28):
    made = SourceSettings.from_table(table, folder=folder, environment={})
    if schema.forgiving and held_bytes:
        made.check_readable()
    return made.open(schema, held_bytes=held_bytes)


def side_by_side(groups, others):
    """Columns of every group next to every other cell, filled up to the same length."""
    columns = [[other, *group] for group in groups for other in others]
    rows = max(map(len, columns))
    return [column + [column[0]] * (rows - len(column)) for column in columns]


def names_of(columns):
    return [f"c{at}" for at in range(len(columns))]


def assert_as_alone(place, columns, folder, texts=SOME):
    for text in texts:
        schema = schema_of(text, names_of(columns)).forgiven()
        codes = opened(place, schema, folder).codes()
        assert codes.rows == len(columns[0])
        for found, cells in zip(codes.columns, columns, strict=True):
            assert found.tolist() == [code_of(text, cell) for cell in cells], (text, cells)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Batches of a few rows: cells of one column are in several."""
    monkeypatch.setattr(reader, "CHUNK_ROWS", 7)
    monkeypatch.setattr(files, "_BATCH_ROWS", 7)
    options = {**databases._STATEMENT_OPTIONS, "sqlite": {"adbc.sqlite.query.batch_rows": 3}}
    monkeypatch.setattr(databases, "_STATEMENT_OPTIONS", options)


@pytest.fixture
def csv_file(tmp_path):
    """Write a CSV file: `csv_file(content)` gives its settings."""

    def write(content, name="t.csv"):
        content = content.encode() if isinstance(content, str) else content
        (tmp_path / name).write_bytes(content)
        return {"kind": "csv", "path": name, "delimiter": ","}

    return write


def test_cells_of_a_csv_file(tmp_path):
    columns = side_by_side(TEXTS, NEXT_TO)
    with (tmp_path / "t.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names_of(columns), *zip(*columns, strict=True)])
    assert_as_alone({"kind": "csv", "path": "t.csv"}, columns, tmp_path)


@pytest.mark.parametrize("kind", [pa.string(), pa.binary()], ids=str)
def test_texts_of_a_parquet_file(tmp_path, kind):
    columns = side_by_side(TEXTS, NEXT_TO)
    table = pa.table([pa.array(column, type=kind) for column in columns], names_of(columns))
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet", row_group_size=9)
    assert_as_alone({"kind": "parquet", "path": "t.parquet"}, columns, tmp_path)


def test_texts_of_a_parquet_file_that_are_not_utf8(tmp_path):
    column = pa.array([b"1", b"\xff", b"2", b"7\xff"]).view(pa.string())
    pyarrow.parquet.write_table(pa.table({"a": column, "b": column}), tmp_path / "t.parquet")
    schema = Schema((
        schema_of(WORDS + ANY, "a").attributes[0], schema_of(WHOLE + ANY, "b").attributes[0],
    ))  # fmt: skip
    codes = opened({"kind": "parquet", "path": "t.parquet"}, schema, tmp_path).codes()
    assert [found.tolist() for found in codes.columns] == [[1, 7, 2, 7], [0, 5, 0, 5]]


def test_cells_of_sqlite_whatever_their_storage_classes(tmp_path):
    columns = side_by_side(MIXED, [*NEXT_TO, 7, 0.5, b"\xff"])
    # SQLite holds NULL for NaN, and at most 2,000 columns; a text is kept as it is.
    with sqlite3.connect(tmp_path / "t.sqlite") as connection:
        connection.execute(f"CREATE TABLE t ({', '.join(names_of(columns))})")
        insert = f"INSERT INTO t VALUES ({', '.join('?' for _ in columns)})"  # noqa: S608
        connection.executemany(insert, list(zip(*columns, strict=True)))
    connection.close()
    assert_as_alone({"kind": "sqlite", "path": "t.sqlite", "table": "t"}, columns, tmp_path)


def test_texts_of_sqlite_that_are_not_utf8(tmp_path):
    with sqlite3.connect(tmp_path / "t.sqlite") as connection:
        connection.execute("CREATE TABLE t (c0)")
        connection.execute("INSERT INTO t VALUES ('1'), (CAST(x'ff41' AS TEXT)), (2)")
    connection.close()
    schema = schema_of(WORDS + ANY, ["c0"])
    codes = opened({"kind": "sqlite", "path": "t.sqlite", "table": "t"}, schema, tmp_path).codes()
    assert codes.columns[0].tolist() == [1, 7, 2]


TYPED = {
    "VARCHAR": ["'1'", "'1.0'", "'0x1F'", "'n/a'", "''", "'2024-01-31'", "'9223372036854775808'"],
    "DOUBLE": ["1", "0.5", "12345678901", "'nan'", "'inf'", "1e19", "'-0.0'"],
    "BIGINT": ["1", "31", "9223372036854775807", "-9223372036854775808", "20240131"],
    "HUGEINT": ["1", "170141183460469231731687303715884105727", "31"],
    "DECIMAL(12,2)": ["1", "0.5", "31"],
    "BLOB": ["'1'", "'\\xFF'", "'a'"],
    "BOOLEAN": ["true", "false"],
    "DATE": ["'2024-01-31'", "'infinity'", "'-infinity'", "'0001-01-01'"],
    "TIMESTAMP": ["'2024-01-31 12:30:15.5'", "'infinity'", "'290000-01-01'"],
    "TIMESTAMPTZ": ["'2024-01-31 12:30:15+01'"],
    "INTERVAL": ["'1 month'", "'30 days'"],
    "UUID": ["'00000000-0000-0000-0000-000000000001'"],
    "INTEGER[]": ["[1]", "[]"],
}


SLOWLY = ("BIGINT", "HUGEINT", "BOOLEAN", "DATE", "TIMESTAMPTZ", "INTERVAL", "UUID", "INTEGER[]")


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=[pytest.mark.slow] * (k in SLOWLY)) for k in TYPED]
)
def test_cells_of_duckdb_in_every_type(tmp_path, kind):
    cells = [*TYPED[kind], "NULL"]
    tables = [*((cell,) for cell in cells), cells]
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        for number, table in enumerate(tables):
            connection.execute(f"CREATE TABLE t{number} (x {kind})")
            rows = ", ".join(f"({cell})" for cell in table)
            connection.execute(f"INSERT INTO t{number} VALUES {rows}")  # noqa: S608
    schema = every_kind()
    same = ", ".join(f"x AS {name}" for name in schema.names)
    places = [
        {"kind": "duckdb", "path": "t.duckdb", "query": f"SELECT {same} FROM t{number}"}  # noqa: S608
        for number in range(len(tables))
    ]
    sources = [opened(place, schema, tmp_path, held_bytes=0) for place in places]
    alone = concatenate([source.codes() for source in sources[:-1]])
    sets = [(at,) for at in range(len(schema.names))]
    for found, wanted in zip(sources[-1].count(sets), count(alone, sets), strict=True):
        assert found.tolist() == wanted.tolist()


# Columns of a type that is not the attribute's kind: every cell is outside, none raises.

TYPES = [
    pa.bool_(), pa.int8(), pa.float32(), pa.decimal128(9, 2), pa.string(), pa.binary(),
    pa.binary(3), pa.date32(), pa.timestamp("us"), pa.timestamp("us", tz="UTC"), pa.time64("us"),
    pa.duration("us"), pa.list_(pa.int8()), pa.struct([("a", pa.int8())]), pa.null(),
    pa.dictionary(pa.int8(), pa.string()),
]  # fmt: skip
SAMPLES = {
    pa.binary(3): [b"\xff\xfe7"], pa.list_(pa.int8()): [[1]], pa.null(): [None],
    pa.struct([("a", pa.int8())]): [{"a": 1}], pa.date32(): [dt.date(2024, 1, 31)],
    pa.bool_(): [True], pa.string(): ["1"], pa.binary(): [b"\xff"],
    pa.dictionary(pa.int8(), pa.string()): ["1"],
}  # fmt: skip


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_a_parquet_column_of_any_type_has_a_code_in_every_row(tmp_path, kind):
    cells = [*SAMPLES.get(kind, [1]), None]
    names = every_kind().names
    table = pa.table([pa.array(cells, type=kind)] * len(names), names)
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    found = opened({"kind": "parquet", "path": "t.parquet"}, every_kind(), tmp_path)
    assert found.codes().rows == 2


# Rows of a CSV file.

TWO = ["a", "b"]


def two_columns(text=WHOLE + "missing = true\n"):
    return schema_of(text, TWO)


@pytest.mark.parametrize(
    ("row", "codes", "named"),
    [
        (b"7", [1, 5], "row 3 has 1"),
        (b"7,7,7", [1, 1], "row 3 has 3"),
        (b"7,\xff", [1, 0], "row 3 has the byte 0xff"),
        (b"\xff", [0, 5], "row 3"),
        (b'7,"7\x00"', [1, 0], "row 3"),
        (b'7,"7"""', [1, 0], "row 3"),
        (b'"7\n7",7', [0, 1], "row 3"),
        (b"7," + b"7" * 200_000, [1, 4], "outside the domain"),
        (b"7," + b"x" * (1 << 23), [1, 0], "outside the domain"),
    ],
)
def test_a_bad_row_of_a_csv_file_changes_its_own_codes_only(csv_file, tmp_path, row, codes, named):
    place = csv_file(b"a,b\n31,40\n" + row + b"\n0,31\n")
    rows = opened(place, two_columns().forgiven(), tmp_path).codes()
    assert [column.tolist() for column in rows.columns] == [[3, codes[0], 0], [4, codes[1], 3]]
    with pytest.raises(InputError, match=rf"t\.csv: .*{named}"):
        opened(place, two_columns(), tmp_path)


def test_a_long_cell_is_a_cell(csv_file, tmp_path):
    place = csv_file(b"a,b\n" + b" " * (1 << 23) + b"7,31\n7,7\n")
    for schema in (two_columns(), two_columns().forgiven()):
        rows = opened(place, schema, tmp_path).codes()
        assert [column.tolist() for column in rows.columns] == [[1, 1], [3, 1]]


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_an_empty_line_of_one_column_is_a_row_with_an_empty_cell(csv_file, tmp_path, ends):
    schema = schema_of(WHOLE + "missing = true\n", ["a"])
    for cells in (["7", "", "31"], ["7", '""', "31"], ["", "7", ""]):
        place = csv_file(ends.join(["", "a", *cells, ""]))
        expected = [{"7": 1, "31": 3}.get(cell, 5) for cell in cells]
        read = read_table(tmp_path / "t.csv", schema).encode(schema)
        for codes in (opened(place, schema, tmp_path).codes(), read):
            assert codes.columns[0].tolist() == expected
    with pytest.raises(InputError, match=r"row 4: 99"):
        opened(csv_file("a\n7\n\n99\n"), schema, tmp_path)


def test_an_empty_line_of_several_columns_is_no_row(csv_file, tmp_path):
    place = csv_file("a,b\n\n7,7\n\n\n7\n")
    assert opened(place, two_columns().forgiven(), tmp_path).rows == 2


BYTES = st.lists(
    st.sampled_from([b"a", b",", b'"', b"\n", b"\r", b"\r\n", b" ", b"\x00", b"\xff", b'""', b"1"]),
    max_size=14,
).map(b"".join)


@settings(max_examples=150, deadline=None)
@given(BYTES, st.sampled_from([b"a,b\n", b"a\n"]))
def test_rows_are_cut_by_python_as_they_are_by_arrow(tmp_path_factory, content, head):
    path = tmp_path_factory.getbasetemp() / "cut.csv"
    path.write_bytes(head + content)
    if CsvFile(path, ",", []).ends_in_quotes():
        return
    reader = files.CsvReader(path, None, delimiter=",")
    try:
        batches = list(reader._batches(reader.names))
    except pa.ArrowInvalid:
        return  # rows of different lengths: only Python reads them
    fast = pa.Table.from_batches(batches, pa.schema([(n, pa.string()) for n in reader.names]))
    slow = list(reader._slowly(reader.names))
    assert fast.num_rows == sum(batch.num_rows for batch in slow)
    for name in reader.names if slow else ():
        cells = [batch.column(name).view(pa.binary()).to_pylist() for batch in slow]
        quick = fast.column(name).combine_chunks().view(pa.binary()).to_pylist()
        assert quick == [cell for batch in cells for cell in batch]


# What is no table at all is found without a study.


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b'a,b\n7,7\n"7,7\n7,7\n', "ends inside of a cell"),
        (b"", "empty"),
        (b"a,b\n", "no rows"),
        (b"a,a\n7,7\n", "duplicate column"),
        (b"\xff,b\n7,7\n", "not UTF-8"),
        (gzip.compress(b"a,b\n7,7\n" * 99, mtime=0)[:-9], "not a readable CSV file"),
    ],
)
def test_a_csv_file_that_is_no_table_is_found_without_a_study(csv_file, tmp_path, content, named):
    place = csv_file(content, "t.csv.gz" if content[:1] == b"\x1f" else "t.csv")
    made = SourceSettings.from_table(place, folder=tmp_path, environment={})
    with pytest.raises(InputError, match=named):
        made.check_readable()


def test_other_sources_that_are_no_tables_are_found_without_a_study(tmp_path):
    def refused(named, **place):
        made = SourceSettings.from_table(place, folder=tmp_path, environment={})
        with pytest.raises(InputError, match=named):
            made.check_readable()

    (tmp_path / "t.parquet").write_bytes(b"PAR1 no more")
    refused("not a readable Parquet file", kind="parquet", path="t.parquet")
    table = pa.table({"a": list(range(10_000)), "b": [str(n) for n in range(10_000)]})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet", compression="none")
    content = bytearray((tmp_path / "t.parquet").read_bytes())
    content[4:1000] = bytes(996)
    (tmp_path / "t.parquet").write_bytes(content)
    refused("not a readable Parquet file", kind="parquet", path="t.parquet")
    pyarrow.parquet.write_table(table[:0], tmp_path / "t.parquet")
    refused("no rows", kind="parquet", path="t.parquet")
    refused("no such file", kind="csv", path="absent.csv")
    refused("refused", kind="sqlite", path="absent.sqlite", table="t")
    (tmp_path / "t.sqlite").write_bytes(b"no database, but long enough to be taken for one" * 99)
    refused("refused", kind="sqlite", path="t.sqlite", table="t")
