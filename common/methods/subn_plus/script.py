"""subn+: a few noisy sums, and one model fitted to all of them.

    1. Look. How often pairs agree in halves (`Agreements`), and the halves' own counts, cut by a
       first small sum of the margins. If no pair depends, the margins get all that is left.
    2. Margins. Tables over disjoint blocks of attributes (`common.methods.designs.blocks`).
    3. Correlations. Every attribute's values are joined into a few groups by the margins' own noisy
       counts, and NOCD's views of the grouped attributes are summed: every pair in exactly one.
       With a delta, the contrasts of all pairs and triples (`Contrasts`).
    4. Pairs. The few that are seen to depend strongly (`dependence`), in full detail. If there are
       none, the margins once more.

With a delta, and up to 64 columns, contrasts take the place of views: a row's contrast is shorter
than its table in the L2 norm, which noise is then calibrated to, and longer in the L1 norm. The
margins come before the look: there, two sums of the same tables are as good as one that costs as
much as both. Where the noise allows no more than two groups, there is no look: the
agreement of halves is all that is asked for after the margins.

The model is a mixture (`latent`) in which the chosen pairs are single columns (`joined`).

Where every domain is small there is nothing to group, and the views are all that is asked. Wide
tables get a forest of pairs instead of a mixture (`dependence`): margins, the agreement of halves,
and tables of the pairs that a forest may be made of.

Where correlations would show little but noise, the margins get everything, and the model is
independent blocks: no worse than independent columns, because it has better margins than histograms
would give. docs/research/subn-notes.md has the figures behind each constant.

Everything a step depends on is public: the study, and noisy sums. Decisions are made on integers
and fractions (and a few single float operations, which every machine rounds alike), so curator and
parties come to the same steps; the fit, which is floating point, decides nothing but the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import combinations

import numpy as np

from common.methods.designs.nocd import Pair
from common.methods.subn_plus.budget import (
    CLEAR_PAIRS,
    PAIRS_AS_EXACT,
    Budget,
    ContrastPlan,
    decide_budget,
    finest_design,
    plan_contrasts,
)
from common.methods.subn_plus.dependence import (
    Departure,
    candidates,
    departures,
    depends,
    strong_pairs,
)
from common.methods.subn_plus.facts import PublicFacts, bearable_cells, pair_groups
from common.methods.subn_plus.joined import JoinedModel
from common.methods.subn_plus.latent import LatentModel
from common.methods.subn_plus.losses import Moments
from common.methods.subn_plus.models import (
    columns_model,
    forest_model,
    mixture_model,
    moments_model,
)
from common.methods.subn_plus.requests import (
    Contrasts,
    GroupedTables,
    even_groups,
)
from common.methods.subn_plus.sums import (
    Groupings,
    Tables,
    agreements,
    every_value,
    fit_variance,
    margins_alone,
    margins_of,
    margins_only,
    one_way,
    tables_of,
    weights_of,
)
from common.privacy import sensitivity
from common.privacy.noise_law import NoiseLaw
from common.privacy.sensitivity import CONTRAST_UNIT
from common.study.requests import Counts
from common.study.script import Fit, Script, added_up

PAIR_CELLS = 1 << 11
FOREST_PAIR_CELLS = 1 << 20  # the model of a forest has a table of each pair's own values
DETAIL_NOISE = 1.0  # of a pair in detail: margins and sparsity take off most of it


def measure(facts: PublicFacts) -> Script[Fit]:
    """Run the phases: a look, margins, correlations, pairs, as far as the budget goes."""
    if facts.promise.delta and (plan := plan_contrasts(facts)) is not None:
        return (yield from _contrasts(facts, plan))
    budget = decide_budget(facts)
    values = every_value(facts)
    if not budget.margins:
        views = yield from _correlations(facts, budget, values)
        seen = views.measurements(facts)
        # The histograms come of the views: a deviation has the noise of both.
        found = views.departures(facts, one_way(views), noisy=2)
        if _nothing_depends(facts, found, budget.pair_noise):
            return partial(columns_model, facts, seen)
        return partial(mixture_model, facts, seen, exact=budget.pair_noise <= PAIRS_AS_EXACT)
    blocks = GroupedTables(budget.blocks, values)
    if budget.design:
        return (yield from _views(facts, budget, blocks))
    if not budget.correlations:
        return (yield from margins_only(facts))
    margins = yield from margins_of(facts, "margins", budget.margins, blocks)
    histograms = one_way(margins)
    agreed = yield from agreements(facts, budget.correlations, histograms)
    found = agreed.departures(facts, weights_of(histograms, agreed.request.halves, facts.rows))
    if budget.forest:
        return (yield from _forest(facts, budget, margins, histograms, found))
    mixture = partial(mixture_model, facts, (), halves=agreed.moments(facts))
    return (yield from _detail(facts, budget, margins, found, mixture))


def _views(facts: PublicFacts, budget: Budget, blocks: GroupedTables) -> Script[Fit]:
    """Look whether any pair depends; then ask for margins, views and pairs, or for margins.

    The look comes before the margins: two noisy sums of the same tables are worse than one that
    costs as much as both, under pure epsilon.
    """
    seen = None
    if budget.look:
        first = yield from tables_of(facts, "first margins", budget.first, blocks)
        seen = yield from _look(facts, budget.look, one_way(first), budget.pair_noise)
        if seen is None:
            left = facts.budget - budget.first - budget.look
            return (yield from margins_alone(facts, "margins", left, first))
    margins = yield from margins_of(facts, "margins", budget.margins, blocks)
    histograms = one_way(margins)
    budget, groups = _in_even_groups(facts, budget, histograms)
    views = yield from _correlations(facts, budget, groups)
    exact = budget.pair_noise <= PAIRS_AS_EXACT
    mixture = partial(mixture_model, facts, views.measurements(facts), halves=seen, exact=exact)
    found = views.departures(facts, histograms)
    return (yield from _detail(facts, budget, margins, found, mixture))


def _detail(
    facts: PublicFacts,
    budget: Budget,
    margins: Tables,
    found: Mapping[Pair, Departure],
    mixture: Callable[..., LatentModel | JoinedModel],
) -> Script[Fit]:
    """Ask for the strong pairs; if there are none, for the margins once more."""
    measured = margins.measurements(facts)
    bearable = bearable_cells(facts, budget.pairs)
    pairs = strong_pairs(found, facts.sizes, rows=facts.rows, cells=bearable, most=PAIR_CELLS)
    if not pairs:
        again = yield from margins_of(facts, "margins again", budget.pairs, margins.request)
        return partial(mixture, [*measured, *again.measurements(facts)])
    request = GroupedTables(pairs, every_value(facts))
    detail = yield from tables_of(facts, "pairs", budget.pairs, request)
    return partial(mixture, measured, detail.measurements(facts))


def _contrasts(facts: PublicFacts, plan: ContrastPlan) -> Script[Fit]:
    """Ask for margins, contrasts of all pairs and of all triples, and the strong pairs."""
    sizes = facts.sizes
    alone = GroupedTables(tuple((a,) for a in range(len(sizes))), every_value(facts))
    margins = yield from margins_of(facts, "margins", plan.margins, alone)
    histograms = one_way(margins)
    moments = []
    if plan.look:
        seen = yield from _look(facts, plan.look, histograms, plan.pair_noise)
        if seen is None:
            left = facts.budget - plan.margins - plan.look
            return (yield from margins_alone(facts, "margins again", left, margins))
        moments.append(seen)
    groups = _evenly(histograms, facts.rows, plan.pair_groups)
    pairs = yield from _moments(facts, "correlations", plan.pairs, groups, 2)
    found = pairs.departures(facts, histograms)
    moments.insert(0, pairs.moments(facts))
    if plan.triples:
        coarse = _evenly(histograms, facts.rows, plan.triple_groups)
        triples = yield from _moments(facts, "triples", plan.triples, coarse, 3)
        moments.append(triples.moments(facts))
    unit = CONTRAST_UNIT**2 * facts.rows
    every = len(sizes) * PAIR_CELLS  # groups become coarser where noise asks for it
    strong = strong_pairs(found, sizes, rows=unit, cells=every, most=PAIR_CELLS)
    if not strong:
        again = yield from margins_of(facts, "margins again", plan.detail, alone)
        tables = [*margins.measurements(facts), *again.measurements(facts)]
        return partial(moments_model, facts, tables, (), moments)
    most = pair_groups(facts, plan.detail, len(strong), DETAIL_NOISE)
    request = GroupedTables(strong, _evenly(histograms, facts.rows, most))
    detail = yield from tables_of(facts, "pairs", plan.detail, request)
    measured, joined = margins.measurements(facts), detail.measurements(facts)
    return partial(moments_model, facts, measured, joined, moments)


def _forest(
    facts: PublicFacts,
    budget: Budget,
    margins: Tables,
    histograms: Sequence[Counts],
    seen: Mapping[Pair, Departure],
) -> Script[Fit]:
    """Ask for tables of the pairs that a forest may be made of, but for those in blocks."""
    known = margins.departures(facts, histograms)
    sizes = facts.sizes
    pairs = candidates(
        {
            (a, b): own
            for (a, b), own in seen.items()
            if (a, b) not in known and sizes[a] * sizes[b] <= FOREST_PAIR_CELLS
        }
    )
    measured = margins.measurements(facts)
    if not pairs:
        again = yield from margins_of(facts, "margins again", budget.pairs, margins.request)
        return partial(forest_model, facts, [*measured, *again.measurements(facts)], known)
    most = pair_groups(facts, budget.pairs, len(pairs))
    request = GroupedTables(pairs, _evenly(histograms, facts.rows, most))
    detail = yield from tables_of(facts, "pairs", budget.pairs, request)
    found = detail.departures(facts, histograms) | known
    return partial(forest_model, facts, [*measured, *detail.measurements(facts)], found)


@dataclass(frozen=True, slots=True)
class _Contrasts:
    """Noisy contrasts."""

    request: Contrasts
    sums: list[Counts]
    law: NoiseLaw

    def moments(self, facts: PublicFacts) -> Moments:
        unit = CONTRAST_UNIT**self.request.order * facts.rows
        attributes = _cut(facts)
        return Moments(
            attributes,
            tuple(np.array(self.request.groups[a], dtype=np.intp) for a in attributes),
            [own / unit for own in self.sums],
            fit_variance(self.law, facts) / unit**2,
        )

    def departures(self, facts: PublicFacts, histograms: Sequence[Counts]) -> dict[Pair, Departure]:
        """Return how far the pairs are from independence, in units of the contrasts.

        A contrast differs from its table by what depends on one attribute alone, which a
        departure leaves out.
        """
        weights = weights_of(histograms, self.request.groups, facts.rows)
        variances = [facts.variance(self.law)] * len(self.sums)
        rows = CONTRAST_UNIT**2 * facts.rows
        return departures(self.request.sets, self.sums, weights, variances, rows)


def _cut(facts: PublicFacts) -> tuple[int, ...]:
    """Return the attributes that have more than one value."""
    return tuple(a for a, size in enumerate(facts.sizes) if size > 1)


def _moments(
    facts: PublicFacts, name: str, cost: Fraction, groups: Groupings, order: int
) -> Script[_Contrasts]:
    attributes = _cut(facts)
    request = Contrasts(tuple(combinations(attributes, order)), groups)
    moved = sensitivity.contrasts([request.sizes[a] for a in attributes], order)
    answer, law = yield from added_up(facts.sum_of(request, name=name, cost=cost, moved=moved))
    return _Contrasts(request, request.split(answer), law)


def _correlations(facts: PublicFacts, budget: Budget, groups: Groupings) -> Script[Tables]:
    views = budget.design.views if budget.design else ()
    request = GroupedTables(views, groups)
    return (yield from tables_of(facts, "correlations", budget.correlations, request))


def _look(
    facts: PublicFacts, cost: Fraction, histograms: Sequence[Counts], pair_noise: float
) -> Script[Moments | None]:
    """Look at every pair in halves; None if nothing depends."""
    agreed = yield from agreements(facts, cost, histograms, alone=True)
    weights = agreed.request.weights(agreed.agreed, facts.rows)
    found = agreed.departures(facts, weights)
    return None if _nothing_depends(facts, found, pair_noise) else agreed.moments(facts)


def _nothing_depends(
    facts: PublicFacts, found: Mapping[Pair, Departure], pair_noise: float
) -> bool:
    """Return whether the columns are taken for independent.

    A weak dependence is not seen in halves. Where the tables of pairs have little noise, to fit it
    costs little, and less than a dependence that was missed.
    """
    return pair_noise > CLEAR_PAIRS and not depends(found, facts.rows)


def _evenly(histograms: Sequence[Counts], rows: int, most: int) -> Groupings:
    return tuple(even_groups(histogram, rows, groups=most) for histogram in histograms)


def _in_even_groups(
    facts: PublicFacts, budget: Budget, histograms: Sequence[Counts]
) -> tuple[Budget, Groupings]:
    """Return the finest views that can be seen, now that margins tell which groups are rare."""

    def widths(most: int) -> tuple[int, ...]:
        return tuple(max(own) + 1 for own in _evenly(histograms, facts.rows, most))

    found = finest_design(facts, budget.correlations, widths) or (budget.groups, budget.design)
    budget = replace(budget, groups=found[0], design=found[1])
    return budget, _evenly(histograms, facts.rows, budget.groups)
