"""Studies of several parties: the paper's experiments, the floor, and central competitors.

`python -m benchmarks.subn` runs, on the research tables that are on this machine,

* `epsilon`, `parties`: Adult in 52 bits, K = 3 over epsilon and epsilon = 0.2 over K: distances of
  2-way and 3-way marginals, and two SVM errors;
* `own`: Adult, NLTCS, ACS and BR2000 in their own domains, K = 10, beside central PrivBayes;
* `peers`: MST and AIM of private-pgm, run centrally, at the same privacy definition and with delta;
* `views`: NOCD against PriView's covering design and direct pairs;
* `wire`: bytes and seconds of runs under Paillier, against the paper's formulas;
* `skew`: parties that differ, one very small party, more parties than attributes;
* `law`: the floor by the sweeps' short cut and by the real roles, which must agree.

Every finished run is kept in benchmarks/results/subn.jsonl: a run that was stopped goes on where it
was, and `--runs 0` prints what is there. Columns marked `!` are worse than the floor beyond noise.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from fractions import Fraction
from functools import partial

import numpy as np
from rich.console import Console

from benchmarks.measuring import RESULTS
from benchmarks.research_tables import DATA
from benchmarks.subn_data import IN_BITS, NAMES, ONE_SMALL, RANDOM, Setting, settings, split_rows
from benchmarks.subn_methods import CENTRAL, FLOOR, LABELS, synthetic_rows, through_roles
from benchmarks.subn_peers import PEERS, run_peers
from benchmarks.subn_sweep import CLASSIFIERS, DISTANCES, Point, Results, run_all
from benchmarks.subn_tables import Grid, markdown, plot, show
from benchmarks.subn_views import compare_views
from benchmarks.subn_wire import measure_wire

EPSILONS = ("0.05", "0.1", "0.2", "0.4", "0.8", "1.6")
PARTIES = ("2", "4", "6", "8", "10")
PARTS = ("epsilon", "parties", "own", "skew", "law", "views", "wire", "peers")
MANY = 10
DISTANCE_MEASURES = ("tvd2", "tvd3")
# Adult by marital status (7 owners), a party of 50 rows among 5, and NLTCS with K > d.
SKEWED = (
    ("adult", 7, "by 5"),
    ("adult", 7, RANDOM),
    ("adult", 5, ONE_SMALL),
    ("nltcs", 20, RANDOM),
)


def point_of(
    label: str, column: str, *, data: str, parties: int | None, epsilon: str | None, task: str
) -> Point:
    """The point of a label where the column gives epsilon or, if that is given, the parties."""
    owners = int(column) if parties is None else parties
    central = label == CENTRAL or label in PEERS
    return Point(data, 1 if central else owners, epsilon or column, label, task)


def grid_over_epsilon(
    arguments: argparse.Namespace, setting: Setting, parties: int, task: str
) -> Grid:
    """All methods over epsilon."""
    return Grid(
        title=f"{setting.name}, K = {parties}",
        across="eps",
        columns=tuple(arguments.epsilons),
        methods=(*arguments.methods, *PEERS),
        measures=_measures(setting, task),
        point=partial(point_of, data=setting.name, parties=parties, epsilon=None, task=task),
    )


def grid_over_parties(arguments: argparse.Namespace, setting: Setting, task: str) -> Grid:
    """All methods over the number of parties, at the paper's epsilon."""
    return Grid(
        title=f"{setting.name}, epsilon = 0.2",
        across="K",
        columns=PARTIES,
        methods=tuple(arguments.methods),
        measures=_measures(setting, task),
        point=partial(point_of, data=setting.name, parties=None, epsilon="0.2", task=task),
    )


def skew_grids(arguments: argparse.Namespace, found: dict[str, Setting]) -> list[Grid]:
    """Parties that are not random samples of each other."""

    def point(data: str, parties: int, split: str, label: str, column: str) -> Point:
        if label == CENTRAL:
            return Point(data, 1, column, label)
        return Point(data, parties, column, label, DISTANCES, split)

    return [
        Grid(
            title=f"{data}, K = {parties}, {split}",
            across="eps",
            columns=("0.2", "0.8"),
            methods=tuple(label for label in arguments.methods if label != "dp-ccbn"),
            measures=DISTANCE_MEASURES,
            point=partial(point, data, parties, split),
        )
        for data, parties, split in SKEWED
        if data in found
    ]


def _measures(setting: Setting, task: str) -> tuple[str, ...]:
    return DISTANCE_MEASURES if task == DISTANCES else tuple(t[0] for t in setting.targets)


def grids_of(part: str, arguments: argparse.Namespace, found: dict[str, Setting]) -> list[Grid]:
    """The tables of a part that is a sweep."""
    bits = found.get(IN_BITS)
    if part == "skew":
        return skew_grids(arguments, found)
    if part == "epsilon" and bits:
        return [grid_over_epsilon(arguments, bits, 3, task) for task in (DISTANCES, CLASSIFIERS)]
    if part == "parties" and bits:
        return [grid_over_parties(arguments, bits, task) for task in (DISTANCES, CLASSIFIERS)]
    if part == "own":
        own = [setting for name, setting in found.items() if name != IN_BITS]
        return [grid_over_epsilon(arguments, setting, MANY, DISTANCES) for setting in own]
    return []


def points_of(grids: Sequence[Grid]) -> list[Point]:
    """Every point of the tables, but those of peers."""
    return [
        grid.point(label, column)
        for grid in grids
        for column in grid.columns
        for label in grid.methods
        if label not in PEERS
    ]


def compare_ways(console: Console, setting: Setting, runs: int) -> None:
    """The floor's 2-way distance by the short cut of the sweeps and by the roles."""
    for way in (synthetic_rows, through_roles):
        found = []
        for run in range(runs):
            tables = split_rows(setting.dataset.codes, 3, RANDOM, seed=run)
            made = way(setting, tables, Fraction(1, 10), FLOOR, f"law {run}")
            found.append(setting.distances(made)["tvd2"])
        spread = f"{np.mean(found):.4f} ±{np.std(found, ddof=1):.4f}"
        console.print(f"floor, K = 3, epsilon 0.1, {way.__name__}: {spread} in {runs} runs")


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=10, help="runs of distances (the paper: 20)")
    parser.add_argument("--svm-runs", type=int, help="runs of classifiers; as many by default")
    parser.add_argument("--data", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--epsilons", nargs="+", default=list(EPSILONS))
    parser.add_argument("--methods", nargs="+", choices=LABELS, default=list(LABELS))
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--peer-limit", type=float, default=300, help="seconds a peer may take")
    parser.add_argument("--peer-runs", type=int, default=1, help="runs of each peer")
    parser.add_argument("--fresh", action="store_true", help="forget what was measured before")
    return parser.parse_args()


def main() -> None:
    """Measure what is missing, print everything, and write tables and plots."""
    arguments = parse()
    console = Console(width=170)
    available, absent = settings()
    for name in absent:
        console.print(f"skipped: {name}.csv is not in {DATA}")
    found = {name: setting for name, setting in available.items() if name in arguments.data}
    if not found:
        return
    if FLOOR not in arguments.methods:
        arguments.methods.insert(0, FLOOR)
    results = Results()
    if arguments.fresh:
        results.path.unlink(missing_ok=True)
    results.load()
    measure(console, arguments, found, results)
    report(console, arguments, found, results)


def measure(
    console: Console, arguments: argparse.Namespace, found: dict[str, Setting], results: Results
) -> None:
    """Make the runs that are asked for and not there."""
    svm_runs: int = arguments.runs if arguments.svm_runs is None else arguments.svm_runs

    def runs(point: Point) -> int:
        most: int = arguments.runs if point.task == DISTANCES else svm_runs
        return most

    for part in arguments.parts:
        run_all(console, found, points_of(grids_of(part, arguments, found)), runs, results)
    if "peers" in arguments.parts:
        run_peers(console, found, arguments, results)


def report(
    console: Console, arguments: argparse.Namespace, found: dict[str, Setting], results: Results
) -> None:
    """Everything that is known, as tables and plots."""
    if results.other_code:
        console.print(f"note: {results.other_code} runs were made by another version of the code")
    texts = []
    for part in arguments.parts:
        grids = grids_of(part, arguments, found)
        for grid in grids:
            show(console, grid, results)
            texts.append(markdown(grid, results))
        if grids and part != "skew":
            plot(f"subn-{part}", grids, results)
    if "law" in arguments.parts and IN_BITS in found and arguments.runs > 1:
        compare_ways(console, found[IN_BITS], arguments.runs)
    if "views" in arguments.parts and IN_BITS in found:
        texts.append(compare_views(console, found[IN_BITS], max(arguments.runs, 1)))
    if "wire" in arguments.parts and IN_BITS in found:
        texts.append(measure_wire(console, found[IN_BITS], arguments.methods))
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "subn.md").write_text("\n".join(texts))
    console.print(f"written: {results.path}, {RESULTS / 'subn.md'} and plots beside it")


if __name__ == "__main__":
    main()
