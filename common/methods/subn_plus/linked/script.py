"""subn+ on people and their events: noisy sums, and one model fitted to all of them.

    1. Margins. Every attribute of people, the number of events, and every attribute of events by
       groups of the number of events.
    2. Pairs, in groups of values: two of a person's columns, a person's and an event's, two of the
       same event.
    3. Next. Every attribute of an event with every attribute of the next one.
    4. Totals. How far numbers are from the middles of their bins (`linked.totals`).

What analyses need is asked for after the margins (`linked.declared`). Which kinds of pairs are, and
in how many groups, follows from what public facts forecast (`linked.plans`); without any, events
depend on their number alone. What is left of the noise in pairs is kept out by the price of
information, of which the sums themselves tell the factor (`linked.fit`).

Sums over people's attributes alone count people. All others are in units of a person's weight, and
cost the same noise (`linked.requests`). So a person with many events weighs as much as one with
few, and the number of events says by how much more hers count. All margins have the same noise,
whichever step they are in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import combinations
from math import sqrt

import numpy as np

from common.bayes.form import Model
from common.bayes.postprocessing import margin_of
from common.methods.subn_plus.linked.declared import DeclaredPair, ask_declared
from common.methods.subn_plus.linked.fit import Column, fit_linked, sights
from common.methods.subn_plus.linked.loss import Seen, SeenPair, Sums
from common.methods.subn_plus.linked.model import LinkedModel
from common.methods.subn_plus.linked.plans import (
    BOTH,
    EVENTS,
    NEXT,
    NUMBERS,
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
class Proportions:
    """Noisy tables as proportions of the people, and the variance of a cell of each."""

    tables: Mapping[Attributes, Floats]
    variances: Mapping[Attributes, float]

    @property
    def precisions(self) -> Mapping[Attributes, Floats]:
        """The inverse variance of every cell."""
        return {
            variables: np.full_like(table, 1 / self.variances[variables])
            for variables, table in self.tables.items()
        }

    def __or__(self, other: Proportions) -> Proportions:
        return Proportions({**self.tables, **other.tables}, {**self.variances, **other.variances})


NOTHING = Proportions({}, {})


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
    histograms, margins, numbers = yield from _margins(facts, budget)
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
    sums = margins, pairs, later
    return NearFit(partial(_model, facts, budget, sums, numbers, histograms, declared))


def _margins(
    facts: LinkedFacts, budget: Budget
) -> Script[tuple[list[Counts], Proportions, Groups]]:
    """Ask for every column by itself; return counts for decisions, and proportions for the fit."""
    alone, columns, cost = len(facts.people.sizes), len(facts.every_size), budget.of_people
    request = GroupedTables(tuple((a,) for a in range(alone)), every_value(facts.people))
    first = yield from tables_of(
        facts.people, "margins", cost * Fraction(alone, alone + 1), request
    )
    proportions = _proportions(
        facts, zip(request.sets, first.tables, strict=True), first.laws[0], 1
    )
    number, every = facts.width - 1, _every_value(facts)
    second = AveragedTables(((number,),), every, facts.width, facts.most)
    tables, law = yield from _averaged(facts, "number of events", cost / (alone + 1), second)
    proportions |= _proportions(facts, tables.items(), law, second.unit)
    histograms = [*one_way(first), tables[number,] // second.unit]
    # People without events are in no table of events: they join those with one.
    some = even_groups(
        histograms[-1][1:], facts.people.rows, groups=budget.number_groups, join_rare=True
    )
    numbers = some if budget.number_groups > 1 else (0,) * facts.most
    groups = (*every[:number], (0, *numbers), *every[facts.width :])
    pairs = tuple((number, v) for v in range(facts.width, columns))
    third = AveragedTables(pairs, groups, facts.width, facts.most)
    cost = budget.margins - cost
    tables, law = yield from _averaged(facts, "margins of events", cost, third)
    proportions |= _proportions(facts, tables.items(), law, third.unit)
    histograms += [tables[pair].sum(axis=0) // third.unit for pair in pairs]
    return histograms, proportions, numbers


def _pairs(facts: LinkedFacts, budget: Budget, histograms: Sequence[Counts]) -> Script[Proportions]:
    """Ask for all pairs of columns, in groups: of people, of people and events, of events."""
    groups = _groups(facts, histograms, budget.pair_groups)
    alone = len(facts.people.sizes)
    every = tuple(combinations(range(len(facts.every_size)), 2))
    proportions = NOTHING
    costs = dict(budget.costs)
    if PEOPLE in costs:  # of all of them, the number of events is in two of `alone + 1`
        costs[NUMBERS] = costs[PEOPLE] * Fraction(2, alone + 1)
    if PEOPLE in costs and alone > 1:
        request = GroupedTables(tuple(p for p in every if p[1] < alone), groups[:alone])
        cost = costs[PEOPLE] - costs[NUMBERS]
        tables = yield from tables_of(facts.people, PEOPLE, cost, request)
        pairs = zip(request.sets, tables.tables, strict=True)
        proportions |= _proportions(facts, pairs, tables.laws[0], 1)
    kinds = {
        NUMBERS: tuple((a, alone) for a in range(alone)),
        BOTH: tuple(p for p in every if p[0] < alone < p[1]),
        EVENTS: tuple(p for p in every if p[0] > alone),
    }
    for name in (kind for kind in kinds if kind in costs):
        averaged = AveragedTables(kinds[name], groups, facts.width, facts.most)
        answer, law = yield from _averaged(facts, name, costs[name], averaged)
        proportions |= _proportions(facts, answer.items(), law, averaged.unit)
    return proportions


def _next(facts: LinkedFacts, budget: Budget, histograms: Sequence[Counts]) -> Script[Proportions]:
    """Ask for the attributes of consecutive events, in groups."""
    groups = _groups(facts, histograms, budget.next_groups)[facts.width :]
    request = NextTables(groups, facts.most)
    tables, law = yield from _averaged(facts, NEXT, budget.costs[NEXT], request)
    return _proportions(facts, tables.items(), law, request.unit)


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


def _proportions(
    facts: LinkedFacts, tables: Iterable[tuple[Attributes, Counts]], law: NoiseLaw, unit: int
) -> Proportions:
    whole = unit * facts.people.rows
    proportions = {variables: table / whole for variables, table in tables}
    return Proportions(
        proportions, dict.fromkeys(proportions, fit_variance(law, facts.people) / whole**2)
    )


def _model(
    facts: LinkedFacts,
    budget: Budget,
    sums: tuple[Proportions, Proportions, Proportions],
    numbers: Groups,
    histograms: Sequence[Counts],
    declared: Sequence[DeclaredPair],
    near: Model | None,
) -> LinkedModel:
    """Fit the model; floating point, and no step depends on it."""
    margins, pairs, later = sums
    width, unit = facts.width, unit_of(facts.most)
    columns = _columns(facts, budget, margins, histograms, declared)
    people, events = columns[:width], columns[width:]
    sizes = [int(column.groups.max()) + 1 for column in columns]
    cut, alone = sum(sizes[:width]), sum(sizes[: width - 1])
    proportions, precisions = (_side_by_side(t, sizes) for t in (pairs.tables, pairs.precisions))
    widths = [int(column.later.max()) + 1 for column in events]
    after = (_side_by_side(t, widths, mirrored=False) for t in (later.tables, later.precisions))
    later_unit = unit_of(facts.most - 1) if facts.most > 1 else 1
    return fit_linked(
        people,
        events,
        Sums(
            Seen(proportions[:cut, :cut], precisions[:cut, :cut]),
            Seen(proportions[cut:, cut:], precisions[cut:, cut:]),
            Seen(proportions[:alone, cut:], precisions[:alone, cut:]),
            Seen(*after),
            tuple(_seen_pair(columns, pair) for pair in declared),
        ),
        number_groups=np.array(numbers, dtype=np.intp),
        event_weight=np.array([weight(number, unit=unit) for number in range(1, facts.most + 1)]),
        later_weight=np.array([weight(number, unit=later_unit) for number in range(1, facts.most)]),
        near=near,
    )


def _seen_pair(columns: Sequence[Column], pair: DeclaredPair) -> SeenPair:
    one, other = (
        sights(np.array(groups, dtype=np.intp), columns[v].atoms)
        for v, groups in zip(pair.variables, pair.groups, strict=True)
    )
    first, second = pair.variables
    return SeenPair((first, second), (one, other), pair.proportions, 1 / pair.variance)


def _columns(
    facts: LinkedFacts,
    budget: Budget,
    margins: Proportions,
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
        in_pairs = groups[v] if budget.costs else (0,) * size
        after = later[v] if NEXT in budget.costs and v >= facts.width else (0,) * size
        if v == facts.width - 1:  # the walk needs every number of events
            after = tuple(range(size))
        named = (
            groups
            for pair in declared
            for at, groups in zip(pair.variables, pair.groups, strict=True)
            if at == v
        )
        first, second, *more = (
            np.array(group_of, dtype=np.intp) for group_of in (in_pairs, after, *named)
        )
        variables = (v,) if v < facts.width else (facts.width - 1, v)
        table, variance = margins.tables[variables], margins.variances[variables]
        numbered = table.reshape(-1, size)
        columns.append(Column(margin, variance, first, second, numbered, tuple(more)))
    return columns


def _distributions(facts: LinkedFacts, margins: Proportions) -> list[Floats]:
    """Return every column's distribution: no proportion below zero, and the right total."""
    rows, number, total = facts.people.rows, facts.width - 1, 1.0
    distributions: list[Floats] = []
    for v, ordered in enumerate(facts.every_order):
        people = max(round(total * rows), 1)
        variables = (v,) if v <= number else (number, v)
        table = margins.tables[variables].reshape(-1, facts.every_size[v])
        deviation = sqrt(len(table) * margins.variances[variables])
        counts = margin_of(table.sum(axis=0) * rows, people, deviation * rows, ordered)
        distributions.append(counts / rows)
        if v == number:  # the rest is about the weight of events
            weights = [weight(number, unit=unit_of(facts.most)) for number in range(facts.most + 1)]
            total = float(distributions[-1] @ weights)
    return distributions


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
