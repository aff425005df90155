"""subn+: noisy sums, and one model fitted to them. Public facts decide between two kinds.

    1. Margins. Tables over disjoint blocks of attributes (`common.subn.blocks`).
    2. Correlations, if most domains are small. Every attribute's values are joined into a few
       groups by the margins' own noisy counts, and NOCD's views of the grouped attributes are
       summed: every pair in exactly one. A mixture (`common.subn.latent`) is fitted to all tables.
    2'. Otherwise, scores: how far every pair is from independence (`common.subn.dependence`). Then
       families: few tables, where the dependence is, as fine as the budget bears. The model is a
       network of them (`common.subn.grouped_network`).

Where every domain is small there is nothing to group, and the views are all that is asked. Where
the margins alone are hard to see, they get everything: the model is then no worse than independent
columns, because it has better margins than histograms would give. docs/subn.md has the figures
behind each constant.

Everything a step depends on is public: the study, and noisy sums. Decisions are made on integers
(and a few single float operations, which every machine rounds alike), so curator and parties come
to the same steps; the fit, which is floating point, decides nothing but the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb, isqrt, pi, sqrt

import numpy as np

from common.errors import LocalError
from common.privacy import sensitivity
from common.privacy.laplace import discrete_laplace_variance
from common.subn.blocks import disjoint_blocks, margin_error
from common.subn.chosen_families import Family, FamilyTables, choose_families, groups_that_fit
from common.subn.correlation import onto_simplex
from common.subn.dependence import DependenceScores, group_weights
from common.subn.grouped_network import GroupedNetwork
from common.subn.grouping import GroupedTables, balanced_groups
from common.subn.latent import LatentModel, estimated_margins, fit
from common.subn.nocd import optimal_design
from common.subn.steps import Attributes, Counts, Request, SumStep
from common.subn.table_loss import Measurement

BLOCK_CELLS = 1 << 10
VIEW_CELLS = 1 << 12
# Forecast noise of a margin (mean total variation distance) -> most groups of a domain.
GROUPS = ((0.01, 4), (0.0015, 5), (0.0, 6))
MARGINS_ONLY_ABOVE = 0.0205
PAIRS_DROWN_ABOVE = 0.4  # forecast noise of a pair in the views; docs/scale.md has the figures
PENALTY_PER_GROUP = 40.0
_FEWEST_SHARE, _MOST_SHARE = Fraction(1, 2), Fraction(13, 20)
_MORE_SHARE_ABOVE = 0.01
_MARGINS_WORSE_BY = 5  # times: up to that, views of small domains are all that is asked for
_SCORES_SHARE = Fraction(1, 10)
_LEAST_SHARE, _LEAST_SHARE_BELOW = Fraction(2, 5), 0.0042  # of the margins, beside scores
_SCORE_GROUPS = 6
_SCORE_NOISE = Fraction(3, 20)  # most noise scale of a score, in rows, as a share of all rows
_SCORE_DEVIATIONS = 2  # of its noise, that a pair's score must reach
_TABLE_NOISE = Fraction(3, 10)  # most total variation distance that noise may add to a table


@dataclass(frozen=True, kw_only=True)
class PublicFacts:
    """What subn+ may know before the first sum.

    Attributes:
        sizes: the domain size of every attribute.
        parties: who contributes, in ring order.
        rows: of all parties together.
        epsilon: what each party's rows may cost.
        noise_shares: how many times the variance of one Laplace share is in a sum: 1 for one share,
            K / (K - t) for K parties' distributed noise that t colluders cannot subtract.
    """

    sizes: tuple[int, ...]
    parties: tuple[str, ...]
    rows: int
    epsilon: Fraction
    noise_shares: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        """Refuse what no study can have."""
        if not self.sizes or min(self.sizes) < 1 or self.rows < 1 or not self.parties:
            raise LocalError("subn+ needs at least one attribute, one party and one row")
        if self.epsilon <= 0 or self.noise_shares < 1:
            raise LocalError(
                f"epsilon {self.epsilon} and noise shares {self.noise_shares} must be positive, "
                "and noise no less than one share"
            )


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How subn+ spends its epsilon, decided from public facts alone.

    Attributes:
        blocks: the attributes that are counted together for the margins.
        margin_noise: the forecast mean total variation distance of a margin, all of epsilon on it.
        groups: the most groups of a domain in the views; 0 if there are no views.
        margins: epsilon of the blocks; 0 if there are none.
        scores: epsilon of the scores; 0 if views are summed instead.
        tables: epsilon of the views, or of the families that the scores choose.
    """

    blocks: tuple[Attributes, ...]
    margin_noise: float
    groups: int
    margins: Fraction
    scores: Fraction
    tables: Fraction


def decide_budget(facts: PublicFacts) -> Budget:
    """Which sums are made, and at what epsilon."""
    blocks = disjoint_blocks(facts.sizes, BLOCK_CELLS)
    noise = margin_error(facts.sizes, blocks) * sqrt(facts.noise_shares)
    noise /= len(facts.sizes) * facts.rows * float(facts.epsilon)
    groups, scores = next(most for above, most in GROUPS if noise > above), Fraction(0)
    if noise > MARGINS_ONLY_ABOVE or len(facts.sizes) < 2:
        share, groups = Fraction(1), 0
    elif max(facts.sizes) <= groups:
        share = Fraction(0) if _views_show_margins(facts, blocks) else _FEWEST_SHARE
    elif noise > _MORE_SHARE_ABOVE:
        share = _MOST_SHARE
    elif _scores_pay(facts):
        share = _LEAST_SHARE if noise < _LEAST_SHARE_BELOW else _FEWEST_SHARE
        scores = _SCORES_SHARE
    else:
        share = _FEWEST_SHARE
    if share < 1 and not scores:
        drowned = pair_noise(facts, groups, facts.epsilon * (1 - share)) > PAIRS_DROWN_ABOVE
        share, groups = (Fraction(1), 0) if drowned else (share, groups)
    return Budget(
        blocks=blocks,
        margin_noise=noise,
        groups=groups,
        margins=facts.epsilon * share,
        scores=facts.epsilon * scores,
        tables=facts.epsilon * (1 - share - scores),
    )


def pair_noise(facts: PublicFacts, groups: int, epsilon: Fraction) -> float:
    """The forecast mean total variation distance that noise adds to a pair read off the views.

    A pair of c cells in a view of C has noise of the variance of C / c cells in each, and V views
    together have the sensitivity 2V. Half the L1 norm of normal noise is sqrt(1 / (2 pi)) of its
    deviation per cell.
    """
    sizes = [min(size, groups) for size in facts.sizes]
    design = optimal_design(sizes, cell_limit=VIEW_CELLS)
    roots = sum(
        sqrt(sizes[a] * sizes[b] * design.cells(view))
        for view in design.views
        for a, b in combinations(view, 2)
    )
    deviation = len(design.views) * sqrt(8 * facts.noise_shares) / float(epsilon)
    return deviation * roots / (comb(len(sizes), 2) * facts.rows * sqrt(2 * pi))


def _views_show_margins(facts: PublicFacts, blocks: Sequence[Attributes]) -> bool:
    """Whether the views alone show the margins not much worse than the blocks would.

    Up to some forty columns they do. The views of two hundred are so many that a margin read off
    all of them has eight times the noise it has in a block, and worse margins than histograms give
    spoil every table.
    """
    design = optimal_design(facts.sizes, cell_limit=VIEW_CELLS)
    weights = [0.0] * len(facts.sizes)
    for view in design.views:
        for attribute in view:
            weights[attribute] += 1 / design.cells(view)
    of_views = sum(sqrt(size / w) for size, w in zip(facts.sizes, weights, strict=True))
    most = _MARGINS_WORSE_BY * margin_error(facts.sizes, blocks)
    return len(design.views) * of_views <= most


def _scores_pay(facts: PublicFacts) -> bool:
    """Whether views would show most attributes in groups only, and scores can be told from noise.

    A score's noise is compared with the rows, which no distance can exceed.
    """
    large = 2 * sum(size > GROUPS[-1][1] for size in facts.sizes) > len(facts.sizes)
    moved = sensitivity.distance_to_reference(comb(len(facts.sizes), 2))
    return large and moved <= _SCORE_NOISE * _SCORES_SHARE * facts.epsilon * facts.rows


class SubnPlusPlan:
    """subn+ as a `common.subn.steps.Plan`.

    Feed it the noisy sums in the order of its steps; each copy comes to the same steps.
    """

    def __init__(self, facts: PublicFacts) -> None:
        self._facts = facts
        self.budget = decide_budget(facts)
        self._measurements: list[Measurement] = []
        self._network: GroupedNetwork | None = None
        identity = tuple(tuple(range(size)) for size in facts.sizes)
        self._histograms: list[Counts] = []
        if self.budget.margins:
            blocks = GroupedTables(self.budget.blocks, identity)
            self._step: SumStep | None = self._tables("margins", self.budget.margins, blocks)
        else:
            self._step = self._views(identity)

    def step(self) -> SumStep | None:
        """The noisy sum to make next; None when the model can be made."""
        return self._step

    def advance(self, result: Counts | bytes) -> None:
        """Take the noisy sum of the current step.

        Raises:
            LocalError: there is no such step, or its sum has another length.
        """
        step = self._step
        if step is None or isinstance(result, bytes) or result.shape != (step.request.cells,):
            raise LocalError("this is not a result of the plan's current step")
        match step.request:
            case GroupedTables() as request:
                self._keep(request, result, step.scale)
                self._step = self._after_margins(request, result, step.name)
            case DependenceScores() as request:
                self._step = self._families(request, result, step.scale)
            case FamilyTables() as request:
                self._network = self._network_of(request, result)
                self._step = None

    def model(self) -> LatentModel | GroupedNetwork:
        """The mixture fitted to all sums, or the network of the chosen families.

        Raises:
            LocalError: a step is still to be made.
        """
        if self._step is not None:
            raise LocalError(f"there is no model before step {self._step.name!r} has its result")
        if self._network is not None:
            return self._network
        groups = self.budget.groups or GROUPS[0][1]
        free = sum(min(size, groups) - 1 for size in self._facts.sizes) / len(self._facts.sizes)
        return fit(
            self._facts.sizes,
            self._facts.rows,
            self._measurements,
            penalty=PENALTY_PER_GROUP * max(free, 1.0),
        )

    def _keep(self, request: GroupedTables, result: Counts, scale: Fraction) -> None:
        variance = float(self._facts.noise_shares) * discrete_laplace_variance(scale)
        for attributes, table in zip(request.sets, request.tables(result), strict=True):
            maps = tuple(request.map_of(a) for a in attributes)
            counts = table.astype(np.float64)
            self._measurements.append(Measurement(attributes, maps, counts, variance))

    def _after_margins(self, request: GroupedTables, result: Counts, name: str) -> SumStep | None:
        if name != "margins" or not self.budget.tables:
            return None
        margins = dict[int, Counts]()
        for block, table in zip(self.budget.blocks, request.tables(result), strict=True):
            for axis, attribute in enumerate(block):
                others = tuple(other for other in range(table.ndim) if other != axis)
                margins[attribute] = table.sum(axis=others)
        self._histograms = [margins[attribute] for attribute in range(len(margins))]
        if self.budget.scores:
            return self._scores()
        return self._views(tuple(self._grouped(a, self.budget.groups) for a in range(len(margins))))

    def _grouped(self, attribute: int, groups: int) -> tuple[int, ...]:
        """The attribute's groups, from its noisy margin."""
        return balanced_groups(self._histograms[attribute], self._facts.rows, groups)

    def _views(self, groups: tuple[tuple[int, ...], ...]) -> SumStep:
        sizes = [max(own) + 1 for own in groups]
        design = optimal_design(sizes, cell_limit=VIEW_CELLS)
        return self._tables("correlations", self.budget.tables, GroupedTables(design.views, groups))

    def _scores(self) -> SumStep:
        rows = self._facts.rows
        groups = [self._grouped(a, _SCORE_GROUPS) for a in range(len(self._histograms))]
        weights = [
            group_weights(histogram, own, rows)
            for histogram, own in zip(self._histograms, groups, strict=True)
        ]
        request = DependenceScores(tuple(groups), tuple(weights))
        moved = Fraction(sensitivity.distance_to_reference(request.cells))
        return self._sum("scores", self.budget.scores, request, moved)

    def _families(self, request: DependenceScores, result: Counts, scale: Fraction) -> SumStep:
        """Tables where the scores stand out from their noise, as fine as the budget bears."""
        facts = self._facts
        deviations = Fraction(_SCORE_DEVIATIONS) ** 2 * 2 * scale**2 * facts.noise_shares
        chosen = choose_families(
            request.in_excess(result, facts.rows, len(facts.parties)),
            facts.sizes,
            least=isqrt(int(deviations)),
            cells=self._cells(len(facts.sizes) - 1),
        )
        cells = self._cells(len(chosen))
        families = []
        for attributes in chosen:
            most = groups_that_fit([facts.sizes[a] for a in attributes], cells)
            families.append(Family(attributes, tuple(self._grouped(a, most) for a in attributes)))
        return self._tables("families", self.budget.tables, FamilyTables(tuple(families)))

    def _cells(self, tables: int) -> int:
        """The most cells of one of so many tables: half the L1 noise stays below its limit."""
        scale = sensitivity.histograms(tables) / self.budget.tables
        return int(2 * _TABLE_NOISE * self._facts.rows / scale)

    def _network_of(self, request: FamilyTables, result: Counts) -> GroupedNetwork:
        rows = self._facts.rows
        tables = [
            onto_simplex(table.astype(np.float64), rows) / rows for table in request.tables(result)
        ]
        margins = estimated_margins(self._facts.sizes, rows, self._measurements)
        return GroupedNetwork(margins, request.families, tuple(tables))

    def _tables(
        self, name: str, epsilon: Fraction, request: GroupedTables | FamilyTables
    ) -> SumStep:
        """A replaced row moves two cells of every table."""
        moved = Fraction(sensitivity.histograms(request.count))
        return self._sum(name, epsilon, request, moved)

    def _sum(self, name: str, epsilon: Fraction, request: Request, moved: Fraction) -> SumStep:
        return SumStep(
            name=name,
            phase=name,
            parties=self._facts.parties,
            request=request,
            sensitivity=moved,
            scale=moved / epsilon,
        )
