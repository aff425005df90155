"""What rules, falling tails and hierarchies are worth in a release, each against doing without.

    python -m benchmarks.schema_features rules [--rows 20000] [--runs 3] [--methods subn+ ...]
    python -m benchmarks.schema_features tails [--runs 5]
    python -m benchmarks.schema_features descent [--methods floor]

`rules`: simulated people with skip patterns (children have no job, a person without a job works no
hours and earns no wage, a stay ends after it begins). The figures are the distance of 2-way
marginals with and without the rules in the schema, and the released rows that break a rule without.

`tails`: amounts with long tails (debts, most of them 0, and incomes) beside ages, two peaks and two
small columns. The figures are the relative errors of released means and the distances of 1-way and
2-way marginals, with and without margins whose tails fall outwards.

`descent`: codes of diagnoses (20 chapters, 10 blocks in each, 10 categories in each block and 7
codes in each category: 14,000 values, a few of them frequent) beside five small columns. The
figures are the distances of the codes' distribution at every level of the hierarchy, when counts
descend it, when a schema cuts at one level and spreads evenly below, with a histogram of all codes,
and with a descent below which values are drawn by public frequencies: those of a table ten times as
large, from a population in which every code is up to three times as frequent or as rare.

Distances are mean total variation distances from the real rows. Studies have three owners.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import product
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import parley
from benchmarks.measuring import (
    Figures,
    Measured,
    averaged,
    category,
    keep,
    mean_distance,
    number,
    released,
    schema_of,
    show,
    sweep,
)
from common.analysis.distances import marginal_sets
from common.bayes import postprocessing
from common.schema import Codes, Schema

Column = NDArray[np.int64]
_JOBS = ("none", "farm", "office", "trade", "care", "transport")
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
_DEBTS = [0, 1, *(round(100 * 10 ** (step / 5)) for step in range(21))]
_MEANS = ("debt", "income", "age", "score")
FANS = (20, 10, 10, 7)
LEVELS = tuple(int(np.prod(FANS[: depth + 1])) for depth in range(len(FANS)))


@dataclass(frozen=True)
class Options:
    """What is run: rows of a table, methods, and repetitions."""

    rows: int
    methods: tuple[str, ...]
    runs: int


@dataclass(frozen=True)
class Feature:
    """A benchmark of this module, with the options it has unless told otherwise."""

    measure: Callable[[Options], list[dict[str, Any]]]
    methods: tuple[str, ...]
    runs: int


def people_with_jobs(rows: int, seed: int) -> pd.DataFrame:
    """Draw rows that keep to the rules."""
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


@cache
def schema_with_rules() -> Schema:
    """Return the schema of the people with jobs."""
    return schema_of(
        number("age", high=99, bins=20),
        number("begin", high=364, bins=12),
        number("end", high=364, bins=12),
        category("sex", ["F", "M"]),
        category("job", _JOBS),
        'name = "married", kind = "boolean"',
        'name = "hours", kind = "integer", edges = [0, 1, 10, 20, 30, 40, 50, 60]',
        'name = "wage", kind = "integer", edges = [0, 1, 10, 20, 40, 80, 200]',
        more=_RULES,
    )


def released_codes(method: str, table: pd.DataFrame, own: Schema, epsilon: str, seed: int) -> Codes:
    """Return the synthetic rows of a release."""
    if method == "privbayes":
        return parley.PrivBayes(epsilon=epsilon, seed=seed).fit(table, own).sample_codes()
    return released(table, own, method=method, epsilon=epsilon, seed=seed).sample_codes()


def rules(options: Options) -> list[dict[str, Any]]:
    """Compare releases with and without rules in the schema."""
    ruled = schema_with_rules()
    pairs = marginal_sets(len(ruled.names), order=2)

    def measure(kind: str, seed: int) -> Measured:
        table = people_with_jobs(options.rows, seed)
        real = ruled.encode(table)
        own = ruled if kind == "with" else ruled.without_rules()
        for method, epsilon in product(options.methods, ("0.1", "0.5", "2")):
            made = released_codes(method, table, own, epsilon, seed)
            labels = {"method": method, "epsilon": epsilon}
            yield labels | {"figure": "2-way distance"}, mean_distance(real, made, pairs)
            broken = 1 - float(ruled.possible.holds(made).mean())
            yield labels | {"figure": "rows that break a rule"}, broken

    return with_and_without(measure, options.runs)


def with_and_without(measure: Callable[[str, int], Measured], runs: int) -> list[dict[str, Any]]:
    """Measure releases without a feature and with it, and add the ratio."""
    lines = sweep({"without": "without", "with": "with"}, runs, measure)
    return [line | {"ratio": line["with"] / line["without"]} for line in lines]


def people_with_debts(rows: int, seed: int) -> pd.DataFrame:
    """Draw rows in which people who earn more owe more."""
    rng = np.random.default_rng(seed)
    income = rng.lognormal(10, 0.8, rows)
    peaks = np.where(rng.random(rows) < 0.95, rng.normal(20, 5, rows), rng.normal(90, 3, rows))
    return pd.DataFrame(
        {
            "debt": np.where(rng.random(rows) < 0.8, 0, income * rng.lognormal(-1, 1, rows)),
            "income": income,
            "age": rng.integers(0, 100, rows),
            "score": peaks.clip(0, 99),
            "x": rng.choice(list("abc"), rows),
            "y": np.where(income > 22_000, "a", rng.choice(list("abc"), rows)),
        }
    ).astype(dict.fromkeys(_MEANS, int))


@cache
def schema_of_amounts() -> Schema:
    """Return the schema of the people with debts."""
    numbers = (("income", 999_999, 50), ("age", 99, 20), ("score", 99, 50))
    return schema_of(
        f'name = "debt", kind = "integer", clip = true, edges = {_DEBTS}',
        *(f"{number(name, high=high, bins=bins)}, clip = true" for name, high, bins in numbers),
        *(category(name, "abc") for name in ("x", "y")),
    )


@contextmanager
def _tails(*, fall: bool) -> Iterator[None]:
    before = postprocessing.WITHIN
    postprocessing.WITHIN = before if fall else -np.inf
    try:
        yield
    finally:
        postprocessing.WITHIN = before


def tails(options: Options) -> list[dict[str, Any]]:
    """Compare releases with and without tails that fall outwards."""
    schema = schema_of_amounts()

    def measure(kind: str, seed: int) -> Measured:
        table = people_with_debts(options.rows, seed)
        real = schema.encode(table)
        for method, epsilon in product(options.methods, ("0.5", "2")):
            with _tails(fall=kind == "with"):
                study = released(table, schema, method=method, epsilon=epsilon, seed=seed)
                made = study.sample()
            codes, labels = schema.encode(made), {"method": method, "epsilon": epsilon}
            for name in _MEANS:
                off = abs(float(made[name].mean()) / float(table[name].mean()) - 1)
                yield labels | {"figure": f"error of mean {name}"}, off
            for order in (1, 2):
                distance = mean_distance(real, codes, marginal_sets(real.width, order=order))
                yield labels | {"figure": f"{order}-way distance"}, distance

    return with_and_without(measure, options.runs)


def code(number: int, level: int) -> str:
    """Return the name of a node of the hierarchy."""
    return f"{'CBKD'[level]}{number:05d}"


def _tree(level: int, numbers: range) -> str:
    """Write the groups of a level as an inline table."""
    if level == len(FANS) - 1:
        return json.dumps([code(each, level) for each in numbers])
    fan = FANS[level + 1]
    groups = (
        f"{code(each, level)} = {_tree(level + 1, range(each * fan, (each + 1) * fan))}"
        for each in numbers
    )
    return f"{{ {', '.join(groups)} }}"


def schema_of_codes(level: int, *, tree: bool, frequencies: Column | None = None) -> Schema:
    """Return the schema of the codes at a level, and of five small columns."""
    own = category("code", [code(number, level) for number in range(LEVELS[level])])
    if tree:
        own += f", hierarchy = {_tree(0, range(FANS[0]))}"
    if frequencies is not None:
        own += f", frequencies = {frequencies.tolist()}"
    return schema_of(own, *(category(f"x{column}", "abcd") for column in range(5)))


def people_with_codes(rows: int, seed: int) -> tuple[Column, pd.DataFrame, Column]:
    """Draw codes whose frequencies fall like Zipf's law at every level, and columns that follow.

    Last come the frequencies of the codes in another, larger population.
    """
    rng = np.random.default_rng(seed)
    weights = np.ones(1)
    for fan in FANS:
        split = np.array([rng.permutation(1 / np.arange(1, fan + 1) ** 1.5) for _ in weights])
        weights = (weights[:, None] * split / split.sum(axis=1, keepdims=True)).ravel()
    codes = rng.choice(len(weights), rows, p=weights)
    chapter = codes // (LEVELS[-1] // LEVELS[0])
    columns = {}
    for column in range(5):
        linked = (chapter * (column + 3)) % 4
        drawn = np.where(rng.random(rows) < 0.6, linked, rng.integers(0, 4, rows))
        columns[f"x{column}"] = np.array(list("abcd"))[drawn]
    others = weights * 3 ** rng.uniform(-1, 1, len(weights))
    return codes, pd.DataFrame(columns), rng.multinomial(10 * rows, others / others.sum())


def distances_by_level(real: Column, made: Column) -> dict[str, float]:
    """Return the total variation distance at each level."""
    found = {}
    for level, size in enumerate(LEVELS, start=1):
        width = LEVELS[-1] // size
        both = [np.bincount(each // width, minlength=size) / len(each) for each in (real, made)]
        found[f"level {level}"] = float(np.abs(both[0] - both[1]).sum() / 2)
    return found


def _ways(rows: int, seed: int) -> Iterator[tuple[str, int, Schema, pd.DataFrame]]:
    """Yield each way to release codes: its name, level and schema, and the table it is given."""
    codes, others, public = people_with_codes(rows, seed)
    last = len(LEVELS) - 1
    for level in range(len(LEVELS)):
        seen = codes // (LEVELS[-1] // LEVELS[level])
        table = others.assign(code=[code(each, level) for each in seen])
        name = "histogram" if level == last else f"cut at level {level + 1}"
        yield name, level, schema_of_codes(level, tree=False), table
    for name, own in (("descent", None), ("descent, public frequencies", public)):
        yield name, last, schema_of_codes(last, tree=True, frequencies=own), table


def descent(options: Options) -> list[dict[str, Any]]:
    """Compare a descent of the hierarchy with cuts at its levels."""

    def measure(seed: int) -> Figures:
        real = people_with_codes(options.rows, seed)[0]
        for method, epsilon in product(options.methods, ("0.5", "2")):
            for way, level, own, table in _ways(options.rows, seed):
                made = released_codes(method, table, own, epsilon, seed).columns[0]
                width = LEVELS[-1] // LEVELS[level]
                below = np.random.default_rng(seed).integers(0, width, len(made))
                found = distances_by_level(real, np.asarray(made, np.int64) * width + below)
                labels = {"method": method, "epsilon": epsilon, "way": way}
                for heading, distance in (found | {"mean": fmean(found.values())}).items():
                    yield labels, heading, distance

    lines = averaged(options.runs, measure)
    own = {(ln["method"], ln["epsilon"]): ln["mean"] for ln in lines if ln["way"] == "descent"}
    return [
        line | {"descent's ratio": own[line["method"], line["epsilon"]] / line["mean"]}
        for line in lines
    ]


FEATURES = {
    "rules": Feature(rules, ("subn+", "dp-subn", "floor", "privbayes"), runs=3),
    "tails": Feature(tails, ("floor", "subn+"), runs=5),
    "descent": Feature(descent, ("floor", "subn+"), runs=3),
}


def main() -> None:
    """Measure one feature, print the table, and keep it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("feature", choices=FEATURES)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--runs", type=int)
    parser.add_argument("--methods", nargs="+")
    given = parser.parse_args()
    feature = FEATURES[given.feature]
    options = Options(
        rows=given.rows,
        methods=tuple(given.methods or feature.methods),
        runs=given.runs or feature.runs,
    )
    lines = feature.measure(options)
    show(lines, f"{given.feature}: {options.rows:,} rows, {options.runs} runs")
    keep(given.feature, {**vars(given), "measured": lines})


if __name__ == "__main__":
    main()
