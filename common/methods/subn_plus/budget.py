"""How subn+ spends its budget: decided from public facts alone, before the first sum.

Forecasts decide: the noise of a margin that had all of the budget, and the noise of a pair's table,
in halves or read off the views. They are distances, so they can be held against what dependence is
worth. docs/research/subn-notes.md has the figures behind each constant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import comb, inf, isqrt, sqrt

from common.errors import LocalError
from common.methods.designs.blocks import disjoint_blocks, margin_error, margin_sums
from common.methods.designs.views import Design, best_design
from common.methods.subn_plus.latent import COMPONENTS
from common.privacy import sensitivity
from common.privacy.promise import Promise
from common.privacy.sensitivity import Sensitivity
from common.schema.attribute import Attribute
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
PAIR_NOISE = 0.1  # of a table of the forest
MOST_PAIR_GROUPS = 100  # of each attribute of such a table, however small its noise
HALVES_BELOW = 0.05  # from the agreement of halves
EARLY_BELOW = 0.09  # the same, with most of the budget for the margins: strong pairs still show
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
CLEAR_LOOK = Fraction(6, 100)  # of the budget, at most, for a look as clear as that
_LOOKS = tuple(Fraction(part, 100) for part in range(1, 17))
HALF_OF_DEVIATION = {1: 1 / sqrt(8), 2: 0.4}  # the mean of half the absolute noise, by its norm
_FIRST_MARGINS = Fraction(3, 8)  # of the look: they say where its halves are cut
_MARGINS_WORSE_BY = 5  # times: up to that, views of small domains are all that is asked for


@dataclass(frozen=True, kw_only=True)
class PublicFacts:
    """What subn+ may know before the first sum.

    Attributes:
        sizes: the domain size of every attribute.
        parties: who contributes, in ring order.
        rows: of all parties together.
        promise: what each party's rows are promised.
        noise_shares: how many times the variance of its law a sum carries: 1 for one share,
            K / (K - t) for K parties' distributed noise that t colluders cannot subtract.
        ordered: of every attribute, how many of its first values are in an order; empty if unknown.
        dependent: whether the study takes it as known that columns depend: then no sum is spent on
            finding out.
    """

    sizes: tuple[int, ...]
    parties: tuple[str, ...]
    rows: int
    promise: Promise
    noise_shares: Fraction = Fraction(1)
    ordered: tuple[int, ...] = ()
    dependent: bool = False

    def __post_init__(self) -> None:
        """Refuse what no study can have."""
        if not self.sizes or min(self.sizes) < 1 or self.rows < 1 or not self.parties:
            raise LocalError("subn+ needs at least one attribute, one party and one row")
        if self.budget <= 0 or self.noise_shares < 1:
            raise LocalError(
                f"a budget of {self.budget} and {self.noise_shares} noise shares: it must be "
                "positive, and noise no less than one share"
            )

    @property
    def budget(self) -> Fraction:
        """What there is to spend."""
        return self.promise.budget

    @property
    def norm(self) -> int:
        """Which norm of a sensitivity noise is calibrated to."""
        return 2 if self.promise.delta else 1

    def widths(self, groups: int) -> tuple[int, ...]:
        """How many groups each attribute has, if it has at most so many."""
        return tuple(min(size, groups) for size in self.sizes)

    def deviation(self, cost: Fraction, moved: Sensitivity) -> float:
        """The standard deviation of the noise in a count of an answer at this cost."""
        return sqrt(self.promise.law(cost, moved).nominal_variance * self.noise_shares)


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
        forest: whether the model is a forest of pairs (`common.methods.subn_plus.forest`), not a
            mixture.
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


def decide_budget(facts: PublicFacts) -> Budget:
    """Which sums are made, and at what cost."""
    blocks = disjoint_blocks(facts.sizes, BLOCK_CELLS)
    if margin_noise(facts, blocks) > BLOCKS_BELOW:
        blocks = tuple((attribute,) for attribute in range(len(facts.sizes)))
    margins_only = Budget(blocks=blocks, margins=facts.budget)
    if len(facts.sizes) == 1:
        return margins_only
    if max(facts.sizes) <= MOST_GROUPS:
        return _views_alone(facts, blocks) or _forest(facts, blocks) or margins_only
    if len(facts.sizes) > MOST_COLUMNS:
        return _forest(facts, blocks) or margins_only
    return _in_groups(facts, blocks) or margins_only


def _views_alone(facts: PublicFacts, blocks: tuple[Attributes, ...]) -> Budget | None:
    """Views of the attributes' own values; None if they would drown, or show margins badly."""
    if len(facts.sizes) > MOST_SMALL_COLUMNS:
        return None
    design = best_design(facts.sizes, cell_limit=VIEW_CELLS)
    clear = view_noise(design, facts, facts.budget) <= VIEWS_ALONE_BELOW
    if not (clear and _views_show_margins(design, blocks)):
        return None
    groups = max(facts.sizes)
    return Budget(blocks=blocks, design=design, groups=groups, correlations=facts.budget)


def _forest(facts: PublicFacts, blocks: tuple[Attributes, ...]) -> Budget | None:
    """A forest of pairs; None if halves would show none."""
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


def bearable_cells(facts: PublicFacts, cost: Fraction) -> int:
    """The most cells of a table of which half the L1 norm of its noise stays below the rows."""
    variance = facts.promise.law(cost, sensitivity.histograms(1)).nominal_variance
    return isqrt(int(8 * facts.rows**2 / variance))


def pair_groups(facts: PublicFacts, cost: Fraction, tables: int, limit: float = PAIR_NOISE) -> int:
    """The most groups, at least two, of both attributes that so many tables of pairs bear."""
    noise = facts.deviation(cost, sensitivity.histograms(tables)) / (2 * facts.rows)  # of a cell
    return min(max(2, isqrt(int(limit / noise))), MOST_PAIR_GROUPS)


def _in_groups(facts: PublicFacts, blocks: tuple[Attributes, ...]) -> Budget | None:
    """As many groups of values as can be seen; None if even halves would drown."""
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
    )


def look_share(facts: PublicFacts) -> Fraction:
    """What a look costs: as much as it takes to see pairs in halves, one more attribute counted.

    A look that misses dependence loses all of it, so it is made clearer where that costs little.
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

    return max(least(LOOK_NOISE), min(least(CLEAR_LOOK_NOISE), CLEAR_LOOK))


def margins_share(facts: PublicFacts, blocks: tuple[Attributes, ...]) -> Fraction:
    """The margins' share x of the budget, in parts of 1 / 40.

    Let a be the forecast noise of a margin that has all of the budget, b that of the pairs, which
    is the same for every budget: groups are made finer until it is as before. Under pure epsilon
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
    """As many groups as can be seen, three or more, and views of them; None if three would drown.

    Args:
        facts: of the study.
        cost: of the views.
        widths: how many groups each attribute has, if it has at most so many.
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


def margin_noise(facts: PublicFacts, blocks: tuple[Attributes, ...]) -> float:
    """The mean total variation distance of a margin that noise makes, all the budget on them."""
    total = 0.0
    for own, share in margin_sums(facts.sizes, blocks, facts.norm):
        deviation = facts.deviation(facts.budget * share, sensitivity.histograms(len(own)))
        total += deviation * margin_error(facts.sizes, own) / len(own)
    return HALF_OF_DEVIATION[facts.norm] * total / (len(facts.sizes) * facts.rows)


def halves_noise(facts: PublicFacts, cost: Fraction) -> float:
    """The same as `view_noise`, of pairs in halves by their agreement; infinite without pairs."""
    moved = sensitivity.agreements(sum(size > 1 for size in facts.sizes))
    return facts.deviation(cost, moved) / facts.rows if moved.l1 else inf


def view_noise(design: Design, facts: PublicFacts, cost: Fraction) -> float:
    """The mean over pairs of half the L1 norm of the noise in their tables, as a share of the rows.

    A pair of c cells in a view of C sums C / c of them for each of its own.
    """
    deviation = facts.deviation(cost, sensitivity.histograms(len(design.views)))
    total = 0.0
    for view in design.views:
        cells = design.cells(view)
        for a, b in combinations(view, 2):
            total += sqrt(cells * design.sizes[a] * design.sizes[b]) / 2
    return total * deviation / (comb(len(design.sizes), 2) * facts.rows)


def _views_show_margins(design: Design, blocks: Sequence[Attributes]) -> bool:
    """Whether the views alone show the margins not much worse than the blocks would.

    Up to some forty columns they do. The views of two hundred are so many that a margin read off
    all of them has eight times the noise it has in a block, and worse margins than histograms give
    spoil every table.
    """
    weights = [0.0] * len(design.sizes)
    for view in design.views:
        for attribute in view:
            weights[attribute] += 1 / design.cells(view)
    of_views = sum(sqrt(size / w) for size, w in zip(design.sizes, weights, strict=True))
    return len(design.views) * of_views <= _MARGINS_WORSE_BY * margin_error(design.sizes, blocks)


def ordered_values(attribute: Attribute) -> int:
    """Return how many of an attribute's first values are in an order; 0 if none are."""
    return attribute.value_count if attribute.ordered else 0
