"""Simulated people of three columns, who smoke from forty on: what models of one owner fit."""

import numpy as np
import pandas as pd

from common.schema import Schema

SCHEMA = Schema.from_toml(
    """
attribute = [
  { name = "age", kind = "integer", min = 0, max = 79, bins = 8 },
  { name = "sex", kind = "categorical", values = ["F", "M"] },
  { name = "smokes", kind = "boolean", missing = true },
]
"""
)


def table_of(rows, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 80, rows)
    return pd.DataFrame(
        {
            "sex": np.where(rng.random(rows) < 0.5, "F", "M"),
            "age": age,
            "smokes": age > 40,
        }
    )
