"""How subn+ spends rho: margins, contrasts of all pairs, of all triples, and a few pairs in detail.

Under Gaussian-like noise the error of m tables grows with sqrt(m), so that every pair and every
triple can be looked at, in groups as fine as the noise allows. What is asked follows from forecasts
of the noise as a total variation distance; docs/research/subn-notes.md has the figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb, inf, sqrt

from common.methods.subn_plus.budget import (
    HALF_OF_DEVIATION,
    PublicFacts,
    look_share,
    margins_share,
)
from common.privacy import sensitivity
from common.privacy.sensitivity import CONTRAST_UNIT

MOST_COLUMNS = 64  # beyond, a mixture ties dependences to each other that have nothing in common
MOST_PAIR_CELLS = 1 << 22
MOST_TRIPLE_CELLS = 1 << 18  # the fit takes time in proportion
MOST_GROUPS = 64
# Forecast noise of a table, as a mean total variation distance. The fit takes off most of it.
PAIRS_BELOW = 0.25
TRIPLES_BELOW = 0.2
PAIRS_AS_EXACT = 0.01  # then triples may have more than a fifth
DETAIL = Fraction(1, 12)  # of the budget, for pairs in detail
_TRIPLES = tuple(Fraction(share, 10) for share in (1, 2, 3, 4))
_MOST_VARIANCE = 1 << 39  # that noise can be drawn of, and some room


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
        triple_groups: the same in triples.
    """

    margins: Fraction
    look: Fraction
    pairs: Fraction
    triples: Fraction
    detail: Fraction
    pair_groups: int
    triple_groups: int


def plan_contrasts(facts: PublicFacts) -> ContrastPlan | None:
    """The finest plan that the noise allows; None if pairs would show little but noise."""
    sizes = [size for size in facts.sizes if size > 1]
    if not 2 <= len(sizes) <= MOST_COLUMNS:
        return None
    margins = margins_share(facts, tuple((a,) for a in range(len(facts.sizes))))
    look = look_share(facts)
    left = 1 - margins - look - DETAIL
    if left <= 0:
        return None
    finest = max(2, _groups(facts, sizes, left * (1 - _TRIPLES[0]), 2))
    groups = _groups(facts, sizes, left, 2)
    if groups < 2:
        return None
    triples, in_triples = Fraction(0), 0
    for share in _TRIPLES:
        own = _groups(facts, sizes, left * share, 3)
        exact = _noise(facts, sizes, left * (1 - share), finest, 2) <= PAIRS_AS_EXACT
        if share > Fraction(1, 5) and not exact:
            break
        if own >= 2 and _groups(facts, sizes, left * (1 - share), 2) >= finest:
            triples, in_triples, groups = left * share, own, finest
    return ContrastPlan(
        margins=facts.budget * margins,
        look=facts.budget * look,
        pairs=facts.budget * (left - triples),
        triples=facts.budget * triples,
        detail=facts.budget * DETAIL,
        pair_groups=groups,
        triple_groups=in_triples,
    )


def _groups(facts: PublicFacts, sizes: list[int], share: Fraction, order: int) -> int:
    """As many groups, at most, as leave the forecast noise below the limit; 0 if not even two."""
    if len(sizes) < order:
        return 0
    limit = PAIRS_BELOW if order == 2 else TRIPLES_BELOW
    cells = MOST_PAIR_CELLS if order == 2 else MOST_TRIPLE_CELLS
    best = 0
    for groups in range(2, min(max(sizes), MOST_GROUPS) + 1):
        total = sensitivity.symmetric([min(size, groups) for size in sizes], order)
        if total > cells or _noise(facts, sizes, share, groups, order) > limit:
            break
        best = groups
    return best


def _noise(facts: PublicFacts, sizes: list[int], share: Fraction, groups: int, order: int) -> float:
    """The forecast noise of a table, as a total variation distance."""
    widths = [min(size, groups) for size in sizes]
    mean = sensitivity.symmetric(widths, order) / comb(len(sizes), order)
    deviation = _deviation(facts, facts.budget * share, widths, order)
    return HALF_OF_DEVIATION[2] * deviation * mean / facts.rows


def _deviation(facts: PublicFacts, cost: Fraction, widths: list[int], order: int) -> float:
    """The forecast standard deviation of the noise in a contrast, in rows."""
    variance = sensitivity.contrasts(widths, order).l2_squared / (2 * cost)
    if variance > _MOST_VARIANCE:
        return inf
    return sqrt(variance * facts.noise_shares) / float(CONTRAST_UNIT**order)
