"""subn+ on people and their events: noisy sums, and one model fitted to all of them.

    1. Margins. Every attribute of people, the number of events, and every attribute of events.
    2. Pairs, in groups of values: two of a person's columns, a person's and an event's, two of the
       same event.
    3. Next. Every attribute of an event with every attribute of the next one.
    4. Totals. How far numbers are from the middles of their bins (`linked.totals`).

What analyses need is asked for after the margins (`linked.declared`). Which of the others are, and
in how many groups, follows from what public facts forecast (`linked.plans`); without any, the model
is independent columns. What is left of the noise in pairs is kept out by the price of information,
of which the sums themselves tell the factor (`linked.fit`).

Sums over people's attributes alone count people. All others are in units of a person's weight, and
cost the same noise (`linked.requests`). All margins have the same noise, whichever step they are
in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import combinations
from math import sqrt

import numpy as np

from common.bayes.model import Model
from common.bayes.postprocessing import margin_of
from common.methods.subn_plus.linked.declared import DeclaredPair, ask_declared
from common.methods.subn_plus.linked.fit import Column, fit_linked, sights
from common.methods.subn_plus.linked.loss import Seen, SeenPair, Sums
from common.methods.subn_plus.linked.model import LinkedModel
from common.methods.subn_plus.linked.plans import (
    BOTH,
    EVENTS,
    NEXT,
    PEOPLE,
    Budget,
    LinkedFacts,
    decide_budget,
)
from common.methods.subn_plus.linked.requests import AveragedTables, NextTables, unit_of, weight
from common.methods.subn_plus.linked.totals import AveragedTotals, largest_total
from common.methods.subn_plus.losses import Floats
from common.methods.subn_plus.requests import GroupedTables, Groups, even_groups
from common.methods.subn_plus.sums import every_value, fit_variance, one_way, tables_of
from common.methods.subn_plus.totals import NAME as TOTALS
from common.methods.subn_plus.totals import totals_fraction, totals_request
from common.privacy.noise_law import NoiseLaw
from common.study.requests import Attributes, Counts
from common.study.script import Fit, NearFit, Script, added_up


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
    return NearFit(partial(_model, facts, budget, margins, histograms, pairs, later, declared))


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
    near: Model | None,
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
        near=near,
    )


def _seen_pair(columns: Sequence[Column], pair: DeclaredPair) -> SeenPair:
    one, other = (
        sights(np.array(groups, dtype=np.intp), columns[v].atoms)
        for v, groups in zip(pair.variables, pair.groups, strict=True)
    )
    first, second = pair.variables
    return SeenPair((first, second), (one, other), pair.shares, 1 / pair.variance)


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
