"""subn+ on people and their events: noisy sums, and one model fitted to all of them.

    1. Margins. Every attribute of people, the number of events, and every attribute of events.
    2. Pairs, in groups of values: two of a person's columns, a person's and an event's, two of the
       same event.
    3. Next. Every attribute of an event with every attribute of the next one.

How many groups, and whether pairs or consecutive events are asked for at all, follows from the
noise that public facts forecast. Where even two groups would show little but noise, the margins get
the budget, and the model is independent columns. What is left of the noise in pairs is kept out by
the price of information (`linked.fit`).

Sums over people's attributes alone count people. All others are in units of a person's weight, and
cost the same noise (`linked.requests`); a step of T tables gets a part of the budget in proportion
to T, so that all tables of a phase have the same noise, whichever step they are in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import combinations
from math import comb, sqrt

import numpy as np

from common.bayes.postprocessing import margin_of
from common.errors import InputError
from common.methods.subn_plus.facts import PublicFacts, ordered_values, pair_groups
from common.methods.subn_plus.linked.fit import Column, fit_linked
from common.methods.subn_plus.linked.loss import Sums
from common.methods.subn_plus.linked.model import LinkedModel
from common.methods.subn_plus.linked.requests import AveragedTables, NextTables, unit_of, weight
from common.methods.subn_plus.losses import Floats
from common.methods.subn_plus.requests import GroupedTables, Groups, even_groups
from common.methods.subn_plus.sums import every_value, fit_variance, one_way, tables_of
from common.privacy import sensitivity
from common.privacy.noise_law import NoiseLaw
from common.study.document import Study
from common.study.requests import Attributes, Counts
from common.study.script import Fit, Script, added_up

MARGINS = Fraction(3, 10)  # of the budget, if pairs are asked for
NEXT = Fraction(1, 4)  # of the budget, if consecutive events are asked for
NOISE = 0.3  # forecast of a table of pairs, as a total variation distance: groups become fewer
WORTHLESS = 0.07  # the same for two groups of each column: above, pairs are not asked for
MOST_GROUPS = 12  # of a column


@dataclass(frozen=True)
class LinkedFacts:
    """What is public before the first sum: the facts of people, and the events' part."""

    people: PublicFacts
    sizes: tuple[int, ...]  # of the events' attributes
    ordered: tuple[int, ...]  # of each of them, how many of its first values are in an order
    most: int

    @classmethod
    def of(cls, study: Study) -> LinkedFacts:
        """Return the facts of a study; InputError if it asks for what linked tables do not have."""
        events = study.schema.events
        refused = {
            "rows_per_person": study.rows_per_person,
            "criterion": study.criteria,
            "analysis": study.analyses,
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


@dataclass(frozen=True, slots=True)
class Budget:
    """The cost of each phase, and the groups of its tables; 0 of what is not asked for."""

    margins: Fraction
    pairs: Fraction
    next: Fraction
    pair_groups: int = 0
    next_groups: int = 0


def decide_budget(facts: LinkedFacts) -> Budget:
    """Forecast, from public facts, what can be seen; all that is left goes to the margins."""
    whole, columns = facts.people.budget, len(facts.every_size)
    pairs, later = comb(columns, 2), len(facts.sizes) ** 2
    next_cost = NEXT * whole if facts.most > 1 else Fraction(0)
    if next_cost and _worthless(facts, next_cost, later):
        next_cost = Fraction(0)
    pair_cost = (1 - MARGINS) * whole - next_cost
    if _worthless(facts, pair_cost, pairs):
        return margins_only(facts)
    return Budget(
        MARGINS * whole,
        pair_cost,
        next_cost,
        min(pair_groups(facts.people, pair_cost, pairs, NOISE), MOST_GROUPS),
        min(pair_groups(facts.people, next_cost, later, NOISE), MOST_GROUPS) if next_cost else 0,
    )


def _worthless(facts: LinkedFacts, cost: Fraction, tables: int) -> bool:
    """Return whether a table of two times two groups would be little but noise."""
    deviation = facts.people.deviation(cost, sensitivity.histograms(tables))
    return 2 * deviation / facts.people.rows > WORTHLESS


@dataclass(frozen=True, slots=True)
class Shares:
    """Noisy tables as shares of the people, and the variance of a cell."""

    tables: Mapping[Attributes, Floats]
    variance: float


def margins_only(facts: LinkedFacts) -> Budget:
    """Leave all of the budget to the margins: columns that have nothing to do with each other."""
    return Budget(facts.people.budget, Fraction(0), Fraction(0))


def measure_linked(
    facts: LinkedFacts, decide: Callable[[LinkedFacts], Budget] = decide_budget
) -> Script[Fit]:
    """Run the phases: margins, pairs, and consecutive events, as far as the budget goes."""
    budget = decide(facts)
    histograms, margins = yield from _margins(facts, budget.margins)
    if not budget.pairs:
        return partial(_model, facts, budget, margins, histograms, None, None)
    pairs = yield from _pairs(facts, budget, histograms)
    later = None
    if budget.next:
        later = yield from _next(facts, budget, histograms)
    return partial(_model, facts, budget, margins, histograms, pairs, later)


def _margins(facts: LinkedFacts, cost: Fraction) -> Script[tuple[list[Counts], Shares]]:
    """Ask for every column by itself; return counts for decisions, and shares for the fit."""
    alone, columns = len(facts.people.sizes), len(facts.every_size)
    request = GroupedTables(tuple((a,) for a in range(alone)), every_value(facts.people))
    first = yield from tables_of(facts.people, "margins", cost * Fraction(alone, columns), request)
    own = tuple((v,) for v in range(alone, columns))
    second = AveragedTables(own, _every_value(facts), facts.width, facts.most)
    rest = cost * Fraction(len(own), columns)
    tables, law = yield from _averaged(facts, "margins of events", rest, second)
    histograms = [*one_way(first), *(tables[v] // second.unit for v in own)]
    seen = _shares(facts, zip(request.sets, first.tables, strict=True), first.laws[0], 1)
    averaged = _shares(facts, tables.items(), law, second.unit)
    return histograms, _together(seen, averaged)


def _pairs(facts: LinkedFacts, budget: Budget, histograms: Sequence[Counts]) -> Script[Shares]:
    """Ask for all pairs of columns, in groups."""
    groups = _groups(facts, histograms, budget.pair_groups)
    alone, columns = len(facts.people.sizes), len(facts.every_size)
    every = tuple(combinations(range(columns), 2))
    own = tuple(pair for pair in every if pair[1] < alone)
    found = Shares({}, 0.0)
    if own:
        cost = budget.pairs * Fraction(len(own), len(every))
        request = GroupedTables(own, groups[:alone])
        seen = yield from tables_of(facts.people, "pairs", cost, request)
        found = _shares(facts, zip(own, seen.tables, strict=True), seen.laws[0], 1)
    others = tuple(pair for pair in every if pair[1] >= alone)
    averaged = AveragedTables(others, groups, facts.width, facts.most)
    cost = budget.pairs * Fraction(len(others), len(every))
    tables, law = yield from _averaged(facts, "pairs with events", cost, averaged)
    return _together(found, _shares(facts, tables.items(), law, averaged.unit))


def _next(facts: LinkedFacts, budget: Budget, histograms: Sequence[Counts]) -> Script[Shares]:
    """Ask for the attributes of consecutive events, in groups."""
    groups = _groups(facts, histograms, budget.next_groups)[facts.width :]
    request = NextTables(groups, facts.most)
    tables, law = yield from _averaged(facts, "next events", budget.next, request)
    return _shares(facts, tables.items(), law, request.unit)


def _averaged(
    facts: LinkedFacts, name: str, cost: Fraction, request: AveragedTables | NextTables
) -> Script[tuple[dict[Attributes, Counts], NoiseLaw]]:
    moved = request.sensitivity
    step = facts.people.sum_of(request, name=name, cost=cost, moved=moved)
    answer, law = yield from added_up(step)
    return request.split(answer), law


def _every_value(facts: LinkedFacts) -> tuple[Groups, ...]:
    return tuple(tuple(range(size)) for size in facts.every_size)


def _groups(facts: LinkedFacts, histograms: Sequence[Counts], most: int) -> tuple[Groups, ...]:
    """Cut every column into groups of similar weight, by its noisy histogram."""
    rows = facts.people.rows
    return tuple(even_groups(histogram, rows, groups=max(most, 1)) for histogram in histograms)


def _shares(
    facts: LinkedFacts, tables: Iterable[tuple[Attributes, Counts]], law: NoiseLaw, unit: int
) -> Shares:
    whole = unit * facts.people.rows
    found = {own: table / whole for own, table in tables}
    return Shares(found, fit_variance(law, facts.people) / whole**2)


def _together(one: Shares, other: Shares) -> Shares:
    """Return the tables of two steps of a phase, whose noise is the same but for rounding."""
    return Shares({**one.tables, **other.tables}, max(one.variance, other.variance))


def _model(
    facts: LinkedFacts,
    budget: Budget,
    margins: Shares,
    histograms: Sequence[Counts],
    pairs: Shares | None,
    later: Shares | None,
) -> LinkedModel:
    """Fit the model; floating point, and no step depends on it."""
    width, unit = facts.width, unit_of(facts.most)
    columns = _columns(facts, budget, margins, histograms)
    people, events = columns[:width], columns[width:]
    sizes = [int(own.groups.max()) + 1 for own in columns]
    joint = _side_by_side(pairs.tables if pairs else {}, sizes)
    cut = sum(sizes[:width])
    widths = [int(own.later.max()) + 1 for own in events]
    step = _side_by_side(later.tables if later else {}, widths, mirrored=False)
    later_unit = unit_of(facts.most - 1) if facts.most > 1 else 1
    return fit_linked(
        people,
        events,
        Sums(
            joint[:cut, :cut],
            joint[cut:, cut:],
            joint[:cut, cut:],
            step,
            1 / pairs.variance if pairs else 0.0,
            1 / later.variance if later else 0.0,
        ),
        share=np.array([weight(number, unit=unit) for number in range(1, facts.most + 1)]),
        later_share=np.array([weight(number, unit=later_unit) for number in range(1, facts.most)]),
    )


def _columns(
    facts: LinkedFacts, budget: Budget, margins: Shares, histograms: Sequence[Counts]
) -> list[Column]:
    """Return all columns; one group of what no phase has seen."""
    groups = _groups(facts, histograms, budget.pair_groups)
    later = _groups(facts, histograms, budget.next_groups)
    columns = []
    for v, (size, margin) in enumerate(
        zip(facts.every_size, _distributions(facts, margins), strict=True)
    ):
        seen = groups[v] if budget.pairs else (0,) * size
        after = later[v] if budget.next and v >= facts.width else (0,) * size
        if v == facts.width - 1:  # the walk needs every number of events
            after = tuple(range(size))
        own = (np.array(each, dtype=np.intp) for each in (seen, after))
        columns.append(Column(margin, margins.variance, *own))
    return columns


def _distributions(facts: LinkedFacts, margins: Shares) -> list[Floats]:
    """Return every column's distribution: no share below zero, and the right total."""
    rows, deviation = facts.people.rows, sqrt(margins.variance)
    found: list[Floats] = []
    total = 1.0
    for v, ordered in enumerate(facts.every_order):
        people = max(round(total * rows), 1)
        counts = margin_of(margins.tables[v,] * rows, people, deviation * rows, ordered)
        found.append(counts / rows)
        if v == facts.width - 1:  # the number of events: the rest is about their weight
            weights = [weight(number, unit=unit_of(facts.most)) for number in range(facts.most + 1)]
            total = float(found[-1] @ weights)
    return found


def _side_by_side(
    tables: Mapping[Attributes, Floats], sizes: Sequence[int], *, mirrored: bool = True
) -> Floats:
    """Return tables of pairs as blocks of one matrix."""
    starts = np.concatenate([[0], np.cumsum(sizes)])
    joint = np.zeros((int(starts[-1]), int(starts[-1])))
    for (a, b), table in tables.items():
        rows, columns = (slice(starts[v], starts[v + 1]) for v in (a, b))
        joint[rows, columns] = table
        if mirrored:
            joint[columns, rows] = table.T
    return joint
