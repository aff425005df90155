"""What error to expect at which epsilon: the table of docs/choosing-epsilon.md.

`python -m benchmarks.forecast` runs studies on the project's simulated population and prints
Markdown; `--write docs/choosing-epsilon.md` puts the tables between the page's markers. The
noise is private and fresh in every run, so figures move in their last digit.

Distances are total variation distances (half the sum of the absolute differences of shares) of all
1-, 2- and 3-way marginals, averaged. "a second sample" is what as many other real people, drawn
from the same population, would show: nothing is closer than that for a reason.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from statistics import mean

import pandas as pd

import parley
from benchmarks.measuring import keep, mean_distance
from common.analysis.distances import marginal_sets
from common.errors import InputError
from common.privacy.randomness import OsRandomSource
from common.schema import Codes, Schema
from parley.simulation.partition import at_random
from parley.simulation.population import demo_schema_toml, make_population

EPSILONS = ("0.1", "0.2", "0.5", "1", "2", "4")
ROWS = (1_000, 3_000, 10_000, 30_000, 100_000)
PARTIES = (2, 30)
_USUAL_ROWS, _USUAL_PARTIES = 30_000, 3
_ORDERS = (1, 2, 3)

Distance = tuple[float, float, float]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the studies, print the tables, and put them into a page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5, help="studies for every figure")
    parser.add_argument("--write", type=Path, help="a page with markers for the tables")
    chosen = parser.parse_args(arguments)
    schema = Schema.from_toml(demo_schema_toml())
    figures: dict[str, Distance] = {}

    def figure(rows: int, parties: int, epsilon: str, method: str = "subn+") -> str:
        key = f"{method} rows={rows} parties={parties} epsilon={epsilon}"
        figures[key] = average(
            [study_distance(schema, rows, parties, epsilon, method, r) for r in range(chosen.runs)]
        )
        print(key, shown(figures[key]), file=sys.stderr)
        return shown(figures[key])

    def second_sample(rows: int) -> str:
        key = f"second sample rows={rows}"
        figures[key] = average([sample_distance(rows, run) for run in range(chosen.runs)])
        return shown(figures[key])

    text = "\n\n".join(
        [
            "Three owners, subn+:",
            markdown(
                ["rows in all", *(f"epsilon {e}" for e in EPSILONS), "a second sample"],
                [
                    [
                        f"{rows:,}",
                        *(figure(rows, _USUAL_PARTIES, epsilon) for epsilon in EPSILONS),
                        second_sample(rows),
                    ]
                    for rows in ROWS
                ],
            ),
            f"{_USUAL_ROWS:,} rows, by the number of owners, and without any dependence (floor):",
            markdown(
                ["owners", *(f"epsilon {e}" for e in EPSILONS)],
                [
                    *(
                        [str(k), *(figure(_USUAL_ROWS, k, epsilon) for epsilon in EPSILONS)]
                        for k in PARTIES
                    ),
                    [
                        f"{_USUAL_PARTIES}, floor",
                        *(figure(_USUAL_ROWS, _USUAL_PARTIES, e, "floor") for e in EPSILONS),
                    ],
                ],
            ),
        ]
    )
    print(text)
    keep("forecast", {"runs": chosen.runs, "distances": figures})
    if chosen.write is not None:
        chosen.write.write_text(between_markers(chosen.write.read_text(), text))


def study_distance(
    schema: Schema, rows: int, parties: int, epsilon: str, method: str, run: int
) -> Distance:
    """Return how far the release of one study is from the population it was made of."""
    people, real = population(rows, run)
    owners = dict(at_random(people, parties, OsRandomSource()))
    # Masks and ciphertexts carry the same noise; masks are the quicker ones.
    study = parley.simulate(owners, schema, epsilon=epsilon, method=method, aggregation="masked")
    return distance(real, study.sample_codes())


@cache
def population(rows: int, seed: int) -> tuple[pd.DataFrame, Codes]:
    """Return the people of one run, and their codes."""
    people = make_population(rows, seed=seed)
    return people, Schema.from_toml(demo_schema_toml()).encode(people)


def sample_distance(rows: int, run: int) -> Distance:
    """Return how far two samples of one population are from each other."""
    return distance(population(rows, run)[1], population(rows, run + 1_000)[1])


def distance(real: Codes, other: Codes) -> Distance:
    """Return the mean total variation distance of the marginals of every order."""
    one, two, three = (
        mean_distance(real, other, marginal_sets(real.width, order=order)) for order in _ORDERS
    )
    return one, two, three


def average(found: Sequence[Distance]) -> Distance:
    """Order by order."""
    one, two, three = (mean(each) for each in zip(*found, strict=True))
    return one, two, three


def shown(distances: Distance) -> str:
    """Write two digits: the runs tell no more."""
    return " / ".join(f"{each:.3f}"[1:] if each < 1 else "1" for each in distances)


def markdown(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Write a table."""
    rule = ["---"] * len(headings)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (headings, rule, *lines))


def between_markers(page: str, text: str) -> str:
    """Return the page with the tables between its markers."""
    marked = re.compile(r"(<!-- forecast -->\n).*?(\n<!-- end of forecast -->)", re.DOTALL)
    if not marked.search(page):
        raise InputError("the page has no <!-- forecast --> ... <!-- end of forecast -->")
    return marked.sub(lambda found: f"{found.group(1)}\n{text}\n{found.group(2)}", page)


if __name__ == "__main__":
    main()
