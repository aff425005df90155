"""Rules against none: `python -m benchmarks.rules [--rows 20000] [--runs 3] [--methods subn+]`.

Made-up people with skip patterns (children have no job, who has no job works no hours and earns no
wage, a stay ends after it begins): how far the 2-way marginals of a release are from the true ones
with the rules in the schema, as a ratio to the same run without them, and how many released rows
break a rule then.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

import parley
from benchmarks.measuring import keep, mean_distance, released, show
from common.release.evaluation import marginal_sets
from common.schema import Codes, Schema

METHODS = ("subn+", "dp-subn", "floor", "privbayes")
EPSILONS = ("0.1", "0.5", "2")
_JOBS = ("none", "farm", "office", "trade", "care", "transport")
_BINNED = (("age", 0, 99, 20), ("begin", 0, 364, 12), ("end", 0, 364, 12))
_RULES = """
[[rule]]
when = "age < 15"
then = "job = none and married = false"
[[rule]]
when = "job = none"
then = "hours < 1 and wage < 1"
[[rule]]
order = "begin <= end"
"""


def people(rows: int, seed: int) -> pd.DataFrame:
    """Rows that keep to the rules."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 100, rows)
    job = np.where((age < 15) | (rng.random(rows) < 0.3), "none", rng.choice(_JOBS[1:], rows))
    works = job != "none"
    begin = rng.integers(0, 365, rows)
    return pd.DataFrame(
        {
            "age": age,
            "sex": rng.choice(["F", "M"], rows),
            "job": job,
            "married": (age >= 15) & (rng.random(rows) < age / 120),
            "hours": np.where(works, rng.integers(1, 60, rows), 0),
            "wage": np.where(
                works, np.minimum(rng.lognormal(3, 0.6, rows), 199).astype(int) + 1, 0
            ),
            "begin": begin,
            "end": np.minimum(364, begin + rng.geometric(0.02, rows)),
        }
    )


def schema() -> Schema:
    """Of the people, with rules."""
    texts = [
        f'[[attribute]]\nname = "{name}"\nkind = "integer"\n'
        f"min = {low}\nmax = {high}\nbins = {bins}\n"
        for name, low, high, bins in _BINNED
    ]
    texts += [
        '[[attribute]]\nname = "sex"\nkind = "categorical"\nvalues = ["F", "M"]\n',
        f'[[attribute]]\nname = "job"\nkind = "categorical"\nvalues = {list(_JOBS)}\n',
        '[[attribute]]\nname = "married"\nkind = "boolean"\n',
        '[[attribute]]\nname = "hours"\nkind = "integer"\nedges = [0, 1, 10, 20, 30, 40, 50, 60]\n',
        '[[attribute]]\nname = "wage"\nkind = "integer"\nedges = [0, 1, 10, 20, 40, 80, 200]\n',
    ]
    return Schema.from_toml("\n".join(texts) + _RULES)


def released_codes(method: str, table: pd.DataFrame, own: Schema, epsilon: str, seed: int) -> Codes:
    """Synthetic rows as codes."""
    if method == "privbayes":
        return parley.PrivBayes(epsilon=epsilon, seed=seed).fit(table, own).sample_codes()
    return released(table, own, method=method, epsilon=epsilon, seed=seed).sample_codes()


def main() -> None:
    """Print the table, and write it as JSON."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=20_000)
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--methods", nargs="+", default=METHODS)
    given = options.parse_args()
    ruled = schema()
    pairs = marginal_sets(len(ruled.names), order=2)
    lines = []
    for method in given.methods:
        for epsilon in EPSILONS:
            with_rules, without, broken = [], [], []
            for seed in range(given.runs):
                table = people(given.rows, seed)
                real = ruled.encode(table)
                plain = released_codes(method, table, ruled.without_rules(), epsilon, seed)
                made = released_codes(method, table, ruled, epsilon, seed)
                if not ruled.possible.holds(made).all():
                    raise AssertionError("a released row breaks a rule")
                with_rules.append(mean_distance(real, made, pairs))
                without.append(mean_distance(real, plain, pairs))
                broken.append(1 - float(ruled.possible.holds(plain).mean()))
            lines.append(
                {
                    "method": method,
                    "epsilon": epsilon,
                    "without rules": float(np.mean(without)),
                    "with rules": float(np.mean(with_rules)),
                    "ratio": float(np.mean(with_rules) / np.mean(without)),
                    "rows that break a rule without": float(np.mean(broken)),
                }
            )
            print(lines[-1], flush=True)
    show(lines)
    keep("rules", {**vars(given), "measured": lines})


if __name__ == "__main__":
    main()
