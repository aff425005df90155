"""What a spreadsheet would run is told from what it would show."""

import csv

import pytest

from common.errors import InputError
from common.release.spreadsheet import (
    check_copy,
    formula_warning,
    harmless,
    is_formula,
    write_safe_copy,
)
from common.schema import Schema


@pytest.mark.parametrize(
    "cell",
    ["=1+1", "+cmd", "-", "--1", "-1_0", "-1-1", "@SUM(A1)", "\tx", "\rx", "\n=1", "+1e5e", "-٣"],
)
def test_text_that_begins_like_a_formula_is_one(cell):
    assert is_formula(cell)
    assert harmless(cell) == f"'{cell}"


@pytest.mark.parametrize("cell", ["", "x", "1", "-1", "+1", "-1.5", "-.5e-3", "2024-01-01", "a=b"])
def test_numbers_and_other_text_are_not(cell):
    assert harmless(cell) == cell


def test_values_and_names_count_and_numbers_do_not():
    numbers = '[[attribute]]\nname = "a"\nkind = "categorical"\nvalues = [-1, -2]\n'
    assert formula_warning(Schema.from_toml(numbers)) is None
    named = numbers.replace('"a"', '"=a"')
    assert "1 of the names and values that the schema lists ('=a')" in formula_warning(
        Schema.from_toml(named)
    )
    listed = numbers.replace("[-1, -2]", '["-1", "+b", "@c", "=d\\u001b", "=e"]')
    warned = formula_warning(Schema.from_toml(listed))
    assert "4 of the names and values" in warned
    assert "'+b', '@c', '=d\\x1b', ..." in warned


def folder_with(tmp_path, name, text):
    folder = tmp_path / "release"
    folder.mkdir()
    (folder / name).write_text(text, newline="")
    return folder


def test_formulas_become_text_and_all_else_stays(tmp_path):
    cells = ["=1+1", "+cmd", "-2", "@x", "two\nlines", 'say "d"', "", "é", "a,b"]
    text = "word\r\n" + "".join('"' + c.replace('"', '""') + '"\r\n' for c in cells)
    folder = folder_with(tmp_path, "synthetic.csv", text)
    write_safe_copy(folder, target=tmp_path / "copy.csv")
    with (tmp_path / "copy.csv").open(newline="", encoding="utf-8") as file:
        copied = [row[0] if row else "" for row in csv.reader(file)][1:]
    for cell, made in zip(cells, copied, strict=True):
        assert not made.startswith(("=", "+", "@"))
        assert made.endswith(cell)
    assert copied[2] == "-2", "a number is no formula"
    assert copied[4:] == cells[4:]


def test_a_parquet_table_needs_no_copy_and_nothing_is_written(tmp_path):
    folder = folder_with(tmp_path, "synthetic.parquet", "")
    with pytest.raises(InputError, match=r"has no synthetic\.csv"):
        write_safe_copy(folder, target=tmp_path / "copy.csv")
    assert not (tmp_path / "copy.csv").exists()


def test_a_copy_goes_neither_over_a_file_nor_into_the_release(tmp_path):
    folder = folder_with(tmp_path, "synthetic.csv", "a\n1\n")
    check_copy(folder, target=tmp_path / "copy.csv")
    with pytest.raises(InputError, match="only its own files"):
        check_copy(folder, target=folder / "copy.csv")
    (tmp_path / "copy.csv").write_text("mine")
    with pytest.raises(InputError):
        check_copy(folder, target=tmp_path / "copy.csv")
