"""A schema with an attribute of every kind."""

import pandas as pd
import pyarrow as pa

from common.schema import Schema

SCHEMA = Schema.from_toml("""
[[attribute]]
name = "age"
kind = "integer"
min = 0
max = 99
bins = 10

[[attribute]]
name = "work"
kind = "categorical"
values = ["Private", "State", "Local"]
missing = true
other = true

[[attribute]]
name = "income"
kind = "real"
min = 0
max = 10
bins = 4
missing = true

[[attribute]]
name = "smokes"
kind = "boolean"

[[attribute]]
name = "born"
kind = "date"
min = 2000-01-01
max = 2000-12-31
bins = 12

[[attribute]]
name = "seen"
kind = "datetime"
min = 2024-01-01T00:00:00
max = 2024-01-02T00:00:00
bins = 2

[[attribute]]
name = "grade"
kind = "ordinal"
values = [5, 1, 3]
""")


def single(kind, **keys):
    lines = "\n".join(f"{key} = {value}" for key, value in keys.items())
    return Schema.from_toml(f'[[attribute]]\nname = "x"\nkind = "{kind}"\n{lines}')


def encoded(schema, column):
    table = pa.table({"x": column}) if isinstance(column, pa.Array | pa.ChunkedArray) else None
    return (
        schema.encode(pd.DataFrame({"x": column}) if table is None else table).columns[0].tolist()
    )
