"""One interval from two: the model's and the direct one, whose errors are not independent.

The model's estimate m is off by noise of the deviation s, which replicates tell, and by a bias b,
which they cannot see. The direct estimate d (`common.analysis.direct`) is off by noise of the
deviation S, and by what groups of values hide. Both rest on the same sums, so their errors are
correlated, nobody knows how much; but no more than fully. So x m + (1 - x) d has a mean square of

    (x s + (1 - x) S)^2 + x^2 b^2

at most [Cauchy and Schwarz]. With D = S - s that is least for x = S D / (b^2 + D^2), or 1 if this
is more. It is never more than S^2.

How large b is, the tables of all pairs tell. m and d differ by b and by noise of a variance of at
least D^2, by the same inequality. The *misfit* is the mean square of d - m for the correlations of
all published pairs, in units of their S; so on average b^2 is at most misfit S^2 - D^2. As a mean
of P squares it is taken two of its deviations larger, (1 + 2 sqrt(2 / P)) times. Such intervals
hold on average over the pairs of a release, as those of empirical Bayes do [Armstrong22]. Where m
is outside of the direct interval, x is 0.

What groups hide is a range, not an error: m has it as well, as the rows inside of groups are the
model's. A value cannot be beyond both of its ends, so the interval reaches C deviations beyond the
range, where T(C + range / deviation) - T(-C) is the confidence [Imbens04]: from the two-sided
quantile without a range down to the one-sided one.

[Armstrong22] Armstrong, Kolesar, Plagborg-Moller: Robust empirical Bayes confidence intervals.
    Econometrica 90, 2022.
[Imbens04] Imbens, Manski: Confidence intervals for partially identified parameters. Econometrica
    72, 2004.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from common.analysis.direct import Direct, DirectIntervals, KnownTable, scores
from common.analysis.statistics import Statistic

_DEVIATIONS = 2  # of a mean of squares, by which it is taken larger
_MOST_PAIRS = 64  # whose tables tell the misfit
_HALVINGS = 60  # of the range that holds a quantile


@dataclass(frozen=True, slots=True)
class Combined:
    """An estimate from the model and from the sums, and its interval."""

    estimate: float
    deviation: float  # of its error, but for what groups hide
    low: float
    high: float


def combined(
    value: float, direct: Direct, *, error: float, misfit: float, freedom: float, confidence: float
) -> Combined:
    """Combine the model's value, and its standard error, with the direct estimate."""
    wide = direct.spread
    beyond = quantile(freedom, confidence=confidence) * wide
    agrees = direct.least - beyond <= value <= direct.greatest + beyond
    misfit = misfit if agrees else math.inf
    part, deviation = model_part(narrow=min(error, wide), wide=wide, misfit=misfit)
    estimate = direct.centre + part * (value - direct.centre)
    hidden = direct.greatest - direct.least
    ranges = hidden / deviation if deviation > 0 else math.inf
    reach = deviation * quantile(freedom, confidence=confidence, ranges=ranges)
    low = estimate - (direct.centre - direct.least) - reach
    high = estimate + (direct.greatest - direct.centre) + reach
    return Combined(estimate, deviation, low, high)


def model_part(*, narrow: float, wide: float, misfit: float) -> tuple[float, float]:
    """Return the best part of the model, and the bound on the deviation of the mixture.

    The deviations of the model's noise and of the direct estimate are `narrow` and `wide`.
    """
    apart = wide - narrow
    if apart <= 0 or not math.isfinite(misfit):
        return 0.0, wide
    bias = max(misfit * wide**2 - apart**2, 0.0)
    part = min(1.0, wide * apart / (bias + apart**2))
    return part, math.sqrt((wide - part * apart) ** 2 + part**2 * bias)


def quantile(freedom: float, *, confidence: float, ranges: float = 0.0) -> float:
    """Return how many deviations an interval reaches beyond a range, which is so many wide."""
    from scipy import special  # slow to load, and few commands estimate

    low, high = (float(special.stdtrit(freedom, p)) for p in (confidence, (1 + confidence) / 2))
    for _ in range(_HALVINGS if 0 < ranges < math.inf else 0):
        middle = (low + high) / 2
        inside = special.stdtr(freedom, middle + ranges) - special.stdtr(freedom, -middle)
        low, high = (middle, high) if inside < confidence else (low, middle)
    return high if ranges < math.inf else low


def misfit_of(direct: DirectIntervals, statistic: Statistic) -> float:
    """Return the mean square by which tables of pairs differ from the rows, in their deviations.

    It is infinite if a pair of the statistic was not published, or if the replicates do not repeat
    the model's fit: then the model is no witness.
    """
    if not direct.replicates.refitted or any(t.noise is None for t in direct.tables_for(statistic)):
        return math.inf
    varied = [place for place, size in enumerate(direct.schema.sizes) if size > 1]
    pairs = [p for p in combinations(varied, 2) if any(t.usable(p) for t in direct.measured)]
    if not pairs:
        return math.inf
    every = math.ceil(len(pairs) / _MOST_PAIRS)
    squares = [_square(direct.table(pair)) for pair in pairs[::every]]
    return float(np.mean(squares)) * (1 + _DEVIATIONS * math.sqrt(2 / len(squares)))


def _square(known: KnownTable) -> float:
    """Return the square by which the correlation of groups is off, over its variance."""
    margins = [np.maximum(known.table.sum(axis=axis), 0.0) for axis in (1, 0)]
    weights = np.multiply.outer(*(scores(shares) for shares in margins))
    off = float((weights * known.off).sum())
    inside = np.maximum(known.table, 0.0)
    sampling = float((weights**2 * inside).sum() - (weights * inside).sum() ** 2)
    rows = 1 if known.noise is None else known.noise.rows
    variance = known.noise_of(weights) ** 2 + max(sampling, 0.0) / rows
    return off**2 / variance if variance > 0 else 0.0
