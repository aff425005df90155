"""subn+ on tables that had no part in choosing its constants, beside the floor.

`python -m benchmarks.subn_unseen` splits salary (135,727 rows, one domain of 501 values), titanic
(1,304 rows), the made-up population of the demonstration (30,000 rows, 13 attributes) and Adult
with every column shuffled, in which there is no dependence to find, among ten owners at random, and
prints mean 2-way / 3-way distances over all marginals. Research tables that are absent are skipped.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
from rich.console import Console

from benchmarks.privbayes_data import DATA, Dataset, read_codes
from benchmarks.subn_data import RANDOM, Setting, shuffled, split_rows
from benchmarks.subn_methods import FLOOR, synthetic_rows
from common.bayes.privbayes.decisions import Encoding
from common.schema import Schema
from common.schema.codes import Codes
from common.schema.hierarchy import Hierarchy
from parley.simulation.population import demo_schema_toml, make_population

EPSILONS = ("0.05", "0.1", "0.2", "0.4", "0.8", "1.6")
OWNERS = 10
POPULATION = "population"
SHUFFLED = "adult-shuffled"
NAMES = ("salary", "titanic", POPULATION, SHUFFLED)
_PEOPLE = 30_000


def unseen(names: Sequence[str]) -> Iterator[Setting]:
    """Those of the tables that are on this machine."""
    for name in names:
        if name == POPULATION:
            schema = Schema.from_toml(demo_schema_toml(), where=name)
            yield _setting(name, schema.encode(make_population(_PEOPLE, seed=1)))
        elif name == SHUFFLED and (DATA / "adult.csv").is_file():
            yield _setting(name, shuffled(read_codes("adult")[0]))
        elif (DATA / f"{name}.csv").is_file():
            yield _setting(name, read_codes(name)[0])


def _setting(name: str, codes: Codes) -> Setting:
    flat = tuple(Hierarchy.flat([str(code) for code in range(size)]) for size in codes.sizes)
    return Setting(name, Dataset(name, codes, flat, Encoding.VANILLA, (2, 3), (), None))


def measured(setting: Setting, epsilon: str, label: str, runs: int) -> str:
    """Mean distances and their spreads."""
    found = []
    for run in range(runs):
        tables = split_rows(setting.dataset.codes, OWNERS, RANDOM, seed=run)
        seed = f"unseen {setting.name} {epsilon} {label} {run}"
        made = synthetic_rows(setting, tables, Fraction(epsilon), label, seed)
        found.append(list(setting.distances(made).values()))
    spreads = np.std(found, axis=0, ddof=1) if runs > 1 else (0, 0)
    parts = (f"{m:.3f}±{s:.3f}" for m, s in zip(np.mean(found, axis=0), spreads, strict=True))
    return " / ".join(parts)


def main() -> None:
    """Print one line for every table and epsilon."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--data", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--epsilons", nargs="+", default=list(EPSILONS))
    arguments = parser.parse_args()
    console = Console(width=120)
    for setting in unseen(arguments.data):
        for epsilon in arguments.epsilons:
            for label in (FLOOR, "subn+"):
                figures = measured(setting, epsilon, label, arguments.runs)
                console.print(f"{setting.name}, epsilon {epsilon}, {label}: {figures}")


if __name__ == "__main__":
    main()
