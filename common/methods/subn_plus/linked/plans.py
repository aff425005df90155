"""What subn+ asks of people and their events, from public facts alone.

Margins are always asked for. Of the kinds of pairs, and of the margins' part of the budget, those
are chosen that are forecast to have the least error in all: a kind that is not asked for is off by
what its pairs depend on each other, one that is asked for by its noise, as far as that is less, and
all of them by the noise of the margins, which tables of pairs make less.
What analyses need is measured first, as in a single table (`common.methods.subn_plus.declared`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import comb, sqrt

from common.errors import InputError
from common.methods.subn_plus.declared import MARGINS as DECLARED_MARGINS
from common.methods.subn_plus.declared import (
    DeclaredTables,
    clearest_others,
    declared_sets,
    tables_for,
)
from common.methods.subn_plus.facts import PublicFacts, ordered_values, pair_groups, spans_of
from common.methods.subn_plus.requests import Groups
from common.privacy import sensitivity
from common.study.document import Study

PEOPLE, BOTH, EVENTS = "pairs", "pairs with events", "pairs of events"  # kinds of tables
NEXT = "next events"
NUMBERS = "pairs with the number"  # of events: a step, and a part of people's pairs
# How far pairs of a kind are from independence, as a total variation distance, if nothing is known:
# about as far as on the demonstration's population and on `rwm`, and as on the table of patients in
# docs/linked-tables.md.
DEPENDENCE = {PEOPLE: 0.1, BOTH: 0.12, EVENTS: 0.15, NEXT: 0.22}
SEEN_GROUPS = 8  # of a column, in the table whose noise is forecast
ENTERS = 0.5  # of that noise, in the fitted model
MARGIN_FRACTIONS = tuple(
    Fraction(part, 20) for part in (2, 3, 4, 6, 8, 10, 12, 14, 16)
)  # of margins
NUMBER_NOISE = 0.015  # forecast of a margin of events over groups of their number
NOISE = 1.0  # forecast of a table of pairs, as a total variation distance: groups become fewer
MOST_GROUPS = 32  # of a column


@dataclass(frozen=True)
class LinkedFacts:
    """What is public before the first sum: the facts of people, and the events' part."""

    people: PublicFacts
    sizes: tuple[int, ...]  # of the events' attributes
    ordered: tuple[int, ...]  # of each of them, how many of its first values are in an order
    most: int
    spans: tuple[Groups, ...] = ()  # of each of them, how wide the bins are: `PublicFacts.spans`

    @classmethod
    def of(cls, study: Study) -> LinkedFacts:
        """Return the facts of a study; InputError if it asks for what linked tables do not have."""
        events = study.schema.events
        refused = {
            "rows_per_person": study.rows_per_person,
            "criterion": study.criteria,
            "prior": study.prior,
        }
        for key, value in refused.items():
            if value:
                raise InputError(
                    f"{key}: it is not there for schemas with [events], whose promise is to a "
                    "person with all of her events. Leave it out"
                )
        if events is None:
            raise InputError("schema: it has no [events]")
        return cls(
            PublicFacts.of(study),
            study.schema.of_events.sizes,
            tuple(map(ordered_values, events.attributes)),
            events.most,
            tuple(map(spans_of, events.attributes)),
        )

    @property
    def width(self) -> int:
        """How many columns a person has: her attributes, and her number of events."""
        return len(self.people.sizes) + 1

    @property
    def every_size(self) -> tuple[int, ...]:
        """The sizes of all variables."""
        return (*self.people.sizes, self.most + 1, *self.sizes)

    @property
    def every_order(self) -> tuple[int, ...]:
        """Of all variables, how many of their first values are in an order."""
        alone = self.people.ordered or (0,) * len(self.people.sizes)
        return (*alone, self.most + 1, *self.ordered)

    @property
    def every(self) -> PublicFacts:
        """The facts of all variables, as if they were the attributes of a single table."""
        people = self.people
        alone = people.spans or ((),) * len(people.sizes)
        return replace(
            people,
            sizes=self.every_size,
            ordered=self.every_order,
            spans=(*alone, (), *(self.spans or ((),) * len(self.sizes))),
            events=self.width,
        )

    def with_budget(self, left: Fraction) -> LinkedFacts:
        """Return the facts with so much of the budget."""
        people = replace(self.people, promise=replace(self.people.promise, left=left))
        return replace(self, people=people)


@dataclass(frozen=True, slots=True)
class Budget:
    """The cost of the margins and of each kind of tables, and the groups of their columns.

    A kind that is not asked for is not among the costs.
    """

    margins: Fraction
    of_people: Fraction  # of that, for people's attributes and the number of events
    costs: Mapping[str, Fraction]
    pair_groups: int = 1
    next_groups: int = 1
    number_groups: int = 1  # in the margins of events
    declared: Fraction = Fraction(0)  # what analyses need


def kinds_of(facts: LinkedFacts) -> dict[str, int]:
    """Return how many tables of each kind there are, by the names of their steps."""
    alone, events = len(facts.people.sizes), len(facts.sizes)
    kinds = {
        PEOPLE: comb(facts.width, 2),  # the number of events is a column of a person
        BOTH: alone * events,
        EVENTS: comb(events, 2),
        NEXT: events**2 if facts.most > 1 else 0,
    }
    return {name: tables for name, tables in kinds.items() if tables}


def decide_budget(facts: LinkedFacts) -> Budget:
    """Forecast, from public facts, what can be seen; what analyses need comes first."""
    return declared_budget(facts)[0]


def declared_budget(facts: LinkedFacts) -> tuple[Budget, DeclaredTables | None]:
    """Return the budget, and what of it is for the analyses: the plan of `subn_plus.declared`."""
    every = facts.every
    if not declared_sets(every):
        return undeclared_budget(facts), None
    whole, fraction = facts.people.budget, min(best_division(facts).fraction, DECLARED_MARGINS)

    def trial(others: Fraction) -> tuple[Budget, DeclaredTables, bool]:
        cost = whole * (1 - fraction) * (1 - others)
        left = facts.with_budget(whole - cost)
        rest = undeclared_budget(left) if others else margins_only(left)
        tables = replace(tables_for(every, cost), others=others)
        return replace(rest, declared=cost), tables, bool(rest.costs)

    if every.others is not None:
        return trial(every.others)[:2]
    return clearest_others(every, trial)


def undeclared_budget(facts: LinkedFacts) -> Budget:
    """Return the budget by the division that is forecast to have the least error."""
    division = best_division(facts)
    if not division.kinds:
        return margins_only(facts)
    costs, (of_people, of_events) = division.costs, division.margins
    groups = {
        kind: min(pair_groups(facts.people, cost, division.tables[kind], NOISE), MOST_GROUPS)
        for kind, cost in costs.items()
    }
    return Budget(
        of_people + of_events,
        of_people,
        costs,
        min((groups[kind] for kind in costs if kind != NEXT), default=1),
        groups.get(NEXT, 1),
        max(number_groups(facts, of_events), 2),
    )


def margins_only(facts: LinkedFacts) -> Budget:
    """Leave all of the budget to the margins: of pairs, only those with the number of events."""
    of_people, of_events = Division(facts, (), Fraction(1)).margins
    whole = facts.people.budget
    return Budget(whole, of_people, {}, number_groups=number_groups(facts, of_events))


def number_groups(facts: LinkedFacts, cost: Fraction) -> int:
    """Return how many groups of the number of events the margins of events bear.

    A margin over G groups has the square root of G times the noise. Two are worth more than others:
    they tell most of how far averages over people are from averages over events.
    """
    noise = margin_noise(facts.people, cost, facts.sizes)
    least = 2 if noise <= 2 * NUMBER_NOISE else 1
    return min(max(least, int((NUMBER_NOISE / noise) ** 2)), facts.most)


def margin_noise(facts: PublicFacts, cost: Fraction, sizes: tuple[int, ...]) -> float:
    """Forecast the noise of a margin of these sizes, as a total variation distance."""
    noise = facts.absolute(cost, sensitivity.histograms(len(sizes))) / (2 * facts.rows)
    return noise * sum(sizes) / len(sizes)


@dataclass(frozen=True)
class Division:
    """The budget, divided among margins and some kinds of pairs.

    The noise of T tables at a fraction x of the budget is sqrt(T / x) in the L2 norm and T / x in
    the L1 norm, so its sum over kinds is least where x grows with the cube root of T, or with the
    square root.
    """

    facts: LinkedFacts
    kinds: tuple[str, ...]
    fraction: Fraction  # of the margins

    @property
    def margins(self) -> tuple[Fraction, Fraction]:
        """The cost of the margins of people and of events."""
        people, events = self.facts.width, len(self.facts.sizes)
        whole = self.fraction * self.facts.people.budget
        return whole * Fraction(people, people + events), whole * Fraction(events, people + events)

    @cached_property
    def tables(self) -> dict[str, int]:
        return {kind: tables for kind, tables in kinds_of(self.facts).items() if kind in self.kinds}

    @cached_property
    def costs(self) -> dict[str, Fraction]:
        """What margins leave, by kinds."""
        people = self.facts.people
        roots = {kind: _root(tables, people.norm + 1) for kind, tables in self.tables.items()}
        left = (1 - self.fraction) * people.budget
        return {kind: left * Fraction(root, sum(roots.values())) for kind, root in roots.items()}

    @cached_property
    def error(self) -> float:
        """The forecast of all kinds' mean total variation distances, added up."""
        margins, rows = self._margin_error, self.facts.people.rows
        for kind in kinds_of(self.facts):
            apart = DEPENDENCE[kind]
            if kind in self.kinds:
                noise = ENTERS * self._cells(kind) * self._deviation(kind) / (2 * rows)
                apart /= sqrt(1 + (apart / noise) * (apart / noise))
            margins += apart
        return margins

    @property
    def _margin_error(self) -> float:
        """The part of the margins' noise: by themselves, and of both columns in every kind.

        A column of events has two groups of the number of events.
        """
        facts, (of_people, of_events) = self.facts, self.margins
        people = self._margin(of_people, facts.every_size[: facts.width], (PEOPLE,))
        events = self._margin(of_events, facts.sizes, (BOTH, EVENTS, NEXT))
        return 4 * people + 6 * sqrt(2) * events

    def _margin(self, cost: Fraction, sizes: tuple[int, ...], kinds: tuple[str, ...]) -> float:
        """Forecast the noise of a margin that tables of pairs, which show it, too, make less."""
        facts, alone, events = self.facts.people, self.facts.width - 1, len(self.facts.sizes)
        deviation = facts.deviation(cost, sensitivity.histograms(len(sizes)))
        shown = {PEOPLE: alone, BOTH: alone, EVENTS: events - 1, NEXT: 2 * events - 1}
        looks = 1.0
        for kind in self.kinds:
            if kind in kinds:
                most = pair_groups(facts, self.costs[kind], self.tables[kind], NOISE)
                cells = min(most, MOST_GROUPS, sum(sizes) / len(sizes))
                ratio = deviation / self._deviation(kind)
                looks += shown[kind] * ratio * ratio / cells
        return margin_noise(facts, cost, sizes) / sqrt(looks)

    def _cells(self, kind: str) -> float:
        """Return about how many cells a table of this kind has."""
        facts = self.facts
        people, events = (
            sum(min(size, SEEN_GROUPS) for size in sizes) / len(sizes)
            for sizes in (facts.every_size[: facts.width], facts.sizes)
        )
        return {PEOPLE: people * people, BOTH: people * events}.get(kind, events * events)

    def _deviation(self, kind: str) -> float:
        moved = sensitivity.histograms(self.tables[kind])
        return self.facts.people.deviation(self.costs[kind], moved)


def best_division(facts: LinkedFacts) -> Division:
    """Return the division of the least error; margins alone have all of the budget.

    Pairs of one event are among all that are asked of events: else what other pairs show of events
    would be taken for them.
    """
    best, every = Division(facts, (), Fraction(1)), tuple(kinds_of(facts))
    for count in range(1, len(every) + 1):
        for kinds in combinations(every, count):
            if EVENTS in kinds or EVENTS not in every or kinds == (PEOPLE,):
                divisions = (Division(facts, kinds, fraction) for fraction in MARGIN_FRACTIONS)
                best = min(best, *divisions, key=lambda division: division.error)
    return best


def _root(number: int, degree: int) -> int:
    """Return a thousand times the root of a number, rounded down."""
    most = number * 1000**degree
    return bisect_right(range(1000 * number + 1), most, key=lambda root: root**degree) - 1


def clearest_linked(study: Study) -> Study:
    """Return a new study under pure epsilon, if that is forecast to have less error than its delta.

    `common.methods.subn_plus.plans` has the reason.
    """
    if not study.delta:
        return study
    pure = replace(study, delta=Fraction(0))
    one, other = (best_division(LinkedFacts.of(promised)).error for promised in (study, pure))
    return pure if other < one else study
