"""People and their events: `python -m benchmarks.linked [--tables visits nls] [--runs 3]`.

Total variation distances between real and synthetic tables, each the mean over all of its kind:
two columns of people (the number of events is one), a person's and an event's column, two columns
of an event, a column of an event and one of the next. Ten owners; the sums are added up in this
process, under the noise of a study. Against:

    independent     every column shuffled by itself: exact margins, no noise
    flat            one row per event with its person's columns, rows_per_person = most; the number
                    of events is no column of it, so "as flat sees it" leaves it out, too
    second sample   as many people drawn again from the real ones, with replacement

`visits` is the simulated population of the demonstration. `nls` and `rwm` are panels that are not
part of the project: they are left out, visibly, where RESEARCH_TABLES has no folder `linked`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pandas as pd

from benchmarks.research_tables import DATA
from common.analysis.distances import total_variation
from common.analysis.linked_evaluation import BOTH, EVENT, NEXT, PEOPLE, SAME, linked_distances
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
from parley.simulation.population_visits import PERSON, linked_schema, make_linked_population

OWNERS = 10
KINDS = (PEOPLE, BOTH, EVENT, NEXT, SAME)
PROMISES = (("1", "1e-9"), ("1", "0"))
_MOST = {"nls": 8, "rwm": 5}
_PATIENTS = {"visits": 17_549, "visits, 100,000": 100_000}
Distances = Mapping[str, float]


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
        elif found := panel_frames(name):
            schema, people, events = found
            yield Table(name, schema, encode_linked(schema, people, events, person="id"))


def panel_frames(name: str) -> tuple[Schema, pd.DataFrame, pd.DataFrame] | None:
    """Return the schema of a panel, its people and its events; None, and say so, if missing."""
    folder = DATA / "linked"
    if not (folder / f"{name}-domain.json").exists():
        print(f"SKIPPED {name}: there is no {folder}")
        return None
    sizes = json.loads((folder / f"{name}-domain.json").read_text("utf-8"))

    def entries(part: str) -> list[dict[str, object]]:
        keys = {"kind": "integer", "min": 0}
        return [
            {"name": own, **keys, "max": size - 1, "bins": size}
            for own, size in sizes[part].items()
        ]

    declared = {"name": "events", "most": _MOST[name], "attribute": entries("events")}
    schema = Schema.from_document({"attribute": entries("people"), "events": declared})
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


def released(table: Table, epsilon: str, delta: str) -> tuple[LinkedCodes, float]:
    """Run a study and draw as many people as there are; return the seconds of the fit, too."""
    parts = np.array_split(np.arange(table.rows.rows), OWNERS)
    study = study_of(table.schema, list(map(len, parts)), epsilon=epsilon, delta=delta)
    dealt = dict(zip(study.parties, map(table.rows.take, parts), strict=True))
    source = OsRandomSource()
    run = drive(run_of(study), OnePlace(study, dealt, source).answer)
    started = time.perf_counter()
    model = run.model()
    seconds = time.perf_counter() - started
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
    cells = (
        f"{np.mean([own[kind] for own in found]):.3f}" if kind in found[0] else "-"
        for kind in KINDS
    )
    took = "" if seconds is None else f" {seconds:.1f} s |"
    print(f"| {what} | {' | '.join(cells)} |{took}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="*", default=["visits", "nls", "rwm"])
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
            try:
                show(f"flat, {words}", [flat(table, epsilon, delta or "0")])
            except InputError as error:
                print(f"| flat, {words}: refused ({error}) |")


if __name__ == "__main__":
    main()
