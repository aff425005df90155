"""What last year's release is worth: `python -m benchmarks.prior [--runs 3] [--data adult ...]`.

A table is split into two years. Last year's release is made by subn+ at the same promise; this
year's is made without it and with it as a prior, and both are compared with this year's rows: the
average total variation distance over all 2-way and 3-way marginals. Two kinds of years:

* `alike`: two random halves of the table;
* `drifted`: the later year has four times the share of the upper end of the first column.

Beside them stands last year's table itself, which is what a user has who does nothing this year.
`population` is made up here; the research tables are used if they are on this machine. Sums are
added up without cryptography (`benchmarks.subn_methods`): NOT PRIVATE.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np

from benchmarks.measuring import Figures, averaged, demo_population, keep, show
from benchmarks.subn_data import (
    NAMES,
    POPULATION,
    RANDOM,
    Setting,
    setting_of,
    settings,
    split_rows,
)
from benchmarks.subn_methods import METHODS, QuickCopy, study_of
from common.methods.prior import Prior
from common.privacy.randomness import SeededRandomSource
from common.schema import Codes
from common.study.document import Study

ALIKE, DRIFTED = "alike", "drifted"
EPSILONS = ("0.1", "0.4", "1")
DELTAS = ("0", "1e-9")
PARTIES = 5


def population() -> Setting:
    """Return the simulated people of the demonstration."""
    schema, codes = demo_population(30_000)
    return setting_of(POPULATION, codes, [each.hierarchy for each in schema.attributes])


def years(codes: Codes, kind: str, seed: int) -> tuple[Codes, Codes]:
    """Return last year's rows and this year's, no row in both."""
    rng = np.random.default_rng(seed)
    column = codes.columns[0] + rng.random(codes.rows)
    place = np.argsort(np.argsort(column)) / codes.rows
    chance = 0.5 if kind == ALIKE else 0.2 + 0.6 * place
    later = rng.random(codes.rows) < chance
    return codes.take(np.flatnonzero(~later)), codes.take(np.flatnonzero(later))


def release(study: Study, tables: dict[str, Codes], seed: str, prior: Codes | None = None) -> Codes:
    """Return the synthetic rows of one run."""
    source = SeededRandomSource(seed)
    named = study if prior is None else replace(study, prior="0" * 64)
    copy = QuickCopy(named, tables, source, None if prior is None else Prior(prior))
    return copy.model().sample(study.rows, source)


def compare(
    setting: Setting, kind: str, *, epsilon: str, delta: str, run: int
) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the distances of last year's table and of this year's, without and with a prior."""
    before, after = years(setting.dataset.codes, kind, seed=run)
    this = Setting(setting.name, replace(setting.dataset, codes=after))
    owners = [split_rows(rows, PARTIES, RANDOM, seed=run) for rows in (before, after)]
    first, second = (
        study_of(this, each, Fraction(epsilon), METHODS["subn+"], delta=Fraction(delta))
        for each in owners
    )
    last = release(first, owners[0], f"last {run}")
    yield "last year", this.distances(last)
    yield "without", this.distances(release(second, owners[1], f"this {run}"))
    yield "with", this.distances(release(second, owners[1], f"this {run}", last))


def main() -> None:
    """Measure, print, and keep the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--data", nargs="+", default=[POPULATION, "adult", "br2000"])
    parser.add_argument("--epsilons", nargs="+", default=list(EPSILONS))
    parser.add_argument("--deltas", nargs="+", default=list(DELTAS))
    parser.add_argument("--years", nargs="+", default=[ALIKE, DRIFTED])
    arguments = parser.parse_args()
    found = {POPULATION: population(), **settings()[0]}
    for name in arguments.data:
        if name not in found:
            print(f"skipped: {name} is not one of {', '.join((POPULATION, *NAMES))} here")

    def measure(run: int) -> Figures:
        for name, kind in product(filter(found.get, arguments.data), arguments.years):
            for delta, epsilon in product(arguments.deltas, arguments.epsilons):
                of = {"table": name, "years": kind, "epsilon": epsilon, "delta": delta}
                made = compare(found[name], kind, epsilon=epsilon, delta=delta, run=run)
                for heading, distances in made:
                    for order, distance in distances.items():
                        yield of | {"marginals": order}, heading, distance

    lines = averaged(arguments.runs, measure)
    lines = [line | {"better by": f"{1 - line['with'] / line['without']:.0%}"} for line in lines]
    show(lines)
    keep("prior", lines)


if __name__ == "__main__":
    main()
