"""Many columns: `python -m benchmarks.wide [--rows 100000] [--only binary [--columns 60]]`.

Studies of three owners over 200 binary columns and over 60 mixed ones, with the cryptography of a
deployment: how long they take, and how far 2-way marginals are from the true ones, against the
floor (a histogram per column) in the same run. "On edges" are the pairs that depend on each other
by construction; with `--shuffled` columns none does.

The population is a random sparse Bayesian network. Every column has at most two parents among the
eight before it, so what a synthetic table should have learnt is known. Domains are all binary, or
mixed: yes or no, words, and binned numbers, of 2 to 100 values. A column's distribution bends
smoothly with its parents' values, by a strength of its own, so that some pairs depend on each other
strongly and most not at all.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import (
    Row,
    category,
    in_own_process,
    keep,
    mean_distance,
    number,
    schema_of,
    show,
    spending,
)
from benchmarks.subn_data import shuffled
from benchmarks.subn_methods import agreed, identities_of
from common.crypto.sums.plan import Aggregation
from common.methods.registry import run_of
from common.privacy.randomness import OsRandomSource
from common.schema import Codes, Schema
from parley.simulation.in_process import run_study

RUNS = (
    ("floor", "masked"), ("subn+", "masked"), ("subn+", "paillier"), ("dp-subn", "masked"),
    ("dp-subn", "paillier"),
)  # fmt: skip
_OWNERS = 3
_MOST_PAIRS = 1_500
MIXED_SIZES = (2, 2, 3, 4, 5, 7, 10, 16, 32, 64, 100)
_WINDOW = 8
_ROWS_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class WidePopulation:
    """The network that rows are drawn from.

    Attributes:
        sizes: the domain size of every column.
        parents: of every column, all before it.
    """

    sizes: tuple[int, ...]
    parents: tuple[tuple[int, ...], ...]
    _margins: tuple[NDArray[np.float64], ...]  # logits, shape (size,)
    _bends: tuple[NDArray[np.float64], ...]  # per column: strength of each parent

    @property
    def schema(self) -> Schema:
        """The public domains: of three columns of more than six values one is of words."""
        return schema_of(
            *(
                number(f"c{position}", high=size, bins=size, kind="real")
                if size > 6 and position % 3
                else category(f"c{position}", [f"value {code}" for code in range(size)])
                for position, size in enumerate(self.sizes)
            )
        )

    def rows(self, count: int, seed: int) -> Codes:
        """Draw so many rows; the same seed makes the same rows."""
        rng = np.random.default_rng(seed)
        columns = [np.empty(count, dtype=np.int64) for _ in self.sizes]
        for start in range(0, count, _ROWS_AT_ONCE):
            here = slice(start, min(start + _ROWS_AT_ONCE, count))
            for column, values in enumerate(columns):
                logits = np.broadcast_to(
                    self._margins[column], (here.stop - start, self.sizes[column])
                ).copy()
                for parent, bend in zip(self.parents[column], self._bends[column], strict=True):
                    logits += bend * np.outer(
                        _scores(self.sizes[parent])[columns[parent][here]],
                        _scores(self.sizes[column]),
                    )
                # The largest of logits plus Gumbel noise is a draw from their softmax.
                values[here] = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
        return Codes.from_columns(columns, self.sizes)


def wide_population(sizes: tuple[int, ...], seed: int) -> WidePopulation:
    """Draw a random network over columns of these sizes."""
    rng = np.random.default_rng(seed)
    parents, margins, bends = [], [], []
    for column, size in enumerate(sizes):
        before = range(max(0, column - _WINDOW), column)
        chosen = rng.choice(before, size=min(len(before), int(rng.integers(0, 3))), replace=False)
        parents.append(tuple(sorted(map(int, chosen))))
        margins.append(rng.normal(0.0, 0.7, size))
        bends.append(rng.choice([-1.0, 1.0], len(chosen)) * rng.uniform(0.5, 2.0, len(chosen)))
    return WidePopulation(tuple(sizes), tuple(parents), tuple(margins), tuple(bends))


def mixed_sizes(columns: int) -> tuple[int, ...]:
    """Draw small and large domains at random, as the columns of a questionnaire are."""
    return tuple(int(size) for size in np.random.default_rng(0).choice(MIXED_SIZES, columns))


def _scores(size: int) -> NDArray[np.float64]:
    """Place the values of a domain on a scale from -1 to 1."""
    return np.linspace(-1.0, 1.0, size)


TABLES = {"binary": 200, "mixed": 60}


def run(table: str, method: str, aggregation: str, options: argparse.Namespace) -> Row:
    """Run one study from rows to rows."""
    columns: int = options.columns or TABLES[table]
    sizes = mixed_sizes(columns) if table == "mixed" else (2,) * columns
    rows: int = options.rows
    population = wide_population(sizes, seed=1)
    real = population.rows(rows, seed=2)
    real = shuffled(real) if options.shuffled else real
    parts = np.array_split(np.arange(rows), _OWNERS)
    tables = {f"owner {i}": real.take(part) for i, part in enumerate(parts)}
    source = OsRandomSource()
    terms = {"method": method, "aggregation": Aggregation(aggregation)}
    study = agreed(population.schema, tables, epsilon=Fraction(options.epsilon), **terms)
    with spending() as spent:
        done = run_study(study, run_of, tables, identities_of(tables), source=source)
        made = done.model.sample(rows, source)
    sent = sum(phase.sent.total() for phase in done.traffic.values())
    line: Row = {"table": table, "method": method, "aggregation": aggregation, "rows": rows}
    line |= {**asdict(spent), "cells": sent // (8 * _OWNERS)}
    return line | distances(population, real, made)


def distances(population: WidePopulation, real: Codes, made: Codes) -> Row:
    """Return those of columns, of a sample of all pairs, and of pairs that depend on each other."""
    width = len(population.sizes)
    pairs = list(combinations(range(width), 2))
    chosen = np.random.default_rng(0).choice(
        len(pairs), min(_MOST_PAIRS, len(pairs)), replace=False
    )
    edges = [(parent, child) for child, own in enumerate(population.parents) for parent in own]
    return {
        "one_way": mean_distance(real, made, [(column,) for column in range(width)]),
        "two_way": mean_distance(real, made, [pairs[i] for i in chosen]),
        "on_edges": mean_distance(real, made, edges),
    }


def main() -> None:
    """Run every study in a process of its own, so that its memory is its own."""
    parser = argparse.ArgumentParser(description="many columns")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--only", choices=sorted(TABLES))
    parser.add_argument("--columns", type=int, help="200 binary or 60 mixed ones by default")
    parser.add_argument("--shuffled", action="store_true", help="columns without dependence")
    options = parser.parse_args()
    done = []
    for table in [options.only] if options.only else TABLES:
        for method, aggregation in RUNS:
            done.append(in_own_process(run, table, method, aggregation, options))
            print(done[-1], flush=True)
    show(done, f"{options.rows:,} rows of {_OWNERS} owners")
    keep("wide", done)


if __name__ == "__main__":
    main()
