"""The synthetic table: in the shape of the real table, read with distrust."""

import numpy as np
import pandas as pd
import pytest

from common.errors import InputError
from common.privacy.randomness import SeededRandomSource
from common.release import synthetic_table
from common.release.contents import FolderContents
from common.release.synthetic_table import TableColumns, count_rows, read_codes
from common.schema import Codes, Schema

SHAPED = Schema.from_toml("""
attribute = [
  { name = "word", kind = "categorical", values = ["a", "b"], other = true, missing = true },
  { name = "age", kind = "integer", min = 0, max = 3 },
]
""")


def shaped(real, words=(0, 1, 2, 3)):
    codes = Codes.from_columns([np.array(words), np.arange(4)], SHAPED.sizes)
    decoded = SHAPED.decode(codes, SeededRandomSource(1))
    return TableColumns.of(real, SHAPED).shape(decoded, SHAPED)


def test_a_categorical_has_the_categories_of_the_schema_and_what_else_occurs():
    real = pd.DataFrame({"age": [1], "word": pd.Categorical(["b"], ["b"], ordered=True)})
    made = shaped(real)
    assert list(made.columns) == ["age", "word"], "in the order of the real table"
    assert made["word"].cat.categories.tolist() == ["a", "b", "(other)"]
    assert made["word"].cat.ordered
    assert made["word"].isna().tolist() == [False, False, False, True]
    assert shaped(real, words=(0, 0, 0, 0))["word"].cat.categories.tolist() == ["a", "b"]


def test_a_categorical_of_numbers_has_the_numbers_that_occur():
    real = pd.DataFrame({"word": ["a", "b"], "age": pd.Categorical([1, 2])})
    assert shaped(real)["age"].cat.categories.tolist() == [0, 1, 2, 3]


def test_types_of_real_columns_leave_no_trace():
    plain = shaped(pd.DataFrame({"word": ["a"], "age": [1]}))
    other = shaped(pd.DataFrame({"word": pd.array(["a"], dtype="string"), "age": [1.5]}))
    assert plain.dtypes.tolist() == other.dtypes.tolist()


RULED = Schema.from_toml("""
attribute = [
  { name = "word", kind = "categorical", values = ["a", "b"] },
  { name = "age", kind = "integer", min = 0, max = 9 },
]
rule = [{ when = "word = b", then = "age < 5" }]
""")
NAME = "synthetic.csv"


def read(folder, lines, reader=read_codes):
    (folder / NAME).write_text("\n".join(["word,age", *lines, ""]))
    return reader(FolderContents(folder), NAME, RULED)


def test_a_table_without_rows_or_with_other_columns_is_refused(tmp_path):
    for text, why in (
        ("x\n", "columns are not those"),
        (",".join(RULED.names) + "\n", "no rows"),
        (",".join(RULED.names) + "\n1\n", "not a table"),
        ("", "not a table"),
    ):
        (tmp_path / "synthetic.csv").write_text(text)
        with pytest.raises(InputError, match=rf": synthetic\.csv: .*{why}"):
            read_codes(FolderContents(tmp_path), "synthetic.csv", RULED)


def test_a_cell_or_a_rule_that_is_broken_is_found_in_the_last_row(tmp_path):
    good = ["a,7"] * 500
    for last, why in (("a,70", "outside the domain"), ("b,7", "break a rule"), ("a,", "empty")):
        with pytest.raises(InputError, match=rf"synthetic\.csv.*{why}"):
            read(tmp_path, [*good, last])


def test_rows_are_counted_without_keeping_them(tmp_path):
    lines = [f"a,{number % 10}" for number in range(57)]
    assert read(tmp_path, lines, count_rows) == read(tmp_path, lines).rows == 57


def test_a_parquet_file_is_read_in_blocks_whatever_the_order_of_its_columns(tmp_path, monkeypatch):
    monkeypatch.setattr(synthetic_table, "BLOCK_ROWS", 16)
    codes = read(tmp_path, [f"{'ab'[n % 2]},{n % 5}" for n in range(100)], read_codes)
    frame = RULED.without_rules().decode(codes, SeededRandomSource(1))[["age", "word"]]
    frame.to_parquet(tmp_path / "synthetic.parquet", index=False)
    found = read_codes(FolderContents(tmp_path), "synthetic.parquet", RULED)
    assert all(map(np.array_equal, found.columns, codes.columns))
    frame.assign(more=1).to_parquet(tmp_path / "synthetic.parquet", index=False)
    with pytest.raises(InputError, match=r"synthetic\.parquet: its columns .*: more"):
        read_codes(FolderContents(tmp_path), "synthetic.parquet", RULED)
