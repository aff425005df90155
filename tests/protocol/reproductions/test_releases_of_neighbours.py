"""Two tables that differ in one raw row, through a whole release: one row of codes differs."""

import numpy as np
import pandas as pd
import pytest

import parley
from common.schema import Schema
from parley.cli.main import main
from parley.models import single_owner

ROWS = 300
SCHEMA = """
attribute = [
  { name = "grade", kind = "categorical", values = ["1", "2", "3"], other = true, missing = true },
  { name = "drug", kind = "categorical", values = ["12345678901", "12345678902"], other = true },
  { name = "days", kind = "integer", min = 0, max = 99, bins = 4, other = true },
]
"""
CELLS = [
    {"grade": "n/a"}, {"drug": 0.5}, {"days": 7.5}, {"days": 2**63}, {"grade": None},
    {"days": "0x1F"}, {"grade": True}, {"drug": 2j}, {"grade": b"1"},
]  # fmt: skip


def people(**cells):
    """A table, with cells of its last row replaced before pandas chooses the types of columns."""
    source = np.random.default_rng(4)
    columns = {
        "grade": source.integers(1, 4, ROWS).astype(float).tolist(),
        "drug": source.choice([12345678901.0, 12345678902.0], ROWS).tolist(),
        "days": source.integers(0, 100, ROWS).tolist(),
    }
    for name, cell in cells.items():
        columns[name][-1] = cell
    return pd.DataFrame({name: pd.Series(column) for name, column in columns.items()})


@pytest.fixture
def recorded(monkeypatch):
    """The codes that every fit works on."""
    seen = []

    def encode(table, schema, whole=single_owner.encode):
        codes, columns = whole(table, schema)
        seen.append(np.array([column.astype(int) for column in codes.columns]))
        return codes, columns

    monkeypatch.setattr(single_owner, "encode", encode)
    return seen


def assert_one_row_differs(before, after):
    assert before.shape == after.shape
    assert (before != after).any(axis=0).sum() <= 1


@pytest.mark.parametrize("cells", CELLS, ids=str)
def test_the_api_sees_one_row_differ_where_one_differs(recorded, cells):
    schema = Schema.from_toml(SCHEMA)
    models = [
        parley.PrivBayes(epsilon=1000, seed=7).fit(table, schema)
        for table in (people(), people(**cells))
    ]
    assert_one_row_differs(*recorded)
    assert [model.sample(5).shape for model in models] == [(5, 3)] * 2
    assert models[0].sample(5).dtypes.equals(models[1].sample(5).dtypes)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("cells", [{"drug": 0.5}, {"days": 7.5}, {"grade": None}], ids=str)
def test_synthesize_sees_one_row_differ_where_one_differs(tmp_path, recorded, cells, suffix):
    (tmp_path / "schema.toml").write_text(SCHEMA)
    noise_free = []
    for name, table in (("a", people()), ("b", people(**cells))):
        data, out = tmp_path / f"{name}.{suffix}", tmp_path / name
        table.to_csv(data, index=False) if suffix == "csv" else table.to_parquet(data, index=False)
        method = ["--method", "privbayes"]
        words = ["synthesize", str(data), "--schema", str(tmp_path / "schema.toml")]
        assert main([*words, "--epsilon", "100000", "--seed", "7", "--out", str(out), *method]) == 0
        made = pd.read_csv(out / "synthetic.csv", dtype=str, keep_default_na=False)
        noise_free.append(made["drug"].value_counts().sort_index())
    assert_one_row_differs(*recorded)
    # With so little noise the release is the table: nearly nothing of it may move.
    assert noise_free[0].sub(noise_free[1], fill_value=0).abs().sum() < ROWS / 2
    assert sum(noise_free[0]) == sum(noise_free[1]) == ROWS
