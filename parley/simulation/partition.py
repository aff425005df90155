"""One table as the tables of several owners, for simulations."""

from __future__ import annotations

import numpy as np
import pandas as pd

from common.errors import InputError
from common.privacy.randomness import RandomSource
from common.wording import many


def at_random(table: pd.DataFrame, parties: int, source: RandomSource) -> dict[str, pd.DataFrame]:
    """Rows dealt out at random, equally."""
    if not 1 <= parties <= len(table):
        raise InputError(
            f"{many(len(table), 'row')} cannot be dealt out to {many(parties, 'party')}"
        )
    order = np.argsort(source.words(len(table)), kind="stable")
    return {
        f"party {number + 1}": table.iloc[np.sort(order[number::parties])]
        for number in range(parties)
    }


def by_column(table: pd.DataFrame, column: str) -> dict[str, pd.DataFrame]:
    """One owner for each value of a column, so that owners differ as real ones do."""
    if column not in table.columns:
        raise InputError(
            f"no column {column!r} to partition by; there are {', '.join(map(str, table.columns))}"
        )
    groups = table.groupby(column, dropna=False, observed=True)
    return {str(value): group for value, group in groups}
