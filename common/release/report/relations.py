"""Pairs of columns: which are related in the synthetic rows, and which may be used together.

Rows that are drawn independently are never quite independent: two attributes of 20 and 12 values
have a mutual information of 0.1 bits in 1,200 rows by chance. A picture of such numbers would show
dependences that were not measured. The dependence of a pair is significant if its mutual
information is beyond a quantile of the law for independent attributes (the G-test), which holds for
all pairs of a table together. Where many cells expect about a row, the law is a little further out
than its limit, so some room is left.

A network pays for its dependences with noise: its tables are larger and more of them share the
budget. Where the noise it adds to the single attributes exceeds the dependence it shows, the noisy
one-way marginals alone, the method `floor`, are expected to be closer to the truth, and the report
says so. That forecast follows from what was released: no row is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from common.bayes.postprocessing import mutual_information
from common.marginals import count
from common.methods.network_model import NetworkModel
from common.privacy import sensitivity
from common.privacy.noise_law import NoiseLaw
from common.privacy.promise import Promise
from common.release.diagnostics import Diagnostics, Verdict, noise_distance
from common.release.report.page import Markup, Section, folded, heading, joined, paragraph, table
from common.schema import Codes
from common.schema.codes import binarise
from common.study.steps import Model, Step
from common.wording import many

_FALSE_ALARMS = 1e-3  # the probability of one among all pairs of independent attributes
_ROOM = 1.25
_FEW = 3  # with fewer attributes it is nothing unusual that they are independent
_MOST_PAIRS = 60
_MOST_SUMS = 60
_UNFOLDED = 12  # lines of a list that is shown without a click
_MEANING = {
    Verdict.SAFE: "A released sum contains the pair's table, by all values or by at least eight "
    "groups of each column, and the rows follow it. Proportions of values within a group follow "
    "from the model.",
    Verdict.CARE: "The pair was counted in few groups or with much noise, or the rows do not "
    "follow its table, or they show no relation. The relation in the rows may be wrong.",
    Verdict.ABSENT: "The two columns were never counted together. Their relation in the rows "
    "follows from other pairs, or from nothing.",
}


@dataclass(frozen=True, slots=True)
class Relations:
    """What the rows show."""

    strength: NDArray[np.float64]  # Cramer's V where it is significant; 0 for other pairs
    pairs: int
    related: int  # how many of them are significant
    alone: tuple[str, ...]  # the attributes that are related to no other

    def caution(self) -> str | None:
        """Say which attributes the rows relate to no other."""
        width = len(self.strength)
        if width < _FEW or not self.alone:
            return None
        names = ", ".join(self.alone)
        return (
            f"No relations: {len(self.alone)} of {width} columns ({names}) without a significant "
            "relation to any other column in these rows. Either noise hid such relations, or there "
            "are none. Use these columns one at a time. More rows, a larger epsilon or fewer "
            "columns would help."
        )


def relations(names: Sequence[str], codes: Codes) -> Relations:
    """Test every pair of attributes."""
    strength = dependence(codes, significant_only=True)
    partners = (strength > 0).sum(axis=1) - 1
    return Relations(
        strength=strength,
        pairs=math.comb(codes.width, 2),
        related=int(partners.sum()) // 2,
        alone=tuple(name for name, others in zip(names, partners, strict=True) if others == 0),
    )


def dependence(codes: Codes, *, significant_only: bool = False) -> NDArray[np.float64]:
    """Compute Cramer's V of every pair: 0 where independent, 1 where one determines the other."""
    pairs = list(combinations(range(codes.width), 2))
    result = np.eye(codes.width)
    for (i, j), counts in zip(pairs, count(codes, pairs), strict=True):
        if not significant_only or significant(counts, among=len(pairs)):
            result[i, j] = result[j, i] = cramers_v(counts)
    return result


def significant(counts: NDArray[np.int64], *, among: int) -> bool:
    """Return whether two attributes depend more than chance explains, in one of many pairs."""
    rows, columns = (int((counts.sum(axis=axis) > 0).sum()) for axis in (1, 0))
    if min(rows, columns) < 2:
        return False
    from scipy import special  # slow to load, and few commands write a release

    statistic = 2 * math.log(2) * int(counts.sum()) * mutual_information(counts.astype(np.float64))
    likely = special.chdtri((rows - 1) * (columns - 1), _FALSE_ALARMS / among)
    return statistic > _ROOM * float(likely)


def cramers_v(counts: NDArray[np.int64]) -> float:
    """Compute Cramer's V of a contingency table, over the values that occur."""
    used = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0].astype(np.float64)
    if min(used.shape) < 2:
        return 0.0
    expected = used.sum(axis=1, keepdims=True) * used.sum(axis=0) / used.sum()
    chi_square = ((used - expected) ** 2 / expected).sum()
    return float(np.sqrt(chi_square / (used.sum() * (min(used.shape) - 1))))


def usable_pairs(found: Diagnostics) -> list[Section]:
    """Show pairs by verdict, and how far the rows are from every released sum."""
    if len(found.names) < 2:
        return []
    parts = [
        paragraph(
            "An estimate from several attributes is only as good as the counts behind it. "
            "`parley estimate` gives intervals, and flags estimates that are not safe."
        )
    ]
    for verdict in Verdict:
        pairs = found.listed(verdict)
        parts.append(heading(f"{verdict.capitalize()}: {many(len(pairs), 'pair')}"))
        parts.append(paragraph(_MEANING[verdict]))
        if pairs and verdict is not Verdict.ABSENT:
            lines = [[" and ".join(each.names), each.reason] for each in pairs[:_MOST_PAIRS]]
            parts.append(_folded_if_long("the pairs", ["pair", "why"], lines))
        elif pairs:
            named = "; ".join(" and ".join(each.names) for each in pairs[:_MOST_PAIRS])
            parts.append(paragraph(named))
        if len(pairs) > _MOST_PAIRS:
            parts.append(paragraph("`parley describe` lists the others."))
    parts.append(
        paragraph(
            f"{found.triples:,} of {many(found.all_triples, 'triple')} of attributes were counted "
            "together; the others follow from the model."
        )
    )
    return [Section("What may be used together", joined([*parts, *_residuals(found)]))]


def _residuals(found: Diagnostics) -> list[Markup]:
    compared = [each for each in found.measured if each.spread is not None]
    if not compared:
        return []
    worst = sorted(compared, key=lambda each: -(each.spread or 0.0))[:_MOST_SUMS]
    lines = [
        [
            f"{each.name}: {', '.join(found.names[a] for a in each.attributes)}",
            f"{each.spread:.2f}",
            "yes" if each.follows() else "no",
        ]
        for each in worst
    ]
    words = (
        "A residual is the distance of the synthetic rows from a released sum, in units of its "
        "noise: about 1 or less where the model follows the sum. The largest come first."
    )
    shown = _folded_if_long("the sums", ["sum", "residual", "follows"], lines)
    return [heading("Residuals of the released sums"), paragraph(words), shown]


def _folded_if_long(what: str, headings: Sequence[str], lines: Sequence[Sequence[str]]) -> Markup:
    made = table(headings, lines)
    return made if len(lines) <= _UNFOLDED else folded(made, summary=f"Show {what}")


@dataclass(frozen=True, slots=True)
class FloorForecast:
    """Average distances of two-way marginals: what noise adds, and what dependence is worth."""

    noise: float  # that this method's tables add to a pair's two margins
    floor_noise: float  # that noisy one-way marginals would add to them
    dependence: float  # how far the released pairs are from independent pairs

    @property
    def below_floor(self) -> bool:
        """Whether independent columns are expected to be closer to the truth."""
        return self.noise - self.floor_noise > self.dependence

    def words(self) -> str:
        return (
            "Below the floor: at this budget, noisy one-way marginals alone (method floor) are "
            "expected to be closer to the truth than this release. On average the noise of this "
            f"release moves a pair by {self.noise:.2f}, that of the floor by "
            f"{self.floor_noise:.2f}, and the dependence in this release is worth "
            f"{self.dependence:.2f}. A larger epsilon, more rows or subn+ would help."
        )


def floor_forecast(
    model: Model, steps: Sequence[Step], synthetic: Codes, *, rows: int, promise: Promise
) -> FloorForecast | None:
    """Forecast for a network learnt from noisy tables; return None for any other model."""
    last = steps[-1] if steps else None
    if not (isinstance(model, NetworkModel) and last and last.law and synthetic.width > 1):
        return None
    law = last.law
    shown = binarise(synthetic) if model.variables.in_bits else synthetic
    # The first variable of a family's table is the one that is drawn.
    noise = [_margin_noise(own.shape[0], own.cells, law, rows) for own in last.tables]
    moved = sensitivity.histograms(synthetic.width)
    alone = promise.law(promise.budget, moved)
    floor = [_margin_noise(size, size, alone, rows) for size in synthetic.sizes]
    return FloorForecast(
        noise=2 * float(np.mean(noise)),
        floor_noise=2 * float(np.mean(floor)),
        dependence=_distance_from_independence(shown),
    )


def _margin_noise(size: int, cells: int, law: NoiseLaw, rows: int) -> float:
    """Return the expected distance of an attribute's margin, summed out of a noisy table."""
    return noise_distance(size * math.sqrt(law.variance() * cells / size), rows)


def _distance_from_independence(codes: Codes) -> float:
    distances = []
    for counts in count(codes, list(combinations(range(codes.width), 2))):
        law = counts / max(1, codes.rows)
        product = law.sum(axis=1, keepdims=True) * law.sum(axis=0, keepdims=True)
        distances.append(float(np.abs(law - product).sum() / 2))
    return float(np.mean(distances))
