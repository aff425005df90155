"""Do intervals of people and their events hold the truth as often as they say?

Repeated studies of three owners: on people of the simulated population with their visits, whose
truth is that of many more; and on people drawn with replacement from the panels `nls` and `rwm`,
whose truth is the panel (they are left out, visibly, where they are missing). Numbers are compared
with real numbers, not with bins. The statistics were fixed before: the mean number of events by
columns of people; of events the proportion of every value, means of columns, proportions by another
column of the event, and by a column of its person. With `--declared` the pairs are analyses that
the study measures first, and the answers are looked at.

`alone` is the coverage of replicates without the published tables; `width` the median width of the
intervals, in units of the range that a statistic can have.

    python -m benchmarks.coverage_linked --repeats 3 --replicates 10
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from statistics import median

import numpy as np
import pandas as pd

import parley
from benchmarks.linked import panel_frames
from benchmarks.measuring import Row, keep, show, spending
from common.analysis import statistics as kinds
from common.analysis.answers import statistics_of
from common.analysis.estimates import Estimate, estimate
from common.analysis.statistics import CodedTable, Statistic, Values
from common.schema import Schema
from common.schema.linked import LinkedCodes, encode_linked
from parley.reader.fitted import FittedLinkedStudy
from parley.simulation.population import PERSON, linked_schema, make_linked_population

_OWNERS = 3
_TRUTH_PEOPLE = 200_000
_MOST_GROUPS = 10  # values of a column that groups are made by
_PAIRS = 5  # of each kind
Frames = tuple[pd.DataFrame, pd.DataFrame]


@dataclass(frozen=True)
class Population:
    """People and events to draw from."""

    name: str
    schema: Schema
    person: str
    drawn: Callable[[int], Frames]  # the people of one study, by its seed
    truth: Frames

    @property
    def events(self) -> str:
        return self.schema.events.name if self.schema.events else ""


def population(name: str, people: int) -> Population | None:
    """Return the simulated people, or a panel; None if it is missing."""
    if name == "visits":

        def drawn(seed: int) -> Frames:
            return make_linked_population(people, seed=1000 + seed)

        truth = make_linked_population(_TRUTH_PEOPLE, seed=99)
        return Population(name, linked_schema(), PERSON, drawn, truth)
    found = panel_frames(name)
    if found is None:
        return None
    schema, first, events = found

    def again(seed: int) -> Frames:
        chosen = np.random.default_rng(seed).choice(first["id"], len(first))
        renamed = pd.DataFrame({"id": chosen, "again": np.arange(len(chosen))})
        tables = (renamed.merge(table, on="id").drop(columns="id") for table in (first, events))
        one, other = (table.rename(columns={"again": "id"}) for table in tables)
        return one, other

    return Population(name, schema, "id", again, (first, events))


def statistics(schema: Schema) -> Iterator[tuple[str, str, Statistic]]:
    """Yield what is estimated: its family, whether of events, and the statistic."""
    joined, width = schema.joined, len(schema.names)
    few = [own.name for own in joined.attributes if own.value_count <= _MOST_GROUPS]
    people = [name for name in few if name in joined.names[:width]]
    events = [name for name in few if name in joined.names[width + 1 :]]
    own = Schema(joined.attributes[: width + 1])
    for name in people:
        yield "number of events by group", "", kinds.mean(own, own.names[-1], name)
    for name in events:
        yield "event values", "events", kinds.shares(joined, name)
    for each in joined.attributes[width + 1 :]:
        if kinds.has_numbers(joined, each.name) and each.value_count > 2:
            yield "event means", "events", kinds.mean(joined, each.name)
    for one, other in _some(list(combinations(events, 2))):
        yield "event pairs", "events", kinds.shares(joined, one, other)
    for one, other in _some(list(product(people, events))):
        yield "person x event", "events", kinds.shares(joined, other, one)


def _some(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return a few pairs, evenly spaced."""
    return pairs[:: max(len(pairs) // _PAIRS, 1)][:_PAIRS]


def analyses(schema: Schema) -> list[str]:
    """Return the same questions as analyses of a study."""
    joined, width = schema.joined, len(schema.names)
    few = [own.name for own in joined.attributes if own.value_count <= _MOST_GROUPS]
    people = [name for name in few if name in joined.names[:width]]
    events = [name for name in few if name in joined.names[width + 1 :]]
    found = [f'mean = "{joined.names[width]}", by = "{name}"' for name in people[:2]]
    found += [f'relation = ["{a}", "{b}"]' for a, b in _some(list(combinations(events, 2)))[:2]]
    return found + [
        f'relation = ["{a}", "{b}"]' for a, b in _some(list(product(people, events)))[:2]
    ]


class Truth:
    """The values of statistics in a population, by its real numbers."""

    def __init__(self, own: Population) -> None:
        people, events = own.truth
        codes = encode_linked(own.schema, people, events, person=own.person)
        joined, width = own.schema.joined, len(own.schema.names)
        self._people = CodedTable(Schema(joined.attributes[: width + 1]), codes.with_number)
        self._events = CodedTable(joined, codes.by_event)
        self._add_numbers(own, codes)

    def _add_numbers(self, own: Population, codes: LinkedCodes) -> None:
        """Put the real numbers of events in place of those that bins would draw."""
        people, events = own.truth
        order = own.schema.events.order if own.schema.events else ""
        kept = events.assign(
            _at=events[own.person].map(
                dict(zip(people[own.person], range(len(people)), strict=True))
            )
        )
        kept = kept.sort_values(["_at", *([order] if order else [])], kind="stable")
        kept = kept[kept.groupby("_at").cumcount() < codes.most]
        width = len(own.schema.names) + 1
        for each, name in zip(
            own.schema.of_events.attributes, own.schema.joined.names[width:], strict=True
        ):
            if kinds.has_numbers(own.schema.joined, name) and each.kind != "boolean":
                self._events._numbers[name] = np.clip(
                    kept[each.name].to_numpy(dtype=np.float64), *kinds.ends_of(each)
                )

    def of(self, statistic: Statistic, kind: str) -> Values:
        return statistic.of(self._events if kind else self._people)


@dataclass
class Tally:
    """Of one family over all studies."""

    held: int = 0
    alone: int = 0
    asked: int = 0
    flagged: int = 0

    def __post_init__(self) -> None:
        """Begin without widths."""
        self.widths: list[float] = []

    def add(self, found: Estimate, truth: float, alone: Estimate | None, scale: float) -> None:
        """Take an estimate in."""
        if found.low is None or found.high is None or not np.isfinite(truth):
            return
        self.asked += 1
        self.flagged += found.flagged
        self.held += found.low <= truth <= found.high
        self.widths.append((found.high - found.low) / scale)
        if alone is not None and alone.low is not None and alone.high is not None:
            self.alone += alone.low <= truth <= alone.high

    def row(self, family: str) -> Row:
        """Return the line of a table."""
        return {
            "family": family,
            "coverage": self.held / max(self.asked, 1),
            "alone": self.alone / max(self.asked, 1),
            "width": median(self.widths) if self.widths else None,
            "flagged": self.flagged / max(self.asked, 1),
            "asked": self.asked,
        }


def study(
    own: Population, promise: tuple[str, str], seed: int, *, declared: bool
) -> FittedLinkedStudy:
    """Run one study."""
    people, events = own.drawn(seed)
    ids = [people[own.person].iloc[place::_OWNERS] for place in range(_OWNERS)]
    tables = [
        (people[people[own.person].isin(part)], events[events[own.person].isin(part)])
        for part in ids
    ]
    fitted = parley.simulate(
        tables,
        own.schema,
        epsilon=Fraction(promise[0]),
        delta=Fraction(promise[1]),
        aggregation="clear",
        seed=seed,
        person=own.person,
        analyses=analyses(own.schema) if declared else [],
    )
    if not isinstance(fitted, FittedLinkedStudy):
        raise TypeError("expected a study of people and their events")
    return fitted


def run(
    own: Population, promise: tuple[str, str], repeats: int, replicates: int
) -> Mapping[str, Tally]:
    """Repeated studies; a tally for each family."""
    truth, tallies = Truth(own), defaultdict[str, Tally](Tally)
    for seed in range(repeats):
        fitted = study(own, promise, seed, declared=False)
        made = fitted.replicated(replicates, seed=seed)
        for family, kind, statistic in statistics(own.schema):
            values = truth.of(statistic, kind)
            of = own.events if kind else ""
            found = fitted.estimate(statistic, of=of, tables=replicates, seed=seed)
            plain = estimate(statistic, fitted.view(of).of(made))
            alone = {(each.statistic, each.group): each for each in plain}
            low, high = statistic.bounds
            for each in found:
                key = each.statistic, each.group
                tallies[family].add(each, values.get(key, np.nan), alone.get(key), high - low)
    return tallies


def run_declared(own: Population, promise: tuple[str, str], repeats: int) -> Mapping[str, Tally]:
    """Repeated studies with analyses; a tally for each kind of answers."""
    truth, tallies = Truth(own), defaultdict[str, Tally](Tally)
    schema = own.schema
    for seed in range(repeats):
        fitted = study(own, promise, seed, declared=True)
        for answer in fitted.answers():
            of_events = answer.analysis.of_events(schema)
            view = fitted.view(own.events if of_events else "")
            family = "declared, of events" if of_events else "declared, of people"
            for statistic in statistics_of(answer.analysis, view.schema):
                values = truth.of(statistic, own.events if of_events else "")
                low, high = statistic.bounds
                scale = high - low if np.isfinite(high - low) else 1.0
                for each in answer.estimates:
                    if (each.statistic, each.group) in values:
                        value = values[each.statistic, each.group]
                        tallies[family].add(each, value, None, scale)
    return tallies


def main() -> None:
    """Print the tables and write them."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--populations", nargs="*", default=["visits", "nls", "rwm"])
    options.add_argument("--people", type=int, default=17_549, help="of the simulated ones")
    options.add_argument("--epsilon", nargs="*", default=["0.3", "1", "3"])
    options.add_argument("--delta", nargs="*", default=["0", "1e-9"])
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--replicates", type=int, default=20)
    options.add_argument("--declared", action="store_true", help="analyses that are measured first")
    options.add_argument("--out", default="coverage-linked", help="the name of the results")
    chosen = options.parse_args()
    lines: list[Row] = []
    for name in chosen.populations:
        own = population(name, chosen.people)
        if own is None:
            continue
        for promise in product(chosen.epsilon, chosen.delta):
            with spending() as spent:
                found = (
                    run_declared(own, promise, chosen.repeats)
                    if chosen.declared
                    else run(own, promise, chosen.repeats, chosen.replicates)
                )
            rows = [tally.row(family) for family, tally in found.items()]
            show(rows, f"{name}, epsilon {promise[0]}, delta {promise[1]}, {spent.seconds:.0f} s")
            lines += [{"table": name, "epsilon": promise[0], "delta": promise[1]} | r for r in rows]
    keep(chosen.out, lines)


if __name__ == "__main__":
    main()
