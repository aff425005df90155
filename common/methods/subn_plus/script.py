"""subn+: up to three noisy sums, and one model fitted to all of them.

    1. Margins. Tables over disjoint blocks of attributes (`common.methods.designs.blocks`).
    2. Correlations. Every attribute's values are joined into a few groups by the margins' own noisy
       counts, and NOCD's views of the grouped attributes are summed: every pair in exactly one.
       Where the noise allows no more than two groups, how often pairs agree (`.agreements`).
    3. Pairs. The few that are seen to depend strongly (`common.methods.subn_plus.dependence`), in
    full detail.
       If there are none, the margins once more.

The model is a mixture (`common.methods.subn_plus.latent`) in which the chosen pairs are single
columns (`common.methods.subn_plus.joined`).

Where every domain is small there is nothing to group, and the views are all that is asked. Wide
tables get a forest of pairs instead of a mixture (`common.methods.subn_plus.forest`): margins, the
agreement of halves, and tables of the pairs that a forest may be made of.

Where correlations would show little but noise, the margins get everything, and the model is
independent blocks: no worse than independent columns, because it has better margins than histograms
would give. docs/subn.md has the figures behind each constant.

Everything a step depends on is public: the study, and noisy sums. Decisions are made on integers
and fractions (and a few single float operations, which every machine rounds alike), so curator and
parties come to the same steps; the fit, which is floating point, decides nothing but the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from common.errors import LocalError
from common.methods.network_model import NetworkModel
from common.methods.subn_plus.agreements import Agreements
from common.methods.subn_plus.budget import PublicFacts, decide_budget, pair_groups
from common.methods.subn_plus.dependence import (
    Departure,
    Pair,
    departures,
    group_weights,
    strong_pairs,
)
from common.methods.subn_plus.forest import candidates, forest_model, pairs_within
from common.methods.subn_plus.grouping import GroupedTables, balanced_groups
from common.methods.subn_plus.joined import Joined, JoinedModel, independent_blocks, joint_margin
from common.methods.subn_plus.latent import LatentModel, estimated_margins, fit
from common.methods.subn_plus.table_loss import Measurement
from common.privacy import sensitivity
from common.privacy.laplace import discrete_laplace_variance
from common.study.steps import Counts, Request, SumStep, check_size

PAIR_CELLS = 1 << 11
FOREST_PAIR_CELLS = 1 << 20  # the model of a forest has a table of each pair's own values
PENALTY_PER_GROUP = 40.0
PAIR_PRICE = 10.0
_LEAST_VARIANCE = 0.01  # as good as exact counts; less would only overflow in the fit
BLOCK_PENALTY = 20.0


class SubnPlusPlan:
    """subn+ as a `common.study.steps.Plan`.

    Feed it the noisy sums in the order of its steps; each copy comes to the same steps.
    """

    def __init__(self, facts: PublicFacts) -> None:
        self._facts = facts
        self.budget = decide_budget(facts)
        self._measurements: list[Measurement] = []
        self._pairs: list[Measurement] = []
        self._identity = tuple(tuple(range(size)) for size in facts.sizes)
        self._histograms: list[Counts] = []
        self._found: dict[Pair, Departure] = {}
        if self.budget.margins:
            self._step: SumStep | None = self._margins("margins", self.budget.margins)
        else:
            self._step = self._views(self._identity)

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
            case Agreements() as request:
                self._step = self._after_halves(request, result, step.scale)
            case GroupedTables() as request:
                self._step = self._after_tables(step, request, request.tables(result))

    def model(self) -> LatentModel | JoinedModel | NetworkModel:
        """The mixture fitted to all sums, or a forest of pairs, or independent blocks.

        Raises:
            LocalError: a step is still to be made.
        """
        if self._step is not None:
            raise LocalError(f"there is no model before step {self._step.name!r} has its result")
        sizes, rows = self._facts.sizes, self._facts.rows
        if self.budget.forest:
            seen = [*self._measurements, *self._pairs]
            margins = estimated_margins(sizes, rows, seen)
            return forest_model(margins, rows, self._found, pairs_within(seen), price=PAIR_PRICE)
        margins = estimated_margins(sizes, rows, self._measurements)
        if not self.budget.groups:
            return independent_blocks(
                sizes, margins, rows, self._measurements, penalty=BLOCK_PENALTY
            )
        free = sum(min(size, self.budget.groups) - 1 for size in sizes) / len(sizes)
        joined = Joined.of([table.attributes for table in self._pairs], sizes)
        columns = [
            joint_margin(
                table, *(margins[a] for a in table.attributes), rows=rows, price=PAIR_PRICE
            ).ravel()
            for table in self._pairs
        ]
        columns += [margins[own[0]] for own in joined.sets[len(columns) :]]
        mixture = fit(
            columns,
            rows,
            [joined.translate(table) for table in (*self._measurements, *self._pairs)],
            penalty=PENALTY_PER_GROUP * max(free, 1.0),
        )
        return JoinedModel(joined, mixture) if self._pairs else mixture

    def _after_tables(
        self, step: SumStep, request: GroupedTables, tables: list[Counts]
    ) -> SumStep | None:
        found = self._measured(request, tables, step.scale)
        if step.name == "pairs":
            self._pairs += found
            if self.budget.forest:
                self._look(request, tables, step.scale)
            return None
        self._measurements += found
        match step.name:
            case "margins":
                return self._after_margins(request, tables, step.scale)
            case "correlations":
                return self._after_views(request, tables, step.scale)
        return None

    def _measured(
        self, request: GroupedTables, tables: list[Counts], scale: Fraction
    ) -> list[Measurement]:
        variance = self._variance(scale)
        return [
            Measurement(
                attributes,
                tuple(request.map_of(a) for a in attributes),
                table.astype(np.float64),
                variance,
            )
            for attributes, table in zip(request.sets, tables, strict=True)
        ]

    def _variance(self, scale: Fraction) -> float:
        """Of the noise in one count, as the fit weighs it."""
        variance = float(self._facts.noise_shares) * discrete_laplace_variance(scale)
        return max(variance, _LEAST_VARIANCE)

    def _after_margins(
        self, request: GroupedTables, tables: list[Counts], scale: Fraction
    ) -> SumStep | None:
        if not self.budget.correlations:
            return None
        margins = dict[int, Counts]()
        for block, table in zip(self.budget.blocks, tables, strict=True):
            for axis, attribute in enumerate(block):
                others = tuple(other for other in range(table.ndim) if other != axis)
                margins[attribute] = table.sum(axis=others)
        self._histograms = [margins[attribute] for attribute in range(len(margins))]
        groups = tuple(
            balanced_groups(histogram, self._facts.rows, self.budget.groups)
            for histogram in self._histograms
        )
        if self.budget.forest:
            self._look(request, tables, scale)
        return self._views(groups) if self.budget.design else self._halves(groups)

    def _look(self, request: GroupedTables, tables: list[Counts], scale: Fraction) -> None:
        """Keep how far the tables' pairs are from independence."""
        weights = self._group_weights(request.groups)
        variance = 2 * scale**2 * self._facts.noise_shares
        found = departures(request.sets, tables, weights, variance, self._facts.rows)
        self._found = {**found, **self._found}

    def _after_views(
        self, request: GroupedTables, tables: list[Counts], scale: Fraction
    ) -> SumStep | None:
        if not self.budget.pairs:
            return None
        weights = self._group_weights(request.groups)
        variance = 2 * scale**2 * self._facts.noise_shares
        return self._strong_pairs(
            departures(request.sets, tables, weights, variance, self._facts.rows)
        )

    def _after_halves(self, request: Agreements, agreed: Counts, scale: Fraction) -> SumStep:
        rows, weights = self._facts.rows, self._group_weights(request.halves)
        if not self.budget.forest:
            self._measurements += request.measurements(agreed, weights, self._variance(scale), rows)
        variance = 2 * scale**2 * self._facts.noise_shares
        found = request.departures(agreed, weights, variance, rows)
        return self._candidates(found) if self.budget.forest else self._strong_pairs(found)

    def _candidates(self, found: Mapping[Pair, Departure]) -> SumStep:
        """Tables of the pairs that a forest may be made of, but for those that blocks hold."""
        epsilon, sizes = self.budget.pairs, self._facts.sizes
        pairs = candidates(
            {
                (a, b): own
                for (a, b), own in found.items()
                if (a, b) not in self._found and sizes[a] * sizes[b] <= FOREST_PAIR_CELLS
            }
        )
        if not pairs:
            return self._margins("margins again", epsilon)
        most = pair_groups(self._facts, epsilon, len(pairs))
        groups = tuple(
            balanced_groups(histogram, self._facts.rows, most) for histogram in self._histograms
        )
        return self._tables("pairs", epsilon, GroupedTables(pairs, groups))

    def _group_weights(self, groups: tuple[tuple[int, ...], ...]) -> list[tuple[int, ...]]:
        return [
            group_weights(histogram, own, self._facts.rows)
            for histogram, own in zip(self._histograms, groups, strict=True)
        ]

    def _strong_pairs(self, found: Mapping[Pair, Departure]) -> SumStep:
        """Pairs in full detail where strong dependence is seen."""
        facts, epsilon = self._facts, self.budget.pairs
        # Half the L1 norm of a table's noise stays below the rows.
        bearable = int(facts.rows * epsilon)
        pairs = strong_pairs(found, facts.sizes, rows=facts.rows, cells=bearable, most=PAIR_CELLS)
        if not pairs:
            return self._margins("margins again", epsilon)
        return self._tables("pairs", epsilon, GroupedTables(pairs, self._identity))

    def _margins(self, name: str, epsilon: Fraction) -> SumStep:
        return self._tables(name, epsilon, GroupedTables(self.budget.blocks, self._identity))

    def _views(self, groups: tuple[tuple[int, ...], ...]) -> SumStep:
        views = self.budget.design.views if self.budget.design else ()
        return self._tables("correlations", self.budget.correlations, GroupedTables(views, groups))

    def _halves(self, groups: tuple[tuple[int, ...], ...]) -> SumStep:
        cut = sum(size > 1 for size in self._facts.sizes)
        moved = Fraction(sensitivity.agreements(cut))
        return self._sum("correlations", self.budget.correlations, Agreements(groups), moved)

    def _tables(self, name: str, epsilon: Fraction, request: GroupedTables) -> SumStep:
        """A replaced row moves two cells of every table."""
        return self._sum(name, epsilon, request, Fraction(sensitivity.histograms(request.count)))

    def _sum(self, name: str, epsilon: Fraction, request: Request, moved: Fraction) -> SumStep:
        step = SumStep(
            name=name,
            phase=name,
            parties=self._facts.parties,
            request=request,
            sensitivity=moved,
            scale=moved / epsilon,
        )
        check_size(step)
        return step
