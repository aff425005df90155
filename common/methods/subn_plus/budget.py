"""How subn+ spends its budget: decided from public facts alone, before the first sum.

Forecasts decide: the noise of a margin that had all of the budget, and the noise of a pair's table,
in halves or read off the views. docs/research/subn-notes.md has the figures behind each constant.

With a delta, and Gaussian-like noise, the error of m tables grows with sqrt(m), so that every pair
and every triple can be looked at, in groups as fine as the noise allows (`plan_contrasts`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import comb, inf, sqrt

from common.methods.designs.blocks import disjoint_blocks, margin_error
from common.methods.designs.nocd import Design, best_design
from common.methods.subn_plus.facts import (
    HALF_OF_DEVIATION,
    PublicFacts,
    halves_noise,
    margin_noise,
    view_noise,
)
from common.methods.subn_plus.latent import COMPONENTS
from common.privacy import sensitivity
from common.privacy.sensitivity import CONTRAST_UNIT
from common.study.document import Study
from common.study.requests import Attributes

BLOCK_CELLS = 1 << 10
VIEW_CELLS = 1 << 12
MOST_GROUPS = 6
# A class of the mixture stands for one dependence. If it has to stand for several of those that a
# wide table has, it ties them to each other: then a forest of pairs.
MOST_COLUMNS = COMPONENTS // 2
MOST_SMALL_COLUMNS = 2 * COMPONENTS  # views of own values show more than pairs
BLOCKS_BELOW = 0.5  # forecast noise of a margin, above which even a block's best cells are noise
# Forecast noise of a pair's table, as a mean total variation distance:
VIEWS_ALONE_BELOW = 0.15  # read off views that are all that is asked for
FOREST_BELOW = 0.1  # from the agreement of halves, to find a forest
HALVES_BELOW = 0.05  # from the agreement of halves
EARLY_BELOW = 0.09  # from halves, with most of the budget for margins: strong pairs still show
THREE_GROUPS_BELOW = 0.17  # read off views of three groups
GROUPS_BELOW = 0.1  # of more
MOST_VIEW_GROUPS = 64
_SHARES = 40  # the margins' share is a multiple of one part in so many
_MARGINS_RATIO = {1: 13, 2: 15}  # by the norm: see `margins_share`
_MOST_MARGINS = {1: 24, 2: 32}  # of the shares
_PAIRS_SHARE = Fraction(3, 50)
# Of the margins and of the pairs:
_SHARES_WITH_HALVES = Fraction(7, 10), Fraction(2, 25)
_EARLY_SHARES = Fraction(39, 50), Fraction(1, 50)
_SHARES_OF_FOREST = Fraction(2, 5), Fraction(1, 5)
_NOISY_FOREST_MARGINS_ABOVE = 0.003  # as above; then the shares and the limit of halves
LOOK_NOISE = 0.055  # forecast noise of a pair in halves, at which a first look tells of dependence
CLEAR_LOOK_NOISE = 0.03  # at which it seldom misses any
CLEAR_LOOK = Fraction(6, 100)  # of the budget, for a look as clear as that
CLEAR_PAIRS = 0.03  # forecast noise of pairs, up to which a look that sees nothing is not believed
_LOOKS = tuple(Fraction(part, 100) for part in range(1, 17))
_FIRST_MARGINS = Fraction(3, 8)  # of the look: they say where its halves are cut
_MARGINS_WORSE_BY = 5  # times: up to that, views of small domains are all that is asked for

# Of contrasts:
MOST_CONTRASTED = 64  # beyond, a mixture ties dependences to each other that have nothing in common
MOST_PAIR_CELLS = 1 << 22
MOST_TRIPLE_CELLS = 1 << 18  # the fit takes time in proportion
MOST_CONTRAST_GROUPS = 64
# Forecast noise of a table, as a mean total variation distance. The fit takes off most of it.
PAIRS_BELOW = 0.25
TRIPLES_BELOW = 0.2
PAIRS_AS_EXACT = 0.01  # then triples may have more than a fifth, and a mixture is fitted to the end
DETAIL = Fraction(1, 12)  # of the budget, for pairs in detail
_TRIPLES_SHARES = tuple(Fraction(share, 10) for share in (1, 2, 3, 4))
_MOST_VARIANCE = 1 << 39  # that noise can be drawn of, and some room


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How subn+ spends its budget, decided from public facts alone.

    Attributes:
        blocks: the attributes that are counted together for the margins.
        first: the cost of the blocks before the look; 0 if there is no look.
        look: of the look, the agreement of halves, that decides whether anything but margins is
            asked for.
        design: the views, of attributes in groups; None if there are none.
        groups: the most groups that dependence is looked for in; 0 if it is not.
        margins: of the blocks; 0 if there are none.
        correlations: of the views, or of the agreement of halves if there are no views.
        pairs: of the pairs in full detail.
        forest: whether the model is a forest of pairs (`common.methods.subn_plus.models`), not a
            mixture.
        pair_noise: the forecast noise of a pair's table, as a total variation distance.
    """

    blocks: tuple[Attributes, ...]
    first: Fraction = Fraction(0)
    look: Fraction = Fraction(0)
    design: Design | None = None
    groups: int = 0
    margins: Fraction = Fraction(0)
    correlations: Fraction = Fraction(0)
    pairs: Fraction = Fraction(0)
    forest: bool = False
    pair_noise: float = inf


def decide_budget(facts: PublicFacts) -> Budget:
    """Decide which sums are made, and at what cost."""
    blocks = margin_blocks(facts)
    margins_only = Budget(blocks=blocks, margins=facts.budget)
    if len(facts.sizes) == 1:
        return margins_only
    if max(facts.sizes) <= MOST_GROUPS:
        return _views_alone(facts, blocks) or _forest(facts, blocks) or margins_only
    if len(facts.sizes) > MOST_COLUMNS:
        return _forest(facts, blocks) or margins_only
    return _in_groups(facts, blocks) or margins_only


def margin_blocks(facts: PublicFacts) -> tuple[Attributes, ...]:
    """Return the attributes that are counted together for the margins."""
    blocks = disjoint_blocks(facts.sizes, BLOCK_CELLS)
    if margin_noise(facts, blocks) > BLOCKS_BELOW:
        return tuple((attribute,) for attribute in range(len(facts.sizes)))
    return blocks


def _views_alone(facts: PublicFacts, blocks: tuple[Attributes, ...]) -> Budget | None:
    """Ask for views of own values; None if they would drown, or show margins badly."""
    if len(facts.sizes) > MOST_SMALL_COLUMNS:
        return None
    design = best_design(facts.sizes, cell_limit=VIEW_CELLS)
    noise = view_noise(design, facts, facts.budget)
    if noise > VIEWS_ALONE_BELOW or not _views_show_margins(design, blocks):
        return None
    return Budget(
        blocks=blocks,
        design=design,
        groups=max(facts.sizes),
        correlations=facts.budget,
        pair_noise=noise,
    )


def _forest(facts: PublicFacts, blocks: tuple[Attributes, ...]) -> Budget | None:
    """Ask for a forest of pairs; None if halves would show none."""
    noisy = margin_noise(facts, blocks) > _NOISY_FOREST_MARGINS_ABOVE
    budget = _with_halves(facts, blocks, *(_SHARES_WITH_HALVES if noisy else _SHARES_OF_FOREST))
    limit = HALVES_BELOW if noisy else FOREST_BELOW
    clear = halves_noise(facts, budget.correlations) <= limit
    return replace(budget, forest=True) if clear else None


def _with_halves(
    facts: PublicFacts, blocks: tuple[Attributes, ...], margins: Fraction, pairs: Fraction
) -> Budget:
    return Budget(
        blocks=blocks,
        groups=2,
        margins=facts.budget * margins,
        correlations=facts.budget * (1 - margins - pairs),
        pairs=facts.budget * pairs,
    )


def _in_groups(facts: PublicFacts, blocks: tuple[Attributes, ...]) -> Budget | None:
    """Ask for as many groups as can be seen; None if even halves would drown in noise."""
    halves = _with_halves(facts, blocks, *_SHARES_WITH_HALVES)
    if halves_noise(facts, halves.correlations) > HALVES_BELOW:
        early = _with_halves(facts, blocks, *_EARLY_SHARES)
        return early if halves_noise(facts, early.correlations) <= EARLY_BELOW else None
    look = look_share(facts)
    left = facts.budget * (1 - look * (1 + _FIRST_MARGINS))
    share = margins_share(facts, blocks)
    views = left * (1 - share - _PAIRS_SHARE)
    finest = finest_design(facts, views, facts.widths)
    if finest is None:
        return halves
    return Budget(
        blocks=blocks,
        first=facts.budget * look * _FIRST_MARGINS,
        look=facts.budget * look,
        design=finest[1],
        groups=finest[0],
        margins=left * share,
        correlations=views,
        pairs=left * _PAIRS_SHARE,
        pair_noise=view_noise(finest[1], facts, views),
    )


def look_share(facts: PublicFacts) -> Fraction:
    """Return the look's fraction of the budget: enough to see pairs in halves, and one attribute.

    A look that misses dependence loses all of it, so it is made clearer where that costs little.
    Under pure epsilon its first margins need as much again: with less they do not tell where to cut
    halves, however large the budget. With a delta the margins are measured before.
    """
    if facts.dependent:
        return Fraction(0)
    moved = sensitivity.agreements(1 + sum(size > 1 for size in facts.sizes))

    def least(noise: float) -> Fraction:
        allowed = (
            share
            for share in _LOOKS
            if facts.deviation(facts.budget * share, moved) <= noise * facts.rows
        )
        return next(allowed, _LOOKS[-1])

    clear = min(least(CLEAR_LOOK_NOISE), CLEAR_LOOK) if facts.promise.delta else CLEAR_LOOK
    return max(least(LOOK_NOISE), clear)


def margins_share(facts: PublicFacts, blocks: tuple[Attributes, ...]) -> Fraction:
    """Return the margins' fraction x of the budget, in parts of 1 / 40.

    Let a be the forecast noise of a margin that has all of the budget, b that of the pairs, which
    is equal for every budget: groups are made finer until it is. Under pure epsilon
    the errors a / x and b / (1 - x) have the least sum for x / (1 - x) = (a / b)^(1/2); with a
    delta, errors fall with the root of a share: (a / b)^(2/3).
    """
    noise, norm = margin_noise(facts, blocks), facts.norm
    power = noise if norm == 1 else noise * noise  # pow() of two machines may differ
    limit = _MARGINS_RATIO[norm] ** (norm + 1) * power
    parts = (
        part
        for part in range(2, _SHARES)
        if part ** (norm + 1) <= limit * (_SHARES - part) ** (norm + 1)
    )
    return Fraction(min(max(parts, default=1), _MOST_MARGINS[norm]), _SHARES)


def finest_design(
    facts: PublicFacts, cost: Fraction, widths: Callable[[int], tuple[int, ...]]
) -> tuple[int, Design] | None:
    """Return the most groups that can be seen, with views of them; None if three would drown.

    `widths` says how many groups each attribute has, if it has at most so many.
    """
    best = None
    for groups in range(3, min(max(facts.sizes), MOST_VIEW_GROUPS) + 1):
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


@dataclass(frozen=True, kw_only=True)
class ContrastPlan:
    """What is asked.

    Attributes:
        margins: the cost of all histograms.
        look: of the agreement of halves.
        pairs: of all pairs' contrasts.
        triples: of all triples' contrasts; 0 if they are not asked.
        detail: of a few pairs, or of the margins once more.
        pair_groups: the most groups of an attribute in pairs.
        triple_groups: the most groups of an attribute in triples.
        pair_noise: the forecast noise of a pair's table, as a total variation distance.
    """

    margins: Fraction
    look: Fraction
    pairs: Fraction
    triples: Fraction
    detail: Fraction
    pair_groups: int
    triple_groups: int
    pair_noise: float


def plan_contrasts(facts: PublicFacts) -> ContrastPlan | None:
    """Return the finest plan that the noise allows; None if pairs show little but noise."""
    sizes = [size for size in facts.sizes if size > 1]
    if not 2 <= len(sizes) <= MOST_CONTRASTED:
        return None
    margins = margins_share(facts, tuple((a,) for a in range(len(facts.sizes))))
    look = look_share(facts)
    left = 1 - margins - look - DETAIL
    if left <= 0:
        return None
    finest = max(2, _most_groups(facts, sizes, left * (1 - _TRIPLES_SHARES[0]), 2))
    groups = _most_groups(facts, sizes, left, 2)
    if groups < 2:
        return None
    triples, in_triples = Fraction(0), 0
    for share in _TRIPLES_SHARES:
        own = _most_groups(facts, sizes, left * share, 3)
        exact = _contrast_noise(facts, sizes, left * (1 - share), finest, 2) <= PAIRS_AS_EXACT
        if share > Fraction(1, 5) and not exact:
            break
        if own >= 2 and _most_groups(facts, sizes, left * (1 - share), 2) >= finest:
            triples, in_triples, groups = left * share, own, finest
    return ContrastPlan(
        margins=facts.budget * margins,
        look=facts.budget * look,
        pairs=facts.budget * (left - triples),
        triples=facts.budget * triples,
        detail=facts.budget * DETAIL,
        pair_groups=groups,
        triple_groups=in_triples,
        pair_noise=_contrast_noise(facts, sizes, left - triples, groups, 2),
    )


def _most_groups(facts: PublicFacts, sizes: list[int], share: Fraction, order: int) -> int:
    """Return the most groups whose forecast noise is below the limit; 0 if not even two."""
    if len(sizes) < order:
        return 0
    limit = PAIRS_BELOW if order == 2 else TRIPLES_BELOW
    cells = MOST_PAIR_CELLS if order == 2 else MOST_TRIPLE_CELLS
    best = 0
    for groups in range(2, min(max(sizes), MOST_CONTRAST_GROUPS) + 1):
        total = sensitivity.symmetric([min(size, groups) for size in sizes], order)
        if total > cells or _contrast_noise(facts, sizes, share, groups, order) > limit:
            break
        best = groups
    return best


def _contrast_noise(
    facts: PublicFacts, sizes: list[int], share: Fraction, groups: int, order: int
) -> float:
    """Forecast the noise of a table, as a total variation distance."""
    widths = [min(size, groups) for size in sizes]
    mean = sensitivity.symmetric(widths, order) / comb(len(sizes), order)
    deviation = _contrast_deviation(facts, facts.budget * share, widths, order)
    return HALF_OF_DEVIATION[2] * deviation * mean / facts.rows


def _contrast_deviation(facts: PublicFacts, cost: Fraction, widths: list[int], order: int) -> float:
    """Forecast the standard deviation of the noise in a contrast, in rows."""
    variance = sensitivity.contrasts(widths, order).l2_squared / (2 * cost)
    if variance > _MOST_VARIANCE:
        return inf
    return sqrt(variance * facts.noise_shares) / float(CONTRAST_UNIT**order)


def delta_advice(study: Study) -> str | None:
    """Return advice to a proposer whose delta is forecast to cost accuracy; None if it is not.

    Noise for a delta grows with the root of the number of tables, but starts higher: a few tables
    are clearer under pure epsilon.
    """
    if not study.delta:
        return None
    facts = PublicFacts.of(study)
    pure = replace(facts, promise=replace(study.promise, delta=Fraction(0)))
    if not _clearer(pure, facts):
        return None
    return (
        "delta: pure epsilon is forecast to show these few columns more clearly. Leave delta out, "
        "unless its smaller cost in the sum of many studies matters more to the owners"
    )


def _clearer(pure: PublicFacts, facts: PublicFacts) -> bool:
    plan, budget = plan_contrasts(facts), decide_budget(pure)
    if plan is None:
        alone = tuple((a,) for a in range(len(facts.sizes)))
        return bool(budget.correlations) or margin_noise(pure, alone) < margin_noise(facts, alone)
    if budget.design is None:
        return False
    sizes, share = [size for size in facts.sizes if size > 1], plan.pairs / facts.budget
    noise = _contrast_noise(facts, sizes, share, max(budget.design.sizes), 2)
    return budget.pair_noise <= noise
