"""subn+ against AIM, MST, PrivBayes and the floor, on tables of a package.

    python -m benchmarks.subn_ratios --tables churn health --epsilons 1 --deltas 1e-9
    python -m benchmarks.subn_ratios --runs 0          prints what was measured

Each cell is a table at a promise. Methods see 80 % of the rows, ten owners' for subn+ and the
floor, pooled ones for the peers (`benchmarks.peers`: private-pgm's engine, AIM with its authors'
settings, under the same promise: one row replaced). Distances are to those rows; AUC, of gradient
boosting and of a logistic regression for the last four binary columns (of a made table, for its
label), on the other 20 %. A ratio below 1 is subn+'s advantage; the last table has geometric means
over tables, those that constants were chosen on, those that were looked at and those that were held
out apart. Finished runs are kept in benchmarks/results/subn-ratios.jsonl.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from rich.console import Console

from benchmarks.measuring import RESULTS, Row, show
from benchmarks.package_tables import (
    CHOSEN,
    HELD_OUT,
    LOOKED_AT,
    MADE,
    made_table,
    package_table,
)
from benchmarks.peers import MARGINAL_PEERS, PeerError, peer_rows
from benchmarks.subn_cells import distances, target_accuracies
from benchmarks.subn_data import setting_of, shuffled, split_rows
from benchmarks.subn_methods import CENTRAL, FLOOR, can_promise, synthetic_rows
from common.schema.codes import Codes

CACHE = RESULTS / "subn-ratios.jsonl"
OWN = "subn+"
OWNERS = 10
EPSILONS = ("0.3", "1", "3", "10")
DELTAS = ("0", "1e-9")
SHUFFLED = "shuffled "
REAL = "real rows"  # a release without privacy: how well classifiers can do
COMPARED = (OWN, FLOOR, CENTRAL, *MARGINAL_PEERS, REAL)
DISTANCES = ("tvd2", "tvd3")
_HELD_BACK = 5  # one row in so many
_MOST_TARGETS = 4


@dataclass(frozen=True)
class Cell:
    """One run of one method on one table at one promise."""

    table: str
    epsilon: str
    delta: str
    method: str
    run: int = 0


def rows_of(table: str) -> Codes:
    """Return a table by its name; `shuffled NAME` has independent columns."""
    if table.startswith(SHUFFLED):
        return shuffled(rows_of(table.removeprefix(SHUFFLED)))
    return made_table(table) if table in MADE else package_table(table)


def measure(cell: Cell) -> dict[str, float]:
    """Make a release of most rows; compare it with them, and classifiers on the others."""
    codes = rows_of(cell.table)
    order = np.random.default_rng(100 + cell.run).permutation(codes.rows)
    cut = codes.rows // _HELD_BACK
    held, real = (codes.take(np.sort(part)) for part in (order[:cut], order[cut:]))
    made = release(cell, real)
    found = distances(real, made, cell.run)
    most = 1 if cell.table in MADE else _MOST_TARGETS
    targets = [a for a, size in enumerate(codes.sizes) if size == 2][-most:]
    return found | target_accuracies(made, held, targets)


def release(cell: Cell, real: Codes) -> Codes:
    """Return synthetic rows of a method."""
    if cell.method == REAL:
        return real
    if cell.method in MARGINAL_PEERS:
        promise = {"epsilon": cell.epsilon, "delta": cell.delta}
        return peer_rows(real, cell.method, seed=cell.run, **promise)
    return synthetic_rows(
        setting_of(cell.table, real),
        split_rows(real, 1 if cell.method == CENTRAL else OWNERS, "random", seed=cell.run),
        cell.method,
        epsilon=Fraction(cell.epsilon),
        delta=Fraction(cell.delta),
        seed=f"{cell}",
    )


def kept() -> dict[Cell, dict[str, float]]:
    """Return every finished run."""
    lines = CACHE.read_text().splitlines() if CACHE.is_file() else []
    entries = map(json.loads, lines)
    return {Cell(**entry["cell"]): entry["values"] for entry in entries}


def ratios(found: dict[Cell, dict[str, float]]) -> Iterator[Row]:
    """Yield subn+ over each other method, cell by cell, and the difference of AUC."""
    for (table, epsilon, delta, method), pairs in _pairs(found).items():
        line: Row = {"table": table, "epsilon": epsilon, "delta": delta, "against": method}
        for name in DISTANCES if method != REAL else ():
            line[name] = float(np.exp(np.mean([np.log(a[name] / b[name]) for a, b in pairs])))
        for name in ("boosting", "logistic"):
            gains = [a[name] - b[name] for a, b in pairs if name in a and name in b]
            line[f"AUC, {name}"] = float(np.mean(gains)) if gains else ""
        yield line | {"runs": len(pairs)}


def _pairs(
    found: dict[Cell, dict[str, float]],
) -> dict[tuple[str, str, str, str], list[tuple[dict[str, float], dict[str, float]]]]:
    pairs: dict[tuple[str, str, str, str], list[tuple[dict[str, float], dict[str, float]]]] = {}
    for cell, values in found.items():
        own = found.get(Cell(cell.table, cell.epsilon, cell.delta, OWN, cell.run))
        if cell.method != OWN and own is not None:
            place = (cell.table, cell.epsilon, cell.delta, cell.method)
            pairs.setdefault(place, []).append((own, values))
    return pairs


def means(lines: Sequence[Row]) -> Iterator[Row]:
    """Yield geometric means over tables, of those that were chosen on and of the others."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for line in (line for line in lines if line["against"] != REAL):
        table = str(line["table"])
        kind = "looked at" if table in LOOKED_AT else "chosen on"
        kind = "held out" if table in HELD_OUT else kind
        place = (kind, *(str(line[key]) for key in ("epsilon", "delta", "against")))
        groups.setdefault(place, []).append(line)
    for (kind, epsilon, delta, method), own in sorted(groups.items()):
        found: Row = {"tables": kind, "epsilon": epsilon, "delta": delta, "against": method}
        for name in DISTANCES:
            values = [float(str(line[name])) for line in own]
            found[name] = float(np.exp(np.mean(np.log(values))))
            found[f"worst {name}"] = max(values)
        yield found | {"number": len(own)}


def main() -> None:
    """Run what is asked for and missing; print ratios."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--tables", nargs="+", default=[*HELD_OUT, *LOOKED_AT, *CHOSEN, *MADE])
    options.add_argument("--epsilons", nargs="+", default=list(EPSILONS))
    options.add_argument("--deltas", nargs="+", default=list(DELTAS))
    options.add_argument("--methods", nargs="+", choices=COMPARED, default=list(COMPARED))
    options.add_argument("--runs", type=int, default=1)
    asked = options.parse_args()
    console, found = Console(width=200), kept()
    places = product(asked.tables, asked.epsilons, asked.deltas, asked.methods, range(asked.runs))
    for cell in (Cell(*place) for place in places):
        if cell in found or not (cell.method == REAL or can_promise(cell.method, cell.delta)):
            continue
        try:
            found[cell] = measure(cell)
        except PeerError as error:
            console.print(f"{cell}: {error}", highlight=False)
            continue
        RESULTS.mkdir(exist_ok=True)
        with CACHE.open("a") as file:
            file.write(json.dumps({"cell": asdict(cell), "values": found[cell]}) + "\n")
        told = " ".join(f"{name} {value:.4f}" for name, value in found[cell].items())
        console.print(f"{cell}: {told}", highlight=False)
    lines = [line for line in ratios(found) if line["table"] in asked.tables]
    show(lines, "subn+ over the other: below 1 is better; AUC: above 0 is better")
    show(list(means(lines)), "geometric means")


if __name__ == "__main__":
    main()
