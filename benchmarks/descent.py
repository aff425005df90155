"""Many values: `python -m benchmarks.descent [--rows 20000] [--runs 5]`.

Made-up codes of diagnoses (20 chapters, 10 blocks in each, 10 categories in each block and 7 codes
in each category: 14,000 values, a few of them frequent) beside five small columns. How far the
released distribution of the codes is from the true one, at every level of the hierarchy, when
counts descend it; as a ratio to a schema that cuts at one level (and spreads evenly below), to a
histogram of all codes, and to a descent below which values are drawn by public frequencies: those
of a table ten times as large, from a population in which every code is up to three times as
frequent or as rare.
"""

from __future__ import annotations

import argparse
import json

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.measuring import keep, released
from common.schema import Schema

FANS = (20, 10, 10, 7)
LEVELS = tuple(int(np.prod(FANS[: depth + 1])) for depth in range(len(FANS)))
EPSILONS = ("0.5", "2")
Column = NDArray[np.int64]


def code(number: int, level: int) -> str:
    """The name of a node."""
    return f"{'CBKD'[level]}{number:05d}"


def _tree(level: int, number: int) -> str:
    below = range(number * FANS[level + 1], (number + 1) * FANS[level + 1])
    if level == len(FANS) - 2:
        return json.dumps([code(each, level + 1) for each in below])
    return _table(level + 1, below)


def _table(level: int, numbers: range) -> str:
    groups = (f"{code(each, level)} = {_tree(level, each)}" for each in numbers)
    return f"{{ {', '.join(groups)} }}"


def schema(level: int, *, tree: bool, frequencies: Column | None = None) -> Schema:
    """Of the codes at a level, with or without the hierarchy, and of five small columns."""
    values = [code(number, level) for number in range(LEVELS[level])]
    text = f'[[attribute]]\nname = "code"\nkind = "categorical"\nvalues = {json.dumps(values)}\n'
    if tree:
        text += f"hierarchy = {_table(0, range(FANS[0]))}\n"
    if frequencies is not None:
        text += f"frequencies = {frequencies.tolist()}\n"
    for column in range(5):
        text += f'[[attribute]]\nname = "x{column}"\nkind = "categorical"\n'
        text += 'values = ["a", "b", "c", "d"]\n'
    return Schema.from_toml(text)


def rows_of(rows: int, seed: int) -> tuple[Column, pd.DataFrame, Column]:
    """Codes whose frequencies fall like Zipf's law at every level, and columns that follow them.

    Last come the frequencies of the codes in another, larger population.
    """
    rng = np.random.default_rng(seed)
    weights = np.ones(1)
    for fan in FANS:
        split = np.array([rng.permutation(1 / np.arange(1, fan + 1) ** 1.5) for _ in weights])
        weights = (weights[:, None] * split / split.sum(axis=1, keepdims=True)).ravel()
    codes = rng.choice(len(weights), rows, p=weights)
    chapter = codes // (LEVELS[-1] // LEVELS[0])
    columns = {}
    for column in range(5):
        linked = (chapter * (column + 3)) % 4
        drawn = np.where(rng.random(rows) < 0.6, linked, rng.integers(0, 4, rows))
        columns[f"x{column}"] = np.array(list("abcd"))[drawn]
    others = weights * 3 ** rng.uniform(-1, 1, len(weights))
    return codes, pd.DataFrame(columns), rng.multinomial(10 * rows, others / others.sum())


def released_codes(
    method: str, own: Schema, table: pd.DataFrame, epsilon: str, seed: int
) -> Column:
    """The codes of a release."""
    made = released(table, own, method=method, epsilon=epsilon, seed=seed).sample_codes()
    return np.asarray(made.columns[0], dtype=np.int64)


def spread_below(codes: Column, level: int, seed: int) -> Column:
    """A code evenly below each node of a level."""
    width = LEVELS[-1] // LEVELS[level]
    return codes * width + np.random.default_rng(seed).integers(0, width, len(codes))


def distances(real: Column, made: Column) -> list[float]:
    """The total variation distance at each level."""
    found = []
    for size in LEVELS:
        width = LEVELS[-1] // size
        both = [np.bincount(each // width, minlength=size) / len(each) for each in (real, made)]
        found.append(float(np.abs(both[0] - both[1]).sum() / 2))
    return found


def compared(method: str, rows: int, epsilon: str, runs: int) -> list[dict[str, object]]:
    """The mean distances of each way."""
    ways: dict[str, list[list[float]]] = {}
    for seed in range(runs):
        codes, others, public = rows_of(rows, seed)
        for level in range(len(LEVELS)):
            seen = codes // (LEVELS[-1] // LEVELS[level])
            table = others.assign(code=[code(each, level) for each in seen])
            made = released_codes(method, schema(level, tree=False), table, epsilon, seed)
            name = f"cut at level {level + 1}" if level < len(LEVELS) - 1 else "histogram"
            spread = spread_below(made, level, seed)
            ways.setdefault(name, []).append(distances(codes, spread))
        for name, own in (("descent", None), ("descent, public frequencies", public)):
            whole = schema(len(LEVELS) - 1, tree=True, frequencies=own)
            made = released_codes(method, whole, table, epsilon, seed)
            ways.setdefault(name, []).append(distances(codes, made))
    means = {name: np.mean(each, axis=0) for name, each in ways.items()}
    return [
        {
            "method": method,
            "rows": rows,
            "epsilon": epsilon,
            "way": name,
            "by level": [round(float(each), 4) for each in mean],
            "mean": round(float(mean.mean()), 4),
            "descent's ratio": round(float(means["descent"].mean() / mean.mean()), 3),
        }
        for name, mean in means.items()
    ]


def main() -> None:
    """Print the table, and write it as JSON."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=20_000)
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--methods", nargs="+", default=["floor", "subn+"])
    given = options.parse_args()
    lines = []
    for method in given.methods:
        for epsilon in EPSILONS:
            lines += compared(method, given.rows, epsilon, given.runs)
            for line in lines[-len(LEVELS) - 2 :]:
                print(line, flush=True)
    keep("descent", {**vars(given), "measured": lines})


if __name__ == "__main__":
    main()
