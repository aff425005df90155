"""The sums that subn+ asks for, with their noise: tables, margins and the agreement of halves.

blocks = GroupedTables(margin_blocks(facts), every_value(facts))
first = yield from tables_of(facts, "first margins", cost, blocks)
agreed = yield from agreements(facts, cost, one_way(first), alone=True)
"""

from __future__ import annotations

from collections.abc import Sequence
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
    GroupedTables,
    Groups,
    Weights,
    group_weights,
    halves,
)
from common.privacy import sensitivity
from common.privacy.noise_law import NoiseLaw
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
                own, tuple(map(maps, own)), table.astype(np.float64), fit_variance(law, facts)
            )
            for own, table, law in zip(self.request.sets, self.tables, self.laws, strict=True)
        ]

    def departures(
        self, facts: PublicFacts, histograms: Sequence[Counts], noisy: int = 1
    ) -> dict[Pair, Departure]:
        """Return how far the tables' pairs are from independence.

        A table's deviation from the histograms has `noisy` times the variance of the table.
        """
        weights = weights_of(histograms, self.request.groups, facts.rows)
        variances = [noisy * facts.variance(law) for law in self.laws]
        return departures(self.request.sets, self.tables, weights, variances, facts.rows)


@dataclass(frozen=True, slots=True)
class Halves:
    """How often pairs agree in halves."""

    request: Agreements
    agreed: Counts
    law: NoiseLaw

    def moments(self, facts: PublicFacts) -> Moments:
        return self.request.moments(self.agreed, fit_variance(self.law, facts), facts.rows)

    def departures(self, facts: PublicFacts, weights: Weights) -> dict[Pair, Departure]:
        variance = facts.variance(self.law)
        return self.request.departures(self.agreed, weights, variance, facts.rows)


def agreements(
    facts: PublicFacts,
    cost: Fraction,
    histograms: Sequence[Counts],
    *,
    alone: bool = False,
    chosen: tuple[Pair, ...] = (),
) -> Script[Halves]:
    """Count how often pairs agree in halves; a look counts the halves alone, too."""
    request = Agreements(tuple(halves(own, facts.rows) for own in histograms), alone, chosen)
    name = "look" if alone else "second look" if chosen else "correlations"
    step = facts.sum_of(request, name=name, cost=cost, moved=request.sensitivity)
    return Halves(request, *(yield from added_up(step)))


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
    found = dict[Attributes, tuple[Counts, NoiseLaw]]()
    sums = margin_sums(facts.sizes, blocks.sets, facts.norm)
    for each, (own, share) in zip(names, sums, strict=False):
        part = yield from tables_of(facts, each, cost * share, replace(blocks, sets=own))
        found |= zip(own, zip(part.tables, part.laws, strict=True), strict=True)
    tables, laws = zip(*(found[own] for own in blocks.sets), strict=True)
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
    return partial(blocks_model, facts, [both(*own) for own in twice])


def one_way(tables: Tables) -> list[Counts]:
    """Return every attribute's noisy histogram: the mean of its tables, rounded down."""
    found = dict[int, list[Counts]]()
    for own, table in zip(tables.request.sets, tables.tables, strict=True):
        for axis, attribute in enumerate(own):
            found.setdefault(attribute, []).append(marginal_table(table, [axis]))
    return [np.sum(found[a], axis=0) // len(found[a]) for a in range(len(found))]


def weights_of(histograms: Sequence[Counts], groups: Groupings, rows: int) -> list[tuple[int, ...]]:
    return [
        group_weights(histogram, own, rows)
        for histogram, own in zip(histograms, groups, strict=True)
    ]


def fit_variance(law: NoiseLaw, facts: PublicFacts) -> float:
    """Return the variance of the noise in one count, as the fit weighs it."""
    return max(law.variance(facts.noise_shares), _LEAST_VARIANCE)


def every_value(facts: PublicFacts) -> Groupings:
    return tuple(tuple(range(size)) for size in facts.sizes)
