"""Kinds of files: their keys, their rows, which are the same in each, and Parquet in parts."""

import subprocess
import sys

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pyreadstat
import pytest

from common.errors import InputError
from common.marginals import count
from common.schema import Schema
from common.schema.codes import concatenate
from common.tables import files
from common.tables.files import FormatReader
from parley.simulation.population import demo_schema_toml, make_population
from party.sources import SourceSettings
from party.sources.source import TableSource
from tests.harness.people import ROWS, schema_of
from tests.unit.party.sources.scaled import HALVES, SCHEMA, SETS, assert_same, opened, people


@pytest.mark.parametrize("group_rows", [1, 700, ROWS])
def test_row_groups_of_any_size_give_every_row_in_order(tmp_path, monkeypatch, group_rows):
    frame = people(50 if group_rows == 1 else ROWS)
    monkeypatch.setattr(files, "_BATCH_ROWS", 300)
    frame.to_parquet(tmp_path / "p.parquet", row_group_size=group_rows, index=False)
    source = opened(tmp_path, {"kind": "parquet", "path": "p.parquet"})
    expected = SCHEMA.encode(frame)
    assert_same(source.count(SETS), count(expected, SETS))
    assert_same(source.count(SETS, HALVES), count(expected, SETS, groups=HALVES))
    assert_same(concatenate(list(source.chunks())).columns, expected.columns)


def test_columns_whose_dictionaries_end_early_stay_side_by_side(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_BATCH_ROWS", 256)
    frame = people()
    table = pa.Table.from_pandas(frame, preserve_index=False)
    # Text that outgrows its dictionary goes on without one, in the middle of a row group.
    pyarrow.parquet.write_table(
        table, tmp_path / "p.parquet", dictionary_pagesize_limit=8, data_page_size=64
    )
    source = opened(tmp_path, {"kind": "parquet", "path": "p.parquet"})
    assert_same(concatenate(list(source.chunks())).columns, SCHEMA.encode(frame).columns)


def test_a_bad_cell_deep_in_a_file_is_named_by_its_row(tmp_path):
    frame = people()
    frame.loc[2321, "age"] = 200
    frame.to_parquet(tmp_path / "p.parquet", row_group_size=1000, index=False)
    with pytest.raises(InputError, match=r"'age'.*row 2,322"):
        opened(tmp_path, {"kind": "parquet", "path": "p.parquet"})


WITHOUT_PANDAS = """
import pathlib, sys
from common.schema import Schema
from party.sources.settings import SourceSettings
schema = Schema.load(pathlib.Path("schema.toml"))
for kind in ("parquet", "csv"):
    SourceSettings(kind=kind, address=f"people.{kind}").open(schema)
sys.exit("pandas" in sys.modules)
"""


def test_a_node_reads_its_rows_without_loading_pandas(tmp_path):
    """It would take longer to load than a small table to read."""
    (tmp_path / "schema.toml").write_text(demo_schema_toml())
    frame = make_population(500, seed=1)
    assert frame["housing"].isna().any()
    frame.to_csv(tmp_path / "people.csv", index=False)
    frame.to_parquet(tmp_path / "people.parquet", index=False)
    subprocess.run([sys.executable, "-c", WITHOUT_PANDAS], cwd=tmp_path, check=True)


LABELLED = Schema.from_toml(
    '[[attribute]]\nname = "sex"\nkind = "categorical"\nvalues = ["Male", "Female"]\n'
    '[[attribute]]\nname = "age"\nkind = "integer"\nmin = 0\nmax = 99\nbins = 10\n'
)
LABELS = {"sex": {1.0: "Male", 2.0: "Female"}}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "people.sav"
    frame = pd.DataFrame(
        {"id": range(30), "sex": [1.0, 2.0] * 15, "age": [float(a) for a in range(30)]}
    )
    pyreadstat.write_sav(frame, path, variable_value_labels=LABELS)
    return path


def test_codes_with_a_label_that_the_schema_lists_are_read_as_the_label(file, monkeypatch):
    monkeypatch.setattr("common.tables.formats._BLOCK_ROWS", 7)
    source = TableSource(FormatReader(file, LABELLED, kind="spss"), LABELLED, held_bytes=0)
    codes = concatenate(list(source.chunks()))
    assert codes.columns[0].tolist() == [0, 1] * 15
    assert codes.columns[1].tolist() == [age // 10 for age in range(30)]


def test_without_a_schema_every_column_is_there_and_codes_are_codes(file):
    reader = FormatReader(file, None, kind="spss")
    assert list(reader.names) == ["id", "sex", "age"]
    (part,) = reader.parts(["sex"])
    (table,) = part.read()
    assert set(table["sex"].to_pylist()) == {"1", "2"}


def test_a_file_of_another_kind_or_without_a_column_is_refused_by_name(file):
    with pytest.raises(InputError, match=r"people\.sav: the file's name does not end in"):
        FormatReader(file, LABELLED, kind="excel")
    other = Schema.from_toml('[[attribute]]\nname = "height"\nkind = "boolean"\n')
    with pytest.raises(InputError, match=r"people\.sav.*height"):
        FormatReader(file, other, kind="spss")


SEX_AND_AGE = schema_of("sex", "age")
FRAME = pd.DataFrame({"sex": ["F", "M", "M"], "age": [3, 40, 99]})


def open_kind(folder, **table):
    return SourceSettings.from_table(table, folder=folder, environment={}).open(SEX_AND_AGE)


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
    found = open_kind(tmp_path, kind=name, path=f"t.{ending}", **options)
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
        open_kind(tmp_path, **table)
