"""The table of a release that is not trusted: every row is looked at, few are held."""

import numpy as np
import pytest

from common.errors import InputError
from common.privacy.randomness import SeededRandomSource
from common.release import synthetic_table
from common.release.contents import FolderContents
from common.release.synthetic_table import read_codes, read_released_table
from common.schema import Schema

SCHEMA = Schema.from_toml("""
attribute = [
  { name = "word", kind = "categorical", values = ["a", "b"] },
  { name = "age", kind = "integer", min = 0, max = 9 },
]
rule = [{ when = "word = b", then = "age < 5" }]
""")
NAME = "synthetic.csv"


def read(folder, lines, reader=read_released_table):
    (folder / NAME).write_text("\n".join(["word,age", *lines, ""]))
    return reader(FolderContents(folder), NAME, SCHEMA)


def test_a_table_without_rows_or_with_other_columns_is_refused(tmp_path):
    for text, why in (
        ("x\n", "columns are not those"),
        (",".join(SCHEMA.names) + "\n", "no rows"),
        (",".join(SCHEMA.names) + "\n1\n", "not a table"),
        ("", "not a table"),
    ):
        (tmp_path / "synthetic.csv").write_text(text)
        with pytest.raises(InputError, match=rf"^synthetic\.csv: .*{why}"):
            read_released_table(FolderContents(tmp_path), "synthetic.csv", SCHEMA)


def test_a_cell_or_a_rule_that_is_broken_is_found_in_the_last_row(tmp_path, monkeypatch):
    monkeypatch.setattr(synthetic_table, "KEPT_ROWS", 10)
    good = ["a,7"] * 500
    for last, why in (("a,70", "outside the domain"), ("b,7", "break a rule"), ("a,", "empty")):
        with pytest.raises(InputError, match=rf"synthetic\.csv.*{why}"):
            read(tmp_path, [*good, last])


def test_the_first_rows_are_kept_and_all_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(synthetic_table, "KEPT_ROWS", 10)
    lines = [f"a,{number % 10}" for number in range(57)]
    found = read(tmp_path, lines)
    assert (found.rows, found.kept.rows) == (57, 10)
    assert found.kept.columns[1].tolist() == list(range(10))
    assert read(tmp_path, lines, read_codes).rows == 57


def test_a_parquet_file_is_read_in_blocks_whatever_the_order_of_its_columns(tmp_path, monkeypatch):
    monkeypatch.setattr(synthetic_table, "BLOCK_ROWS", 16)
    codes = read(tmp_path, [f"{'ab'[n % 2]},{n % 5}" for n in range(100)], read_codes)
    frame = SCHEMA.without_rules().decode(codes, SeededRandomSource(1))[["age", "word"]]
    frame.to_parquet(tmp_path / "synthetic.parquet", index=False)
    found = read_codes(FolderContents(tmp_path), "synthetic.parquet", SCHEMA)
    assert all(map(np.array_equal, found.columns, codes.columns))
    frame.assign(more=1).to_parquet(tmp_path / "synthetic.parquet", index=False)
    with pytest.raises(InputError, match=r"synthetic\.parquet: its columns .*: more"):
        read_codes(FolderContents(tmp_path), "synthetic.parquet", SCHEMA)
