"""Schemas that several tests are about, an attribute a line."""

import pandas as pd
import pyarrow as pa

from common.schema import Schema


def schema(*attributes, ignore=()):
    """Make a schema of attributes, each the inside of an inline table."""
    listed = "".join(f"  {{ {each} }},\n" for each in attributes)
    return Schema.from_toml(f"ignore = {list(ignore)}\nattribute = [\n{listed}]\n")


def single(kind, **keys):
    """Make a schema of one attribute, x."""
    lines = "\n".join(f"{key} = {value}" for key, value in keys.items())
    return Schema.from_toml(f'[[attribute]]\nname = "x"\nkind = "{kind}"\n{lines}')


def encoded(schema, column):
    """Return the codes of one column."""
    arrow = isinstance(column, pa.Array | pa.ChunkedArray)
    table = pa.table({"x": column}) if arrow else pd.DataFrame({"x": column})
    return schema.encode(table).columns[0].tolist()


EVERY_KIND = schema(
    'name = "age", kind = "integer", min = 0, max = 99, bins = 10',
    'name = "work", kind = "categorical", values = ["Private", "State", "Local"], '
    "missing = true, other = true",
    'name = "income", kind = "real", min = 0, max = 10, bins = 4, missing = true',
    'name = "smokes", kind = "boolean"',
    'name = "born", kind = "date", min = 2000-01-01, max = 2000-12-31, bins = 12',
    'name = "seen", kind = "datetime", min = 2024-01-01T00:00:00, max = 2024-01-02T00:00:00, '
    "bins = 2",
    'name = "grade", kind = "ordinal", values = [5, 1, 3]',
)

_BOTH = ", missing = true, other = true"
_PAID = 'name = "paid", kind = "real", edges = [0, 0.01, 20, 500], decimals = 2'
_BORN = 'name = "born", kind = "date", min = 1900-01-01, max = 2025-12-31, bins = 8'
_SEEN = (
    'name = "seen", kind = "datetime", min = 2020-01-01T00:00:00, max = 2025-12-31T00:00:00, '
    "bins = 8"
)
WRITTEN = schema(
    'name = "word", kind = "categorical", values = ["a", "b, c", \'say "d"\', "two\\nlines", '
    f'" e ", "NA", "-1", "é"]{_BOTH}',
    f'name = "grade", kind = "ordinal", values = [3, 1, 2]{_BOTH}',
    f'name = "member", kind = "boolean"{_BOTH}',
    f'name = "age", kind = "integer", min = -50, max = 49, bins = 10{_BOTH}',
    f'name = "height", kind = "real", min = 0, max = 2, bins = 4{_BOTH}',
    _PAID,
    f"{_BORN}{_BOTH}",
    f"{_SEEN}, missing = true",
    ignore=["id"],
)
STREAMED = schema(
    f'name = "word", kind = "categorical", values = ["a", "b, c", \'say "d"\']{_BOTH}',
    'name = "grade", kind = "ordinal", values = [3, 1, 2], missing = true',
    'name = "member", kind = "boolean", missing = true',
    'name = "age", kind = "integer", min = 0, max = 99, bins = 10, missing = true',
    'name = "wide", kind = "integer", min = 0, max = 9000000000000, bins = 3',
    'name = "height", kind = "real", min = 0, max = 2, bins = 4, other = true',
    _PAID,
    f"{_BORN}, missing = true",
    _SEEN,
)

_SEX = 'name = "sex", kind = "categorical", values = ["Female", "Male"]'
ASKED = schema(
    'name = "age", kind = "integer", edges = [0, 18, 20, 40, 65, 99], missing = true',
    _SEX,
    'name = "country", kind = "categorical", '
    'values = ["France", "New Zealand", "Spain", "Mexico", "USA"], hierarchy = '
    '{ Europe = ["France", "Spain"], America = { Mexico = ["Mexico"], North = ["USA"] }, '
    'Oceania = ["New Zealand"] }',
    'name = "school", kind = "ordinal", values = ["none", "primary", "secondary", "university"], '
    'hierarchy = { basic = ["none", "primary"], higher = ["secondary", "university"] }, '
    "other = true",
    'name = "income share", kind = "real", min = 0.0, max = 1.0, bins = 4',
    'name = "born", kind = "date", edges = [1990-01-01, 2000-01-01, 2010-01-01]',
)
CONDITIONED = schema(
    'name = "age", kind = "integer", edges = [0, 18, 40, 65, 99], missing = true',
    _SEX,
    'name = "country", kind = "categorical", values = ["France", "New Zealand", "Spain", "USA"], '
    'other = true, hierarchy = { Europe = ["France", "Spain"], '
    'Elsewhere = ["New Zealand", "USA"] }',
)

# What acceptance criteria are about, and one of every kind.
JUDGED = schema(
    'name = "age", kind = "integer", min = 0, max = 90, bins = 9',
    'name = "income", kind = "integer", min = 0, max = 4000, bins = 4, missing = true',
    'name = "smoker", kind = "boolean"',
)
CRITERIA = (
    {"mean": "income", "within": "3 %"},
    {"mean": "age", "within": 2},
    {"share": "age > 60 and smoker = true", "within": "0.02"},
)


def level_sizes(hierarchy):
    """The number of groups of each level."""
    return tuple(int(level.max()) + 1 for level in hierarchy.levels)
