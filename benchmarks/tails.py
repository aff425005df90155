"""Means of amounts: `python -m benchmarks.tails [--rows 20000] [--runs 5]`.

Made-up amounts with long tails (debts, most of them 0, and incomes) beside ages, two peaks and two
small columns: the relative error of a released mean, and the total variation distance of all 1-way
and 2-way marginals, with tails that fall outwards as a ratio to margins without that.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

from benchmarks.measuring import keep, mean_distance, released
from common.methods import tails
from common.release.evaluation import marginal_sets
from common.schema import Codes, Schema

METHODS = ("floor", "subn+")
EPSILONS = ("0.5", "2")
MEANS = ("debt", "income", "age", "score")
_DEBTS = [0, 1, *(round(100 * 10 ** (step / 5)) for step in range(21))]


def schema() -> Schema:
    """Of the people."""
    texts = [f'[[attribute]]\nname = "debt"\nkind = "integer"\nclip = true\nedges = {_DEBTS}\n']
    for name, high, bins in (("income", 999_999, 50), ("age", 99, 20), ("score", 99, 50)):
        texts.append(
            f'[[attribute]]\nname = "{name}"\nkind = "integer"\nclip = true\n'
            f"min = 0\nmax = {high}\nbins = {bins}\n"
        )
    texts += [
        f'[[attribute]]\nname = "{name}"\nkind = "categorical"\nvalues = ["a", "b", "c"]\n'
        for name in ("x", "y")
    ]
    return Schema.from_toml("\n".join(texts))


def people(rows: int, seed: int) -> pd.DataFrame:
    """Rows: who earns more owes more."""
    rng = np.random.default_rng(seed)
    income = rng.lognormal(10, 0.8, rows)
    peaks = np.where(rng.random(rows) < 0.95, rng.normal(20, 5, rows), rng.normal(90, 3, rows))
    return pd.DataFrame(
        {
            "debt": np.where(rng.random(rows) < 0.8, 0, income * rng.lognormal(-1, 1, rows)),
            "income": income,
            "age": rng.integers(0, 100, rows),
            "score": peaks.clip(0, 99),
            "x": rng.choice(list("abc"), rows),
            "y": np.where(income > 22_000, "a", rng.choice(list("abc"), rows)),
        }
    ).astype(dict.fromkeys(MEANS, int))


def released_means(
    method: str, table: pd.DataFrame, epsilon: str, seed: int, *, falling: bool
) -> tuple[dict[str, float], Codes]:
    """The means of a release, and its rows as codes."""
    before = tails.WITHIN
    tails.WITHIN = before if falling else -np.inf
    try:
        made = released(table, schema(), method=method, epsilon=epsilon, seed=seed).sample()
        return {name: float(made[name].mean()) for name in MEANS}, schema().encode(made)
    finally:
        tails.WITHIN = before


def errors(table: pd.DataFrame, means: dict[str, float], made: Codes) -> list[float]:
    """Of the means, then the distances."""
    real = schema().encode(table)
    off = [abs(means[name] / float(table[name].mean()) - 1) for name in MEANS]
    return [*off, *(mean_distance(real, made, marginal_sets(real.width, order=k)) for k in (1, 2))]


def main() -> None:
    """Print the table, and write it as JSON."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=20_000)
    options.add_argument("--runs", type=int, default=5)
    given = options.parse_args()
    names = [*(f"mean of {name}" for name in MEANS), "1-way", "2-way"]
    lines = []
    for method in METHODS:
        for epsilon in EPSILONS:
            found: dict[bool, list[list[float]]] = {True: [], False: []}
            for seed in range(given.runs):
                table = people(given.rows, seed)
                for falling, own in found.items():
                    made = released_means(method, table, epsilon, seed, falling=falling)
                    own.append(errors(table, *made))
            with_tails, without = (np.mean(found[each], axis=0) for each in (True, False))
            for name, one, other in zip(names, with_tails, without, strict=True):
                lines.append(
                    {
                        "method": method,
                        "epsilon": epsilon,
                        "error of": name,
                        "without": round(float(other), 4),
                        "with": round(float(one), 4),
                        "ratio": round(float(one / other), 3),
                    }
                )
                print(lines[-1], flush=True)
    keep("tails", {**vars(given), "measured": lines})


if __name__ == "__main__":
    main()
