"""Files of other programs as sources: blocks of rows, labels of the schema, and what is refused."""

import pandas as pd
import pyreadstat
import pytest

from common.errors import InputError
from common.schema import Schema
from common.schema.codes import concatenate
from party.sources.formats import FormatReader
from party.sources.source import TableSource

SCHEMA = Schema.from_toml(
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
    monkeypatch.setattr("common.schema.formats._BLOCK_ROWS", 7)
    source = TableSource(FormatReader(file, SCHEMA, kind="spss"), SCHEMA, held_bytes=0)
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
    with pytest.raises(InputError, match=r"people\.sav: not the name of a file of kind excel"):
        FormatReader(file, SCHEMA, kind="excel")
    other = Schema.from_toml('[[attribute]]\nname = "height"\nkind = "boolean"\n')
    with pytest.raises(InputError, match=r"people\.sav.*height"):
        FormatReader(file, other, kind="spss")
