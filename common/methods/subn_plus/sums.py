"""The sums that subn+ asks for, with their noise: tables, margins and the agreement of halves.

blocks = GroupedTables(margin_blocks(facts), every_value(facts))
first = yield from tables_of(facts, "first margins", cost, blocks)
agreed = yield from agreements(facts, cost, one_way(first), alone=True)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np

from common.bayes.postprocessing import marginal_table
from common.methods.designs.blocks import margin_sums
from common.methods.designs.nocd import Pair
from common.methods.subn_plus.dependence import Departure, departures
from common.methods.subn_plus.facts import PublicFacts, margin_blocks
from common.methods.subn_plus.losses import Measurement, Moments
from common.methods.subn_plus.models import blocks_model, both
from common.methods.subn_plus.requests import (
    Agreements,
    Contrasts,
    GroupedTables,
    Groups,
    Weights,
    group_weights,
    halves,
)
from common.privacy import sensitivity
from common.privacy.noise_law import NoiseLaw
from common.privacy.sensitivity import CONTRAST_UNIT
from common.study.requests import Attributes, Counts
from common.study.script import Fit, Script, added_up, measured

Groupings = tuple[Groups, ...]  # of every attribute

_LEAST_VARIANCE = 0.01  # as good as exact counts; less would only overflow in the fit


@dataclass(frozen=True, slots=True)
class Tables:
    """Noisy tables of attributes in groups."""

    request: GroupedTables
    tables: list[Counts]
    laws: list[NoiseLaw]

    def measurements(self, facts: PublicFacts) -> list[Measurement]:
        """Return the tables for the fit."""
        maps = self.request.map_of
        return [
            Measurement(
                attributes,
                tuple(map(maps, attributes)),
                table.astype(np.float64),
                fit_variance(law, facts),
            )
            for attributes, table, law in zip(
                self.request.sets, self.tables, self.laws, strict=True
            )
        ]

    def departures(self, facts: PublicFacts, histograms: Sequence[Counts]) -> dict[Pair, Departure]:
        """Return how far the tables' pairs are from independence."""
        weights = weights_of(histograms, self.request.groups, facts.rows)
        variances = [facts.variance(law) for law in self.laws]
        return departures(self.request.sets, self.tables, weights, variances, facts.rows)


@dataclass(frozen=True, slots=True)
class ContrastSums:
    """Noisy contrasts."""

    request: Contrasts
    sums: list[Counts]
    law: NoiseLaw

    def moments(self, facts: PublicFacts) -> Moments:
        unit = CONTRAST_UNIT**self.request.order * facts.rows
        attributes = facts.cut
        return Moments(
            attributes,
            tuple(np.array(self.request.groups[a], dtype=np.intp) for a in attributes),
            [contrast / unit for contrast in self.sums],
            fit_variance(self.law, facts) / unit**2,
        )

    def departures(self, facts: PublicFacts, histograms: Sequence[Counts]) -> dict[Pair, Departure]:
        """Return how far the pairs are from independence, in rows.

        A contrast differs from its table by what depends on one attribute alone, which a
        departure leaves out.
        """
        unit = CONTRAST_UNIT**2
        weights = weights_of(histograms, self.request.groups, facts.rows)
        variances = [facts.variance(self.law)] * len(self.sums)
        by_pair = departures(self.request.sets, self.sums, weights, variances, unit * facts.rows)
        return {pair: departure.in_units(unit) for pair, departure in by_pair.items()}


@dataclass(frozen=True, slots=True)
class Halves:
    """How often pairs agree in halves, by one look at them or several.

    Attributes:
        request: the first look's, at all pairs.
        agreed: its answer.
        counts: of every pair, the mean of the looks at it by inverse variance, and its precision:
            how many times that of the first look.
    """

    request: Agreements
    agreed: Counts
    law: NoiseLaw
    counts: Mapping[Pair, tuple[Fraction, Fraction]]

    @classmethod
    def of(cls, request: Agreements, agreed: Counts, law: NoiseLaw) -> Halves:
        pairs = zip(request.pairs, agreed.tolist(), strict=False)
        return cls(request, agreed, law, {pair: (Fraction(n), Fraction(1)) for pair, n in pairs})

    def again(self, later: Halves) -> Halves:
        """Return both looks together; the later one is at some of the pairs."""
        more = self.law.nominal_variance / later.law.nominal_variance
        counts = dict(self.counts)
        for pair, (count, _) in later.counts.items():
            before, times = counts[pair]
            counts[pair] = (times * before + more * count) / (times + more), times + more
        return replace(self, counts=counts)

    def moments(self, facts: PublicFacts) -> Moments:
        counts = [float(count) for count, _ in self.counts.values()]
        looks = tuple(float(times) for _, times in self.counts.values())
        once = all(times == 1 for times in looks)
        variance = fit_variance(self.law, facts)
        return self.request.moments(counts, variance, facts.rows, () if once else looks)

    def departures(
        self, facts: PublicFacts, weights: Weights, chosen: tuple[Pair, ...] = ()
    ) -> dict[Pair, Departure]:
        """Return how far all pairs are from independence, or those chosen by known margins."""
        request = replace(self.request, alone=False, chosen=chosen) if chosen else self.request
        counts = [self.counts[pair][0] for pair in request.pairs]
        variances = [facts.variance(self.law) / self.counts[pair][1] for pair in request.pairs]
        return request.departures(counts, weights, variances, facts.rows)

    def table(
        self, facts: PublicFacts, pair: Pair, weights: Weights, part: Fraction
    ) -> Measurement:
        """Return a pair in halves, by its margins and a part of what it shows beside them.

        Every cell is off by half of what the count is off by; four cells of the count's variance
        tell as much as the count.
        """
        count, times = self.counts[pair]
        first, second = (Fraction(weights[a][0], sum(weights[a])) for a in pair)
        chance = first * second + (1 - first) * (1 - second)
        excess = float(part * (count - facts.rows * chance) / 2)
        alone = [np.array([p, 1 - p], dtype=np.float64) for p in (first, second)]
        cells = facts.rows * np.outer(*alone) + excess * np.array([[1.0, -1.0], [-1.0, 1.0]])
        maps = tuple(np.array(self.request.halves[a], dtype=np.intp) for a in pair)
        return Measurement(pair, maps, cells, fit_variance(self.law, facts) / float(times))


def finer(coarse: Measurement, table: Measurement) -> Measurement:
    """Return a table of groups within halves, moved towards what is known of the halves.

    A half's cells together are compared with its noisy count; by inverse variance, the difference
    is shared among the cells.
    """
    half_of = []
    for half, groups in zip(coarse.groupings, table.groupings, strict=True):
        values = np.arange(0) if half is None else half
        half_of.append(
            values if groups is None else values[np.unique(groups, return_index=True)[1]]
        )
    places = np.ix_(*half_of)
    sums, cells = np.zeros((2, 2)), np.zeros((2, 2))
    np.add.at(sums, places, table.counts)
    np.add.at(cells, places, 1.0)
    noise = cells * table.variance
    shift = (coarse.counts - sums) * noise / (noise + coarse.variance) / cells
    return replace(table, counts=table.counts + shift[places])


def agreements(
    facts: PublicFacts, cost: Fraction, histograms: Sequence[Counts], *, alone: bool = False
) -> Script[Halves]:
    """Count how often pairs agree in halves; a look counts the halves alone, too."""
    request = Agreements(tuple(halves(counts, facts.rows) for counts in histograms), alone)
    return look_at(facts, "look" if alone else "correlations", cost, request)


def look_at(facts: PublicFacts, name: str, cost: Fraction, request: Agreements) -> Script[Halves]:
    step = facts.sum_of(request, name=name, cost=cost, moved=request.sensitivity)
    return Halves.of(request, *(yield from added_up(step)))


def tables_of(
    facts: PublicFacts, name: str, cost: Fraction, request: GroupedTables
) -> Script[Tables]:
    moved = sensitivity.histograms(len(request.sets))
    tables, law = yield from measured(facts.sum_of(request, name=name, cost=cost, moved=moved))
    return Tables(request, tables, [law] * len(tables))


def margins_of(
    facts: PublicFacts, name: str, cost: Fraction, blocks: GroupedTables
) -> Script[Tables]:
    """Ask for margins in one sum or in two: of small tables, and of large ones at more each."""
    names = (name, f"{name} of large domains")
    by_set = dict[Attributes, tuple[Counts, NoiseLaw]]()
    sums = margin_sums(facts.sizes, blocks.sets, facts.norm)
    for step_name, (sets, fraction) in zip(names, sums, strict=False):
        part = yield from tables_of(facts, step_name, cost * fraction, replace(blocks, sets=sets))
        by_set |= zip(sets, zip(part.tables, part.laws, strict=True), strict=True)
    tables, laws = zip(*(by_set[attributes] for attributes in blocks.sets), strict=True)
    return Tables(blocks, list(tables), list(laws))


def margins_only(facts: PublicFacts) -> Script[Fit]:
    """Spend all of the budget on margins; blocks of attributes are independent of each other."""
    blocks = GroupedTables(margin_blocks(facts), every_value(facts))
    margins = yield from margins_of(facts, "margins", facts.budget, blocks)
    return partial(blocks_model, facts, margins.measurements(facts))


def margins_alone(facts: PublicFacts, name: str, cost: Fraction, first: Tables) -> Script[Fit]:
    """Ask for the margins once more: no pair depends, and they get all that is left."""
    again = yield from margins_of(facts, name, cost, first.request)
    twice = zip(first.measurements(facts), again.measurements(facts), strict=True)
    return partial(blocks_model, facts, [both(*looks) for looks in twice])


def one_way(tables: Tables) -> list[Counts]:
    """Return every attribute's noisy histogram: the mean of its tables, rounded down."""
    margins = dict[int, list[Counts]]()
    for attributes, table in zip(tables.request.sets, tables.tables, strict=True):
        for axis, attribute in enumerate(attributes):
            margins.setdefault(attribute, []).append(marginal_table(table, [axis]))
    return [np.sum(margins[a], axis=0) // len(margins[a]) for a in range(len(margins))]


def weights_of(histograms: Sequence[Counts], groups: Groupings, rows: int) -> list[tuple[int, ...]]:
    return [
        group_weights(histogram, group_of, rows)
        for histogram, group_of in zip(histograms, groups, strict=True)
    ]


def fit_variance(law: NoiseLaw, facts: PublicFacts) -> float:
    """Return the variance of the noise in one count, as the fit weighs it."""
    return max(law.variance(facts.noise_shares), _LEAST_VARIANCE)


def every_value(facts: PublicFacts) -> Groupings:
    return tuple(tuple(range(size)) for size in facts.sizes)
