"""The models of subn+, from noisy sums as the fit sees them: floating point, deciding nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import sqrt

import numpy as np

from common.bayes.network import Family
from common.bayes.postprocessing import marginal_table
from common.marginals.blas import one_thread
from common.methods.designs.nocd import Pair, pairs_of
from common.methods.network_model import NetworkModel, Variables, network_of
from common.methods.subn_plus.dependence import Departure, spanning_forest
from common.methods.subn_plus.facts import PublicFacts
from common.methods.subn_plus.joined import (
    Joined,
    JoinedModel,
    independent_blocks,
    pair_margin,
    start_of,
)
from common.methods.subn_plus.latent import (
    COMPONENTS,
    ITERATIONS,
    LatentModel,
    estimated_margins,
    fit,
)
from common.methods.subn_plus.losses import Floats, Measurement, Moments

PENALTY_PER_GROUP = 40.0
HALVES_PENALTY = 20.0  # where agreements of halves are all that shows dependence
PAIR_PRICE = 10.0
PRICE = 0.85  # of information, times `noise_edge`
MOST_CLASSES = 256
STEPS_OF_CLASSES = 60_000  # of all classes together: a fit of few takes little time
FINE_TRIPLES = 8  # groups in triples from which on twice the classes and steps pay
BLOCK_PENALTY = 20.0


def blocks_model(facts: PublicFacts, blocks: Sequence[Measurement]) -> JoinedModel:
    margins = estimated_margins(facts.sizes, facts.rows, blocks, facts.ordered)
    return independent_blocks(facts.sizes, margins, facts.rows, blocks, penalty=BLOCK_PENALTY)


def columns_model(facts: PublicFacts, tables: Sequence[Measurement]) -> JoinedModel:
    """Model every attribute by itself, by all tables that show it."""
    margins = estimated_margins(facts.sizes, facts.rows, tables, facts.ordered)
    columns = tuple(own[None, :] for own in margins)
    return JoinedModel(Joined.of((), facts.sizes), LatentModel(np.ones(1), columns))


@one_thread
def forest_model(
    facts: PublicFacts, tables: Sequence[Measurement], found: Mapping[Pair, Departure]
) -> NetworkModel:
    margins = estimated_margins(facts.sizes, facts.rows, tables, facts.ordered)
    return fit_forest(margins, facts.rows, found, pairs_within(tables), price=PAIR_PRICE)


def fit_forest(
    margins: Sequence[Floats],
    rows: int,
    found: Mapping[Pair, Departure],
    tables: Mapping[Pair, Measurement],
    *,
    price: float,
) -> NetworkModel:
    """Fit a network in which every attribute has at most one parent.

    `found` says how far pairs are from independence; the price of a departure is that of
    `joined.joint_margin`.
    """
    edges = spanning_forest({pair: own for pair, own in found.items() if own.clear})
    parents = _rooted(edges, len(margins))
    network = network_of(tuple(() if p is None else (p,) for p in parents))
    shown: dict[Family, Floats] = {}
    for pair in network.pairs:
        parent = parents[pair.child]
        if parent is None:
            shown[pair.family] = rows * margins[pair.child]
        else:
            a, b = sorted((pair.child, parent))
            joint = rows * pair_margin(tables[a, b], margins[a], margins[b], rows, price)
            shown[pair.family] = joint if a == pair.child else joint.T
    return NetworkModel(Variables(tuple(map(len, margins))), network, shown)


def pairs_within(tables: Iterable[Measurement]) -> dict[Pair, Measurement]:
    """Return the table of every pair that some table holds; the first table counts."""
    found: dict[Pair, Measurement] = {}
    for table in tables:
        for pair, axes in pairs_of(table.attributes):
            if pair not in found:
                counts = marginal_table(table.counts, axes)
                found[pair] = Measurement(
                    pair,
                    tuple(table.groupings[axis] for axis in axes),
                    counts,
                    table.variance * (table.counts.size // counts.size),
                )
    return found


def _rooted(edges: Sequence[Pair], attributes: int) -> list[int | None]:
    """Return the parent of every attribute; the lowest attribute of a tree is its root."""
    neighbours: list[list[int]] = [[] for _ in range(attributes)]
    for a, b in edges:
        neighbours[a].append(b)
        neighbours[b].append(a)
    parents: list[int | None] = [None] * attributes
    reached: set[int] = set()
    for root in range(attributes):
        waiting = [] if root in reached else [root]
        reached.update(waiting)
        while waiting:
            parent = waiting.pop()
            children = [a for a in neighbours[parent] if a not in reached]
            for child in children:
                parents[child] = parent
            reached.update(children)
            waiting += children
    return parents


@one_thread
def mixture_model(
    facts: PublicFacts,
    views: Sequence[Measurement],
    blocks: Sequence[Measurement] = (),
    pairs: Sequence[Measurement] = (),
    *,
    halves: Moments | None = None,
    exact: bool = False,
) -> LatentModel | JoinedModel:
    """Fit a mixture to all tables, in which every chosen pair is a single column.

    Fewer steps keep noise out of the model. Tables that are as good as `exact` deserve more.
    """
    sizes, rows = facts.sizes, facts.rows
    tables = [*blocks, *views]
    margins = estimated_margins(sizes, rows, tables, facts.ordered)
    groups = max((max(table.counts.shape) for table in views), default=2)
    free = sum(min(size, groups) - 1 for size in sizes) / len(sizes)
    widths = {
        a: width for own in views for a, width in zip(own.attributes, own.counts.shape, strict=True)
    }
    price = PENALTY_PER_GROUP if views else HALVES_PENALTY
    joined = Joined.of([table.attributes for table in pairs], sizes)
    columns = _columns(joined, pairs, tables, margins, rows)
    classes = _classes(sum(widths.values()) * 4 // 3, MOST_CLASSES)
    mixture = fit(
        columns,
        rows,
        [joined.translate(table) for table in (*tables, *pairs)],
        moments=[joined.moments(halves)] if halves else (),
        components=classes,
        iterations=max(ITERATIONS, STEPS_OF_CLASSES // classes) if exact else ITERATIONS,
        penalty=price * max(free, 1.0),
        start=start_of(joined),
    )
    return JoinedModel(joined, mixture) if pairs else mixture


def both(one: Measurement, other: Measurement) -> Measurement:
    """Average two tables of the same attributes, by inverse variance."""
    share = other.variance / (one.variance + other.variance)
    counts = share * one.counts + (1 - share) * other.counts
    return replace(one, counts=counts, variance=share * one.variance)


def _all_shown(pair: Measurement, tables: Sequence[Measurement]) -> Measurement:
    """Average a pair's tables, by inverse variance, over all that show both's own values."""
    weight = 1 / pair.variance
    total = weight * pair.counts
    for table in tables:
        shown = [a for a, own in zip(table.attributes, table.groupings, strict=True) if own is None]
        if set(pair.attributes) <= set(shown):
            axes = [table.attributes.index(a) for a in pair.attributes]
            counts = marginal_table(table.counts, axes)
            own = counts.size / (table.counts.size * table.variance)
            total, weight = total + own * counts, weight + own
    return replace(pair, counts=total / weight, variance=1 / weight)


def _columns(
    joined: Joined,
    pairs: Sequence[Measurement],
    tables: Sequence[Measurement],
    margins: Sequence[Floats],
    rows: int,
) -> list[Floats]:
    """Return each column's distribution: of the chosen pairs, then of every other attribute."""
    columns = []
    for table in pairs:
        a, b = table.attributes
        shown = _all_shown(table, tables)
        columns.append(pair_margin(shown, margins[a], margins[b], rows, PAIR_PRICE).ravel())
    return columns + [margins[own[0]] for own in joined.sets[len(pairs) :]]


@one_thread
def moments_model(
    facts: PublicFacts,
    tables: Sequence[Measurement],
    pairs: Sequence[Measurement],
    moments: Sequence[Moments],
) -> LatentModel | JoinedModel:
    """Fit a mixture to margins and contrasts, in which every chosen pair is one column."""
    sizes, rows = facts.sizes, facts.rows
    margins = estimated_margins(sizes, rows, tables, facts.ordered)
    joined = Joined.of([table.attributes for table in pairs], sizes)
    columns = _columns(joined, pairs, tables, margins, rows)
    fine = moments[-1].order == 3 and max(moments[-1].widths) >= FINE_TRIPLES
    groups = sum(moments[0].widths) * (moments[-1].order - 1)  # twice as many with triples
    classes = _classes(groups, MOST_CLASSES << fine)
    kept = [table for table in tables if joined.alone(table.attributes[0])]
    mixture = fit(
        columns,
        rows,
        [joined.translate(table) for table in (*kept, *pairs)],
        moments=[joined.moments(own) for own in moments],
        components=classes,
        iterations=(1 + fine) * max(ITERATIONS, STEPS_OF_CLASSES // classes),
        penalty=PRICE * noise_edge(moments[0], margins),
        start=start_of(joined),
    )
    return JoinedModel(joined, mixture) if pairs else mixture


def _classes(groups: int, most: int) -> int:
    """Return more classes where pairs are seen in more groups."""
    return min(max(groups, COMPONENTS), most)


def noise_edge(pairs: Moments, margins: Sequence[Floats]) -> float:
    """Return the price of information at which half the noise in contrasts of pairs would pay.

    A class that is off the margins by d tells d' C^-1 d / 2 nats about the columns, C being the
    covariance of all attributes' indicators (`common.methods.subn_plus.dependence`), and explains
    d' E d / 2 of the noise E, in units of its variance s. The largest eigenvalue of C^1/2 E C^1/2
    is about 2 |C| sqrt(s) [Wigner's law, of a matrix of unequal variances]: at a price of
    2 |C| / sqrt(s) no noise enters the model, at half of it a strong dependence loses little.
    """
    total = 0.0
    for column, grouping in zip(pairs.columns, pairs.groupings, strict=True):
        weights = np.bincount(grouping, margins[column])
        square, cube = float((weights**2).sum()), float((weights**3).sum())
        total += square - 2 * cube + square**2
    return sqrt(total / pairs.variance)
