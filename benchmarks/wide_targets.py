"""Wide tables of few rows: `python -m benchmarks.wide_targets [--tables grants] [--runs 3]`.

Tables of 53 and 76 columns with a binary target, ten owners, (1, 1e-9). Methods see 80 % of the
rows; 2-way distances are to those, AUC of boosting and of a logistic regression on the others.
`CHOSEN` had a part in choosing constants of subn+, `REPORTED` in `LEAST_MARGINS` and, shuffled, in
when margins are two sums. `shuffled NAME` has independent columns. Made tables have columns of 2 to
12 uneven values:

    label K      independent columns, and a target that depends on K of them
    chains K     runs of six columns, each of which depends on the one before, and such a target
    factors F K  columns that depend on one of F factors or on none, and such a target
    classes M    a hidden class of M on which half of the columns and the target depend

Of a package's table the target is the most even binary column, and of more than 76 columns those of
the largest entropy are taken. Lines are written to benchmarks/results/wide-targets.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache, partial
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import Figures, averaged, keep, mean_distance, show
from benchmarks.package_tables import MADE, made_table, package_table
from benchmarks.subn_cells import aucs
from benchmarks.subn_data import setting_of, shuffled, split_rows
from benchmarks.subn_methods import FLOOR, synthetic_rows
from common.schema.codes import Codes

OWNERS, EPSILON, DELTA = 10, Fraction(1), Fraction(1, 10**9)
METHODS = ("real rows", FLOOR, "subn+")
SHUFFLED = "shuffled "
MOST_COLUMNS = 76
_SIZES = (2, 2, 2, 3, 4, 5, 8, 12)
_NOISE = 0.35  # of a target, in deviations of what it depends on
_HELD_BACK = 5  # one row in so many
_RUN = 6  # columns of a chain

Columns = list[NDArray[np.int64]]


class Maker:
    """Draws columns of some rows from one seed; the first is the target."""

    def __init__(self, columns: int, rows: int, seed: int) -> None:
        self.rng, self.rows = np.random.default_rng(seed), rows
        self.sizes = [2, *(int(own) for own in self.rng.choice(_SIZES, columns - 1))]

    def normal(self) -> NDArray[np.float64]:
        return self.rng.normal(size=self.rows)

    def cut(self, numbers: NDArray[np.float64], size: int) -> NDArray[np.int64]:
        """Cut numbers into values of uneven weight."""
        edges = np.quantile(numbers, np.sort(self.rng.uniform(0.1, 0.9, size - 1)))
        return np.searchsorted(edges, numbers)

    def labelled(self, columns: Columns, inputs: int) -> Codes:
        """Put a target in the first place that depends on some of the other columns."""
        chosen = self.rng.permutation(len(columns) - 1)[:inputs] + 1
        signs = self.rng.uniform(0.6, 1.4, inputs), self.rng.choice([-1, 1], inputs)
        score = np.zeros(self.rows)
        for weight, place in zip(signs[0] * signs[1], chosen, strict=True):
            own = columns[place]
            score += weight * (own - own.mean()) / own.std()
        score = score / score.std() + _NOISE * self.normal()
        columns[0] = (score > np.quantile(score, self.rng.uniform(0.35, 0.65))).astype(np.int64)
        return Codes.from_columns(columns, self.sizes)

    def label(self, inputs: int) -> Codes:
        return self.labelled([self.cut(self.normal(), size) for size in self.sizes], inputs)

    def chains(self, inputs: int) -> Codes:
        columns, numbers = list[NDArray[np.int64]](), self.normal()
        for place, size in enumerate(self.sizes):
            near = self.rng.uniform(0.5, 0.9) if place % _RUN else 0.0
            numbers = near * numbers + np.sqrt(1 - near * near) * self.normal()
            columns.append(self.cut(numbers, size))
        return self.labelled(columns, inputs)

    def factors(self, factors: int, inputs: int) -> Codes:
        shared, columns = [self.normal() for _ in range(factors)], list[NDArray[np.int64]]()
        for size in self.sizes:
            near = 0.7 * self.rng.uniform(0.3, 1) * self.rng.choice([-1, 1])
            own = int(self.rng.integers(factors + 1))
            numbers = self.normal()
            if own < factors:
                numbers = near * shared[own] + np.sqrt(1 - near * near) * numbers
            columns.append(self.cut(numbers, size))
        return self.labelled(columns, inputs)

    def classes(self, classes: int) -> Codes:
        hidden, columns = self.rng.integers(0, classes, self.rows), list[NDArray[np.int64]]()
        for place, size in enumerate(self.sizes):
            if place == 0 or self.rng.random() < 0.5:
                laws = self.rng.dirichlet(np.full(size, 1.2 if place else 0.25), classes)
            else:
                laws = np.repeat(self.rng.dirichlet(np.full(size, 1.5), 1), classes, axis=0)
            drawn = self.rng.random(self.rows)[:, None] > np.cumsum(laws, axis=1)[hidden]
            columns.append(np.minimum(drawn.sum(axis=1), size - 1))
        return Codes.from_columns(columns, self.sizes)


def _wide(seed: int) -> Maker:
    return Maker(76, 8_000, seed)


def _narrower(seed: int) -> Maker:
    return Maker(53, 10_000, seed)


CHOSEN: Mapping[str, Callable[[], Codes]] = {
    "label 3, 76": lambda: _wide(11).label(3),
    "label 10, 53": lambda: _narrower(12).label(10),
    "label 20, 76": lambda: _wide(13).label(20),
    "factors 4 10, 76": lambda: _wide(14).factors(4, 10),
    "chains 10, 53": lambda: _narrower(15).chains(10),
    "classes 5, 76": lambda: _wide(16).classes(5),
    "wide 76": lambda: made_table("wide 76"),
    "grants": lambda: widest("grants"),
    "caravan": lambda: widest("caravan"),
    "discrimination": lambda: widest("discrimination"),
    "randhie": lambda: widest("randhie"),
}
REPORTED: Mapping[str, Callable[[], Codes]] = {
    "label 3, 53": lambda: _narrower(21).label(3),
    "label 6, 76": lambda: _wide(22).label(6),
    "label 10, 76": lambda: _wide(28).label(10),
    "label 20, 53": lambda: _narrower(23).label(20),
    "factors 8 10, 53": lambda: _narrower(24).factors(8, 10),
    "chains 6, 76": lambda: _wide(25).chains(6),
    "chains 20, 76": lambda: _wide(26).chains(20),
    "classes 9, 53": lambda: _narrower(27).classes(9),
    "wide 53": lambda: made_table("wide 53"),
    "trains": lambda: widest("trains"),
    "lending": lambda: widest("lending"),
}


def widest(name: str) -> Codes:
    """Return a table of the package; of many columns those of the largest entropy."""
    codes = package_table(name)
    weights = [np.bincount(column) / codes.rows for column in codes.columns]
    entropies = [-sum(w * np.log(w) for w in own if w > 0) for own in weights]
    order = sorted(range(codes.width), key=lambda a: -entropies[a])
    places = sorted(order[:MOST_COLUMNS])
    return Codes(tuple(codes.columns[a] for a in places), tuple(codes.sizes[a] for a in places))


@cache
def rows_of(name: str) -> Codes:
    """Return a table by its name; `shuffled NAME` has independent columns."""
    if name.startswith(SHUFFLED):
        return shuffled(rows_of(name.removeprefix(SHUFFLED)))
    return {**CHOSEN, **REPORTED}[name]()


def target_of(name: str) -> int:
    """Return the first column of a made table, else the most even binary one."""
    codes, made = rows_of(name), "," in name or name in MADE
    binary = [a for a, size in enumerate(codes.sizes) if size == 2]
    return 0 if made else min(binary, key=lambda a: abs(float(codes.columns[a].mean()) - 0.5))


def measure(name: str, run: int) -> Figures:
    """Yield the distance and the AUC of every method on one table."""
    codes = rows_of(name)
    order = np.random.default_rng(100 + run).permutation(codes.rows)
    cut = codes.rows // _HELD_BACK
    held, real = (codes.take(np.sort(part)) for part in (order[:cut], order[cut:]))
    line = {"table": name, "rows": real.rows, "columns": real.width}
    pairs = list(combinations(range(real.width), 2))
    owners = split_rows(real, OWNERS, "random", seed=run)
    for method in METHODS:
        made = real
        if method != METHODS[0]:
            setting, seed = setting_of(name, real), f"{name} {run}"
            made = synthetic_rows(setting, owners, method, epsilon=EPSILON, delta=DELTA, seed=seed)
            yield line, f"2-way, {method}", mean_distance(real, made, pairs)
        if not name.startswith(SHUFFLED) and method != FLOOR:
            for kind, auc in aucs(made, held, target_of(name), common=1):
                yield line, f"{kind}, {method}", auc


def main() -> None:
    """Measure the tables that are named; print and keep their lines."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--tables", nargs="+", default=[*CHOSEN, *REPORTED])
    options.add_argument("--runs", type=int, default=3)
    asked = options.parse_args()
    lines = []
    for name in asked.tables:
        (line,) = averaged(asked.runs, partial(measure, name))
        line["of the floor"] = line["2-way, subn+"] / line[f"2-way, {FLOOR}"]
        line["chosen on"] = "yes" if name.removeprefix(SHUFFLED) in CHOSEN else "no"
        lines.append(line)
        print(line, flush=True)
    show(lines, f"{OWNERS} owners, epsilon {EPSILON}, delta {float(DELTA):g}")
    keep("wide-targets", lines)


if __name__ == "__main__":
    main()
