"""Do the intervals of `parley estimate` hold the truth as often as they say?

Repeated studies of three owners on rows of the simulated population. The truth is that of a very
large draw of the population, coded by the schema: where numbers lie inside a bin is not asked. For
every family of statistics the table says how often the 95 % interval held the truth, how often it
did where nothing was flagged, and how many of the statistics whose interval failed in more than one
study of ten were flagged.

Replicates of a mixture are fitted from the released model on. `--fresh` fits them from the start
that the release had, to compare; `--alone` looks at the replicates' intervals, without what the
published tables say.

    make bench-coverage
    python -m benchmarks.coverage --rows 3000 --epsilon 1 --delta 1e-5 --repeats 10 --tables 10
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from itertools import product

import pandas as pd

import parley
from benchmarks.measuring import Row, keep, show, spending
from common.analysis.estimates import Estimate, estimate
from common.analysis.replicates import Replicator
from common.analysis.statistics import CodedTable, Statistic, Values, mean, regression, share
from common.fitted.study import refit_study
from common.privacy.randomness import RandomSource
from common.schema import Codes, Schema
from parley.reader.fitted import FittedStudy
from parley.simulation.population import demo_schema_toml, make_population

ATTRIBUTES = ("age", "sex", "region", "education", "income", "smoker", "chronic_illness")
_OWNERS = 3
_TRUTH_ROWS = 1_000_000
_FAILS = 0.9  # an interval that holds the truth less often than this has failed


def difference(schema: Schema, column: str, by: str, value: str) -> Statistic:
    """Return the difference of a column's means between the rows of a group and the others."""
    code = schema.attributes[schema.position(by)].labels.index(value)

    def of(table: CodedTable) -> Values:
        inside = table.column(by) == code
        numbers = table.numbers(column)
        found = numbers[inside].mean() - numbers[~inside].mean()
        return {(f"{column}: {by} = {value} less others", None): float(found)}

    return Statistic(frozenset({column, by}), of)


def statistics(schema: Schema) -> Iterator[tuple[str, Statistic]]:
    """Yield what is estimated, by family."""
    for condition in ("sex = Female", "smoker = true", "age >= 65", "education >= Bachelor"):
        yield "proportions, one attribute", share(schema, condition)
    for condition in (
        "smoker = true and sex = Male", "chronic_illness = true and age >= 65",
        "education >= Bachelor and income >= 40000", "smoker = true and chronic_illness = true",
        "region = Capital and education >= Bachelor",
    ):  # fmt: skip
        yield "proportions, two attributes", share(schema, condition)
    for column in ("age", "income"):
        yield "means", mean(schema, column)
    for column, by, value in (
        ("age", "chronic_illness", "true"), ("income", "smoker", "true"),
        ("income", "region", "Capital"), ("income", "sex", "Female"),
        ("age", "education", "Secondary"),
    ):  # fmt: skip
        yield "differences of means", difference(schema, column, by, value)
    for formula in ("income ~ age", "age ~ chronic_illness", "income ~ smoker"):
        yield "linear regression", regression(schema, formula)
    for formula in ("chronic_illness ~ age", "smoker ~ sex", "chronic_illness ~ smoker"):
        yield "logistic regression", regression(schema, formula)


def _schema() -> Schema:
    whole = Schema.from_toml(demo_schema_toml())
    return Schema(tuple(each for each in whole.attributes if each.name in ATTRIBUTES))


def truths(schema: Schema) -> Mapping[tuple[str, str | None], float]:
    """Return the value of every statistic in the population."""
    people = make_population(_TRUTH_ROWS, seed=0)[list(ATTRIBUTES)]
    table = CodedTable(schema, schema.encode(people))
    return {key: value for _, each in statistics(schema) for key, value in each.of(table).items()}


@dataclass(frozen=True)
class Setting:
    """A kind of study."""

    method: str
    rows: int
    epsilon: str
    delta: str

    @property
    def words(self) -> str:
        """For people."""
        promise = f"epsilon {self.epsilon}" + (f", delta {self.delta}" if self.delta != "0" else "")
        return f"{self.method}, {self.rows:,} rows, {promise}"


def study(schema: Schema, setting: Setting, seed: int) -> FittedStudy:
    """Run one study on fresh people."""
    people = make_population(setting.rows, seed=1000 + seed)[list(ATTRIBUTES)]
    return fitted_to(people, schema, setting, seed)


def fitted_to(people: pd.DataFrame, schema: Schema, setting: Setting, seed: int) -> FittedStudy:
    """Run one study on these people."""
    owners = [people.iloc[place::_OWNERS] for place in range(_OWNERS)]
    return parley.simulate(
        owners,
        schema,
        epsilon=Fraction(setting.epsilon),
        delta=Fraction(setting.delta),
        method=setting.method,
        aggregation="clear",
        seed=seed,
    )


class FreshStart(FittedStudy):
    """An outcome whose replicates start where it started itself."""

    def refit(self, rows: Codes, source: RandomSource) -> FittedStudy:
        """Run the study's own script again, without the model that it came to."""
        model = refit_study(self.study, rows, source, self.missing)
        return replace(self, steps_and_model=(self.steps, model))


def fresh(fitted: FittedStudy) -> FreshStart:
    """Return an outcome with replicates from a fresh start."""
    return FreshStart(**{own.name: getattr(fitted, own.name) for own in fields(fitted)})


@dataclass
class Tally:
    """Of one statistic over all studies."""

    family: str
    held: int = 0
    asked: int = 0
    flagged: int = 0

    @property
    def fails(self) -> bool:
        """Whether its interval held the truth too seldom."""
        return self.held < _FAILS * self.asked

    @property
    def mostly_flagged(self) -> bool:
        """Whether half of its estimates or more were flagged."""
        return 2 * self.flagged >= self.asked


def run(
    setting: Setting, repeats: int, tables: int, *, from_fresh: bool = False, alone: bool = False
) -> dict[str, Tally]:
    """Repeated studies; a tally for each statistic."""
    schema = _schema()
    truth, tallies = truths(schema), dict[str, Tally]()
    for seed in range(repeats):
        fitted = study(schema, setting, seed)
        if from_fresh:
            fitted = fresh(fitted)
        made = Replicator(fitted, fitted.released, seed=seed, processes=1).run(tables)
        for family, statistic in statistics(schema):
            flagged = bool(fitted.concerns(statistic))
            measured = () if alone else fitted.diagnostics.measured
            for each in estimate(statistic, made, measured=measured, flagged=flagged):
                if not each.statistic.endswith("(intercept)"):
                    tally = tallies.setdefault(each.statistic, Tally(family))
                    _count(tally, each, truth[each.statistic, each.group])
    return tallies


def _count(tally: Tally, found: Estimate, truth: float) -> None:
    tally.asked += 1
    tally.flagged += found.flagged
    if found.low is not None and found.high is not None:
        tally.held += found.low <= truth <= found.high


def main() -> None:
    """Print the table and write it."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rows", type=int, nargs="*", default=[3_000, 30_000])
    options.add_argument("--epsilon", nargs="*", default=["0.5", "1", "4"])
    options.add_argument("--delta", nargs="*", default=["0", "1e-6"])
    options.add_argument("--method", nargs="*", default=["subn+"])
    options.add_argument("--repeats", type=int, default=30)
    options.add_argument("--tables", type=int, default=20)
    options.add_argument("--fresh", action="store_true", help="no start from the released model")
    options.add_argument("--alone", action="store_true", help="without the published tables")
    options.add_argument("--out", default="coverage", help="the name of the results")
    chosen = options.parse_args()
    lines = []
    for each in product(chosen.method, chosen.rows, chosen.epsilon, chosen.delta):
        setting = Setting(*each)
        with spending() as spent:
            found = run(
                setting, chosen.repeats, chosen.tables, from_fresh=chosen.fresh, alone=chosen.alone
            )
        families = _by_family(found)
        show(families, f"{setting.words}, {spent.seconds:.0f} s")
        show([{"failing": key, **asdict(own)} for key, own in found.items() if own.fails])
        lines += [asdict(setting) | line for line in families]
    keep(chosen.out, lines)


def _by_family(found: Mapping[str, Tally]) -> list[Row]:
    families = defaultdict(list)
    for tally in found.values():
        families[tally.family].append(tally)
    lines: list[Row] = []
    for family, tallies in families.items():
        failing = [t for t in tallies if t.fails]
        line: Row = {
            "family": family,
            "coverage": _coverage(tallies),
            "asked": sum(t.asked for t in tallies),
            "coverage_not_flagged": _coverage([t for t in tallies if not t.mostly_flagged]),
            "failing": len(failing),
            "failing_flagged": sum(t.mostly_flagged for t in failing),
        }
        lines.append(line)
    return lines


def _coverage(tallies: list[Tally]) -> float | None:
    asked = sum(t.asked for t in tallies)
    return sum(t.held for t in tallies) / asked if asked else None


if __name__ == "__main__":
    main()
