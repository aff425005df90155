"""subn+: two noisy sums, and one model fitted to both.

    1. Margins. Tables over disjoint blocks of attributes (`common.subn.blocks`).
    2. Correlations. Every attribute's values are joined into a few groups by the margins' own noisy
       counts, and NOCD's views of the grouped attributes are summed: every pair in exactly one.
    3. The mixture of `common.subn.latent` is fitted to all of them. No budget.

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
from math import sqrt

import numpy as np

from common.errors import LocalError
from common.privacy import sensitivity
from common.privacy.laplace import discrete_laplace_variance
from common.subn.blocks import disjoint_blocks, margin_error
from common.subn.grouping import GroupedTables, balanced_groups
from common.subn.latent import LatentModel, Measurement, fit
from common.subn.nocd import optimal_design
from common.subn.steps import Attributes, Counts, SumStep

BLOCK_CELLS = 1 << 10
VIEW_CELLS = 1 << 12
# Forecast noise of a margin (mean total variation distance) -> most groups of a domain.
GROUPS = ((0.01, 4), (0.0015, 5), (0.0, 6))
MARGINS_ONLY_ABOVE = 0.0205
PENALTY_PER_GROUP = 40.0
_FEWEST_SHARE, _MOST_SHARE = Fraction(1, 2), Fraction(13, 20)
_MORE_SHARE_ABOVE = 0.01


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
        views: epsilon of the views.
    """

    blocks: tuple[Attributes, ...]
    margin_noise: float
    groups: int
    margins: Fraction
    views: Fraction


def decide_budget(facts: PublicFacts) -> Budget:
    """Which of the two sums are made, and at what epsilon."""
    blocks = disjoint_blocks(facts.sizes, BLOCK_CELLS)
    noise = margin_error(facts.sizes, blocks) * sqrt(facts.noise_shares)
    noise /= len(facts.sizes) * facts.rows * float(facts.epsilon)
    if noise > MARGINS_ONLY_ABOVE or len(facts.sizes) < 2:
        share, groups = Fraction(1), 0
    else:
        groups = next(most for above, most in GROUPS if noise > above)
        share = _MOST_SHARE if noise > _MORE_SHARE_ABOVE else _FEWEST_SHARE
        if max(facts.sizes) <= groups:
            share = Fraction(0)
    margins = facts.epsilon * share
    return Budget(
        blocks=blocks,
        margin_noise=noise,
        groups=groups,
        margins=margins,
        views=facts.epsilon - margins,
    )


class SubnPlusPlan:
    """subn+ as a `common.subn.steps.Plan`.

    Feed it the noisy sums in the order of its steps; each copy comes to the same steps.
    """

    def __init__(self, facts: PublicFacts) -> None:
        self._facts = facts
        self.budget = decide_budget(facts)
        self._measurements: list[Measurement] = []
        identity = tuple(tuple(range(size)) for size in facts.sizes)
        self._groups = identity
        if self.budget.margins:
            self._request = GroupedTables(self.budget.blocks, identity)
            self._step: SumStep | None = self._sum("margins", self.budget.margins)
        else:
            self._step = self._views()

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
        tables = self._request.tables(result)
        variance = float(self._facts.noise_shares) * discrete_laplace_variance(step.scale)
        for attributes, table in zip(self._request.sets, tables, strict=True):
            maps = tuple(self._request.map_of(a) for a in attributes)
            counts = table.astype(np.float64)
            self._measurements.append(Measurement(attributes, maps, counts, variance))
        if step.name == "margins" and self.budget.views:
            self._groups = self._grouped(tables)
            self._step = self._views()
        else:
            self._step = None

    def model(self) -> LatentModel:
        """The mixture fitted to all sums.

        Raises:
            LocalError: a step is still to be made.
        """
        if self._step is not None:
            raise LocalError(f"there is no model before step {self._step.name!r} has its result")
        groups = self._most_groups
        free = sum(min(size, groups) - 1 for size in self._facts.sizes) / len(self._facts.sizes)
        return fit(
            self._facts.sizes,
            self._facts.rows,
            self._measurements,
            penalty=PENALTY_PER_GROUP * max(free, 1.0),
        )

    @property
    def _most_groups(self) -> int:
        return self.budget.groups or GROUPS[0][1]

    def _grouped(self, tables: Sequence[Counts]) -> tuple[tuple[int, ...], ...]:
        """Every attribute's groups, from the margins of its block's noisy table."""
        groups = list(self._groups)
        for block, table in zip(self.budget.blocks, tables, strict=True):
            for axis, attribute in enumerate(block):
                margin = table.sum(axis=tuple(o for o in range(table.ndim) if o != axis))
                groups[attribute] = balanced_groups(margin, self._facts.rows, self._most_groups)
        return tuple(groups)

    def _views(self) -> SumStep:
        sizes = [max(own) + 1 for own in self._groups]
        design = optimal_design(sizes, cell_limit=VIEW_CELLS)
        self._request = GroupedTables(design.views, self._groups)
        return self._sum("correlations", self.budget.views)

    def _sum(self, name: str, epsilon: Fraction) -> SumStep:
        """The step for the current request: a replaced row moves two cells of every table."""
        moved = Fraction(sensitivity.histograms(len(self._request.sets)))
        return SumStep(
            name=name,
            phase=name,
            parties=self._facts.parties,
            request=self._request,
            sensitivity=moved,
            scale=moved / epsilon,
        )
