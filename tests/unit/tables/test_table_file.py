"""Files: read in the schema's types, and refused with the row an editor shows."""

import gzip

import numpy as np
import pandas as pd
import pytest

from common.errors import InputError
from common.schema import Schema
from common.tables import read_table

SCHEMA = Schema.from_toml("""
ignore = ["id"]
attribute = [
  { name = "age", kind = "integer", min = 0, max = 99, bins = 10 },
  { name = "work", kind = "categorical", values = ["Private", "State, local"], missing = true },
  { name = "born", kind = "date", min = 2000-01-01, max = 2000-12-31, bins = 12 },
  { name = "smokes", kind = "boolean" },
]
""")
HEADER = "work,id,age,smokes,born\n"
GOOD = (
    HEADER + 'Private,1,50,yes,2000-01-01\n"State, local",2,0,no,2000-12-31\n,3,99,1,2000-02-01\n'
)
CODES = [[5, 0, 9], [0, 1, 2], [0, 11, 1], [1, 0, 1]]


@pytest.fixture
def write(tmp_path):
    def _write(content, name="people.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return _write


def codes_of(path, **options):
    codes = read_table(path, SCHEMA, **options).encode(SCHEMA)
    return [column.tolist() for column in codes.columns]


@pytest.mark.parametrize(
    "content",
    [
        GOOD,
        "\ufeff" + GOOD,
        GOOD.replace("\n", "\r\n"),
        GOOD.replace("\n", "\n\n"),
        GOOD.rstrip("\n"),
        GOOD.replace("50", "50.0"),
        GOOD.replace("2000-01-01", "2000-01-01T10:00:00"),
    ],
)
def test_a_csv_is_encoded(write, content):
    assert codes_of(write(content)) == CODES


def test_other_delimiters_and_compression_are_read(write):
    semicolons = GOOD.replace('"State, local"', "State@ local").replace(",", ";").replace("@", ",")
    assert codes_of(write(semicolons), delimiter=";") == CODES
    for delimiter in ";|\t":  # nobody names it: the header tells
        assert codes_of(write(semicolons.replace(";", delimiter))) == CODES
    assert codes_of(write(semicolons.replace(";", "\t"), "people.tsv")) == CODES
    assert codes_of(write(gzip.compress(GOOD.encode()), "people.csv.gz")) == CODES


@pytest.mark.parametrize(
    ("told", "there", "word"),
    [(",", ";", "semicolon, not a comma"), (";", ",", "comma"), (",", "\t", "tab")],
)
def test_a_delimiter_that_the_header_does_not_have_is_refused(write, told, there, word):
    path = write(GOOD.replace(",", there))
    with pytest.raises(InputError, match=f"The delimiter seems to be a {word}"):
        read_table(path, SCHEMA, delimiter=told)


def test_a_column_whose_quoted_name_has_a_semicolon_is_one_column(write):
    assert read_table(write('"a;b"\n1\n')).data.column_names == ["a;b"]


def test_a_mistyped_name_and_an_unusual_delimiter_get_a_hint(write):
    path = write(GOOD.replace(",", ":"), "people.csv")
    with pytest.raises(InputError, match=r"no such file \(did you mean 'people.csv'\?\)"):
        read_table(path.with_name("peple.csv"))
    with pytest.raises(InputError, match=r"between its cells with delimiter=\.\.\."):
        read_table(path, SCHEMA)


def test_a_spreadsheet_and_a_folder_are_called_what_they_are(write, tmp_path):
    with pytest.raises(InputError, match=r"people\.xlsx: cannot be read"):
        read_table(write(b"PK\x03\x04", "people.xlsx"))
    with pytest.raises(InputError, match="a folder, not a file"):
        read_table(tmp_path)


def test_parquet_is_encoded_and_only_the_columns_of_the_schema_are_read(tmp_path):
    frame = pd.DataFrame(
        {
            "work": ["Private", "State, local", None],
            "id": [1, 2, 3],
            "age": np.array([50, 0, 99], dtype=np.int32),
            "smokes": [True, False, True],
            "born": pd.to_datetime(["2000-01-01", "2000-12-31", "2000-02-01"]).date,
        }
    )
    path = tmp_path / "people.parquet"
    frame.to_parquet(path)
    table = read_table(path, SCHEMA)
    assert table.data.column_names == ["work", "age", "smokes", "born"]
    codes = table.encode(SCHEMA)
    assert [column.tolist() for column in codes.columns] == CODES


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ("\n\n", "the file is empty"),
        (HEADER, "no rows"),
        ('"work,age\n', "the header cannot be read"),
        (GOOD.replace("id", "age", 1), "duplicate column 'age' in the header"),
        (GOOD.replace("age", "years", 1), 'missing column "age"'),
        (GOOD + "Private,4,50\n", "header has 5 columns, but row 5 has 3"),
        (GOOD + "\n\nPrivate,4,50,yes,2000-01-01,7\n", "row 7 has 6"),
        (
            GOOD.replace("Private", "Priv\xe9").encode("latin-1"),
            "not UTF-8 text: row 2 has the byte 0xe9",
        ),
        (HEADER.encode("latin-1").replace(b"id", b"\xe9"), "not UTF-8 text: row 1"),
        (GOOD + '"Private,4,50,yes,2000-01-01\n', "after row 4: .*quotation mark"),
        (GOOD.replace("50", "fifty"), "attribute 'age': 1 cell is outside .* row 2: 'fifty'"),
        (GOOD.replace("99", "990"), "attribute 'age': 1 cell is outside .* row 4: 990"),
        (GOOD.replace("\n", "\n\n").replace("99", "990"), "row 7: 990"),
        (
            GOOD.replace("State, local", "State,\nlocal"),
            "row 3: 'State,.*local'",
        ),
        (GOOD.replace("50", ""), r"attribute 'age': 1 cell is empty \(row 2\)"),
        (GOOD.replace("2000-02-01", "2000-02-31"), "attribute 'born': .* row 4: '2000-02-31'"),
        (GOOD.replace("yes", "maybe"), "attribute 'smokes': .* row 2: 'maybe'"),
    ],
)
def test_a_bad_file_is_refused_with_the_row_an_editor_shows(write, content, message):
    path = write(content)
    with pytest.raises(InputError, match=f"people.csv: .*{message}"):
        codes_of(path)


def test_cells_with_line_breaks_do_not_shift_the_row_numbers(write):
    text = GOOD.replace("Private", '"Private"').replace('"State, local"', "Private")
    with pytest.raises(InputError, match="row 4: 990"):
        codes_of(write(text.replace("99", "990")))
    schema = Schema.from_toml(
        SCHEMA.to_toml().replace('"State, local"', '"State, local", "two\\nlines"')
    )
    broken = GOOD.replace("Private", '"two\nlines"').replace("99", "990")
    with pytest.raises(InputError, match="row 5: 990"):
        read_table(write(broken), schema).encode(schema)


def test_a_file_without_schema_is_read_in_its_own_types(write):
    table = read_table(write(GOOD))
    assert [str(kind) for kind in table.data.schema.types][2:5:2] == ["int64", "date32[day]"]
    with pytest.raises(InputError, match="not UTF-8"):
        read_table(write(GOOD.replace("Private", "Priv\xe9").encode("latin-1")))


def test_a_single_column_that_contains_a_semicolon_is_a_column(write):
    schema = Schema.from_toml("""
attribute = [
  { name = "a;b", kind = "boolean" },
]
""")
    table = read_table(write("a;b\ntrue\nfalse\n"), schema)
    assert table.encode(schema).columns[0].tolist() == [1, 0]


def test_parquet_rows_count_from_one(tmp_path):
    path = tmp_path / "people.parquet"
    schema = Schema.from_toml("""
attribute = [
  { name = "x", kind = "integer", min = 0, max = 9 },
]
""")
    pd.DataFrame({"x": [1, 99]}).to_parquet(path)
    with pytest.raises(InputError, match="row 2: 99"):
        read_table(path, schema).encode(schema)


def test_what_is_not_a_table_is_refused(tmp_path, write):
    with pytest.raises(InputError, match="no such file"):
        read_table(tmp_path / "absent.csv")
    with pytest.raises(InputError, match="not a readable Parquet file"):
        read_table(write("a,b\n1,2\n", "people.parquet"))
    with pytest.raises(InputError, match="not a readable CSV file"):
        read_table(write("a,b\n1,2\n", "people.csv.gz"))
