"""Kinds of files: their keys, and their rows, which are the same in each of them."""

import pandas as pd
import pyreadstat
import pytest

from common.errors import InputError
from party.sources import SourceSettings
from tests.harness.people import schema_of

SCHEMA = schema_of("sex", "age")
FRAME = pd.DataFrame({"sex": ["F", "M", "M"], "age": [3, 40, 99]})


def opened(folder, **table):
    return SourceSettings.from_table(table, folder=folder, environment={}).open(SCHEMA)


@pytest.mark.parametrize(
    ("name", "write", "options"),
    [
        ("csv", lambda f, p: f.to_csv(p, index=False), {}),
        ("csv", lambda f, p: f.to_csv(p, index=False, sep=";"), {"delimiter": ";"}),
        ("parquet", lambda f, p: f.to_parquet(p), {}),
        ("excel", lambda f, p: f.to_excel(p, index=False), {}),
        ("excel", lambda f, p: f.to_excel(p, index=False, sheet_name="two"), {"sheet": "two"}),
        ("spss", pyreadstat.write_sav, {}),
        ("stata", lambda f, p: f.to_stata(p, write_index=False), {}),
    ],
    ids=lambda own: own if isinstance(own, str) else "",
)
def test_every_kind_of_file_gives_the_same_rows(tmp_path, name, write, options):
    ending = {"excel": "xlsx", "spss": "sav", "stata": "dta"}.get(name, name)
    write(FRAME, tmp_path / f"t.{ending}")
    found = opened(tmp_path, kind=name, path=f"t.{ending}", **options)
    assert [column.tolist() for column in found.codes().columns] == [[0, 1, 1], [0, 4, 9]]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"kind": "csv"}, "a csv source needs a path"),
        ({"kind": "parquet", "path": "t", "delimiter": ";"}, "unknown key 'source.delimiter'"),
        ({"kind": "spss", "path": "t.sav", "sheet": "x"}, "unknown key 'source.sheet'"),
        ({"kind": "csv", "path": "absent.csv"}, "absent.csv: no such file"),
    ],
)
def test_a_key_or_a_name_of_another_kind_is_refused(tmp_path, table, words):
    with pytest.raises(InputError, match=words):
        opened(tmp_path, **table)
