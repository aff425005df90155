"""How often does `parley estimate` find a difference where there is none?

Repeated studies of three owners on two populations in which something is known to be nothing:

* *equal groups*: the simulated people, each given one of two arms by a coin. No column depends on
  the arm; all other relations are as they were.
* *shuffled columns*: the same people with every column shuffled by itself. No column depends on
  any other.

A 95 % interval that does not hold 0 says that there is a difference: it should in 5 % of studies.
The last lines are real differences of the same people: a test that never finds anything would make
no mistake of the first kind. Pooled intervals (`parley.pool`) are judged beside the estimates.

    make bench-type1
    python -m benchmarks.type1 --rows 3000 --epsilon 1 --delta 0 --repeats 10
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import product

import numpy as np
import pandas as pd

from benchmarks.coverage import ATTRIBUTES, Setting, difference, fitted_to
from benchmarks.measuring import Row, keep, show, spending
from common.analysis.estimates import Estimate, estimate, pool
from common.analysis.replicates import Replicates, Replicator, shuffled
from common.analysis.statistics import CodedTable, Statistic, regression
from common.schema import Schema
from parley.simulation.population import demo_schema_toml, make_population

_ARM = '[[attribute]]\nname = "arm"\nkind = "categorical"\nvalues = ["control", "treated"]\n'
_WANTED = 0.07  # the most errors of the first kind that we accept at the 5 % level


def schema() -> Schema:
    """Return the schema of the people, with an arm."""
    whole = Schema.from_toml(demo_schema_toml() + "\n" + _ARM)
    return Schema(tuple(each for each in whole.attributes if each.name in (*ATTRIBUTES, "arm")))


def equal_groups(rows: int, seed: int) -> pd.DataFrame:
    """Draw people, and an arm for each by a coin."""
    people = make_population(rows, seed=seed)[list(ATTRIBUTES)]
    coins = np.random.default_rng((seed, 1)).random(rows) < 0.5
    return people.assign(arm=np.where(coins, "treated", "control"))


def shuffled_columns(rows: int, seed: int) -> pd.DataFrame:
    """Draw people, and shuffle each of their columns by itself."""
    people, source = equal_groups(rows, seed), np.random.default_rng((seed, 2))
    columns = {name: people[name].to_numpy()[source.permutation(rows)] for name in people}
    return pd.DataFrame(columns)


def of_the_arms(domains: Schema) -> Iterator[Statistic]:
    """Yield differences between the arms, one for each column: all are 0."""
    yield difference(domains, "age", "arm", "treated")
    yield difference(domains, "smoker", "arm", "treated")
    yield regression(domains, "income ~ arm")
    yield regression(domains, "chronic_illness ~ arm")


def of_columns(domains: Schema) -> Iterator[Statistic]:
    """Yield relations of two columns, one for each pair: all are 0 where columns are shuffled."""
    yield difference(domains, "age", "education", "Secondary")
    yield difference(domains, "income", "smoker", "true")
    yield difference(domains, "income", "region", "Capital")
    yield difference(domains, "smoker", "sex", "Male")
    yield regression(domains, "income ~ age")
    yield regression(domains, "chronic_illness ~ age")
    yield regression(domains, "chronic_illness ~ smoker")


@dataclass(frozen=True)
class Question:
    """A population, and what is asked of it."""

    words: str
    people: Callable[[int, int], pd.DataFrame]
    asked: Callable[[Schema], Iterator[Statistic]]
    nothing: bool = True  # whether every difference is 0


QUESTIONS = (
    Question("equal groups", equal_groups, of_the_arms),
    Question("shuffled columns", shuffled_columns, of_columns),
    Question("real differences", equal_groups, of_columns, nothing=False),
)


@dataclass
class Tally:
    """Of one question over all studies."""

    asked: int = 0
    found: int = 0  # intervals without 0
    pooled: int = 0  # pooled intervals without 0
    clear: int = 0  # estimates that were not flagged
    clear_found: int = 0


def run(setting: Setting, repeats: int, tables: int) -> Mapping[str, Tally]:
    """Repeat studies; count, by question, the intervals that do not hold 0."""
    domains, tallies = schema(), defaultdict[str, Tally](Tally)
    for seed, people in product(range(repeats), (equal_groups, shuffled_columns)):
        fitted = fitted_to(people(setting.rows, 5000 + seed), domains, setting, seed)
        made = Replicator(fitted, fitted.released, seed=seed, processes=1).run(tables)
        for question in QUESTIONS:
            if question.people is people:
                for statistic in question.asked(domains):
                    pooled = pooled_values(statistic, made)
                    found = estimate(
                        statistic,
                        made,
                        measured=fitted.diagnostics.measured,
                        flagged=bool(fitted.concerns(statistic)),
                    )
                    count(tallies[question.words], found, pooled)
    return tallies


def count(
    tally: Tally, estimates: Iterable[Estimate], pooled: Mapping[str, tuple[float, float]]
) -> None:
    """Count the intervals of a statistic, as `parley estimate` prints them and pooled."""
    for each in estimates:
        if each.statistic.endswith("(intercept)") or each.low is None or each.high is None:
            continue
        found = not each.low <= 0 <= each.high
        low, high = pooled[each.statistic]
        tally.asked += 1
        tally.found += found
        tally.pooled += not low <= 0 <= high
        tally.clear += not each.flagged
        tally.clear_found += found and not each.flagged


def pooled_values(statistic: Statistic, made: Replicates) -> dict[str, tuple[float, float]]:
    """Return the pooled interval of every value of a statistic, corrected like an estimate."""
    values = [statistic.of(CodedTable(made.schema, codes)) for codes in made.tables]
    model = statistic.of(CodedTable(made.schema, made.reference))
    apart = statistic.of(CodedTable(made.schema, shuffled(made.reference)))
    intervals = {}
    for key in model:
        own = [each[key] for each in values if np.isfinite(each.get(key, np.nan))]
        if len(own) > 1:
            found = pool(own, model=model[key], independent=apart.get(key))
            intervals[key[0]] = (found.low, found.high)
    return intervals


def main() -> None:
    """Print the table and write it."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rows", type=int, nargs="*", default=[3_000, 30_000])
    options.add_argument("--epsilon", nargs="*", default=["0.3", "1", "3"])
    options.add_argument("--delta", nargs="*", default=["0", "1e-6"])
    options.add_argument("--method", nargs="*", default=["subn+"])
    options.add_argument("--repeats", type=int, default=30)
    options.add_argument("--tables", type=int, default=20)
    options.add_argument("--out", default="type1", help="the name of the results")
    chosen = options.parse_args()
    lines = []
    for each in product(chosen.method, chosen.rows, chosen.epsilon, chosen.delta):
        setting = Setting(*each)
        with spending() as spent:
            tallies = run(setting, chosen.repeats, chosen.tables)
        rows = [_line(question, tallies[question.words]) for question in QUESTIONS]
        show(rows, f"{setting.words}, {spent.seconds:.0f} s")
        lines += [asdict(setting) | row for row in rows]
    keep(chosen.out, lines)


def _line(question: Question, tally: Tally) -> Row:
    rate = tally.found / max(1, tally.asked)
    return {
        "asked": question.words,
        "intervals": tally.asked,
        "found": rate,
        "found_not_flagged": tally.clear_found / tally.clear if tally.clear else None,
        "not_flagged": tally.clear,
        "pooled": tally.pooled / max(1, tally.asked),
        "too_often": question.nothing and rate > _WANTED,
    }


if __name__ == "__main__":
    main()
