"""Files of Excel, SPSS, Stata and SAS: each cell by itself, whatever is next to it."""

import datetime as dt
import re
import sys
import zipfile

import openpyxl
import pandas as pd
import pyreadstat
import pytest

from common.errors import InputError
from common.schema import Schema
from common.tables import formats, read_table

CELLS = [
    1, 1.5, -0.0, 1e17, 2**53, "1", " 1", "yes", "é", True, dt.datetime(2020, 1, 31),
    dt.datetime(2020, 1, 31, 12, 30), dt.time(8, 30), "2020-01-31", "0x1F", "#N/A", None,
]  # fmt: skip
SEX = """
attribute = [
  { name = "sex", kind = "categorical", values = ["Male", "Female"], missing = true },
]
"""


def workbook(path, columns):
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append([f"c{at}" for at in range(len(columns))])
    for row in zip(*columns, strict=True):
        sheet.append(list(row))
    book.save(path)
    return path


def read(path, names=None):
    layout = formats.layout_of(path)
    names = names or layout.names
    columns = [[] for _ in names]
    for block in formats.blocks(path, names):
        for column, cells in zip(columns, block, strict=True):
            column.extend(formats.texts(cells).to_pylist())
    return columns


def test_a_cell_of_a_workbook_is_the_same_next_to_every_other(tmp_path):
    alone = {
        at: read(workbook(tmp_path / "a.xlsx", [["x", "x"], [cell, cell]]), ["c1"])[0][0]
        for at, cell in enumerate(CELLS)
    }
    together = [["x"] * len(CELLS), CELLS, CELLS[::-1]]
    _, column, back = read(workbook(tmp_path / "b.xlsx", together))
    assert column == list(alone.values()) == back[::-1]
    assert column[:4] == ["1", "1.5", "0", "100000000000000000"]
    assert column[9:12] == ["True", "2020-01-31 00:00:00", "2020-01-31 12:30:00"]


def test_the_named_sheet_is_read(tmp_path):
    book = openpyxl.Workbook()
    book.active.append(["about"])
    book.create_sheet("data").append(["age"])
    book["data"].append([7])
    book.save(tmp_path / "a.xlsx")
    assert formats.layout_of(tmp_path / "a.xlsx").names == ("about",)
    assert formats.layout_of(tmp_path / "a.xlsx", "data").names == ("age",)
    with pytest.raises(InputError, match=r"no sheet is called 'x'. Its sheets: Sheet, data"):
        formats.layout_of(tmp_path / "a.xlsx", "x")


def spss(path, values, **options):
    pyreadstat.write_sav(pd.DataFrame(values), str(path), **options)
    return path


def test_a_cell_of_a_statistics_file_is_the_same_next_to_every_other(tmp_path):
    numbers = [1.0, 1.5, -7.0, 1e17, float("nan")]
    alone = [read(spss(tmp_path / "a.sav", {"x": [n]}))[0][0] for n in numbers]
    assert read(spss(tmp_path / "b.sav", {"x": numbers}))[0] == alone
    assert alone == ["1", "1.5", "-7", "100000000000000000", None]


def test_dates_are_read_by_the_format_that_the_file_declares(tmp_path):
    days = [dt.date(2020, 1, 31), None, dt.date(1899, 12, 31)]
    times = [dt.datetime(2020, 1, 31, 12, 30), None, dt.datetime(1999, 1, 1)]
    table = pd.DataFrame({"d": days, "t": pd.Series(times, dtype=object)})
    for write, name in (
        (pyreadstat.write_sav, "a.sav"), (pyreadstat.write_dta, "a.dta"),
        (pyreadstat.write_xport, "a.xpt"),
    ):  # fmt: skip
        write(table, str(tmp_path / name))
        found = read(tmp_path / name)
        assert found[0] == ["2020-01-31", None, "1899-12-31"], name
        assert found[1] == ["2020-01-31 12:30:00", None, "1999-01-01 00:00:00"], name


def test_a_date_beyond_the_calendar_is_a_number_and_spoils_no_other(tmp_path):
    path = spss(tmp_path / "a.sav", {"d": [1e15, 13799808000.0]}, variable_format={"d": "DATE11"})
    assert read(path) == [["1000000000000000", "2020-01-31"]]


def test_declared_missing_values_are_empty_and_labels_are_read_where_the_schema_lists_them(
    tmp_path,
):
    path = spss(
        tmp_path / "a.sav",
        {"sex": [1.0, 2.0, 9.0, 1.0]},
        variable_value_labels={"sex": {1: "Male", 2: "Female", 9: "Refused"}},
        missing_ranges={"sex": [9]},
    )
    schema = Schema.from_toml(SEX)
    assert read_table(path, schema).encode(schema).columns[0].tolist() == [0, 1, 2, 0]
    codes = Schema.from_toml(SEX.replace('"Male", "Female"', '"1", "2"'))
    assert read_table(path, codes).encode(codes).columns[0].tolist() == [0, 1, 2, 0]


def test_the_labels_of_a_file_are_its_code_book(tmp_path):
    path = spss(
        tmp_path / "a.sav",
        {"sex": [1.0, 2.0] * 20, "age": [float(a) for a in range(20, 60)]},
        variable_value_labels={"sex": {1: "Male", 2: "Female", 3: "Other"}, "age": {999: "?"}},
    )
    table = read_table(path)
    proposal = Schema.infer(table.data, labels=table.labels)
    sex = proposal.schema.attributes[0]
    assert sex.domain.values == ("Male", "Female", "Other")
    assert any("value labels" in note for note in proposal.notes)
    assert read_table(path, proposal.schema).encode(proposal.schema).rows == 40


def test_a_sheet_is_inferred_like_any_table(tmp_path):
    path = workbook(
        tmp_path / "a.xlsx",
        [
            ["01067", "01069"] * 20, [i % 7 for i in range(40)],
            [dt.date(2020 + i % 4, 1, 1) for i in range(40)], [True, False] * 20,
        ],
    )  # fmt: skip
    schema = Schema.infer(read_table(path).data).schema
    assert [a.kind for a in schema.attributes] == ["categorical", "integer", "date", "boolean"]
    assert schema.attributes[0].domain.values == ("01067", "01069")
    assert read_table(path, schema).encode(schema).rows == 40


@pytest.mark.parametrize("name", ["a.xlsx", "a.sav", "a.dta", "a.sas7bdat", "a.xpt"])
def test_a_broken_file_is_named(tmp_path, name):
    (tmp_path / name).write_bytes(b"nothing")
    with pytest.raises(InputError, match=f"{name}: cannot be read"):
        read_table(tmp_path / name)


@pytest.mark.parametrize(("name", "library"), [("a.xlsx", "openpyxl"), ("a.sav", "pyreadstat")])
def test_without_the_library_the_remedy_is_named(tmp_path, monkeypatch, name, library):
    (tmp_path / name).write_bytes(b"nothing")
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(InputError, match=rf"needs {library}. Run: pip install 'parley\[formats\]'"):
        read_table(tmp_path / name)


def with_cell(path, raw, number_format="General"):
    """A workbook of three rows whose second row has a cell as raw XML."""
    book = openpyxl.Workbook()
    for row in (["x", "y"], ["a", "p"], [12345678, "q"], ["a", "p"]):
        book.active.append(row)
    book.active["A3"].number_format = number_format
    book.save(path)
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    files[sheet], times = re.subn(
        rb'<c r="A3"( s="\d+")? t="n"><v>12345678</v></c>',
        lambda cell: raw.replace(b"STYLE", cell[1] or b""),
        files[sheet],
    )
    assert times == 1
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b'<c r="A3"><v>abc</v></c>', "abc"),
        (b'<c r="A3" t="d"><v>2024-13-45</v></c>', "2024-13-45"),
        (b'<c r="A3" t="s"><v>9999</v></c>', "9999"),
        (b'<c r="A3" t="s"><v>-</v></c>', "-"),
        (b'<c r="A3" t="b"><v>maybe</v></c>', "maybe"),
        (b'<c r="A3"><f>B1</f><v>abc</v></c>', "abc"),
        (b'<c r="A3"><v>' + b"9" * 5000 + b"</v></c>", "9" * 5000),
    ],
)
def test_a_cell_that_is_not_what_its_type_says_is_its_text(tmp_path, raw, text):
    columns = read(with_cell(tmp_path / "a.xlsx", raw))
    assert columns == [["a", text, "a"], ["p", "q", "p"]]


@pytest.mark.filterwarnings("ignore:Cell A3")
@pytest.mark.parametrize("serial", [b"99999999999", b"-99999999", b"NaN", b"1e400"])
def test_a_date_beyond_the_calendar_stops_no_workbook(tmp_path, serial):
    raw = b'<c r="A3"STYLE><v>' + serial + b"</v></c>"
    columns = read(with_cell(tmp_path / "a.xlsx", raw, "yyyy-mm-dd"))
    assert columns[1] == ["p", "q", "p"]


@pytest.mark.parametrize("row", [[None, None], ["", None], ["x", None]])
def test_the_number_of_rows_does_not_depend_on_a_cell(tmp_path, row):
    path = workbook(tmp_path / "a.xlsx", [["x", *row[:1], "y"], ["p", *row[1:], "q"]])
    assert [len(column) for column in read(path)] == [3, 3]
    one_column = workbook(tmp_path / "b.xlsx", [["x", *row[:1]]])
    assert [len(column) for column in read(one_column)] == [2]


def test_rows_that_a_sheet_leaves_out_between_others_count(tmp_path):
    book = openpyxl.Workbook()
    book.active["A2"], book.active["A3"], book.active["A6"] = "age", 7, 9
    book.save(tmp_path / "a.xlsx")
    assert read(tmp_path / "a.xlsx") == [["7", None, None, "9"]]


def written(tmp_path, ending, old, new, **options):
    table = pd.DataFrame({"x": ["a", old.decode(), "a"], "y": ["p", "q", "p"]})
    write = {
        ".dta": pyreadstat.write_dta, ".sav": pyreadstat.write_sav, ".xpt": pyreadstat.write_xport
    }[ending]  # fmt: skip
    path = tmp_path / f"a{ending}"
    write(table, str(path), **options)
    content = path.read_bytes()
    assert content.count(old) == 1
    path.write_bytes(content.replace(old, new))
    return path


@pytest.mark.parametrize(
    ("ending", "options"), [(".dta", {}), (".dta", {"version": 8}), (".sav", {}), (".xpt", {})]
)
def test_bytes_that_are_not_of_the_files_encoding_stop_no_file(tmp_path, ending, options):
    path = written(tmp_path, ending, b"abcde", b"\xff\x81\xe9de", **options)
    assert read(path) == [["a", "ÿ\x81éde", "a"], ["p", "q", "p"]]


def test_texts_beyond_ascii_are_read_in_the_encoding_that_a_file_declares(tmp_path):
    for ending in (".dta", ".sav", ".xpt"):
        path = written(tmp_path, ending, "größ €".encode(), "größ €".encode())
        assert read(path)[0] == ["a", "größ €", "a"]
    old = written(tmp_path, ".dta", b"Muenster", "Münster€".encode("cp1252"), version=10)
    assert read(old)[0] == ["a", "Münster€", "a"]


def test_names_and_labels_beyond_ascii_are_read(tmp_path):
    table = pd.DataFrame({"größe": [1.0, 2.0], "y": ["p", "q"]})
    labels = {"größe": {1: "klein €", 2: "groß"}}
    for write, name in ((pyreadstat.write_dta, "a.dta"), (pyreadstat.write_sav, "a.sav")):
        write(table, str(tmp_path / name), variable_value_labels=labels)
        layout = formats.layout_of(tmp_path / name)
        assert layout.names == ("größe", "y")
        assert layout.labels["größe"] == {b"1": "klein €", b"2": "groß"}
        assert read(tmp_path / name) == [["1", "2"], ["p", "q"]]
