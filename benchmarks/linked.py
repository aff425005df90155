"""People and their events: `python -m benchmarks.linked [--tables visits nls] [--runs 3]`.

Every figure is a mean with its standard error.

Total variation distances between real and synthetic tables, each the mean over all of its kind:
two columns of people (the number of events is one), a person's and an event's column, two columns
of an event, a column of an event and one of the next. Ten owners; the sums are added up in this
process, under the noise of a study. Against:

    independent     every column shuffled by itself: exact margins, no noise
    floor           the method of that name: columns by themselves, with the noise of a study
    flat            one row per event with its person's columns, rows_per_person = most; the number
                    of events is no column of it, so "as flat sees it" leaves it out, too
    second sample   as many people drawn again from the real ones, with replacement

`visits` is the simulated population of the demonstration. `nls` and `rwm` are panels that are not
part of the project: they are left out, visibly, where RESEARCH_TABLES has no folder `linked`. The
others are simulated by hidden factors (`Shape`), and `shuffled` is `visits` without dependence.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.research_tables import DATA
from common.analysis.distances import (
    BOTH,
    EVENT,
    NEXT,
    PEOPLE,
    SAME,
    linked_distances,
    total_variation,
)
from common.crypto.identities.identity import Identity
from common.errors import InputError
from common.methods.registry import new_study, run_of
from common.methods.subn_plus.linked.model import LinkedModel
from common.privacy.randomness import OsRandomSource
from common.schema import Codes, Schema
from common.schema.linked import LinkedCodes, encode_linked
from common.study.document import Study
from common.study.members import Member
from common.study.script import drive
from common.study.steps import OnePlace
from parley.simulation.population import PERSON, linked_schema, make_linked_population

OWNERS = 10
KINDS = (PEOPLE, BOTH, EVENT, NEXT, SAME)
PROMISES = tuple((epsilon, delta) for delta in ("1e-9", "0") for epsilon in ("0.3", "1", "3"))
_MOST = {"nls": 8, "rwm": 5}
_PATIENTS = {"visits": 17_549, "visits, 100,000": 100_000}
Distances = Mapping[str, float]


@dataclass(frozen=True)
class Shape:
    """A table to simulate: numbers are hidden, so that no classes are true.

    Attributes:
        mean: how many events a person has, about; they depend on her first factor.
        columns: the sizes of people's columns.
        events: the sizes of the events' columns.
        own: how strongly people's columns depend on their factors.
        told: how strongly events' columns depend on theirs.
        stays: how much of an event's factors the next one has.
        returns: how much of an event's factors is the person's.
    """

    people: int
    mean: float
    most: int
    columns: tuple[int, ...]
    events: tuple[int, ...]
    own: float
    told: float
    stays: float
    returns: float
    factors: int = 4


SHAPES = {
    "chains": Shape(
        17_549, 2.0, 8, (8, 2, 6, 10, 4, 5), (20, 8, 12, 6, 10), 0.5, 1.4, 0.95, 0.5, 8
    ),
    "few": Shape(2_500, 3.0, 6, (3, 5, 2), (6, 4, 2, 5), 0.6, 0.8, 0.6, 0.5),
    "wide": Shape(
        8_000, 4.0, 10, (4, 6, 2, 8, 3, 5, 2, 9), (12, 5, 2, 7, 3, 10, 4, 2), 0.5, 0.7, 0.5, 0.7
    ),
    "weak": Shape(6_000, 2.5, 8, (4, 6, 2, 8), (12, 5, 2, 7), 0.1, 0.1, 0.1, 0.1),
    "rare": Shape(20_000, 0.4, 4, (4, 6, 2, 8), (12, 5, 2, 7), 0.5, 1.0, 0.5, 0.5),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Table:
    """People with their events, and their schema."""

    name: str
    schema: Schema
    rows: LinkedCodes


def tables(names: Sequence[str]) -> Iterator[Table]:
    """Yield the tables that are here; say which are not."""
    for name in names:
        if name in _PATIENTS:
            people, events = make_linked_population(_PATIENTS[name], seed=7)
            schema = linked_schema()
            yield Table(name, schema, encode_linked(schema, people, events, person=PERSON))
        elif name in SHAPES:
            yield simulated(name, SHAPES[name])
        elif name == "shuffled":
            for table in tables(["visits"]):
                yield replace(
                    table, name=name, rows=independent(table.rows, np.random.default_rng(3))
                )
        elif found := panel_frames(name):
            schema, people, events = found
            yield Table(name, schema, encode_linked(schema, people, events, person="id"))


def simulated(name: str, shape: Shape, seed: int = 1) -> Table:
    """Simulate people and events; every second column is in an order."""
    rng = np.random.default_rng(seed)

    def column(place: int, size: int, hidden: NDArray[np.float64]) -> NDArray[np.int64]:
        if place % 2:
            line = hidden @ rng.normal(size=shape.factors) + rng.normal(size=len(hidden))
            edges = np.quantile(line, np.sort(rng.uniform(0.1, 0.9, size - 1)))
            return np.searchsorted(edges, line).astype(np.int64)
        scores = hidden @ rng.normal(size=(shape.factors, size)) - 0.6 * np.arange(size) ** 0.7
        best = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
        return np.asarray(best, dtype=np.int64)

    hers = rng.normal(size=(shape.people, shape.factors))
    often = rng.poisson(shape.mean * np.exp(0.5 * hers[:, 0] - 0.125))
    numbers = np.minimum(often, shape.most).astype(np.int64)
    who = np.repeat(np.arange(shape.people), numbers)
    place = np.arange(len(who)) - np.repeat(np.cumsum(numbers) - numbers, numbers)
    mixed = rng.normal(size=(shape.factors, shape.factors)) / np.sqrt(shape.factors)
    drift, keeps = 0.3 * rng.normal(size=shape.factors), shape.stays
    fresh = rng.normal(size=(len(who), shape.factors)) * np.sqrt(1 - shape.returns**2)
    fresh += shape.returns * (hers @ mixed)[who]
    factors = fresh.copy()
    for step in range(1, shape.most):
        at = np.flatnonzero(place == step)
        factors[at] = keeps * (factors[at - 1] + drift) + np.sqrt(1 - keeps**2) * fresh[at]
    people = [column(*own, shape.own * hers) for own in enumerate(shape.columns)]
    events = [column(*own, shape.told * factors) for own in enumerate(shape.events)]
    coded, of_events = (
        Codes.from_columns(columns, list(sizes))
        for columns, sizes in ((people, shape.columns), (events, shape.events))
    )
    named = ({f"{part}{a}": size for a, size in enumerate(sizes)}
             for part, sizes in (("p", shape.columns), ("e", shape.events)))  # fmt: skip
    rows = LinkedCodes(coded.columns, coded.sizes, of_events, numbers, shape.most)
    return Table(name, _schema(shape.most, *named), rows)


def _schema(most: int, people: Mapping[str, int], events: Mapping[str, int]) -> Schema:
    def entries(sizes: Mapping[str, int]) -> list[dict[str, object]]:
        keys = {"kind": "integer", "min": 0}
        return [
            {"name": name, **keys, "max": size - 1, "bins": size} for name, size in sizes.items()
        ]

    table = {"name": "events", "most": most, "attribute": entries(events)}
    return Schema.from_document({"attribute": entries(people), "events": table})


def panel_frames(name: str) -> tuple[Schema, pd.DataFrame, pd.DataFrame] | None:
    """Return the schema of a panel, its people and its events; None, and say so, if missing."""
    folder = DATA / "linked"
    if not (folder / f"{name}-domain.json").exists():
        print(f"SKIPPED {name}: there is no {folder}")
        return None
    sizes = json.loads((folder / f"{name}-domain.json").read_text("utf-8"))
    schema = _schema(_MOST[name], sizes["people"], sizes["events"])
    people, events = (pd.read_csv(folder / f"{name}-{part}.csv") for part in ("people", "events"))
    return schema, people, events


def distances(table: Table, synthetic: LinkedCodes) -> Distances:
    """Return the mean distance of each kind of table."""
    compared = linked_distances(table.rows, synthetic, table.schema)
    return {kind: own.average for kind, own in compared.items()}


def independent(real: LinkedCodes, rng: np.random.Generator) -> LinkedCodes:
    """Shuffle every column of people, the number of events, and every column of events."""
    people = [rng.permutation(column) for column in real.columns]
    events = [rng.permutation(column) for column in real.events.columns]
    return LinkedCodes(
        tuple(people), real.sizes, Codes(tuple(events), real.events.sizes),
        rng.permutation(real.numbers), real.most,
    )  # fmt: skip


def study_of(schema: Schema, rows: Sequence[int], **terms: object) -> Study:
    source = OsRandomSource()
    members = [
        Member(name=f"owner {number}", rows=size, identity=Identity.generate(source).public)
        for number, size in enumerate(rows, start=1)
    ]
    return new_study({"name": "linked", "aggregation": "masked", **terms}, schema=schema,
                     members=members)  # fmt: skip


def released(
    table: Table, epsilon: str, delta: str, method: str = "subn+"
) -> tuple[LinkedCodes, float]:
    """Run a study and draw as many people as there are; return the seconds of the fit, too."""
    parts = np.array_split(np.arange(table.rows.rows), OWNERS)
    sizes = list(map(len, parts))
    study = study_of(table.schema, sizes, epsilon=epsilon, delta=delta, method=method)
    dealt = dict(zip(study.parties, map(table.rows.take, parts), strict=True))
    source = OsRandomSource()
    run = drive(run_of(study), OnePlace(study, dealt, source).answer)
    started = time.process_time()
    model = run.model()
    seconds = time.process_time() - started
    if not isinstance(model, LinkedModel):
        raise TypeError(f"{type(model).__name__}: expected a model of people and events")
    return model.sample(table.rows.rows, source), seconds


def flat(table: Table, epsilon: str, delta: str) -> Distances:
    """Publish one row per event, each person's rows protected together."""
    real, width = table.rows, table.rows.width
    joined = real.by_event.select([*range(width), *range(width + 1, width + 1 + real.events.width)])
    sizes = [max(size, 2) for size in joined.sizes]
    bins = [
        {"name": f"c{a}", "kind": "integer", "min": 0, "max": size - 1, "bins": size}
        for a, size in enumerate(sizes)
    ]
    schema = Schema.from_document({"attribute": bins})
    whole = Codes.from_columns(list(joined.columns), sizes)
    people = np.array_split(np.arange(real.rows), OWNERS)
    owner = np.repeat(np.arange(OWNERS), list(map(len, people)))[real.of_person]
    parts = [whole.take(np.flatnonzero(owner == number)) for number in range(OWNERS)]
    study = study_of(
        schema, [part.rows for part in parts], epsilon=epsilon, delta=delta,
        rows_per_person=real.most,
    )  # fmt: skip
    source = OsRandomSource()
    place = OnePlace(study, dict(zip(study.parties, parts, strict=True)), source)
    drawn = drive(run_of(study), place.answer).model().sample(whole.rows, source)
    events = range(width, whole.width)
    return _of_events([whole, drawn], range(width), events)


def _mean(pair: Sequence[Codes], sets: Sequence[tuple[int, ...]]) -> float:
    real, synthetic = pair
    return float(np.mean(total_variation(real, synthetic, sets)))


def _of_events(pair: Sequence[Codes], people: range, events: range) -> Distances:
    return {
        "person x event": _mean(pair, list(product(people, events))),
        "event pairs": _mean(pair, list(combinations(events, 2))),
    }


def _without_number(real: Codes, other: Codes, linked: LinkedCodes) -> Distances:
    people = linked.width
    return _of_events([real, other], range(people), range(people + 1, real.width))


def show(what: str, found: Sequence[Distances], seconds: float | None = None) -> None:
    def cell(kind: str) -> str:
        values = [own[kind] for own in found]
        error = f" ± {np.std(values, ddof=1) / np.sqrt(len(values)):.3f}" if len(values) > 1 else ""
        return f"{np.mean(values):.3f}{error}"

    cells = (cell(kind) if kind in found[0] else "-" for kind in KINDS)
    took = "" if seconds is None else f" {seconds:.1f} s |"
    print(f"| {what} | {' | '.join(cells)} |{took}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--tables", nargs="*", default=["visits", "nls", "rwm", *SHAPES, "shuffled"]
    )
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--promises", nargs="*", default=[":".join(own) for own in PROMISES])
    chosen = parser.parse_args()
    for table in tables(chosen.tables):
        real, rng = table.rows, np.random.default_rng(1)
        print(f"\n{table.name}: {real.rows:,} people, {real.events.rows:,} events\n")
        print(f"| | {' | '.join(KINDS)} | fit |\n|{'---|' * (len(KINDS) + 2)}")
        apart = independent(real, rng)
        show("independent, exact margins", [distances(table, apart)])
        show("independent, as flat sees it", [_without_number(real.by_event, apart.by_event, real)])
        again = real.take(rng.integers(0, real.rows, real.rows))
        show("second sample", [distances(table, again)])
        for promise in chosen.promises:
            epsilon, _, delta = promise.partition(":")
            words = f"epsilon {epsilon}" + (f", delta {delta}" if Fraction(delta or "0") else "")
            made = [released(table, epsilon, delta or "0") for _ in range(chosen.runs)]
            show(words, [distances(table, own) for own, _ in made], max(own for _, own in made))
            alone = (released(table, epsilon, delta or "0", "floor") for _ in range(chosen.runs))
            show(f"floor, {words}", [distances(table, own) for own, _ in alone])
            if table.name in (*SHAPES, "shuffled"):
                continue
            try:
                show(f"flat, {words}", [flat(table, epsilon, delta or "0")])
            except InputError as error:
                print(f"| flat, {words}: refused ({error}) |")


if __name__ == "__main__":
    main()
