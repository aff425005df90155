"""subn+ on people and their events: noisy sums, and one model fitted to all of them.

    1. Margins. Every attribute of people, the number of events, and every attribute of events.
    2. Pairs, in groups of values: two of a person's columns, a person's and an event's, two of the
       same event.
    3. Next. Every attribute of an event with every attribute of the next one.
    4. Totals. How far numbers are from the middles of their bins (`linked.totals`).

How many groups, and whether pairs or consecutive events are asked for at all, follows from the
noise that public facts forecast. Where even two groups would show little but noise, the margins get
the budget, and the model is independent columns. What is left of the noise in pairs is kept out by
the price of information, of which the sums themselves tell the factor (`linked.fit`).

Sums over people's attributes alone count people. All others are in units of a person's weight, and
cost the same noise (`linked.requests`). All margins have the same noise, whichever step they are
in; the kinds of pairs have shares of the budget by their numbers of tables (`decide_budget`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import combinations
from math import comb, sqrt

import numpy as np

from common.bayes.postprocessing import margin_of
from common.errors import InputError
from common.methods.subn_plus.declared import MARGINS as DECLARED_MARGINS
from common.methods.subn_plus.declared import (
    DeclaredTables,
    clearest_others,
    declared_sets,
    tables_for,
)
from common.methods.subn_plus.facts import PublicFacts, ordered_values, pair_groups, spans_of
from common.methods.subn_plus.linked.declared import DeclaredPair, ask_declared
from common.methods.subn_plus.linked.fit import Column, fit_linked, sights
from common.methods.subn_plus.linked.loss import Seen, SeenPair, Sums
from common.methods.subn_plus.linked.model import LinkedModel
from common.methods.subn_plus.linked.requests import AveragedTables, NextTables, unit_of, weight
from common.methods.subn_plus.linked.totals import AveragedTotals, largest_total
from common.methods.subn_plus.losses import Floats
from common.methods.subn_plus.requests import GroupedTables, Groups, even_groups
from common.methods.subn_plus.sums import every_value, fit_variance, one_way, tables_of
from common.methods.subn_plus.totals import NAME as TOTALS
from common.methods.subn_plus.totals import totals_fraction, totals_request
from common.privacy import sensitivity
from common.privacy.noise_law import NoiseLaw
from common.study.document import Study
from common.study.requests import Attributes, Counts
from common.study.script import Fit, Script, added_up

PEOPLE, BOTH, EVENTS = "pairs", "pairs with events", "pairs of events"  # kinds of tables
NEXT = "next events"
MARGIN_NOISE = 0.02  # forecast of a margin, as a total variation distance
# Of the budget, if pairs are asked for: the least by which margins are as clear as that.
MARGINS = (Fraction(1, 10), Fraction(3, 20), Fraction(1, 5), Fraction(3, 10), Fraction(2, 5))
NOISE = 1.0  # forecast of a table of pairs, as a total variation distance: groups become fewer
WORTHLESS = 0.12  # the same for two groups of each column: above, pairs are not asked for
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
    costs: Mapping[str, Fraction]
    pair_groups: int = 1
    next_groups: int = 1
    declared: Fraction = Fraction(0)  # what analyses need


def kinds_of(facts: LinkedFacts) -> dict[str, int]:
    """Return how many tables of each kind there are, by the names of their steps."""
    alone, events = len(facts.people.sizes), len(facts.sizes)
    kinds = {
        PEOPLE: comb(alone, 2),
        BOTH: alone + facts.width * events,  # the number of events is seen with people, too
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
    whole, share = facts.people.budget, min(_margin_fraction(facts), DECLARED_MARGINS)

    def trial(others: Fraction) -> tuple[Budget, DeclaredTables, bool]:
        cost = whole * (1 - share) * (1 - others)
        left = facts.with_budget(whole - cost)
        rest = undeclared_budget(left) if others else margins_only(left)
        tables = replace(tables_for(every, cost), others=others)
        return replace(rest, declared=cost), tables, bool(rest.costs)

    if every.others is not None:
        return trial(every.others)[:2]
    return clearest_others(every, trial)


def undeclared_budget(facts: LinkedFacts) -> Budget:
    """Divide the budget among margins and pairs; without pairs all goes to the margins.

    Every kind of tables is worth the same. The noise of T tables at a fraction x of the budget is
    sqrt(T / x) in the L2 norm and T / x in the L1 norm, so its sum over kinds is least where x
    grows with the cube root of T, or with the square root.
    """
    whole, kinds, share = facts.people.budget, kinds_of(facts), _margin_fraction(facts)
    left = (1 - share) * whole
    if NEXT in kinds and _noise(facts, _costs(facts, kinds, left)[NEXT], kinds[NEXT]) > WORTHLESS:
        del kinds[NEXT]
    costs = _costs(facts, kinds, left)
    if _noise(facts, costs[BOTH], kinds[BOTH]) > WORTHLESS:
        return margins_only(facts)
    groups = {
        kind: min(pair_groups(facts.people, costs[kind], kinds[kind], NOISE), MOST_GROUPS)
        for kind in (BOTH, NEXT)
        if kind in costs
    }
    return Budget(share * whole, costs, groups[BOTH], groups.get(NEXT, 1))


def _margin_fraction(facts: LinkedFacts) -> Fraction:
    """Return the margins' part of the budget, if pairs are asked for."""
    sizes = facts.every_size
    for share in MARGINS:
        moved = sensitivity.histograms(len(sizes))
        noise = facts.people.absolute(share * facts.people.budget, moved) / (2 * facts.people.rows)
        if noise * sum(sizes) / len(sizes) <= MARGIN_NOISE:
            return share
    return MARGINS[-1]


def _costs(facts: LinkedFacts, kinds: Mapping[str, int], left: Fraction) -> dict[str, Fraction]:
    """Divide what margins leave among kinds of tables."""
    degree = facts.people.norm + 1
    roots = {name: _root(tables, degree) for name, tables in kinds.items()}
    return {name: left * Fraction(root, sum(roots.values())) for name, root in roots.items()}


def _root(number: int, degree: int) -> int:
    """Return a thousand times the root of a number, rounded down."""
    most = number * 1000**degree
    return bisect_right(range(1000 * number + 1), most, key=lambda root: root**degree) - 1


def _noise(facts: LinkedFacts, cost: Fraction, tables: int) -> float:
    """Forecast the noise in a table of two times two groups, as a total variation distance."""
    return 2 * facts.people.deviation(cost, sensitivity.histograms(tables)) / facts.people.rows


@dataclass(frozen=True, slots=True)
class Shares:
    """Noisy tables as shares of the people, and the variance of a cell of each."""

    tables: Mapping[Attributes, Floats]
    variances: Mapping[Attributes, float]

    @property
    def precisions(self) -> Mapping[Attributes, Floats]:
        """The inverse variance of every cell."""
        return {
            own: np.full_like(table, 1 / self.variances[own]) for own, table in self.tables.items()
        }

    def __or__(self, other: Shares) -> Shares:
        return Shares({**self.tables, **other.tables}, {**self.variances, **other.variances})


NOTHING = Shares({}, {})


def margins_only(facts: LinkedFacts) -> Budget:
    """Leave all of the budget to the margins: columns that have nothing to do with each other."""
    return Budget(facts.people.budget, {})


def measure_linked(
    facts: LinkedFacts,
    decide: Callable[[LinkedFacts], Budget] = decide_budget,
    *,
    with_totals: bool = True,
) -> Script[Fit]:
    """Run the phases: margins, pairs, consecutive events and totals, as far as the budget goes."""
    totals = Fraction(0)
    if with_totals:
        totals = totals_fraction(facts.every, largest_total(facts.most)) * facts.people.budget
        facts = facts.with_budget(facts.people.budget - totals)
    budget = decide(facts)
    histograms, margins = yield from _margins(facts, budget.margins)
    declared = list[DeclaredPair]()
    if budget.declared:
        declared = yield from ask_declared(facts.every, budget.declared, facts.most, histograms)
    pairs = later = NOTHING
    if budget.costs:
        pairs = yield from _pairs(facts, budget, histograms)
    if NEXT in budget.costs:
        later = yield from _next(facts, budget, histograms)
    if totals:
        yield from _totals(facts, totals, histograms)
    return partial(_model, facts, budget, margins, histograms, pairs, later, declared)


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
    return histograms, seen | averaged


def _pairs(facts: LinkedFacts, budget: Budget, histograms: Sequence[Counts]) -> Script[Shares]:
    """Ask for all pairs of columns, in groups: of people, of people and events, of events."""
    groups = _groups(facts, histograms, budget.pair_groups)
    alone = len(facts.people.sizes)
    every = tuple(combinations(range(len(facts.every_size)), 2))
    seen = NOTHING
    if PEOPLE in budget.costs:
        request = GroupedTables(tuple(p for p in every if p[1] < alone), groups[:alone])
        tables = yield from tables_of(facts.people, PEOPLE, budget.costs[PEOPLE], request)
        pairs = zip(request.sets, tables.tables, strict=True)
        seen |= _shares(facts, pairs, tables.laws[0], 1)
    kinds = {
        BOTH: tuple(p for p in every if p[0] < facts.width and p[1] >= alone),
        EVENTS: tuple(p for p in every if p[0] >= facts.width),
    }
    for name in (kind for kind in kinds if kind in budget.costs):
        averaged = AveragedTables(kinds[name], groups, facts.width, facts.most)
        answer, law = yield from _averaged(facts, name, budget.costs[name], averaged)
        seen |= _shares(facts, answer.items(), law, averaged.unit)
    return seen


def _next(facts: LinkedFacts, budget: Budget, histograms: Sequence[Counts]) -> Script[Shares]:
    """Ask for the attributes of consecutive events, in groups."""
    groups = _groups(facts, histograms, budget.next_groups)[facts.width :]
    request = NextTables(groups, facts.most)
    tables, law = yield from _averaged(facts, NEXT, budget.costs[NEXT], request)
    return _shares(facts, tables.items(), law, request.unit)


def _totals(facts: LinkedFacts, cost: Fraction, histograms: Sequence[Counts]) -> Script[None]:
    """Ask how far numbers are from the middles of their bins, a person's events averaged."""
    alone = totals_request(facts.every, cost, histograms)
    request = AveragedTotals(**vars(alone), people=facts.width, most=facts.most)
    yield from added_up(
        facts.people.sum_of(request, name=TOTALS, cost=cost, moved=request.sensitivity)
    )


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
    shares = {own: table / whole for own, table in tables}
    return Shares(shares, dict.fromkeys(shares, fit_variance(law, facts.people) / whole**2))


def _model(
    facts: LinkedFacts,
    budget: Budget,
    margins: Shares,
    histograms: Sequence[Counts],
    pairs: Shares,
    later: Shares,
    declared: Sequence[DeclaredPair],
) -> LinkedModel:
    """Fit the model; floating point, and no step depends on it."""
    width, unit = facts.width, unit_of(facts.most)
    columns = _columns(facts, budget, margins, histograms, declared)
    people, events = columns[:width], columns[width:]
    sizes = [int(own.groups.max()) + 1 for own in columns]
    cut = sum(sizes[:width])
    shares, precisions = (_side_by_side(t, sizes) for t in (pairs.tables, pairs.precisions))
    widths = [int(own.later.max()) + 1 for own in events]
    after = (_side_by_side(t, widths, mirrored=False) for t in (later.tables, later.precisions))
    later_unit = unit_of(facts.most - 1) if facts.most > 1 else 1
    return fit_linked(
        people,
        events,
        Sums(
            Seen(shares[:cut, :cut], precisions[:cut, :cut]),
            Seen(shares[cut:, cut:], precisions[cut:, cut:]),
            Seen(shares[:cut, cut:], precisions[:cut, cut:]),
            Seen(*after),
            tuple(_seen_pair(columns, own) for own in declared),
        ),
        share=np.array([weight(number, unit=unit) for number in range(1, facts.most + 1)]),
        later_share=np.array([weight(number, unit=later_unit) for number in range(1, facts.most)]),
    )


def _seen_pair(columns: Sequence[Column], own: DeclaredPair) -> SeenPair:
    one, other = (
        sights(np.array(groups, dtype=np.intp), columns[v].atoms)
        for v, groups in zip(own.variables, own.groups, strict=True)
    )
    first, second = own.variables
    return SeenPair((first, second), (one, other), own.shares, 1 / own.variance)


def _columns(
    facts: LinkedFacts,
    budget: Budget,
    margins: Shares,
    histograms: Sequence[Counts],
    declared: Sequence[DeclaredPair],
) -> list[Column]:
    """Return all columns; one group of what no phase has seen."""
    groups = _groups(facts, histograms, budget.pair_groups)
    later = _groups(facts, histograms, budget.next_groups)
    columns = []
    for v, (size, margin) in enumerate(
        zip(facts.every_size, _distributions(facts, margins), strict=True)
    ):
        seen = groups[v] if budget.costs else (0,) * size
        after = later[v] if NEXT in budget.costs and v >= facts.width else (0,) * size
        if v == facts.width - 1:  # the walk needs every number of events
            after = tuple(range(size))
        named = (
            groups
            for pair in declared
            for at, groups in zip(pair.variables, pair.groups, strict=True)
            if at == v
        )
        first, second, *more = (np.array(own, dtype=np.intp) for own in (seen, after, *named))
        columns.append(Column(margin, margins.variances[v,], first, second, tuple(more)))
    return columns


def _distributions(facts: LinkedFacts, margins: Shares) -> list[Floats]:
    """Return every column's distribution: no share below zero, and the right total."""
    rows, deviation = facts.people.rows, sqrt(max(margins.variances.values()))
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


def clearest_linked(study: Study) -> Study:
    """Return a new study under pure epsilon, if that is forecast to show more than its delta does.

    `common.methods.subn_plus.plans` has the reason.
    """
    pure = replace(study, delta=Fraction(0))
    one, other = (_clearness(LinkedFacts.of(own)) for own in (study, pure))
    return pure if study.delta and other < one else study


def _clearness(facts: LinkedFacts) -> tuple[bool, float]:
    """Return whether there are only margins, and the noise of the tables that show most."""
    budget = decide_budget(facts)
    if not budget.costs:
        return True, _noise(facts, budget.margins, len(facts.every_size))
    return False, _noise(facts, budget.costs[BOTH], kinds_of(facts)[BOTH])
