"""Two tables that differ in one raw row, read as a node reads them: two counts differ by one."""

import sqlite3
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from common.schema import Schema
from common.tables import reader
from party.sources import SourceSettings

ROWS = 400
SCHEMA = Schema.from_toml(
    """
attribute = [
  { name = "grade", kind = "categorical", values = ["1", "2", "3"], other = true },
  { name = "drug", kind = "categorical", values = ["12345678901", "12345678902"], other = true },
  { name = "days", kind = "integer", min = 0, max = 99, bins = 10 },
  { name = "size", kind = "real", min = 0, max = 1, bins = 8 },
  { name = "since", kind = "date", min = 2020-01-01, max = 2020-12-31, bins = 4 },
]
"""
)
SETS = [(), *((at,) for at in range(5)), *combinations(range(5), 2)]
LONGEST = 2**63 - 1  # what some programs write for "unknown"


def frame():
    source = np.random.default_rng(3)
    days = source.integers(0, 100, ROWS).astype(object)
    days[source.random(ROWS) < 0.3] = LONGEST
    return pd.DataFrame(
        {
            "grade": source.integers(1, 4, ROWS).astype(float),
            "drug": source.choice([12345678901.0, 12345678902.0], ROWS),
            "days": days,
            "size": source.random(ROWS),
            "since": pd.Timestamp("2020-01-01")
            + pd.to_timedelta(source.integers(0, 365, ROWS), "D"),
        }
    )


def replaced(table, row, **cells):
    """The table with one row replaced: the other cells stay the objects they are."""
    changed = table.astype(object).assign(since=table["since"].astype(str)).astype(object)
    for name, cell in cells.items():
        changed.loc[row, name] = cell
    return changed


def as_csv(table, folder, name):
    table.to_csv(folder / f"{name}.csv", index=False)
    return {"kind": "csv", "path": f"{name}.csv"}


def as_sqlite(table, folder, name):
    with sqlite3.connect(folder / f"{name}.sqlite") as connection:
        connection.execute("CREATE TABLE t (grade, drug, days, size, since)")
        rows = table.astype(object).itertuples(index=False)
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", [tuple(row) for row in rows])
    connection.close()
    return {"kind": "sqlite", "path": f"{name}.sqlite", "table": "t"}


def as_parquet(table, folder, name):
    numbers = table.assign(days=table["days"].astype(str), since=table["since"].astype(str))
    numbers.astype({"grade": float, "drug": float, "size": float}).to_parquet(folder / f"{name}.pq")
    return {"kind": "parquet", "path": f"{name}.pq"}


def tables_of(place, folder):
    made = SourceSettings.from_table(place, folder=folder, environment={})
    made.check_readable()
    opened = made.open(SCHEMA.forgiven())
    return opened.rows, opened.count(SETS)


NUMBERS = [
    {"drug": 0.5}, {"grade": -0.0}, {"grade": float("nan")}, {"size": float("inf")},
    {"days": "0x1F"}, {"days": "seven"}, {"since": "never"}, {"size": 1e300, "grade": 1e17},
]  # fmt: skip
ANYTHING = [
    *NUMBERS, {"grade": "n/a"}, {"drug": "unknown", "days": 7.5}, {"days": 2**62},
    {"since": "2020-01-31T12:30:15Z"}, {"since": "20200131"}, {"size": ""}, {"grade": '5"'},
    dict.fromkeys(SCHEMA.names), {"grade": "x" * 300_000}, {"size": "1_000"},
]  # fmt: skip
CASES = [(as_csv, cells) for cells in ANYTHING]
CASES += [(as_sqlite, cells) for cells in [*ANYTHING, {"grade": b"\xff", "days": b"7"}]]
CASES += [(as_parquet, cells) for cells in NUMBERS]


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("originals")
    table = replaced(frame(), 0)
    return {
        way: tables_of(way(table, folder, "t"), folder) for way in (as_csv, as_sqlite, as_parquet)
    }


@pytest.mark.parametrize(
    ("write", "cells"), CASES, ids=lambda item: getattr(item, "__name__", str(item)[:40])
)
@pytest.mark.parametrize("row", [0, ROWS - 1])
def test_one_replaced_row_moves_two_counts_of_a_table(
    originals, tmp_path, monkeypatch, write, cells, row
):
    monkeypatch.setattr(reader, "CHUNK_ROWS", 150)
    rows, expected = originals[write]
    found_rows, found = tables_of(write(replaced(frame(), row, **cells), tmp_path, "t"), tmp_path)
    assert found_rows == rows == ROWS
    for one, other in zip(expected, found, strict=True):
        assert np.abs(one - other).sum() <= 2
