"""The plans of subn+: which sums are made, and at what cost, from public facts alone.

A plan is data: a list of sums with their costs, and a forecast of what pairs will look like. Every
plan is made for either noise law, and the forecasts are compared: `best_plan`. What the sums then
show may change the rest of a plan (`common.methods.subn_plus.script`): where nothing depends, the
margins get all that is left. docs/research/subn-notes.md has the figures behind each constant.

| plan | its sums | for |
|---|---|---|
| table | views of own values: of few small columns, the whole table | small domains |
| views | a look, margins, views of groups that hold every pair, pairs in detail | many rows |
| contrasts | margins, a look, contrasts of all pairs and triples, pairs in detail | a delta |
| forest | margins, how often halves agree, tables of pairs that stand out | wide tables |
| sieve | margins, three looks at ever fewer pairs, strong pairs in detail | wide, few rows |
| halves | margins, how often halves agree, crossed tables, pairs in detail | few rows |
| crossed | margins, and a few large tables across their blocks | pure epsilon, fewer rows |
| margins | margins | what is left |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf, prod, sqrt

from common.methods.designs.blocks import margin_error
from common.methods.designs.nocd import Design, best_design
from common.methods.subn_plus.facts import (
    PublicFacts,
    contrast_noise,
    halves_noise,
    margin_blocks,
    margin_noise,
    mean_cells,
    view_noise,
)
from common.methods.subn_plus.latent import COMPONENTS
from common.privacy import sensitivity
from common.study.document import Study
from common.study.requests import Attributes

# Forecast noise of a pair's table, as a mean total variation distance, up to which it is asked:
TABLE_BELOW = 0.15  # in own values, read off views that are all that is asked for
THREE_GROUPS_BELOW = 0.17  # in three groups, read off views
GROUPS_BELOW = 0.1  # in more, read off views or as contrasts
PAIRS_BELOW = 0.25  # in few groups, as contrasts, of which the fit takes off most
TRIPLES_BELOW = 0.2  # of a triple's table
LOOK_NOISE = 0.05  # in halves, at which a first look tells of dependence
CLEAR_LOOK_NOISE = 0.03  # at which it seldom misses any
CLEAR_PAIRS = 0.03  # up to which a look that sees nothing is not believed
PAIRS_AS_EXACT = 0.01  # then triples may have more than a fifth, and a mixture is fitted to the end

# Of the budget:
CLEAR_LOOK = Fraction(6, 100)  # for a look as clear as that
DETAIL = Fraction(1, 12)  # for pairs in detail, beside contrasts
DETAIL_OF_VIEWS = Fraction(3, 50)
# Of a forest: the noise of a pair in halves up to which these are asked, and the fractions of
# margins, halves, pairs that stand out, margins again. Where margins are clear, halves may cost.
CLEAR_MARGINS = 0.003  # forecast noise of a margin that has all of the budget
FOREST_CLEAR = 0.1, (Fraction(2, 5), Fraction(2, 5), Fraction(1, 5))
FOREST_NOISY = 0.12, (Fraction(2, 5), Fraction(1, 10), Fraction(1, 5), Fraction(3, 10))
# Of a sieve: the same, and of what margins leave (`margins_fraction`) the fractions of three looks
# and of strong pairs in detail; margins get the rest. Each look is at so many pairs a column.
SIEVED_BELOW = 0.18
SIEVE = {
    "even": Fraction(4, 15),
    "second look": Fraction(2, 15),
    "third look": Fraction(1, 5),
    "sieved": Fraction(1, 5),
}
LEAST_MARGINS = Fraction(3, 5)
LOOKED_AT = {"second look": 8, "third look": 2}
FEW_CLEAR = Fraction(3, 2)  # clear pairs for each column, up to which a forest holds what depends
MOST_SIEVED = 128  # columns: a fit takes its time
# Where pairs are seen in halves only, the noise of a pair up to which they are asked, and the
# fractions of margins, halves, crossed tables and pairs in detail, by the norm. With most of the
# budget for margins strong pairs still show.
HALVES_BELOW = {
    1: (0.12, (Fraction(7, 10), Fraction(7, 50), Fraction(7, 50), Fraction(1, 50))),
    2: (0.09, (Fraction(39, 50), Fraction(1, 5), Fraction(0), Fraction(1, 50))),
}
# Of crossed tables: the forecast noise of a margin up to which it gives for them, their fraction,
# and the most cells of each, in groups.
CROSSED_BELOW = 0.02
CROSSED_PART = Fraction(1, 8)
CROSSED_CELLS = 729
CROSSED_GROUPS = 3
_LOOKS = tuple(Fraction(part, 100) for part in range(1, 17))
_FIRST_MARGINS = Fraction(3, 8)  # of the look: they say where its halves are cut
_TRIPLES_FRACTIONS = tuple(Fraction(fraction, 10) for fraction in (1, 2, 3, 4))
_PARTS = 40  # the margins' fraction is a multiple of one part in so many
_MARGINS_RATIO = {1: 13, 2: 15}  # by the norm: see `margins_fraction`
_MOST_MARGINS = {1: 24, 2: 32}  # of those parts

VIEW_CELLS = 1 << 12
SMALL_DOMAIN = 6
MOST_VIEWED = COMPONENTS // 2  # columns: beyond, few classes tie what has nothing in common
MOST_SMALL = 2 * COMPONENTS  # columns of small domains: views of own values show more than pairs
MOST_CONTRASTED = 64
MOST_GROUPS = 64
FEW_GROUPS = 9  # in contrasts: more show less than their noise takes away
MOST_CELLS = {2: 1 << 22, 3: 1 << 18}  # of all pairs, and of all triples: a fit takes its time
TABLE_WORTH = 1.55  # times the noise: a table of own values shows all orders, and what is empty
WHOLE_WORTH = 1.2  # times the noise of a pair: one view of all columns shows all orders
VIEW_ABSOLUTE = 0.8  # of a deviation: a pair's cell is a sum of many of a view's
_MARGINS_WORSE_BY = 5  # times: up to that, views of small domains are all that is asked for

# What a sum asks for: keys of `script.ASKS`.
FIRST, LOOK, MARGINS, AGAIN, VIEWS = "first margins", "look", "margins", "margins again", "views"
PAIRS, TRIPLES, DETAILS, HALVES = "correlations", "triples", "pairs", "halves"
FOREST, SIEVED, EVEN, CHOSEN, LAST = "forest", "sieved", "even", "second look", "third look"
CROSSED = "crossed"
_FOREST_ASKS = MARGINS, HALVES, FOREST, AGAIN
_NAMES = {
    VIEWS: "correlations",
    HALVES: "correlations",
    FOREST: "pairs",
    SIEVED: "pairs",
    EVEN: "correlations",
}  # of steps


@dataclass(frozen=True, slots=True)
class Ask:
    """One sum of a plan: what it asks for, its cost, and the most groups of an attribute in it."""

    what: str
    cost: Fraction
    groups: int = 0

    @property
    def name(self) -> str:
        """The name of its step."""
        return _NAMES.get(self.what, self.what)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is asked, in order.

    Attributes:
        asks: the sums. Their costs add up to the budget.
        blocks: the attributes that are counted together for margins.
        design: the views, of attributes in groups; None if there are none.
        pair_noise: the forecast noise of a pair's table, as a total variation distance.
        cell_noise: the same in one cell of it: what plans are compared by.
    """

    name: str
    asks: tuple[Ask, ...]
    blocks: tuple[Attributes, ...]
    design: Design | None = None
    pair_noise: float = inf
    cell_noise: float = inf

    def cost(self, what: str) -> Fraction:
        """Return what all sums of one kind cost."""
        return sum((ask.cost for ask in self.asks if ask.what == what), Fraction(0))


def best_plan(facts: PublicFacts) -> Plan:
    """Return the plan whose pairs are forecast to be clearest; the first, if all of them drown."""
    plans = [plan for make in PLANS.values() if (plan := make(facts)) is not None]
    return min(plans, key=lambda plan: plan.cell_noise)


def _margins(facts: PublicFacts) -> Plan:
    return Plan(name="margins", asks=(Ask(MARGINS, facts.budget),), blocks=margin_blocks(facts))


def _table(facts: PublicFacts) -> Plan | None:
    """Ask for views of own values; None if they would drown, or show margins badly."""
    if not 1 < len(facts.cut) <= MOST_SMALL or max(facts.sizes) > SMALL_DOMAIN:
        return None
    design = best_design(facts.sizes, cell_limit=VIEW_CELLS)
    noise = view_noise(design, facts, facts.budget)
    if noise > TABLE_BELOW or not _views_show_margins(design, margin_blocks(facts)):
        return None
    if prod(facts.sizes) <= VIEW_CELLS:
        whole = Design((tuple(range(len(facts.sizes))),), facts.sizes)
        if view_noise(whole, facts, facts.budget) <= WHOLE_WORTH * noise:
            design = whole
    return Plan(
        name="table",
        asks=(Ask(VIEWS, facts.budget, max(facts.sizes)),),
        blocks=(),
        design=design,
        pair_noise=noise,
        cell_noise=VIEW_ABSOLUTE * noise / (TABLE_WORTH * mean_cells(facts.sizes, 2)),
    )


def _views(facts: PublicFacts) -> Plan | None:
    """Ask for views of as many groups as can be seen; None if three would drown."""
    if not 1 < len(facts.cut) <= MOST_VIEWED or max(facts.sizes) <= SMALL_DOMAIN:
        return None
    blocks, look = margin_blocks(facts), look_fraction(facts)
    left = facts.budget * (1 - look * (1 + _FIRST_MARGINS))
    fraction = margins_fraction(facts, blocks)
    views = left * (1 - fraction - DETAIL_OF_VIEWS)
    finest = finest_design(facts, views, facts.widths)
    if finest is None:
        return None
    noise = view_noise(finest[1], facts, views)
    first = (Ask(FIRST, facts.budget * look * _FIRST_MARGINS), Ask(LOOK, facts.budget * look))
    return Plan(
        name="views",
        asks=(
            *(first if look else ()),
            Ask(MARGINS, left * fraction),
            Ask(VIEWS, views, finest[0]),
            Ask(DETAILS, left * DETAIL_OF_VIEWS),
        ),
        blocks=blocks,
        design=finest[1],
        pair_noise=noise,
        cell_noise=noise / mean_cells(finest[1].sizes, 2),
    )


def _contrasts(facts: PublicFacts) -> Plan | None:
    """Ask for contrasts of pairs, and of triples if these cost pairs no groups."""
    sizes = [facts.sizes[a] for a in facts.cut]
    if not 2 <= len(sizes) <= MOST_CONTRASTED:
        return None
    margins, look = margins_fraction(facts, facts.alone), look_fraction(facts)
    left = 1 - margins - look - DETAIL
    if left <= 0 or (groups := _most_groups(facts, sizes, left, 2)) < 2:
        return None
    finest = max(2, _most_groups(facts, sizes, left * (1 - _TRIPLES_FRACTIONS[0]), 2))
    triples, in_triples = Fraction(0), 0
    for fraction in _TRIPLES_FRACTIONS:
        coarse = _most_groups(facts, sizes, left * fraction, 3)
        exact = (
            contrast_noise(facts, sizes, left * (1 - fraction), finest, order=2) <= PAIRS_AS_EXACT
        )
        if fraction > Fraction(1, 5) and not exact:
            break
        if coarse >= 2 and _most_groups(facts, sizes, left * (1 - fraction), 2) >= finest:
            triples, in_triples, groups = left * fraction, coarse, finest
    noise = contrast_noise(facts, sizes, left - triples, groups, order=2)
    asks = (
        Ask(MARGINS, facts.budget * margins),
        Ask(LOOK, facts.budget * look),
        Ask(PAIRS, facts.budget * (left - triples), groups),
        Ask(TRIPLES, facts.budget * triples, in_triples),
        Ask(DETAILS, facts.budget * DETAIL),
    )
    return Plan(
        name="contrasts",
        asks=tuple(ask for ask in asks if ask.cost),
        blocks=facts.alone,
        pair_noise=noise,
        cell_noise=noise / mean_cells([min(size, groups) for size in sizes], 2),
    )


def _forest(facts: PublicFacts) -> Plan | None:
    """Ask for a forest of pairs, of many columns; None if halves would show none."""
    if len(facts.cut) <= MOST_VIEWED:
        return None
    blocks = margin_blocks(facts)
    clear = margin_noise(facts, blocks) <= CLEAR_MARGINS
    if facts.norm == 2 and not clear and len(facts.cut) <= MOST_SIEVED:
        return None  # contrasts show more, or a sieve
    limit, fractions = FOREST_CLEAR if clear else FOREST_NOISY
    costs = [facts.budget * fraction for fraction in fractions]
    noise = halves_noise(facts, costs[1])
    if noise > limit:
        return None
    asks = [Ask(what, cost) for what, cost in zip(_FOREST_ASKS, costs, strict=False)]
    return Plan(
        name="forest",
        asks=tuple(asks),
        blocks=blocks,
        pair_noise=noise,
        cell_noise=noise / 4,
    )


def _sieve(facts: PublicFacts) -> Plan | None:
    """Ask for looks at ever fewer pairs, of many columns and noisy margins, with a delta.

    All pairs in halves move with the number of columns in the L2 norm; some of the pairs, at a
    later look, only with the root of their number [Haupt11: most of what is noise goes at each
    look, and little of what is not]. None if even strong pairs would be lost at the first.

    [Haupt11] Haupt, Castro, Nowak: Distilled sensing, IEEE Transactions on Information Theory 57.
    """
    if not MOST_VIEWED < len(facts.cut) <= MOST_SIEVED or facts.norm == 1:
        return None
    if margin_noise(facts, facts.alone) <= CLEAR_MARGINS or _contrasts(facts) is not None:
        return None
    margins, *looks = sieved(facts, facts.budget, SIEVE)
    noise = halves_noise(facts, looks[0].cost)
    if noise > SIEVED_BELOW:
        return None
    return Plan(
        name="sieve",
        asks=(replace(margins, what=MARGINS), *looks),
        blocks=facts.alone,
        pair_noise=noise,
        cell_noise=noise / 4,
    )


def sieved(facts: PublicFacts, left: Fraction, whats: Iterable[str]) -> tuple[Ask, ...]:
    """Return the asks of a sieve out of what is left: margins, looks, strong pairs in detail."""
    others = facts.budget * (1 - max(margins_fraction(facts, facts.alone), LEAST_MARGINS))
    asks = [Ask(what, min(others * SIEVE[what], left / 4)) for what in whats]
    return Ask(AGAIN, left - sum((ask.cost for ask in asks), Fraction(0))), *asks


def _halves(facts: PublicFacts) -> Plan | None:
    """Ask for margins, and for how often halves agree; None if even these would drown.

    Under pure epsilon a few large tables (`_crossed`) tell what halves hide.
    """
    if not 1 < len(facts.cut) <= MOST_VIEWED or max(facts.sizes) <= SMALL_DOMAIN:
        return None
    limit, parts = HALVES_BELOW[facts.norm]
    margins, halves, crossed, pairs = (facts.budget * part for part in parts)
    noise, blocks = halves_noise(facts, halves), margin_blocks(facts)
    if noise > limit:
        return None
    asks = (
        Ask(MARGINS, margins),
        Ask(HALVES, halves),
        Ask(CROSSED, crossed, CROSSED_GROUPS),
        Ask(DETAILS, pairs),
    )
    return Plan(
        name="halves",
        asks=tuple(ask for ask in asks if ask.cost),
        blocks=blocks,
        design=crossed_design(facts, blocks) if crossed else None,
        pair_noise=noise,
        cell_noise=noise,  # worse than any that has groups
    )


def crossed_design(facts: PublicFacts, blocks: Sequence[Attributes]) -> Design:
    """Return a few large tables of groups that hold every column once, of different blocks.

    A table costs as much as a histogram, however many columns it has: a few large ones show what
    their columns have in common, at any order, where all pairs would be noise. Margins are counted
    in blocks; columns of one block go to different tables, so that blocks link the tables, and the
    mixture tells what no table holds.
    """
    widths = facts.widths(CROSSED_GROUPS)
    columns = [a for block in blocks for a in block if facts.sizes[a] > 1]
    designs = (
        Design(tuple(tuple(sorted(columns[place::tables])) for place in range(tables)), widths)
        for tables in range(1, len(columns) + 1)
    )
    return next(one for one in designs if max(map(one.cells, one.views)) <= CROSSED_CELLS)


def _crossed(facts: PublicFacts) -> Plan | None:
    """Ask for margins, and for large tables of columns of different blocks; None if they drown.

    Forecast as no pair: any plan that shows all pairs is better.
    """
    blocks = margin_blocks(facts)
    if facts.norm != 1 or not 1 < len(facts.cut) <= MOST_VIEWED:
        return None
    if margin_noise(facts, blocks) > CROSSED_BELOW:
        return None
    crossed = facts.budget * CROSSED_PART
    return Plan(
        name="crossed",
        asks=(Ask(MARGINS, facts.budget - crossed), Ask(CROSSED, crossed, CROSSED_GROUPS)),
        blocks=blocks,
        design=crossed_design(facts, blocks),
    )


PLANS: Mapping[str, Callable[[PublicFacts], Plan | None]] = {
    "table": _table,
    "views": _views,
    "contrasts": _contrasts,
    "forest": _forest,
    "sieve": _sieve,
    "halves": _halves,
    "crossed": _crossed,
    "margins": _margins,
}


def look_fraction(facts: PublicFacts) -> Fraction:
    """Return the look's fraction of the budget: enough to see pairs in halves, and one attribute.

    A look that misses dependence loses all of it, so it is made clearer where that costs little.
    Under pure epsilon its first margins need as much again: with less they do not tell where to cut
    halves, however large the budget. With a delta the margins are measured before.
    """
    if facts.dependent:
        return Fraction(0)
    moved = sensitivity.agreements(1 + len(facts.cut))

    def least(noise: float) -> Fraction:
        allowed = (
            fraction
            for fraction in _LOOKS
            if facts.deviation(facts.budget * fraction, moved) <= noise * facts.rows
        )
        return next(allowed, _LOOKS[-1])

    clear = min(least(CLEAR_LOOK_NOISE), CLEAR_LOOK) if facts.promise.delta else CLEAR_LOOK
    return max(least(LOOK_NOISE), clear)


def margins_fraction(facts: PublicFacts, blocks: tuple[Attributes, ...]) -> Fraction:
    """Return the margins' fraction x of the budget, in parts of 1 / 40.

    Let a be the forecast noise of a margin that has all of the budget, b that of the pairs, which
    is equal for every budget: groups are made finer until it is. Under pure epsilon
    the errors a / x and b / (1 - x) have the least sum for x / (1 - x) = (a / b)^(1/2); with a
    delta, errors fall with the root of a fraction: (a / b)^(2/3).
    """
    noise, norm = margin_noise(facts, blocks), facts.norm
    power = noise if norm == 1 else noise * noise  # pow() of two machines may differ
    limit = _MARGINS_RATIO[norm] ** (norm + 1) * power
    parts = (
        part
        for part in range(2, _PARTS)
        if part ** (norm + 1) <= limit * (_PARTS - part) ** (norm + 1)
    )
    return Fraction(min(max(parts, default=1), _MOST_MARGINS[norm]), _PARTS)


def finest_design(
    facts: PublicFacts, cost: Fraction, widths: Callable[[int], tuple[int, ...]]
) -> tuple[int, Design] | None:
    """Return the most groups that can be seen, with views of them; None if three would drown.

    `widths` says how many groups each attribute has, if it has at most so many.
    """
    best = None
    for groups in range(3, min(max(facts.sizes), MOST_GROUPS) + 1):
        design = best_design(widths(groups), cell_limit=VIEW_CELLS)
        limit = GROUPS_BELOW if groups > 3 else THREE_GROUPS_BELOW
        if view_noise(design, facts, cost) <= limit:
            best = groups, design
        elif best is None or groups > best[0] + 1:
            break
    return best


def _views_show_margins(design: Design, blocks: Sequence[Attributes]) -> bool:
    """Return whether the views show the margins not much worse than the blocks would.

    Up to some forty columns they do. The views of two hundred are so many that a margin read off
    all of them has eight times the noise it has in a block, and bad margins spoil every table.
    """
    weights = [0.0] * len(design.sizes)
    for view in design.views:
        for attribute in view:
            weights[attribute] += 1 / design.cells(view)
    of_views = sum(sqrt(size / w) for size, w in zip(design.sizes, weights, strict=True))
    return len(design.views) * of_views <= _MARGINS_WORSE_BY * margin_error(design.sizes, blocks)


def _most_groups(facts: PublicFacts, sizes: Sequence[int], fraction: Fraction, order: int) -> int:
    """Return the most groups whose forecast noise is below the limit; 0 if not even two."""
    if len(sizes) < order:
        return 0
    few, more = (PAIRS_BELOW, GROUPS_BELOW) if order == 2 else (TRIPLES_BELOW,) * 2
    best = 0
    for groups in range(2, min(max(sizes), MOST_GROUPS) + 1):
        limit = few if groups <= FEW_GROUPS else more
        total = sensitivity.symmetric([min(size, groups) for size in sizes], order)
        if (
            total > MOST_CELLS[order]
            or contrast_noise(facts, sizes, fraction, groups, order=order) > limit
        ):
            break
        best = groups
    return best


def clearest(study: Study) -> Study:
    """Return a new study under pure epsilon, if that is forecast to show more than its delta does.

    Noise for a delta grows with the root of the number of tables, but starts higher: a few tables
    are clearer under pure epsilon, which keeps a promise with a delta, too.
    """
    if not study.delta or study.criteria:
        return study
    pure = replace(study, delta=Fraction(0))
    one, other = PublicFacts.of(study), PublicFacts.of(pure)
    forecasts = best_plan(one).cell_noise, best_plan(other).cell_noise
    if forecasts[0] == forecasts[1] == inf:
        forecasts = margin_noise(one, one.alone), margin_noise(other, margin_blocks(other))
    return pure if forecasts[1] < forecasts[0] else study
