"""What a study's analyses need is measured first: the plan with declared tables, and their sum.

An analysis names sets of columns (`common.study.analyses`). After the margins, one sum counts the
tables of all declared sets; what is left of the budget goes to subn+'s own sums. Everything here
follows from public facts:

* a joint table of three columns or more whose cells would be mostly noise is measured by its pairs;
* sets that lie in one small table are one table, if that has less noise;
* every table has its own number of groups, the one for which noise and what groups hide are
  together the least (`reach`). The rare values of a column in an order share a group: they would
  make most of the noise. Other columns keep their values, if these are no more than the groups;
* without other pairs, margins get what keeps means exact, as far as that is worth it (`_alone`);
* `others`, if the study leaves it open, is the largest fraction at which declared tables stay
  clear, or else the least; nothing, where other pairs would drown, or declared tables be noisy.

The sum of T tables has the sensitivities of T histograms: 2 T in the L1 norm, sqrt(2 T) in L2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import inf, prod, sqrt
from typing import Protocol, TypeVar

from common.methods.designs.nocd import Pair
from common.methods.subn_plus import plans
from common.methods.subn_plus.dependence import Departure
from common.methods.subn_plus.facts import PublicFacts
from common.methods.subn_plus.losses import Measurement
from common.methods.subn_plus.plans import Ask, Plan, best_plan, margins_fraction
from common.methods.subn_plus.requests import (
    GroupedTables,
    Groups,
    TablesTogether,
    even_groups,
)
from common.methods.subn_plus.sums import Groupings, Tables
from common.privacy import sensitivity
from common.study.analyses import about_events, maximal
from common.study.requests import Attributes, Counts
from common.study.script import Script, measured

_P = TypeVar("_P")  # a plan

DECLARED = "declared tables"  # what the sum asks for, and the name of its step
MOST_GROUPS = 24  # of a column; more hide next to nothing
LEAST_GROUPS = 3  # of a column of a joint table, for which it must not drown
DROWNED = 0.5  # deviation of the noise in a cell, over the rows of an average cell
SMALL_TABLE = 64  # cells, in own values, of a table that may hold several sets
MOST_MERGED = 40  # declared sets, up to which joint small tables are looked for
NOISY = 0.15  # reach of a declared table above which other pairs get nothing
CLEAR = 0.06  # reach of all declared tables at which other pairs may have more
AS_CLEAR = 1.25  # times the reach of declared tables, up to which views of all columns do as well
MARGINS = Fraction(3, 10)  # at most, of the budget, beside other pairs
AS_EXACT = 1.5  # times the reach of a mean in the plan without declarations
_ALONE = tuple(Fraction(part, 20) for part in range(4, 15))  # of margins, without other pairs
_OTHERS = tuple(Fraction(part, 10) for part in (5, 4, 3, 2))
_HIDDEN = 2.7  # over the square of the groups: what they hide of a correlation
_INTERVAL = 2  # deviations on each side


class Widths(Protocol):
    """Of an attribute in at most so many groups: how many there are."""

    def __call__(self, attribute: int, *, groups: int) -> int: ...


@dataclass(frozen=True, slots=True)
class DeclaredTable:
    """A table of the sum: its columns, the most groups of each, and how many each has."""

    attributes: Attributes
    groups: int
    widths: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DeclaredTables:
    """What is measured for the analyses, at a cost.

    Attributes:
        tables: of the sum.
        by_pairs: the declared sets whose joint tables would be mostly noise.
        cost: of the sum.
        others: the fraction, of what margins leave, for pairs that no analysis names; None if the
            method has none.
    """

    tables: tuple[DeclaredTable, ...]
    by_pairs: tuple[Attributes, ...]
    cost: Fraction
    others: Fraction | None = None

    def reach(self, facts: PublicFacts, columns: Attributes, by: Attributes = ()) -> float:
        """Forecast how far the interval of a relation of these columns reaches to either side.

        In units of the columns' deviations: that of a correlation, or of a mean or a proportion in
        each group `by` some of them; 1 if no table holds them.
        """
        noise = deviation(facts, self.cost, len(self.tables))
        holding = self._holding(facts, columns)
        return min((_reach(facts, noise, table, columns, by) for table in holding), default=1.0)

    def _holding(self, facts: PublicFacts, columns: Attributes) -> list[DeclaredTable]:
        varied, events = set(columns).intersection(facts.cut), about_events(columns, facts.events)
        return [
            table
            for table in self.tables
            if varied <= set(table.attributes)
            and about_events(table.attributes, facts.events) == events
        ]


def deviation(facts: PublicFacts, cost: Fraction, tables: int) -> float:
    """Return the deviation of the noise in a cell of so many tables, over the rows."""
    return facts.deviation(cost, sensitivity.histograms(max(tables, 1))) / facts.rows


def _reach(
    facts: PublicFacts,
    noise: float,
    table: DeclaredTable,
    columns: Attributes,
    by: Attributes = (),
) -> float:
    """Forecast the reach of a relation in a table: noise, what groups hide, and sampling.

    A correlation is off by noise of the deviation s sqrt(cells) / rows. In every group, by further
    columns or by those that are named, it rests on that group's part of the rows alone.
    """
    widths = dict(zip(table.attributes, table.widths, strict=True))
    inside = sorted((widths[a] for a in columns if a in widths), reverse=True)
    parts = prod(widths[a] for a in by if a in widths) if by else prod(inside[2:])
    grouped = any(facts.sizes[a] > table.groups for a in columns if a in widths)
    hidden = _HIDDEN / table.groups**2 if grouped else 0.0
    sampled = 1 / sqrt(facts.rows / parts)
    moved = noise * sqrt(prod(widths.values()) * parts)
    return min(1.0, _INTERVAL * sqrt(moved * moved + sampled * sampled) + hidden)


def tables_for(facts: PublicFacts, cost: Fraction, widths: Widths | None = None) -> DeclaredTables:
    """Return the tables of all declared sets, each in as many groups as its noise allows.

    Which tables they are follows from public facts alone, before the first sum; how many groups
    they have also from the margins, if `widths` are theirs.
    """
    sets, by_pairs = _without_drowned(facts, cost)
    if len(sets) <= MOST_MERGED:
        sets = _merged(facts, cost, sets)
    noise = deviation(facts, cost, len(sets))
    tables = tuple(_finest(facts, noise, columns, widths) for columns in sets)
    return DeclaredTables(tables, by_pairs, cost)


def _finest(
    facts: PublicFacts, noise: float, columns: Attributes, widths: Widths | None = None
) -> DeclaredTable:
    """Return the table in the number of groups whose forecast reach is least."""
    most = max(2, min(max(facts.sizes[a] for a in columns), MOST_GROUPS))
    choices = []
    for groups in range(2, most + 1):
        by_size = tuple(min(facts.sizes[a], groups) for a in columns)
        shape = by_size if widths is None else tuple(widths(a, groups=groups) for a in columns)
        choices.append(DeclaredTable(columns, groups, shape))
    return min(choices, key=lambda table: _reach(facts, noise, table, columns))


def declared_sets(facts: PublicFacts) -> tuple[Attributes, ...]:
    """Return the declared sets of two columns or more that vary; a set in another is left out."""
    varied = (tuple(a for a in columns if a in set(facts.cut)) for columns in facts.declared)
    return _maximal(facts, varied)


def _maximal(facts: PublicFacts, sets: Iterable[Attributes]) -> tuple[Attributes, ...]:
    return maximal((columns for columns in sets if len(columns) > 1), events=facts.events)


def _without_drowned(
    facts: PublicFacts, cost: Fraction
) -> tuple[tuple[Attributes, ...], tuple[Attributes, ...]]:
    """Return the sets, the pairs of those whose joint tables drown, and which these are."""
    sets, by_pairs = declared_sets(facts), list[Attributes]()
    while True:
        noise = deviation(facts, cost, len(sets))
        drowned = next(
            (columns for columns in sets if len(columns) > 2 and _drowns(facts, noise, columns)),
            None,
        )
        if drowned is None:
            return sets, tuple(by_pairs)
        by_pairs.append(drowned)
        rest = (columns for columns in sets if columns != drowned)
        sets = _maximal(facts, (*rest, *combinations(drowned, 2)))


def _drowns(facts: PublicFacts, noise: float, columns: Attributes) -> bool:
    return noise * prod(min(facts.sizes[a], LEAST_GROUPS) for a in columns) > DROWNED


def _merged(
    facts: PublicFacts, cost: Fraction, sets: tuple[Attributes, ...]
) -> tuple[Attributes, ...]:
    """Put sets into one small table where that makes all of them together clearer."""
    declared = sets
    best = _total(facts, cost, sets, declared)
    while True:
        unions = {
            tuple(sorted({*one, *other}))
            for one, other in combinations(sets, 2)
            if about_events(one, facts.events) == about_events(other, facts.events)
        }
        small = [u for u in sorted(unions) if prod(facts.sizes[a] for a in u) <= SMALL_TABLE]
        trials = [_maximal(facts, (*sets, union)) for union in small]
        totals = [_total(facts, cost, trial, declared) for trial in trials]
        if not totals or min(totals) >= best:
            return sets
        best = min(totals)
        sets = trials[totals.index(best)]


def _total(
    facts: PublicFacts, cost: Fraction, tables: Sequence[Attributes], declared: Sequence[Attributes]
) -> float:
    """Return the sum of the reaches of all sets in these tables."""
    noise = deviation(facts, cost, len(tables))
    finest = [_finest(facts, noise, columns) for columns in tables]
    return sum(
        min(
            _reach(facts, noise, t, columns)
            for t in finest
            if set(columns) <= set(t.attributes)
            and about_events(t.attributes, facts.events) == about_events(columns, facts.events)
        )
        for columns in declared
    )


def plan_of(facts: PublicFacts) -> Plan:
    """Return the best plan; with the declared tables, right after margins, if there are any."""
    return declared_plan(facts)[0]


@lru_cache(maxsize=64)
def declared_plan(facts: PublicFacts) -> tuple[Plan, DeclaredTables | None]:
    """Return the plan, and what of it is for the analyses; None if its own sums show them best."""
    plain = replace(facts, declared=(), others=None)
    if not declared_sets(facts):
        return best_plan(plain), None
    if facts.others == 0:
        return _alone(facts, plain)
    margins = min(margins_fraction(plain, plain.alone), MARGINS)
    if facts.others is not None:
        return _with_declared(facts, plain, margins, facts.others)
    whole = best_plan(plain)

    def trial(others: Fraction) -> tuple[Plan, DeclaredTables, bool]:
        if not others:
            return *_alone(facts, plain), False
        plan, declared = _with_declared(facts, plain, margins, others)
        return plan, declared, any(ask.what not in SINGLE for ask in plan.asks)

    clearest = clearest_others(facts, trial)
    if of_views(facts, whole) <= AS_CLEAR * worst(facts, clearest[1]):
        return whole, None
    return clearest


def clearest_others(
    facts: PublicFacts, trial: Callable[[Fraction], tuple[_P, DeclaredTables, bool]]
) -> tuple[_P, DeclaredTables]:
    """Return the plan with the most for other pairs at which declared tables are clear.

    `trial` makes a plan for a fraction of others, and says whether it shows other pairs at all. If
    declared tables are never clear, other pairs get the least; nothing, if declared ones are noisy.
    """
    chosen = None
    for others in reversed(_OTHERS):
        plan, declared, shows_others = trial(others)
        reach = worst(facts, declared)
        if reach > NOISY:
            break
        if shows_others and (others == _OTHERS[-1] or reach <= CLEAR):
            chosen = plan, declared
    return chosen or trial(Fraction(0))[:2]


SINGLE = (DECLARED, plans.MARGINS)  # sums that tell nothing of pairs that no analysis names


def _alone(facts: PublicFacts, plain: PublicFacts) -> tuple[Plan, DeclaredTables]:
    """Return the plan of margins and declared tables alone.

    Margins get what keeps the mean of a column about as exact as in the plan without declarations;
    but no more than the fraction at which a percent of the widest declared relation is worth a
    percent of a mean: there the product of the two forecasts is least.
    """
    choices = [_with_declared(facts, plain, fraction, Fraction(0)) for fraction in _ALONE]
    means = [_of_means(facts, plan) for plan, _ in choices]
    products = [
        mean * worst(facts, declared) for mean, (_, declared) in zip(means, choices, strict=True)
    ]
    enough = AS_EXACT * _of_means(facts, best_plan(plain))
    exact = next((place for place, mean in enumerate(means) if mean <= enough), len(means))
    return choices[min(exact, products.index(min(products)))]


def _of_means(facts: PublicFacts, plan: Plan) -> float:
    """Forecast the mean reach of a mean of one column, however noisy."""
    return sum(_of_margin(facts, plan, a) for a in facts.cut) / len(facts.cut)


def of_margin(facts: PublicFacts, plan: Plan, attribute: int) -> float:
    """Forecast the reach of a statistic of one column."""
    return min(1.0, _of_margin(facts, plan, attribute))


def _of_margin(facts: PublicFacts, plan: Plan, attribute: int) -> float:
    cost = plan.cost(plans.MARGINS) or plan.cost(plans.VIEWS)
    blocks = plan.blocks or (plan.design.views if plan.design else facts.alone)
    noise = facts.deviation(cost, sensitivity.histograms(len(blocks))) / facts.rows
    moved = noise * sqrt(facts.sizes[attribute])
    return _INTERVAL * sqrt(moved * moved + 1 / facts.rows)


def _with_declared(
    facts: PublicFacts, plain: PublicFacts, margins: Fraction, others: Fraction
) -> tuple[Plan, DeclaredTables]:
    cost = facts.budget * (1 - margins) * (1 - others)
    left = replace(plain, promise=replace(plain.promise, left=facts.budget - cost))
    plan = (None if others else plans.PLANS["margins"](left)) or best_plan(left)
    whats = [ask.what for ask in plan.asks]
    place = whats.index(plans.MARGINS) + 1 if plans.MARGINS in whats else 0
    asks = (*plan.asks[:place], Ask(DECLARED, cost), *plan.asks[place:])
    return replace(plan, asks=asks), replace(tables_for(facts, cost), others=others)


def worst(facts: PublicFacts, declared: DeclaredTables | None) -> float:
    if declared is None:
        return inf
    return max(declared.reach(facts, columns) for columns in _measured_sets(facts, declared))


def _measured_sets(facts: PublicFacts, declared: DeclaredTables) -> list[Attributes]:
    """Return the sets that are measured: declared ones, or their pairs."""
    by_pairs = declared.by_pairs
    whole = [columns for columns in declared_sets(facts) if columns not in by_pairs]
    return [*whole, *(pair for columns in by_pairs for pair in combinations(columns, 2))]


def of_views(facts: PublicFacts, plan: Plan) -> float:
    """Forecast the worst reach of the declared sets in the views of a plan without them."""
    if plan.design is None or plan.cost(plans.VIEWS) == 0:
        return inf
    design, noise = plan.design, deviation(facts, plan.cost(plans.VIEWS), len(plan.design.views))
    groups = max(design.sizes)
    views = [DeclaredTable(v, groups, tuple(design.sizes[a] for a in v)) for v in design.views]
    return max(
        min(
            (_reach(facts, noise, v, columns) for v in views if set(columns) <= set(v.attributes)),
            default=inf,
        )
        for columns in declared_sets(facts)
    )


def ask_declared(
    facts: PublicFacts, ask: Ask, histograms: Sequence[Counts]
) -> Script[tuple[list[Measurement], dict[Pair, Departure]]]:
    """Ask for the declared tables; they come back for the fit, with their pairs' departures."""
    groupings = TableGroups(facts, histograms)
    declared = tables_for(facts, ask.cost, groupings.width)
    parts = tuple(
        GroupedTables((table.attributes,), groupings.of(table)) for table in declared.tables
    )
    moved = sensitivity.histograms(len(parts))
    step = facts.sum_of(TablesTogether(parts), name=ask.name, cost=ask.cost, moved=moved)
    tables, law = yield from measured(step)
    measurements, departures = list[Measurement](), dict[Pair, Departure]()
    for part, table in zip(parts, tables, strict=True):
        shown = Tables(part, [table], [law])
        measurements += shown.measurements(facts)
        if histograms:
            departures |= shown.departures(facts, histograms)
    return measurements, departures


class TableGroups:
    """The attributes in at most so many groups, by their noisy histograms if there are any."""

    def __init__(self, facts: PublicFacts, histograms: Sequence[Counts]) -> None:
        self._facts, self._histograms = facts, histograms
        self._known: dict[tuple[int, int], Groups] = {}

    def width(self, attribute: int, *, groups: int) -> int:
        """Return how many groups an attribute has."""
        return max(self._groups(attribute, groups)) + 1

    def of(self, table: DeclaredTable) -> Groupings:
        """Return the groups of every attribute; those outside of the table are one group."""
        return tuple(
            self._groups(a, table.groups) if a in table.attributes else (0,) * size
            for a, size in enumerate(self._facts.sizes)
        )

    def _groups(self, attribute: int, groups: int) -> Groups:
        if (attribute, groups) not in self._known:
            self._known[attribute, groups] = self._made(attribute, groups)
        return self._known[attribute, groups]

    def _made(self, attribute: int, groups: int) -> Groups:
        facts, size = self._facts, self._facts.sizes[attribute]
        ordered = bool(facts.ordered) and facts.ordered[attribute] == size
        if not self._histograms or (size <= groups and not ordered):
            return tuple(range(size))
        histogram = self._histograms[attribute]
        return even_groups(histogram, facts.rows, groups=groups, join_rare=ordered)
