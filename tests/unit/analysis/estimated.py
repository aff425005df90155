"""Made-up people whose estimates are known."""

import numpy as np
import pandas as pd

import parley
from common.analysis.statistics import CodedTable

SCHEMA = parley.Schema.from_toml(
    """
attribute = [
  { name = "letter", kind = "categorical", values = ["a", "b", "c"] },
  { name = "ill", kind = "boolean" },
  { name = "age", kind = "integer", min = 0, max = 79, bins = 80, missing = true },
]
"""
)


def people(rows, seed=5):
    rng = np.random.default_rng(seed)
    letter = rng.choice(3, rows, p=[0.5, 0.3, 0.2])
    age = np.clip(rng.normal(30 + 10 * letter, 12, rows), 0, 79).astype(int)
    ill = rng.random(rows) < 1 / (1 + np.exp(3 - age / 20))
    table = pd.DataFrame({"letter": np.array(list("abc"))[letter], "ill": ill, "age": age})
    return table.assign(age=table["age"].astype("Int64").mask(rng.random(rows) < 0.05))


def small_study(rows, seed):
    return parley.simulate(
        [rows.iloc[::2], rows.iloc[1::2]], SCHEMA,
        epsilon="0.3", method="floor", aggregation="clear", seed=seed,
    )  # fmt: skip


TABLE = CodedTable(SCHEMA, SCHEMA.encode(people(4_000)))


def value(statistic, table):
    (found,) = statistic.of(table).values()
    return found
