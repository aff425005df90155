"""What a sieve asks of many columns: looks at ever fewer pairs, and the forest that they show.

    request = even_halves(facts, cost, histograms)     all pairs, of columns that could be seen
    forest, strong = forest_of(departures, rows)       after the last look
    edges = yield from edges_of(facts, ask, looks, ...)

A look at all pairs of many columns is dim: a correlation of .3 is one or two deviations above
chance. Most of what is noise goes at each look and little of what is not, and the looks at a pair
count together. What is left makes a forest, each pair in part (`dependence.shrinkage`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import isqrt

from common.methods.designs.nocd import Pair
from common.methods.subn_plus.dependence import (
    Departure,
    shrinkage,
    spanning_forest,
)
from common.methods.subn_plus.facts import PublicFacts, halves_noise, pair_cells
from common.methods.subn_plus.losses import Measurement
from common.methods.subn_plus.plans import Ask
from common.methods.subn_plus.requests import (
    Agreements,
    GroupedTables,
    TablesTogether,
    groups_within,
    halves,
)
from common.methods.subn_plus.sums import Groupings, Halves, Tables, finer, weights_of
from common.privacy import sensitivity
from common.study.requests import Counts
from common.study.script import Script, measured

SEEN = 2  # deviations of the noise, that a column's agreement with a copy of it is above chance
WORTH_A_TABLE = 0.12  # from independence in halves: a target depends on each column a little
TABLE_NOISE = 0.2  # of a pair's table, as a distance: halves and margins take off most of it
DETAIL_FRACTION = 8  # of the columns, for each strong pair: so much of the cost of tables is spent


def even_halves(facts: PublicFacts, cost: Fraction, histograms: Sequence[Counts]) -> Agreements:
    """Return the look at all pairs, but for columns of which not even a copy would be seen.

    With a part p of the rows in its first half, a column agrees with its copy by 2 p (1 - p) more
    than by chance.
    """
    cut = tuple(halves(histogram, facts.rows) for histogram in histograms)
    least = SEEN * halves_noise(facts, cost)
    even = (
        len(weights) == 2 and 2 * weights[0] * weights[1] >= least * sum(weights) ** 2
        for weights in weights_of(histograms, cut, facts.rows)
    )
    columns = zip(cut, even, strict=True)
    return Agreements(tuple(half if is_even else (0,) * len(half) for half, is_even in columns))


def forest_of(
    departures: Mapping[Pair, Departure], rows: int
) -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
    """Return the pairs that a forest is made of, and those of them that are worth a table."""
    forest = spanning_forest({pair: off for pair, off in departures.items() if shrinkage(off)})
    strong = (pair for pair in forest if departures[pair].distance(rows) >= WORTH_A_TABLE)
    return forest, tuple(strong)


def in_detail(facts: PublicFacts, pairs: Sequence[Pair]) -> Fraction:
    """Return the fraction of the cost of tables that so many strong pairs are worth."""
    return min(Fraction(DETAIL_FRACTION * len(pairs), len(facts.cut)), Fraction(1))


def edges_of(
    facts: PublicFacts,
    ask: Ask,
    looks: Halves,
    histograms: Sequence[Counts],
    departures: Mapping[Pair, Departure],
) -> Script[list[Measurement]]:
    """Return the tables of a forest: in halves, and of strong pairs with what is asked of them."""
    forest, strong = forest_of(departures, facts.rows)
    cut = looks.request.halves
    weights = weights_of(histograms, cut, facts.rows)
    tables = {p: looks.table(facts, p, weights, shrinkage(departures[p])) for p in forest}
    if strong:
        cells = pair_cells(facts, ask.cost, len(strong), TABLE_NOISE)
        parts = tuple(
            GroupedTables((pair,), _in_groups(pair, cells, cut, histograms, facts.rows))
            for pair in strong
        )
        moved = sensitivity.histograms(len(parts))
        step = facts.sum_of(TablesTogether(parts), name=ask.name, cost=ask.cost, moved=moved)
        counts, law = yield from measured(step)
        for pair, part, cell_counts in zip(strong, parts, counts, strict=True):
            (table,) = Tables(part, [cell_counts], [law]).measurements(facts)
            tables[pair] = finer(looks.table(facts, pair, weights, Fraction(1)), table)
    return list(tables.values())


def _in_groups(
    pair: Pair, cells: int, cut: Groupings, histograms: Sequence[Counts], rows: int
) -> Groupings:
    """Return a pair's attributes in groups within halves, at most so many cells; others whole."""
    few, many = sorted(pair, key=lambda a: (len(cut[a]), a))
    groups = {few: groups_within(cut[few], histograms[few], rows, groups=isqrt(cells))}
    left = cells // (max(groups[few]) + 1)
    groups[many] = groups_within(cut[many], histograms[many], rows, groups=left)
    return tuple(groups.get(a, (0,) * len(half)) for a, half in enumerate(cut))
