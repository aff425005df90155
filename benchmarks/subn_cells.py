"""subn+ in every cell of table x rows x epsilon x promise, ranked among methods.

`python -m benchmarks.subn_cells` splits each table among ten owners, makes a release by each method
and measures, against the real rows or against held-back ones:

* `tvd1`, `tvd2`, `tvd3`: mean total variation distance of 1-, 2- and 3-way marginals;
* `conj4`: mean absolute error of the shares of random conjunctions of four columns;
* `boosting`, `logistic`: mean AUC on rows that no method saw, over every column as the target (its
  most common value against the others) or, with `--target`, of one column, of gradient boosting and
  of a logistic regression that learn from synthetic rows. In the line `second sample` they learn
  from real ones. Of a whole table a fifth is held back, of a sample all other rows.

Tables come whole, in samples of 2,000, 5,000 and 15,000 rows, widened by as many columns that have
nothing to do with the others, and with every column shuffled. Half of them (`CHOSEN_ON`) had a part
in choosing the constants of subn+; the others are reported only. A second sample of the same size
is what no method can beat. The last table has the mean rank of every method over all cells: one
number, 1 if it is the best everywhere.

Every finished run is kept in benchmarks/results/subn-cells.jsonl; a run that was stopped goes on
where it was, and `--runs 0` prints what is there.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.privbayes import RESULTS, one_hot, tables_of
from benchmarks.privbayes_data import DATA, Dataset, read_codes
from benchmarks.subn_data import RANDOM, Setting, shuffled, split_rows
from benchmarks.subn_methods import CENTRAL, EXPECTING, FLOOR, synthetic_rows
from benchmarks.subn_peers import PEERS, peer_rows
from common.bayes.privbayes.decisions import Encoding
from common.schema import Schema
from common.schema.codes import Codes
from common.schema.hierarchy import Hierarchy
from parley.simulation.population import demo_schema_toml, make_population

CACHE = RESULTS / "subn-cells.jsonl"
OWNERS = 10
POPULATION = "population"
CHOSEN_ON = ("adult", "nltcs", POPULATION)
TABLES = (*CHOSEN_ON, "acs", "br2000", "salary", "titanic")
SAMPLES = (2_000, 5_000, 15_000)
EPSILONS = ("0.1", "0.4", "1", "4", "10", "100")
DELTAS = ("0", "1e-9")
METHODS = (FLOOR, CENTRAL, "subn+")
SECOND_SAMPLE = "second sample"
EVERY = "every column"
DISTANCES = ("tvd1", "tvd2", "tvd3", "conj4")
CLASSIFIERS = ("boosting", "logistic")
_PEOPLE = 45_000
_MOST_MARGINALS = 400
_CONJUNCTIONS = 500
_MOST_TRAINING_ROWS = 15_000  # where every column is a target
_MOST_TEST_ROWS = 15_000
_HELD_BACK = 5  # one row in so many


@dataclass(frozen=True)
class Cell:
    """What is averaged over runs: one method on one variant of a table at one promise."""

    table: str
    variant: str
    epsilon: str
    delta: str
    method: str
    target: str = EVERY

    @property
    def place(self) -> tuple[str, str, str, str]:
        """Where methods are compared with each other."""
        return (self.table, self.variant, self.epsilon, self.delta)


def variants(table: str, rows: int) -> list[str]:
    """The forms in which a table is tried."""
    wide = ["widened", "shuffled"] if table in ("adult", "br2000") else []
    return ["whole", *(str(size) for size in SAMPLES if size < rows), *wide]


@cache
def whole(table: str) -> Codes:
    """All rows of a table."""
    if table == POPULATION:
        schema = Schema.from_toml(demo_schema_toml(), where=table)
        return schema.encode(make_population(_PEOPLE, seed=1))
    return read_codes(table)[0]


def rows_of(table: str, variant: str, run: int) -> Codes:
    """The rows of one variant; samples and extra columns differ from run to run."""
    codes = whole(table)
    rng = np.random.default_rng(run)
    if variant == "shuffled":
        return shuffled(codes)
    if variant == "widened":
        other = codes.take(rng.permutation(codes.rows))
        return Codes.from_columns([*codes.columns, *other.columns], [*codes.sizes, *codes.sizes])
    if variant == "whole":
        return codes
    return codes.take(np.sort(rng.permutation(codes.rows)[: int(variant)]))


def setting_of(name: str, codes: Codes) -> Setting:
    """A table as the methods take it, without hierarchies."""
    flat = tuple(Hierarchy.flat([str(code) for code in range(size)]) for size in codes.sizes)
    return Setting(name, Dataset(name, codes, flat, Encoding.VANILLA, (2, 3), (), None))


def measure(cell: Cell, run: int, *, classify: bool = True) -> dict[str, float]:
    """One run of one cell: distances on all rows, classifiers on rows that were held back."""
    codes = rows_of(cell.table, cell.variant, run)
    made = release(cell, codes, run)
    found = distances(codes, made, run)
    if not classify or cell.variant == "shuffled":
        return found
    real = cell.method == SECOND_SAMPLE
    if cell.variant.isdigit():
        order = np.random.default_rng(run).permutation(whole(cell.table).rows)
        held = whole(cell.table).take(order[int(cell.variant) :][:_MOST_TEST_ROWS])
        return found | accuracies(codes if real else made, held, cell.target)
    order = np.random.default_rng(run + 1).permutation(codes.rows)
    cut = codes.rows // _HELD_BACK
    held, learnt = codes.take(order[:cut]), codes.take(order[cut:])
    return found | accuracies(learnt if real else release(cell, learnt, run), held, cell.target)


def release(cell: Cell, codes: Codes, run: int) -> Codes:
    """Synthetic rows of a method."""
    if cell.method == SECOND_SAMPLE:
        again = np.random.default_rng(run + 7).integers(0, codes.rows, codes.rows)
        return codes.take(again)
    setting = setting_of(cell.table, codes)
    if cell.method in PEERS:
        return peer_rows(setting, cell.method, cell.epsilon, run)
    owners = 1 if cell.method == CENTRAL else OWNERS
    tables = split_rows(codes, owners, RANDOM, seed=run)
    return synthetic_rows(
        setting, tables, Fraction(cell.epsilon), cell.method, f"{cell} {run}", Fraction(cell.delta)
    )


def distances(real: Codes, made: Codes, run: int) -> dict[str, float]:
    """Of marginals and of conjunctions; of many marginals some, the same for every method."""
    found = {}
    for order in (1, 2, 3):
        sets = _some(list(combinations(range(real.width), order)), _MOST_MARGINALS)
        pairs = zip(tables_of(real, order, sets), tables_of(made, order, sets), strict=True)
        found[f"tvd{order}"] = float(np.mean([np.abs(a - b).sum() / 2 for a, b in pairs]))
    found["conj4"] = _conjunctions(real, made, run)
    return found


def _some(sets: list[tuple[int, ...]], most: int) -> list[tuple[int, ...]]:
    if len(sets) <= most:
        return sets
    chosen = np.random.default_rng(7).choice(len(sets), most, replace=False)
    return [sets[place] for place in chosen]


def _conjunctions(real: Codes, made: Codes, run: int) -> float:
    """Each column of four is within a quarter of its values of a row drawn at random."""
    rng = np.random.default_rng(run)
    errors = []
    for _ in range(_CONJUNCTIONS):
        columns = rng.choice(real.width, min(4, real.width), replace=False)
        row = rng.integers(real.rows)
        shares = []
        for codes in (real, made):
            holds = np.ones(codes.rows, bool)
            for column in columns:
                value, width = real.columns[column][row], real.sizes[column] // 4
                holds &= np.abs(codes.columns[column].astype(int) - int(value)) <= width
            shares.append(holds.mean())
        errors.append(abs(shares[0] - shares[1]))
    return float(np.mean(errors))


def accuracies(learnt: Codes, held: Codes, target: str) -> dict[str, float]:
    """AUC of one column as a target, or the mean over all, of both kinds of classifiers."""
    found: dict[str, list[float]] = {name: [] for name in CLASSIFIERS}
    if target == EVERY:
        some = np.random.default_rng(0).permutation(learnt.rows)[:_MOST_TRAINING_ROWS]
        learnt = learnt.take(some)
    for column in range(held.width) if target == EVERY else [int(target)]:
        for name, auc in _accuracy(learnt, held, column):
            found[name].append(auc)
    return {name: float(np.mean(values)) for name, values in found.items() if values}


def _accuracy(learnt: Codes, held: Codes, target: int) -> Iterator[tuple[str, float]]:
    from sklearn.ensemble import HistGradientBoostingClassifier  # slow to load
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    common = int(np.bincount(held.columns[target]).argmax())
    truth = held.columns[target] == common
    if truth.all():
        return
    answers = learnt.columns[target] == common
    if answers.all() or not answers.any():
        yield from ((name, 0.5) for name in CLASSIFIERS)
        return
    boosting = HistGradientBoostingClassifier(max_iter=60, random_state=0)
    boosting.fit(_columns(learnt, target), answers)
    yield "boosting", roc_auc_score(truth, boosting.predict_proba(_columns(held, target))[:, 1])
    logistic = LogisticRegression(max_iter=200, solver="liblinear")
    logistic.fit(one_hot(learnt, target), answers)
    yield "logistic", roc_auc_score(truth, logistic.decision_function(one_hot(held, target)))


def _columns(codes: Codes, without: int) -> NDArray[np.float64]:
    kept = [column for place, column in enumerate(codes.columns) if place != without]
    return np.stack(kept, axis=1).astype(np.float64)


def cells(arguments: argparse.Namespace) -> Iterator[Cell]:
    """Every cell that is asked for, of the tables on this machine."""
    for table in arguments.tables:
        if table != POPULATION and not (DATA / f"{table}.csv").is_file():
            continue
        for variant in variants(table, whole(table).rows):
            if variant not in (arguments.variants or [variant]):
                continue
            target = arguments.target
            yield Cell(table, variant, "-", "0", SECOND_SAMPLE, target)
            for epsilon in arguments.epsilons:
                for method in arguments.methods:
                    for delta in arguments.deltas:
                        if delta == "0" or method not in (CENTRAL, *PEERS):
                            yield Cell(table, variant, epsilon, delta, method, target)


class Kept:
    """Finished runs, one JSON line each."""

    def __init__(self) -> None:
        self.runs: dict[Cell, dict[int, dict[str, float]]] = {}
        if CACHE.is_file():
            for line in CACHE.read_text().splitlines():
                entry = json.loads(line)
                self.runs.setdefault(Cell(**entry["cell"]), {})[entry["run"]] = entry["values"]

    def add(self, cell: Cell, run: int, values: Mapping[str, float]) -> None:
        """Keep a run."""
        self.runs.setdefault(cell, {})[run] = dict(values)
        CACHE.parent.mkdir(exist_ok=True)
        with CACHE.open("a") as file:
            file.write(json.dumps({"cell": asdict(cell), "run": run, "values": values}) + "\n")

    def mean(self, cell: Cell, name: str) -> float | None:
        """The mean over runs of one measure."""
        values = [run[name] for run in self.runs.get(cell, {}).values() if name in run]
        return float(np.mean(values)) if values else None


def print_cells(console: Console, wanted: Sequence[Cell], kept: Kept) -> None:
    """One line for each cell."""
    names = (*DISTANCES, *CLASSIFIERS)
    table = Table("table", "variant", "epsilon", "delta", "method", "runs", *names)
    for cell in wanted:
        if cell in kept.runs:
            figures = (_words(kept.mean(cell, name)) for name in names)
            line = (cell.table, cell.variant, cell.epsilon, cell.delta, cell.method)
            table.add_row(*line, str(len(kept.runs[cell])), *figures)
    console.print(table)


def _words(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def print_ranks(console: Console, wanted: Iterable[Cell], kept: Kept) -> None:
    """Mean ranks over the cells in which every method was measured; 1 is best."""
    by_place: dict[tuple[str, ...], list[Cell]] = {}
    for cell in wanted:
        if cell in kept.runs and cell.method != SECOND_SAMPLE:
            by_place.setdefault(cell.place, []).append(cell)
    for title, seen in (("tables that constants were chosen on", True), ("other tables", False)):
        ranks: dict[tuple[str, str], list[int]] = {}
        for place, rivals in by_place.items():
            if (place[0] in CHOSEN_ON) is seen and len(rivals) > 1:
                for name in (*DISTANCES, *CLASSIFIERS):
                    for rank, cell in enumerate(_best_first(rivals, name, kept), start=1):
                        ranks.setdefault((cell.method, cell.delta), []).append(rank)
        table = Table("method", "delta", "mean rank", "cells x measures", title=title)
        for (method, delta), found in sorted(ranks.items(), key=lambda item: np.mean(item[1])):
            table.add_row(method, delta, f"{np.mean(found):.2f}", str(len(found)))
        console.print(table)


def _best_first(rivals: Sequence[Cell], name: str, kept: Kept) -> list[Cell]:
    sign = -1.0 if name in CLASSIFIERS else 1.0
    found = [
        (sign * value, cell) for cell in rivals if (value := kept.mean(cell, name)) is not None
    ]
    return [cell for _, cell in sorted(found, key=lambda pair: pair[0])]


def main() -> None:
    """Make the runs that are missing, print all of them, and the ranks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--variants", nargs="+", help="whole, widened, shuffled, or rows: 2000")
    parser.add_argument("--epsilons", nargs="+", default=list(EPSILONS))
    parser.add_argument("--deltas", nargs="+", default=list(DELTAS))
    parser.add_argument(
        "--methods", nargs="+", choices=(*METHODS, EXPECTING, *PEERS), default=list(METHODS)
    )
    parser.add_argument("--target", default=EVERY, help="number of the column to predict, from 0")
    parser.add_argument("--only-distances", action="store_true", help="train no classifiers")
    arguments = parser.parse_args()
    console = Console(width=150)
    wanted, kept = list(cells(arguments)), Kept()
    for run in range(arguments.runs):
        for cell in wanted:
            if run not in kept.runs.get(cell, {}):
                found = measure(cell, run, classify=not arguments.only_distances)
                kept.add(cell, run, found)
                told = " ".join(f"{name} {value:.4f}" for name, value in found.items())
                console.print(f"{cell} run {run}: {told}", highlight=False)
    print_cells(console, wanted, kept)
    print_ranks(console, wanted, kept)


if __name__ == "__main__":
    main()
