"""Simulated people and their schemas: for the tests of sources, and of models of one owner."""

import numpy as np
import pandas as pd

from common.schema import Schema

ROWS = 3000
_ATTRIBUTES = {
    "sex": 'kind = "categorical"\nvalues = ["F", "M"]\nmissing = true',
    "age": 'kind = "integer"\nmin = 0\nmax = 99\nbins = 10',
    "income": 'kind = "real"\nmin = 0\nmax = 100\nbins = 4\nclip = true',
    "since": 'kind = "date"\nmin = 2000-01-01\nmax = 2025-12-31\nbins = 8',
    "smokes": 'kind = "boolean"',
    "ward": 'kind = "categorical"\nvalues = ["north", "south"]',
}


def schema_of(*names, called=None, more=None):
    """Return the schema of some of the columns; the others are not read.

    Args:
        names: of the columns of `people`.
        called: other names for some of them.
        more: further lines, by column.
    """
    called, more = called or {}, more or {}
    parts = [
        f'[[attribute]]\nname = "{called.get(name, name)}"\n{more.get(name, _ATTRIBUTES[name])}'
        for name in names
    ]
    return Schema.from_toml("\n".join(parts))


def people(rows=ROWS, seed=5, columns=("id", "sex", "age", "income", "since")):
    """Draw people, the same for the same seed, with columns in this order."""
    source = np.random.default_rng(seed)
    days = pd.to_timedelta(source.integers(0, 9000, rows), unit="D")
    frame = pd.DataFrame(
        {
            "id": np.arange(rows),
            "sex": pd.Series(source.choice(["F", "M", None], rows), dtype=object),
            "age": source.integers(0, 100, rows),
            "income": source.normal(50, 30, rows).round(2),
            "since": pd.Timestamp("2000-01-01").date() + days.to_pytimedelta(),
            "smokes": source.random(rows) < 0.3,
        }
    )
    return frame[list(columns)]


SMOKERS = Schema.from_toml(
    """
attribute = [
  { name = "age", kind = "integer", min = 0, max = 79, bins = 8 },
  { name = "sex", kind = "categorical", values = ["F", "M"] },
  { name = "smokes", kind = "boolean", missing = true },
]
"""
)


def smokers(rows, seed=0):
    """Draw people of three columns, who smoke from forty on."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 80, rows)
    return pd.DataFrame(
        {
            "sex": np.where(rng.random(rows) < 0.5, "F", "M"),
            "age": age,
            "smokes": age > 40,
        }
    )
