"""What subn+ knows before the first sum, and the noise that it forecasts from that.

Forecasts are distances, so they can be held against what dependence is worth.

    [subn+]
    dependence = "expected"     # it is known that columns depend: no sum is spent on finding out
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb, inf, isqrt, sqrt

import numpy as np

from common.errors import InputError, LocalError
from common.exchanges.sums import sum_step
from common.methods.designs.blocks import disjoint_blocks, margin_error, margin_sums
from common.methods.designs.nocd import Design
from common.privacy import sensitivity
from common.privacy.noise_law import NoiseLaw
from common.privacy.promise import Promise
from common.privacy.sensitivity import CONTRAST_UNIT, Sensitivity
from common.schema.attribute import Attribute
from common.schema.binning import Binning
from common.schema.toml import one_of
from common.study.analyses import all_sets
from common.study.document import Study
from common.study.method import PublicDecision, Setting, read_settings
from common.study.requests import Attributes, Request
from common.study.steps import Step

UNKNOWN, EXPECTED = "unknown", "expected"  # whether columns depend
BLOCK_CELLS = 1 << 10
MARGINS_DROWN = 0.5  # forecast noise of a margin: then a block's best cells are noise, too
PAIR_NOISE = 0.1  # forecast noise of a table of two attributes, as a total variation distance
SPAN = 1 << 20  # parts of the widest bin of an attribute
MOST_PAIR_GROUPS = 100  # of each attribute of a pair's table, however small its noise


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
        spans: of every attribute, for each value how far apart its numbers are, 0 for a single one,
            in parts of `SPAN` of the widest; empty if its values hide no numbers.
        dependent: whether the study takes it as known that columns depend: then no sum is spent on
            finding out.
        declared: the sets of columns that the study's analyses need.
        others: the fraction, of what margins leave, for pairs that no analysis names; None if the
            forecast decides.
        events: the position of the first column of events; 0 if there are none.
    """

    sizes: tuple[int, ...]
    parties: tuple[str, ...]
    rows: int
    promise: Promise
    noise_shares: Fraction = Fraction(1)
    ordered: tuple[int, ...] = ()
    spans: tuple[tuple[int, ...], ...] = ()
    dependent: bool = False
    declared: tuple[Attributes, ...] = ()
    others: Fraction | None = None
    events: int = 0

    @classmethod
    def of(cls, study: Study) -> PublicFacts:
        """Return the facts of a study; InputError if it has settings of another method."""
        return cls(
            sizes=study.schema.sizes,
            parties=study.parties,
            rows=study.rows,
            promise=study.method_promise,
            noise_shares=study.noise_shares(len(study.members)),
            ordered=tuple(map(ordered_values, study.schema.attributes)),
            spans=tuple(map(spans_of, study.schema.attributes)),
            dependent=expects_dependence(study),
            declared=all_sets(study.analyses, study.schema),
            others=study.others,
        )

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
        return self.promise.budget

    @property
    def norm(self) -> int:
        """The norm of a sensitivity that noise is calibrated to."""
        return 2 if self.promise.delta else 1

    @property
    def alone(self) -> tuple[Attributes, ...]:
        """Every attribute as a set of its own."""
        return tuple((a,) for a in range(len(self.sizes)))

    @property
    def cut(self) -> tuple[int, ...]:
        """The attributes that have more than one value."""
        return tuple(a for a, size in enumerate(self.sizes) if size > 1)

    def widths(self, groups: int) -> tuple[int, ...]:
        """Return how many groups each attribute has, if it has at most so many."""
        return tuple(min(size, groups) for size in self.sizes)

    def deviation(self, cost: Fraction, moved: Sensitivity) -> float:
        """Return the standard deviation of the noise in a count; infinite if none can be drawn."""
        try:
            return sqrt(self.variance(self.promise.law(cost, moved)))
        except InputError:
            return inf

    def absolute(self, cost: Fraction, moved: Sensitivity) -> float:
        """Return the mean absolute noise in a count; infinite if none can be drawn."""
        try:
            law = self.promise.law(cost, moved)
        except InputError:
            return inf
        return law.nominal_absolute * sqrt(self.noise_shares)

    def variance(self, law: NoiseLaw) -> Fraction:
        """Return the variance of the noise in a sum of all parties under this law."""
        return law.nominal_variance * self.noise_shares

    def sum_of(
        self,
        request: Request,
        *,
        name: str,
        cost: Fraction,
        moved: Sensitivity,
        phase: str | None = None,
    ) -> Step:
        """Return the step that sums a request over all parties at a cost."""
        return sum_step(
            name=name,
            phase=phase or name,
            parties=self.parties,
            request=request,
            sensitivity=moved,
            law=self.promise.law(cost, moved),
        )


def ordered_values(attribute: Attribute) -> int:
    """Return how many of an attribute's first values are in an order; 0 if none are."""
    return attribute.value_count if attribute.ordered else 0


def spans_of(attribute: Attribute) -> tuple[int, ...]:
    """Return how wide the bins of an attribute are, in parts of `SPAN` of the widest."""
    domain = attribute.domain
    if not isinstance(domain, Binning) or not domain.spans.any():
        return ()
    parts = np.rint(domain.spans / domain.spans.max() * SPAN).astype(int).tolist()
    # Every bin of several numbers hides some; an empty cell and a value outside hide none.
    wide = [max(part, int(span > 0)) for part, span in zip(parts, domain.spans, strict=True)]
    return (*wide, *(0,) * (attribute.size - domain.count))


SETTINGS = {
    "dependence": Setting(
        one_of((UNKNOWN, EXPECTED)), UNKNOWN,
        "expected: columns are known to depend on each other, so no sum is spent on finding out",
    ),
}  # fmt: skip


def expects_dependence(study: Study) -> bool:
    """Read the only setting; InputError if there is another one, or another value."""
    settings = read_settings(study, SETTINGS)
    return bool(settings.get("dependence") == EXPECTED)


def decisions(study: Study) -> list[PublicDecision]:
    expected = "expected: no sum is spent on finding out"
    found_out = "not known beforehand: a sum finds out whether columns depend on each other"
    return [PublicDecision("dependence", expected if expects_dependence(study) else found_out)]


def margin_blocks(facts: PublicFacts) -> tuple[Attributes, ...]:
    """Return the attributes that are counted together for the margins."""
    blocks = disjoint_blocks(facts.sizes, BLOCK_CELLS)
    return blocks if margin_noise(facts, blocks) <= MARGINS_DROWN else facts.alone


def margin_noise(facts: PublicFacts, blocks: tuple[Attributes, ...]) -> float:
    """Forecast the mean total variation distance of a margin that all of the budget buys."""
    total = 0.0
    for sets, fraction in margin_sums(facts.sizes, blocks, facts.norm):
        absolute = facts.absolute(facts.budget * fraction, sensitivity.histograms(len(sets)))
        total += absolute * margin_error(facts.sizes, sets) / len(sets)
    return total / (2 * len(facts.sizes) * facts.rows)


def halves_noise(facts: PublicFacts, cost: Fraction) -> float:
    """Forecast the `view_noise` of pairs in halves by their agreement; infinite without pairs."""
    moved = sensitivity.agreements(len(facts.cut))
    return facts.deviation(cost, moved) / facts.rows if moved.l1 else inf


def view_noise(design: Design, facts: PublicFacts, cost: Fraction) -> float:
    """Forecast the mean over pairs of half the L1 norm of their noise, as a proportion of the rows.

    A pair of c cells in a view of C sums C / c of them for each of its own.
    """
    deviation = facts.deviation(cost, sensitivity.histograms(len(design.views)))
    total = 0.0
    for view in design.views:
        cells = design.cells(view)
        for a, b in combinations(view, 2):
            total += sqrt(cells * design.sizes[a] * design.sizes[b]) / 2
    return total * deviation / (comb(len(design.sizes), 2) * facts.rows)


def mean_cells(widths: Sequence[int], order: int) -> float:
    """Return the mean number of cells of a table of so many attributes."""
    return sensitivity.symmetric(widths, order) / comb(len(widths), order)


def contrast_noise(
    facts: PublicFacts, sizes: Sequence[int], fraction: Fraction, groups: int, *, order: int
) -> float:
    """Forecast the noise of a table that contrasts make, as a total variation distance."""
    widths = [min(size, groups) for size in sizes]
    moved = sensitivity.contrasts(widths, order)
    absolute = facts.absolute(facts.budget * fraction, moved) / float(CONTRAST_UNIT**order)
    return absolute * mean_cells(widths, order) / (2 * facts.rows)


def detail_noise(facts: PublicFacts, cost: Fraction, cells: int, *, tables: int) -> float:
    """Forecast half the L1 norm of the noise in a table, if so many share the cost."""
    return facts.absolute(cost, sensitivity.histograms(tables)) * cells / (2 * facts.rows)


def pair_cells(facts: PublicFacts, cost: Fraction, tables: int, limit: float = PAIR_NOISE) -> int:
    """Return the most cells, at least four, that each of so many tables of pairs bears."""
    noise = facts.deviation(cost, sensitivity.histograms(tables)) / (2 * facts.rows)  # of a cell
    return min(max(4, int(limit / noise)), MOST_PAIR_GROUPS**2)


def pair_groups(facts: PublicFacts, cost: Fraction, tables: int, limit: float = PAIR_NOISE) -> int:
    """Return the most groups, at least two, that so many tables of pairs bear on each axis."""
    return isqrt(pair_cells(facts, cost, tables, limit))
