"""Wide tables: a forest of pairs that depend on each other.

The dependences of a table with many columns are many and local, and few classes cannot hold them. A
tree of pairs can [ChowLiu68]: every attribute given one other, and exact sums of its tables.

The agreement of halves shows every pair dimly. The pairs that stand out make a maximum spanning
forest, and what is left of them a second one: those at most 2 (d - 1) pairs are counted as tables,
whose noise is far less than that of the sum that named them. So a pair that noise has named costs
little: it is looked at again. The forest of the model is chosen from these tables, and no number
that named a pair enters its estimate.

Decisions are made in exact rational arithmetic: every party comes to the same pairs.

[ChowLiu68] Chow, Liu: Approximating discrete probability distributions with dependence trees.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np

from common.bayes.network import Family
from common.methods.network_model import NetworkModel, Variables, network_of
from common.methods.subn_plus.dependence import Departure, Pair
from common.methods.subn_plus.joined import joint_margin
from common.methods.subn_plus.table_loss import Floats, Grouping, Measurement

_FORESTS = 2


def spanning_forest(found: Mapping[Pair, Departure]) -> tuple[Pair, ...]:
    """The pairs of largest strength that close no circle, the strongest first."""
    tree_of: dict[int, set[int]] = {}
    chosen = []
    for pair in sorted(found, key=lambda pair: (-found[pair].strength, pair)):
        first, second = (tree_of.setdefault(a, {a}) for a in pair)
        if first is not second:
            first |= second
            tree_of.update(dict.fromkeys(second, first))
            chosen.append(pair)
    return tuple(chosen)


def candidates(found: Mapping[Pair, Departure]) -> tuple[Pair, ...]:
    """The pairs that are worth a table: of those that stand out, a forest and another one."""
    left = {pair: own for pair, own in found.items() if own.clear}
    chosen: list[Pair] = []
    for _ in range(_FORESTS):
        forest = spanning_forest(left)
        chosen += forest
        left = {pair: own for pair, own in left.items() if pair not in set(forest)}
    return tuple(chosen)


def pairs_within(tables: Iterable[Measurement]) -> dict[Pair, Measurement]:
    """Every pair that some table holds, by itself; the first table counts."""
    found: dict[Pair, Measurement] = {}
    for table in tables:
        for axes in combinations(range(table.counts.ndim), 2):
            i, j = sorted(axes, key=lambda axis: table.attributes[axis])
            others = tuple(axis for axis in range(table.counts.ndim) if axis not in axes)
            counts = table.counts.sum(axis=others)
            pair = (table.attributes[i], table.attributes[j])
            if pair not in found:
                found[pair] = Measurement(
                    pair,
                    (table.groupings[i], table.groupings[j]),
                    counts if i < j else counts.T,
                    table.variance * (table.counts.size // counts.size),
                )
    return found


def forest_model(
    margins: Sequence[Floats],
    rows: int,
    found: Mapping[Pair, Departure],
    tables: Mapping[Pair, Measurement],
    *,
    price: float,
) -> NetworkModel:
    """A network in which every attribute has at most one parent.

    Args:
        margins: every attribute's distribution.
        rows: how many rows the tables count.
        found: how far pairs are from independence.
        tables: noisy tables of the same pairs, the lower attribute first.
        price: of a departure from independence, as `common.methods.subn_plus.joined.joint_margin`
            has it.
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


def _rooted(edges: Sequence[Pair], attributes: int) -> list[int | None]:
    """The parent of every attribute; the lowest attribute of a tree is its root."""
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


def pair_margin(
    table: Measurement, first: Floats, second: Floats, rows: int, price: float
) -> Floats:
    """The joint distribution of a pair's own values, from its noisy table in groups.

    Within a group of values nothing is known but the margins.
    """
    into, onto = (_shares(m, g) for m, g in zip((first, second), table.groupings, strict=True))
    grouped = (first @ (into > 0), second @ (onto > 0))
    joint = joint_margin(table, *grouped, rows=rows, price=price)
    return np.asarray(into @ joint @ onto.T, dtype=np.float64)


def _shares(margin: Floats, grouping: Grouping | None) -> Floats:
    """(values, groups): what share of its group each value is."""
    groups = np.arange(len(margin)) if grouping is None else grouping
    member = np.eye(int(groups.max()) + 1)[groups]
    weighted = np.maximum(margin, 1e-12)[:, None] * member  # a group of nothing has equal shares
    return np.asarray(weighted / weighted.sum(axis=0), dtype=np.float64)
