"""A table in every format, and a source that renames and recodes it."""

import datetime as dt
import sqlite3

import numpy as np
import pandas as pd

ROWS = 60
DAY = dt.date(2020, 1, 1)


def frame(seed=1):
    """An owner's own table: names, codes, and columns that are no concern of a study's."""
    source = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "patient": [f"P{at}" for at in range(ROWS)],
            "GESCHL": source.choice([1, 2, 9], ROWS),
            "age": source.integers(0, 100, ROWS),
            "visit": [DAY + dt.timedelta(days=int(d)) for d in source.integers(0, 1400, ROWS)],
            "consent": source.choice(["yes", "no"], ROWS),
        }
    )


def expected(table):
    """The study's table, as an owner would make it by hand."""
    sexes = {1: "Male", 2: "Female", 9: None}
    sex = pd.Series([sexes[code] for code in table["GESCHL"]], dtype=object)
    return pd.DataFrame({"sex": sex, "age": list(table["age"]), "since": list(table["visit"])})


def as_csv(table, folder):
    table.to_csv(folder / "t.csv", index=False)
    return {"kind": "csv", "path": "t.csv"}


def as_sqlite(table, folder):
    (folder / "t.sqlite").unlink(missing_ok=True)
    connection = sqlite3.connect(folder / "t.sqlite")
    table.astype({"visit": str}).to_sql("t", connection, index=False)
    connection.close()
    return {"kind": "sqlite", "path": "t.sqlite", "table": "t"}


CELLS = [
    None, "", "1", "1.0", " 1", "01", "yes", "Yes", "nan", "inf", "-0", "2020-01-31", "é", "\xff",
    "20200131", "1e400", "0x1",
]  # fmt: skip
