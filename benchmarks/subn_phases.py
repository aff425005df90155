"""What each ingredient of subn+ is worth, and what other values of its constants would cost.

`python -m benchmarks.subn_phases` runs subn+ on Adult, BR2000, NLTCS and ACS in their own domains,
split among ten owners, with one thing at a time taken away or replaced (`.subn_variants`). It
prints mean distances of all 2-way / 3-way marginals from the real ones, and standard deviations.

Every row of a column starts its runs from the same seeds. `+` marks a mean that is worse than that
of all of subn+, `-` one that is better, by a paired t test at 5 %: of a hundred figures that differ
by chance alone, five are marked. `=` marks the very same runs. An empty cell is not measured: the
variant cannot change anything there, or matters elsewhere.

Finished runs are kept in benchmarks/results/subn_phases.jsonl: a run that was stopped goes on where
it was, and `--runs 0` prints what is there.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from fractions import Fraction
from math import sqrt

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import t as student

from benchmarks.privbayes import RESULTS
from benchmarks.privbayes_data import DATA
from benchmarks.subn_data import Setting, settings, split_rows
from benchmarks.subn_methods import FLOOR, synthetic_rows
from benchmarks.subn_sweep import Point, Results, run_all
from benchmarks.subn_variants import (
    BITS,
    EVERYWHERE,
    GROUPED,
    LARGE,
    SMALL,
    SMALL_BITS,
    VARIANTS,
    WHOLE,
    Column,
)

OWNERS = 10
MEASURES = ("tvd2", "tvd3")
TABLES: tuple[tuple[str, tuple[Column, ...], bool], ...] = (
    ("Ingredients, large domains", GROUPED, False),
    ("Ingredients, bits", BITS, False),
    ("Ingredients, large domains, small budgets", SMALL, False),
    ("Ingredients, bits, small budgets", SMALL_BITS, False),
    ("Constants, large domains", GROUPED, True),
    ("Constants, bits", BITS, True),
    ("Constants, large domains, small budgets", SMALL, True),
    ("Constants, bits, small budgets", SMALL_BITS, True),
    ("Constants, large budget", LARGE, True),
)
_CHANCE = 0.05


def point_of(label: str, column: Column) -> Point:
    """What is averaged over runs."""
    data, epsilon = column
    return Point(data, OWNERS, epsilon, label)


def measure(setting: Setting, point: Point, run: int) -> dict[str, float]:
    """One run of a variant or of the floor; the seed does not depend on which."""
    tables = split_rows(setting.dataset.codes, point.parties, point.split, seed=run)
    seed = f"phases {point.data} {point.epsilon} {run}"
    epsilon = Fraction(point.epsilon)
    if point.method == FLOOR:
        made = synthetic_rows(setting, tables, epsilon, FLOOR, seed)
    else:
        with VARIANTS[point.method].at_work():
            made = synthetic_rows(setting, tables, epsilon, "subn+", seed)
    return setting.distances(made)


def mark(values: Sequence[float], whole: Sequence[float]) -> str:
    """`+` for worse than all of subn+, `-` for better, beyond chance; `=` for the same runs."""
    runs = min(len(values), len(whole))
    if runs < 2:
        return ""
    differences = np.array(values[:runs]) - np.array(whole[:runs])
    if not differences.any():
        return "="
    spread = float(np.std(differences, ddof=1)) / sqrt(runs)
    if abs(differences.mean()) <= spread * student.ppf(1 - _CHANCE / 2, runs - 1):
        return ""
    return "+" if differences.mean() > 0 else "-"


def cell(label: str, column: Column, results: Results, *, spread: bool) -> str:
    """Means of both distances, marked; empty if nothing was measured."""
    parts = []
    for measure_name in MEASURES:
        values = results.values(point_of(label, column), measure_name)
        if not values:
            return ""
        whole = results.values(point_of(WHOLE, column), measure_name)
        text = f"{np.mean(values):.4f}".removeprefix("0")
        if spread and len(values) > 1:
            text += f"±{np.std(values, ddof=1):.4f}".replace("±0", "±")
        parts.append(text + ("" if label == WHOLE else mark(values, whole)))
    return " / ".join(parts)


def lines(
    columns: Sequence[Column], labels: Sequence[str], results: Results, *, spread: bool
) -> list[list[str]]:
    """A line for every label that has a figure in some column."""
    found = []
    for label in labels:
        cells = [cell(label, column, results, spread=spread) for column in columns]
        if any(cells):
            found.append([label + fewer_runs(label, columns, results), *cells])
    return found


def fewer_runs(label: str, columns: Sequence[Column], results: Results) -> str:
    """How many runs a line has, if all of subn+ has more."""

    def runs(own: str) -> int:
        counts = (len(results.values(point_of(own, c), MEASURES[0])) for c in columns)
        return min(filter(None, counts), default=0)

    return f" ({runs(label)} runs)" if runs(label) < runs(WHOLE) else ""


def labels_of(*, constant: bool) -> list[str]:
    """The rows of a table: subn+ itself comes first, the floor beside ingredients."""
    chosen = [label for label, v in VARIANTS.items() if v.constant == constant]
    return [WHOLE, *chosen] if constant else [WHOLE, FLOOR, *chosen[1:]]


def report(console: Console, results: Results) -> None:
    """Everything that is known, on the console and as Markdown."""
    texts = []
    for title, columns, constant in TABLES:
        header = [f"{data} {epsilon}" for data, epsilon in columns]
        runs = {len(results.values(point_of(WHOLE, column), MEASURES[0])) for column in columns}
        full = f"{title}, {'-'.join(map(str, sorted({min(runs), max(runs)})))} runs"
        labels = labels_of(constant=constant)
        table = Table("", *header, title=full)
        for line in lines(columns, labels, results, spread=True):
            table.add_row(*line)
        console.print(table)
        rows = [["", *header], ["---"] * (len(header) + 1)]
        rows += lines(columns, labels, results, spread=False)
        texts.append(
            f"**{full}**\n\n" + "\n".join("| " + " | ".join(r) + " |" for r in rows) + "\n"
        )
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "subn_phases.md").write_text("\n".join(texts))
    console.print(f"written: {results.path} and {RESULTS / 'subn_phases.md'}")


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = sorted({data for data, _ in EVERYWHERE})
    parser.add_argument("--runs", type=int, default=10, help="of each figure")
    parser.add_argument("--data", nargs="+", choices=names, default=names)
    parser.add_argument("--only", nargs="+", choices=[*VARIANTS, FLOOR], default=[*VARIANTS, FLOOR])
    parser.add_argument("--fresh", action="store_true", help="forget what was measured before")
    return parser.parse_args()


def main() -> None:
    """Measure what is missing and print everything."""
    arguments = parse()
    console = Console(width=170)
    found, absent = settings()
    for name in absent:
        console.print(f"skipped: {name}.csv is not in {DATA}")
    results = Results(RESULTS / "subn_phases.jsonl")
    if arguments.fresh:
        results.path.unlink(missing_ok=True)
    results.load()
    wanted = [
        point_of(label, column)
        for label in dict.fromkeys([WHOLE, *arguments.only])
        for column in (EVERYWHERE if label == FLOOR else VARIANTS[label].where)
        if column[0] in arguments.data and column[0] in found
    ]
    run_all(console, found, wanted, lambda _: arguments.runs, results, measure)
    if results.other_code:
        console.print(f"note: {results.other_code} runs were made by another version of the code")
    report(console, results)


if __name__ == "__main__":
    main()
