"""The models of subn+, from noisy sums as the fit sees them: floating point, deciding nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import sqrt

import numpy as np

from common.bayes.form import Model
from common.bayes.network import Family
from common.bayes.postprocessing import marginal_table
from common.marginals.threads import one_thread
from common.methods.designs.nocd import Pair, pairs_of
from common.methods.network_model import NetworkModel, Variables, network_of
from common.methods.subn_plus.dependence import Departure, spanning_forest
from common.methods.subn_plus.facts import PublicFacts
from common.methods.subn_plus.joined import (
    JoinedModel,
    independent_blocks,
    joint_margin,
    pair_margin,
)
from common.methods.subn_plus.latent import (
    COMPONENTS,
    ITERATIONS,
    LatentModel,
    estimated_margins,
    fit,
)
from common.methods.subn_plus.losses import Floats, Measurement, Moments
from common.methods.subn_plus.thinning import DEARER, Evidence, best_factor
from common.methods.subn_plus.trees import Edge

PENALTY_PER_GROUP = 40.0
PAIR_PRICE = 10.0
PRICE = 0.85  # of information, times `noise_edge`
MOST_CLASSES = 256
STEPS_OF_CLASSES = 60_000  # of all classes together: a fit of few takes little time
FINE_TRIPLES = 8  # groups in triples from which on twice the classes and steps pay
BLOCK_PENALTY = 20.0
TRIAL_ITERATIONS = 200  # of the fits that choose a price
DECLARED_PRICE = 0.5  # times the price of information, where tables were declared
LEAST_CELL = 1e-4  # of an average cell of an edge: a table of zeros has no logarithm


def blocks_model(facts: PublicFacts, blocks: Sequence[Measurement]) -> JoinedModel:
    margins = estimated_margins(facts.sizes, facts.rows, blocks, facts.ordered)
    return independent_blocks(facts.sizes, margins, facts.rows, blocks, penalty=BLOCK_PENALTY)


@one_thread
def forest_model(
    facts: PublicFacts, tables: Sequence[Measurement], departures: Mapping[Pair, Departure]
) -> NetworkModel:
    margins = estimated_margins(facts.sizes, facts.rows, tables, facts.ordered)
    return fit_forest(margins, facts.rows, departures, pairs_within(tables), price=PAIR_PRICE)


def fit_forest(
    margins: Sequence[Floats],
    rows: int,
    departures: Mapping[Pair, Departure],
    tables: Mapping[Pair, Measurement],
    *,
    price: float,
) -> NetworkModel:
    """Fit a network in which every attribute has at most one parent.

    `departures` say how far pairs are from independence; the price of a departure is that of
    `joined.joint_margin`.
    """
    edges = spanning_forest(
        {pair: departure for pair, departure in departures.items() if departure.clear}
    )
    parents: list[int | None] = [None] * len(margins)
    for above, child in _outwards(edges, len(margins)):
        parents[child] = above
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
    by_pair: dict[Pair, Measurement] = {}
    for table in tables:
        for pair, axes in pairs_of(table.attributes):
            if pair not in by_pair:
                counts = marginal_table(table.counts, axes)
                by_pair[pair] = Measurement(
                    pair,
                    tuple(table.groupings[axis] for axis in axes),
                    counts,
                    table.variance * (table.counts.size // counts.size),
                )
    return by_pair


@one_thread
def mixture_model(
    facts: PublicFacts,
    tables: Sequence[Measurement],
    pairs: Sequence[Measurement] = (),
    moments: Sequence[Moments] = (),
    *,
    declared: Sequence[Measurement] = (),
    exact: bool = False,
    near: Model | None = None,
) -> LatentModel:
    """Fit a mixture to tables, contrasts and pairs in detail, which may be edges of trees.

    With declared tables, which have little noise, information is cheaper.
    Fewer steps keep noise out of the model. Sums that are as good as `exact` deserve more. A fit
    `near` a mixture of the same columns starts from it, with its edges, at its price.
    """
    sizes, rows = facts.sizes, facts.rows
    margins = estimated_margins(sizes, rows, tables, facts.ordered)
    views = [table for table in tables if len(table.attributes) > 1]
    widths = dict(zip(moments[0].columns, moments[0].widths, strict=True)) if moments else {}
    for table in views:
        widths.update(zip(table.attributes, table.counts.shape, strict=True))
    for table in declared:
        for a, width in zip(table.attributes, table.counts.shape, strict=True):
            widths[a] = max(widths.get(a, 0), width)
    triples = [moment for moment in moments if moment.order == 3]
    fine = bool(triples) and max(triples[0].widths) >= FINE_TRIPLES
    groups = sum(widths.values()) * 2 if triples else sum(widths.values()) * 4 // 3
    classes = _classes(groups, MOST_CLASSES << fine)
    steps = max(ITERATIONS, STEPS_OF_CLASSES // classes) if exact else ITERATIONS
    by_size = not views and bool(moments) and max(moments[0].widths) > 2
    free = sum(max(widths.get(a, 1) - 1, 0) for a in range(len(sizes))) / len(sizes)
    alike = isinstance(near, LatentModel) and [c.shape[1] for c in near.columns] == list(sizes)
    start = near if isinstance(near, LatentModel) and alike else None

    def fitted(
        look: Evidence,
        joined: frozenset[Pair],
        factor: float,
        classes: int,
        iterations: int,
        start: LatentModel | None = start,
    ) -> LatentModel:
        edges = [_all_shown(table, look.tables) for table in look.pairs if _pair(table) in joined]
        others = [table for table in look.pairs if _pair(table) not in joined]
        price = PENALTY_PER_GROUP * max(free, 1.0)
        if look.moments and not views:
            price = PRICE * noise_edge(look.moments[0], margins)
        return fit(
            margins,
            rows,
            [*look.tables, *others],
            moments=look.moments,
            edges=edges_of(edges, margins, rows),
            components=classes,
            iterations=iterations,
            penalty=factor * price,
            by_size=by_size,
            start=start,
        )

    evidence = Evidence((*tables, *declared), tuple(moments), rows, tuple(pairs))
    # Tables of several columns of one tree are scored by what trees leave of them: see `error`.
    # Pairs that were looked at again are a forest of the clearest.
    again = any(pairs_seen.looks for pairs_seen in moments)
    alone = bool(views or declared or again)
    contrasted = by_size and not alone
    joinable = [_pair(table) for table in pairs]
    ways = [frozenset(joinable)] if alone else joins(joinable, parts=contrasted)
    if start is not None:
        linked = frozenset(_sorted(link.parent, link.child) for link in start.links)
        joined, factor = linked, start.price
    else:
        few = min(classes, COMPONENTS)
        joined, factor = _chosen(evidence, ways, fitted, few, contrasted=contrasted)
        factor *= DECLARED_PRICE if declared else 1.0
    return replace(fitted(evidence, joined, factor, classes, (1 + fine) * steps), price=factor)


def _chosen(
    evidence: Evidence,
    ways: Sequence[frozenset[Pair]],
    fitted: Callable[..., LatentModel],
    classes: int,
    *,
    contrasted: bool,
) -> tuple[frozenset[Pair], float]:
    """Return the joined pairs, and the factor of the price, that the sums themselves choose.

    Contrasts of all pairs tell how far the tables of pairs will be off: then that decides what is
    joined, else squares do.
    """
    first, second = evidence.split()

    @cache
    def trial(joined: frozenset[Pair], factor: float) -> LatentModel:
        return fitted(first, joined, factor, classes, TRIAL_ITERATIONS)

    noisier = first.noisier()

    def off(joined: frozenset[Pair]) -> float:
        if not contrasted:
            return second.error(trial(joined, 1.0))
        one = trial(joined, 1.0)
        other = fitted(noisier, joined, 1.0, classes, TRIAL_ITERATIONS, one)
        return second.distance(one, other)

    best = ways[0] if len(ways) == 1 else min(ways, key=off)
    return best, DEARER * best_factor(lambda factor: second.error(trial(best, factor)))


def joins(pairs: Sequence[Pair], *, parts: bool) -> list[frozenset[Pair]]:
    """Return what may be joined: all pairs, or the first of them that share no attribute.

    With `parts`, the stronger half and none, too.
    """
    disjoint: list[Pair] = []
    for pair in pairs:
        if not any(set(pair) & set(other) for other in disjoint):
            disjoint.append(pair)
    ways = [pairs, disjoint, pairs[: (len(pairs) + 1) // 2], ()]
    return list(dict.fromkeys(map(frozenset, ways if parts else ways[:2])))


def _pair(table: Measurement) -> Pair:
    return _sorted(*table.attributes)


def _sorted(one: int, other: int) -> Pair:
    return min(one, other), max(one, other)


def edges_of(
    pairs: Sequence[Measurement], margins: Sequence[Floats], rows: int
) -> tuple[Edge, ...]:
    """Return noisy tables of pairs that close no circle as edges, from the roots outwards."""
    by_pair = {(table.attributes[0], table.attributes[1]): table for table in pairs}
    edges = []
    for parent, child in _outwards(list(by_pair), len(margins)):
        a, b = sorted((parent, child))
        table = by_pair[a, b]
        groups = [
            np.arange(len(margins[u])) if grouping is None else grouping
            for u, grouping in zip((a, b), table.groupings, strict=True)
        ]
        first, second = (
            np.bincount(g, margins[u]).astype(np.float64)
            for u, g in zip((a, b), groups, strict=True)
        )
        joint = joint_margin(table, first, second, rows=rows, price=PAIR_PRICE)
        joint = np.maximum(joint, LEAST_CELL / joint.size)
        if parent != a:
            joint, groups = joint.T, groups[::-1]
        precision = rows * rows / table.variance
        edges.append(Edge(parent, child, (groups[0], groups[1]), joint / joint.sum(), precision))
    return tuple(edges)


def _outwards(pairs: Sequence[Pair], attributes: int) -> list[tuple[int, int]]:
    """Return (parent, child) of every pair, a parent's own first; roots have most neighbours."""
    neighbours: list[list[int]] = [[] for _ in range(attributes)]
    for a, b in pairs:
        neighbours[a].append(b)
        neighbours[b].append(a)
    arrows: list[tuple[int, int]] = []
    reached: set[int] = set()
    for root in sorted(range(attributes), key=lambda a: (-len(neighbours[a]), a)):
        waiting = [] if root in reached else [root]
        reached.update(waiting)
        while waiting:
            parent = waiting.pop(0)
            children = [a for a in neighbours[parent] if a not in reached]
            arrows += [(parent, child) for child in children]
            reached.update(children)
            waiting += children
    return arrows


def both(one: Measurement, other: Measurement) -> Measurement:
    """Average two tables of the same attributes, by inverse variance."""
    weight = other.variance / (one.variance + other.variance)
    counts = weight * one.counts + (1 - weight) * other.counts
    return replace(one, counts=counts, variance=weight * one.variance)


def _all_shown(pair: Measurement, tables: Sequence[Measurement]) -> Measurement:
    """Average a pair's tables, by inverse variance, over all that show both's own values."""
    weight = 1 / pair.variance
    total = weight * pair.counts
    for table in tables:
        shown = [
            a
            for a, grouping in zip(table.attributes, table.groupings, strict=True)
            if grouping is None
        ]
        if set(pair.attributes) <= set(shown):
            axes = [table.attributes.index(a) for a in pair.attributes]
            counts = marginal_table(table.counts, axes)
            precision = counts.size / (table.counts.size * table.variance)
            total, weight = total + precision * counts, weight + precision
    return replace(pair, counts=total / weight, variance=1 / weight)


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
    return sqrt(total * float(np.mean(pairs.precisions)) / pairs.variance)
