"""subn+ in every cell of table x rows x epsilon x promise, ranked among methods.

`python -m benchmarks.subn_cells` splits each table among ten owners, makes a release by each method
and measures, against the real rows or against held-back ones:

* `tvd1`, `tvd2`, `tvd3`: mean total variation distance of 1-, 2- and 3-way marginals;
* `conj4`: mean absolute error of the shares of random conjunctions of four columns;
* `svm`: mean misclassification by a linear SVM on rows that no method saw, over every column as the
  target (its most common value against the others) or, with `--target`, of one column;
* `boosting`, `logistic`: the same as AUC of gradient boosting and of a logistic regression.

Classifiers learn from synthetic rows, and in the line `second sample` from real ones. Of a whole
table a fifth is held back, of a sample all other rows.

Tables come whole, in samples of 2,000, 5,000 and 15,000 rows, as 5,000 rows of six columns that
differ from run to run (`few`), widened by as many columns that have nothing to do with the others,
with every column shuffled, and Adult also with owners that differ.
Some of them (`CHOSEN_ON`) had a part in choosing the constants of subn+; the others are reported
only (`adult-raw` has the rows of Adult, in finer domains that had no part). A second sample of the
same size is what no method can beat. `!` marks what is worse than the floor by more than two
standard errors. The last table has the mean rank of every method over all cells: one number, 1 if
it is the best everywhere. Methods are compared under the same promise; with `--peers` MST and AIM
on pooled rows are among them.

Every finished run is kept in benchmarks/results/subn-cells.jsonl; a run that was stopped goes on
where it was, and `--runs 0` prints what is there.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from benchmarks.measuring import RESULTS, Row, error_rate, one_hot, show, tables_of
from benchmarks.peers import MARGINAL_PEERS, PeerError, peer_rows
from benchmarks.research_tables import DATA
from benchmarks.subn_data import (
    BY_STATUS,
    ONE_SMALL,
    POPULATION,
    RAW,
    is_here,
    setting_of,
    shuffled,
    split_rows,
    whole,
)
from benchmarks.subn_methods import (
    CENTRAL,
    FLOOR,
    METHODS,
    can_promise,
    synthetic_rows,
)
from common.schema.codes import Codes

CACHE = RESULTS / "subn-cells.jsonl"
OWNERS = 10
CHOSEN_ON = ("adult", "br2000", "nltcs", POPULATION)
TABLES = (*CHOSEN_ON, "acs", "salary", "titanic", RAW)
SAMPLES = (2_000, 5_000, 15_000)
FEW, FEW_ROWS, FEW_COLUMNS = "few", 5_000, 6
VARIANTS = {"adult": ("widened", BY_STATUS, ONE_SMALL), "br2000": ("widened",)}
EPSILONS = ("0.1", "0.4", "1", "4", "10", "100")
DELTAS = ("0", "1e-9")
COMPARED = (FLOOR, CENTRAL, "subn+")
SECOND_SAMPLE = "second sample"
EVERY = "every column"
ERRORS = ("tvd1", "tvd2", "tvd3", "conj4", "svm")
AUC = ("boosting", "logistic")
MEASURES = (*ERRORS, *AUC)
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


def variants(table: str) -> list[str]:
    """Return the forms in which a table is tried."""
    rows = whole(table).rows
    samples = (str(size) for size in SAMPLES if size < rows)
    return ["whole", *samples, FEW, "shuffled", *VARIANTS.get(table, ())]


def rows_of(table: str, variant: str, run: int) -> Codes:
    """Return the rows of one variant; samples and columns differ from run to run."""
    codes = whole(table)
    rng = np.random.default_rng(run)
    if variant == FEW:
        codes = codes.take(rng.permutation(codes.rows)[:FEW_ROWS])
        columns = np.sort(rng.permutation(codes.width)[:FEW_COLUMNS]).tolist()
        return Codes(
            tuple(codes.columns[a] for a in columns), tuple(codes.sizes[a] for a in columns)
        )
    if variant.isdigit():
        return codes.take(np.sort(rng.permutation(codes.rows)[: int(variant)]))
    if variant == "shuffled":
        return shuffled(codes)
    if variant == "widened":
        other = codes.take(rng.permutation(codes.rows))
        return Codes.from_columns([*codes.columns, *other.columns], [*codes.sizes, *codes.sizes])
    return codes


def measure(cell: Cell, run: int, *, classify: bool = True) -> dict[str, float]:
    """Run one cell: distances on all rows, classifiers on rows that were held back."""
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
    if cell.method in MARGINAL_PEERS:
        promise = {"epsilon": cell.epsilon, "delta": cell.delta}
        return peer_rows(codes, cell.method, seed=run, **promise)
    owners = 1 if cell.method == CENTRAL else OWNERS
    return synthetic_rows(
        setting_of(cell.table, codes),
        split_rows(codes, owners, cell.variant, seed=run),
        cell.method,
        epsilon=Fraction(cell.epsilon),
        delta=Fraction(cell.delta),
        seed=f"{cell} {run}",
    )


def distances(real: Codes, made: Codes, run: int) -> dict[str, float]:
    """Return distances of marginals (of many, a fixed sample) and of conjunctions."""
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
    """Compare random conjunctions: four columns, each within a quarter of its values of a row's."""
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
    """Measure each kind of classifier, for one target column or as the mean over all."""
    found: dict[str, list[float]] = {}
    if target == EVERY:
        some = np.random.default_rng(0).permutation(learnt.rows)[:_MOST_TRAINING_ROWS]
        learnt = learnt.take(some)
    for column in range(held.width) if target == EVERY else [int(target)]:
        for name, value in _accuracy(learnt, held, column):
            found.setdefault(name, []).append(value)
    return {name: float(np.mean(values)) for name, values in found.items()}


def target_accuracies(learnt: Codes, held: Codes, targets: Sequence[int]) -> dict[str, float]:
    """Measure each kind of classifier as the mean over some target columns."""
    found: dict[str, list[float]] = {}
    some = np.random.default_rng(0).permutation(learnt.rows)[:_MOST_TRAINING_ROWS]
    for target in targets:
        for name, value in _accuracy(learnt.take(some), held, target):
            found.setdefault(name, []).append(value)
    return {name: float(np.mean(values)) for name, values in found.items()}


def _accuracy(learnt: Codes, held: Codes, target: int) -> Iterator[tuple[str, float]]:
    common = int(np.bincount(held.columns[target]).argmax())
    if (held.columns[target] == common).all():
        return
    yield "svm", error_rate(learnt, held, ("", target, lambda codes: codes == common))
    yield from aucs(learnt, held, target, common)


def aucs(learnt: Codes, held: Codes, target: int, common: int) -> Iterator[tuple[str, float]]:
    """Yield the AUC of each kind of classifier that tells one value of a target from the others."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # slow to load
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    truth, answers = held.columns[target] == common, learnt.columns[target] == common
    if min(answers.sum(), (~answers).sum()) < 2:  # nothing to learn from
        yield from ((name, 0.5) for name in AUC)
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
    """Yield every cell that is asked for, of the tables on this machine."""
    methods = [*arguments.methods, *(MARGINAL_PEERS if arguments.peers else ())]
    for table in filter(is_here, arguments.tables):
        for variant in variants(table):
            if variant not in (arguments.variants or [variant]):
                continue
            yield Cell(table, variant, "-", "0", SECOND_SAMPLE, arguments.target)
            for epsilon, method, delta in product(arguments.epsilons, methods, arguments.deltas):
                if can_promise(method, delta):
                    yield Cell(table, variant, epsilon, delta, method, arguments.target)


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

    def values(self, cell: Cell, name: str) -> list[float]:
        """Return one measure in every run that has it."""
        return [run[name] for run in self.runs.get(cell, {}).values() if name in run]


def show_cells(wanted: Sequence[Cell], kept: Kept) -> None:
    """Print one line for each cell."""
    lines: list[Row] = []
    for cell in wanted:
        if cell in kept.runs:
            of = asdict(cell)
            del of["target"]
            runs = {"runs": len(kept.runs[cell])}
            lines.append(of | runs | {name: _words(cell, name, kept) for name in MEASURES})
    show(lines)


def _words(cell: Cell, name: str, kept: Kept) -> str:
    values = kept.values(cell, name)
    if not values:
        return ""
    floor = kept.values(replace(cell, method=FLOOR), name)
    spread = f" ±{np.std(values, ddof=1) / np.sqrt(len(values)):.4f}" if len(values) > 1 else ""
    return f"{np.mean(values):.4f}{spread}" + (" !" if worse(values, floor, name) else "")


def worse(values: Sequence[float], floor: Sequence[float], name: str) -> bool:
    """Return whether values are worse than the floor's by two standard errors of the difference."""
    if min(len(values), len(floor)) < 2:
        return False
    spread = sum(np.var(runs, ddof=1) / len(runs) for runs in (values, floor))
    return bool(_sign(name) * (np.mean(values) - np.mean(floor)) > 2 * np.sqrt(spread))


def _sign(name: str) -> int:
    return -1 if name in AUC else 1


def ranks_of(wanted: Iterable[Cell], kept: Kept) -> dict[tuple[str, str], list[int]]:
    """Return the ranks of each method and delta, over cells and measures that all methods have."""
    by_place: dict[tuple[str, ...], list[Cell]] = {}
    for cell in wanted:
        if cell.method != SECOND_SAMPLE:
            by_place.setdefault(cell.place, []).append(cell)
    ranks: dict[tuple[str, str], list[int]] = {}
    for rivals, name in product(by_place.values(), MEASURES):
        found = {cell: kept.values(cell, name) for cell in rivals}
        if len(rivals) == 1 or not all(found.values()):
            continue
        best_first = sorted(rivals, key=lambda cell: _sign(name) * np.mean(found[cell]))
        for rank, cell in enumerate(best_first, start=1):
            ranks.setdefault((cell.method, cell.delta), []).append(rank)
    return ranks


def show_ranks(wanted: Iterable[Cell], kept: Kept) -> None:
    """Print mean ranks; 1 is best."""
    for title, seen in (("tables that constants were chosen on", True), ("other tables", False)):
        ranks = ranks_of([cell for cell in wanted if (cell.table in CHOSEN_ON) is seen], kept)
        lines: list[dict[str, Any]] = [
            {"method": method, "delta": delta, "mean rank": float(np.mean(found)),
             "cells x measures": len(found)}
            for (method, delta), found in ranks.items()
        ]  # fmt: skip
        lines.sort(key=lambda line: line["mean rank"])
        show(lines, title)


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    options.add_argument(
        "--variants", nargs="+", help="whole, few, widened, shuffled, or rows: 2000"
    )
    options.add_argument("--epsilons", nargs="+", default=list(EPSILONS))
    options.add_argument("--deltas", nargs="+", default=list(DELTAS))
    options.add_argument(
        "--methods", nargs="+", choices=(*METHODS, CENTRAL, *MARGINAL_PEERS), default=list(COMPARED)
    )
    options.add_argument(
        "--peers", action="store_true", help="all of MST and AIM, too; a run takes up to 30 minutes"
    )
    options.add_argument("--target", default=EVERY, help="number of the column to predict, from 0")
    options.add_argument("--only-distances", action="store_true", help="train no classifiers")
    return options


def main(words: Sequence[str] | None = None) -> None:
    """Make the runs that are missing, print all of them, and the ranks."""
    arguments = parser().parse_args(words)
    console = Console(width=150)
    for table in arguments.tables:
        if not is_here(table):
            console.print(f"skipped: {table}.csv is not in {DATA}")
    wanted, kept = list(dict.fromkeys(cells(arguments))), Kept()
    for run, cell in product(range(arguments.runs), wanted):
        if run in kept.runs.get(cell, {}):
            continue
        try:
            found = measure(cell, run, classify=not arguments.only_distances)
        except PeerError as error:
            console.print(f"{cell} run {run}: {error}", highlight=False)
            continue
        kept.add(cell, run, found)
        told = " ".join(f"{name} {value:.4f}" for name, value in found.items())
        console.print(f"{cell} run {run}: {told}", highlight=False)
    show_cells(wanted, kept)
    show_ranks(wanted, kept)


if __name__ == "__main__":
    main()
