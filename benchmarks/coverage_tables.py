"""Do intervals hold what a real table says, whether or not the release measured it?

One or a few studies of three owners on rows of research tables, whose columns are codes and count
as numbers. The truth is the table itself. The statistics were fixed before: for every column its
mean and a share; for pairs drawn at random a correlation, a share, a mean by group and a slope; for
triples drawn at random a slope with two terms and a share. A class is how many columns a statistic
has, and whether all its pairs were counted together by the release.

`alone` is the coverage of the model's interval, without the published tables: what intervals were
before, and what ordinary replicates give.

    python -m benchmarks.coverage_tables --rows 4000 --pairs 16 --repeats 1 --tables 10
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, product
from statistics import median

import numpy as np

import parley
from benchmarks.measuring import Row, keep, number, schema_of, show, spending
from benchmarks.package_tables import CHOSEN, LOOKED_AT, package_table
from benchmarks.research_tables import read_codes
from common.analysis.estimates import estimate, of_mean
from common.analysis.means import known_means
from common.analysis.replicates import Replicator
from common.analysis.statistics import (
    CodedTable,
    Statistic,
    correlation,
    mean,
    regression,
    share,
)
from common.schema import Codes, Schema
from parley.reader.fitted import FittedStudy

_OWNERS = 3
_TABLES = ("adult", "br2000", "titanic")


def table_of(name: str, rows: int) -> tuple[Schema, Codes]:
    """Return rows of a research or a package's table, drawn once, with its codes as numbers."""
    packaged = name in {**CHOSEN, **LOOKED_AT}
    codes = package_table(name) if packaged else read_codes(name)[0]
    used = [place for place, size in enumerate(codes.sizes) if size > 1]
    places = np.random.default_rng(0).permutation(codes.rows)[:rows]
    columns = [codes.columns[place][places] for place in used]
    sizes = [codes.sizes[place] for place in used]
    lines = (number(f"c{place}", high=size - 1, bins=size) for place, size in enumerate(sizes))
    return schema_of(*lines), Codes.from_columns(columns, sizes)


def _above(schema: Schema, codes: Codes, name: str) -> str:
    """Return a condition that about half of the rows satisfy, and some do not."""
    column = codes.columns[schema.position(name)]
    middle = min(int(np.median(column)), int(column.max()) - 1)
    return f"{name} > {max(middle, 0)}"


def statistics(schema: Schema, codes: Codes, pairs: int) -> Iterator[Statistic]:
    """Yield what is estimated."""
    rng = np.random.default_rng(1)
    for name in schema.names:
        yield mean(schema, name)
        yield share(schema, _above(schema, codes, name))
    every = list(combinations(schema.names, 2))
    for place in rng.permutation(len(every))[:pairs]:
        a, b = every[place]
        yield correlation(schema, f"{a}, {b}")
        yield share(schema, f"{_above(schema, codes, a)} and {_above(schema, codes, b)}")
        yield mean(schema, a, where=_above(schema, codes, b))
        yield regression(schema, f"{a} ~ {b}")
    for _ in range(pairs // 4):
        a, b, c = rng.choice(schema.names, 3, replace=False)
        yield regression(schema, f"{a} ~ {b} + {c}")
        yield share(schema, " and ".join(_above(schema, codes, name) for name in (a, b, c)))


def study(schema: Schema, codes: Codes, epsilon: str, delta: str, seed: int) -> FittedStudy:
    people = CodedTable(schema, codes).frame
    return parley.simulate(
        [people.iloc[place::_OWNERS] for place in range(_OWNERS)],
        schema,
        epsilon=Fraction(epsilon),
        delta=Fraction(delta),
        aggregation="clear",
        seed=seed,
    )


def run(
    name: str, epsilon: str, delta: str, *, rows: int, pairs: int, repeats: int, tables: int
) -> list[Row]:
    """Return a line for each class of statistics."""
    schema, codes = table_of(name, rows)
    truth = CodedTable(schema, codes)
    held: dict[str, list[tuple[bool, bool, float, float]]] = defaultdict(list)
    for seed in range(repeats):
        fitted = study(schema, codes, epsilon, delta, seed)
        made = Replicator(fitted, fitted.released, seed=seed, processes=1).run(tables)
        measured = fitted.diagnostics.measured
        known = {each.name: each for each in known_means(fitted)}
        for asked in statistics(schema, codes, pairs):
            values = asked.of(truth)
            places = sorted(map(schema.position, asked.attributes))
            counted = all(
                any(each.usable(pair) for each in measured) for pair in combinations(places, 2)
            )
            columns = ("", "one column", "two columns", "three columns")[len(places)]
            words = "" if len(places) == 1 else ", measured" if counted else ", not measured"
            both = [of_mean(known[asked.mean_of])] if asked.mean_of in known else None
            both = both or estimate(asked, made, measured=measured)
            for own, alone in zip(both, estimate(asked, made), strict=True):
                value = values[own.statistic, own.group]
                if "(intercept)" in own.statistic or not np.isfinite(value):
                    continue
                if own.low is not None and own.high is not None:
                    width = own.high - own.low
                    narrow = (alone.high or 0.0) - (alone.low or 0.0)
                    inside = (alone.low or 0.0) <= value <= (alone.high or 0.0)
                    line = own.low <= value <= own.high, inside, width, narrow
                    held[columns + words].append(line)
    return [
        {
            "table": name, "epsilon": epsilon, "delta": delta, "class": words,
            "asked": len(lines),
            "coverage": sum(line[0] for line in lines) / len(lines),
            "alone": sum(line[1] for line in lines) / len(lines),
            "times_as_wide": median(line[2] / line[3] for line in lines if line[3] > 0),
        }
        for words, lines in sorted(held.items())
    ]  # fmt: skip


def main() -> None:
    """Print the table and write it."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--names", nargs="*", default=list(_TABLES))
    options.add_argument("--epsilon", nargs="*", default=["0.3", "1", "3"])
    options.add_argument("--delta", nargs="*", default=["0", "1e-9"])
    options.add_argument("--rows", type=int, default=4_000)
    options.add_argument("--pairs", type=int, default=16)
    options.add_argument("--repeats", type=int, default=1)
    options.add_argument("--tables", type=int, default=10)
    chosen = options.parse_args()
    lines: list[Row] = []
    for name, epsilon, delta in product(chosen.names, chosen.epsilon, chosen.delta):
        with spending() as spent:
            found = run(
                name, epsilon, delta,
                rows=chosen.rows, pairs=chosen.pairs, repeats=chosen.repeats, tables=chosen.tables,
            )  # fmt: skip
        show(found, f"{name}, epsilon {epsilon}, delta {delta}, {spent.seconds:.0f} s")
        lines += found
    keep("coverage_tables", lines)


if __name__ == "__main__":
    main()
