"""Do the intervals of means hold where numbers heap inside bins, and how wide are they?

Studies of three owners, sums in the clear. The truth is the table's own mean. `heaped` is simulated
anew for every study: 40 hours in half of the rows, heights in steps of 5 cm, incomes in thousands
in growing bins, amounts that are mostly 0. `adult` has the raw numbers of Adult, in equal bins.
`measured` counts the studies that made the sum `totals`; `rows off` is how far the mean of the
synthetic rows is from the truth, over the width of the range; `widths` is that of the interval.

    python -m benchmarks.means --runs 10 --rows 3000 20000 --adult adult-raw.csv
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

import parley
from benchmarks.measuring import Row, category, keep, number, schema_of, show
from common.analysis.means import known_means
from common.schema import Schema

_HEAPED = schema_of(
    number("hours", low=1, high=99, bins=16),
    number("age", low=17, high=90, bins=16),
    'name = "height", kind = "real", min = 1.25, max = 2.15',
    'name = "income", kind = "real", edges = [0, 5000, 10000, 20000, 50000, 100000, 1000000]',
    number("gain", high=10_000, bins=16, kind="real"),
    category("sex", ["F", "M"]),
)
_ADULT = schema_of(
    number("age", low=17, high=90, bins=16),
    number("fnlwgt", high=1_500_000, bins=16),
    number("education-num", low=1, high=16, bins=8),
    number("capital-gain", high=100_000, bins=16),
    number("hours-per-week", low=1, high=99, bins=16),
    category("sex", ["Female", "Male"]),
    category("salary", ["<=50K", ">50K"]),
)
_OWNERS = 3


def heaped(rows: int, seed: int) -> pd.DataFrame:
    """Draw a table whose numbers heap."""
    rng = np.random.default_rng(seed)
    week = np.clip(rng.normal(34, 12, rows).round(), 1, 99).astype(int)
    decades = rng.choice([20, 30, 40, 50, 60], rows)
    return pd.DataFrame(
        {
            "hours": np.where(rng.random(rows) < 0.5, 40, week),
            "age": np.where(rng.random(rows) < 0.2, decades, rng.integers(17, 91, rows)),
            "height": np.round(np.clip(rng.normal(1.69, 0.09, rows), 1.25, 2.15) * 20) / 20,
            "income": np.round(np.exp(rng.normal(10, 1, rows)).clip(0, 999_000) / 1000) * 1000,
            "gain": np.where(rng.random(rows) < 0.7, 0, rng.gamma(2, 800, rows).clip(0, 9_999)),
            "sex": rng.choice(["F", "M"], rows),
        }
    )


def run(
    name: str, schema: Schema, draw: Callable[[int], pd.DataFrame], epsilon: str, delta: str,
    runs: int,
) -> list[Row]:  # fmt: skip
    """Return a line for every column of numbers, over so many studies."""
    held = defaultdict[str, list[tuple[bool, float, float]]](list)
    measured = 0
    for seed in range(runs):
        table = draw(seed)
        parts = [table[part::_OWNERS] for part in range(_OWNERS)]
        fitted = parley.simulate(
            parts, schema, epsilon=epsilon, delta=float(delta), aggregation="clear", seed=seed
        )
        measured += bool(fitted.totals)
        drawn = fitted.sample()
        for own in known_means(fitted):
            truth, span = table[own.name].mean(), own.ends[1] - own.ends[0]
            off = abs(drawn[own.name].mean() - truth) / span
            held[own.name].append((own.low <= truth <= own.high, (own.high - own.low) / span, off))
    return [
        {
            "table": name, "rows": len(draw(0)), "epsilon": epsilon, "delta": delta,
            "column": column, "measured": measured / runs,
            "coverage": float(np.mean([line[0] for line in lines])),
            "width": float(np.mean([line[1] for line in lines])),
            "rows_off": float(np.mean([line[2] for line in lines])),
        }
        for column, lines in held.items()
    ]  # fmt: skip


def main() -> None:
    """Print the table and write it."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--runs", type=int, default=10)
    options.add_argument("--rows", type=int, nargs="*", default=[3_000, 20_000])
    options.add_argument("--epsilon", nargs="*", default=["0.3", "1", "3"])
    options.add_argument("--delta", nargs="*", default=["0", "1e-9"])
    options.add_argument("--adult", type=Path, help="the raw table of Adult")
    chosen = options.parse_args()
    tables: list[tuple[str, Schema, Callable[[int], pd.DataFrame]]] = [
        ("heaped", _HEAPED, partial(heaped, rows)) for rows in chosen.rows
    ]
    if chosen.adult is not None:
        adult = pd.read_csv(chosen.adult)[list(_ADULT.names)]
        tables.append(("adult", _ADULT, lambda seed: adult))
    lines: list[Row] = []
    for (name, schema, draw), epsilon, delta in product(tables, chosen.epsilon, chosen.delta):
        lines += run(name, schema, draw, epsilon, delta, chosen.runs)
    show(lines, "means of columns that heap")
    keep("means", lines)


if __name__ == "__main__":
    main()
