"""A white-box audit: how much privacy a mechanism loses for certain, measured from its outputs.

Run the mechanism many times on two neighbouring inputs D and E, reduce each output to a number
(best: the exact log-likelihood ratio of D against E), and look for an event, "the number is at
least t" or "at most t", that is much likelier under one than under the other. If the mechanism is
epsilon-private, P_D(event) <= exp(epsilon) P_E(event). With Clopper-Pearson bounds on both
probabilities,

    epsilon >= log( lower(P_D) / upper(P_E) )

holds with the stated confidence. The first half of the runs chooses the event, the second half
alone gives the bound, so choosing costs no confidence. An audit can convict a mechanism; it never
proves one private, but with worst-case neighbours the bound comes close to the true epsilon.

Not here: how outputs are made. A caller draws them in vectors and hands in the numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp, inf

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainccinv, betaincinv

from common.errors import LocalError

_THRESHOLDS = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditResult:
    """What the outputs prove.

    Attributes:
        epsilon_lower_bound: with probability `confidence`, the true epsilon is at least this.
        confidence: of the bound.
        event: the event that shows it, in words.
        runs: on each of the two inputs.
    """

    epsilon_lower_bound: float
    confidence: float
    event: str
    runs: int

    def contradicts(self, epsilon: Fraction | float) -> bool:
        """Return whether the mechanism cannot be `epsilon`-private."""
        return self.epsilon_lower_bound > float(epsilon)


def audit(
    statistics: NDArray[np.float64],
    neighbour_statistics: NDArray[np.float64],
    *,
    confidence: float = 1 - 1e-9,
) -> AuditResult:
    """Return a lower bound on epsilon from a statistic of runs on two neighbouring inputs.

    Args:
        statistics: one number for each run on the first input. Larger must mean "more like the
            first input"; the bound holds for any statistic, but only a good one comes close.
        neighbour_statistics: the same for the second input, from independent runs.
        confidence: of the bound. The default is for tests, which must not fail by chance.
    """
    runs = min(len(statistics), len(neighbour_statistics))
    if runs < 2 or not 0 < confidence < 1:
        raise LocalError(
            "an audit needs at least two runs on each input and a confidence in (0, 1)"
        )
    half = runs // 2
    threshold, upwards = _choose(statistics[:half], neighbour_statistics[:half], confidence)
    likely, unlikely = (
        (statistics, neighbour_statistics) if upwards else (neighbour_statistics, statistics)
    )
    hits = _hits(likely[half:runs], threshold, upwards=upwards)
    misses = _hits(unlikely[half:runs], threshold, upwards=upwards)
    bound = _log_ratio_bound(np.array([hits]), np.array([misses]), runs - half, 1 - confidence)[0]
    return AuditResult(
        epsilon_lower_bound=max(0.0, float(bound)),
        confidence=confidence,
        event=f"statistic {'at least' if upwards else 'at most'} {threshold:.6g}",
        runs=runs,
    )


def delta_lower_bound(
    statistics: NDArray[np.float64],
    neighbour_statistics: NDArray[np.float64],
    *,
    epsilon: float,
    confidence: float = 1 - 1e-9,
) -> float:
    """Return a lower bound on delta at an epsilon: a smaller delta does not give these runs.

    (epsilon, delta) says P_D(event) <= exp(epsilon) P_E(event) + delta. The first half of the runs
    chooses the threshold, the second gives the bound, as in `audit`.
    """
    half = min(len(statistics), len(neighbour_statistics)) // 2
    pooled = np.concatenate([statistics[:half], neighbour_statistics[:half]])
    thresholds = np.unique(np.quantile(pooled, np.linspace(0, 1, 5 * _THRESHOLDS)))
    hits, misses = (
        _counts(np.sort(each[:half]), thresholds, upwards=True)
        for each in (statistics, neighbour_statistics)
    )
    threshold = float(thresholds[np.argmax(hits - exp(epsilon) * misses)])
    hit, miss = (
        _hits(each[half : 2 * half], threshold, upwards=True)
        for each in (statistics, neighbour_statistics)
    )
    lower = betaincinv(max(hit, 1), half - hit + 1, (1 - confidence) / 2) if hit else 0.0
    upper = betainccinv(miss + 1, half - miss, (1 - confidence) / 2) if miss < half else 1.0
    return float(lower - exp(epsilon) * upper)


def laplace_log_likelihood_ratio(
    outputs: NDArray[np.int64],
    exact: NDArray[np.int64],
    neighbour: NDArray[np.int64],
    scale: Fraction,
) -> NDArray[np.float64]:
    """Return the logarithm of P(output | exact) / P(output | neighbour) under Laplace noise.

    Args:
        outputs: (runs, cells), the noisy vectors.
        exact: (cells,), the true vector of the first input.
        neighbour: (cells,), that of the second.
        scale: of the noise the mechanism CLAIMS to add.
    """
    closer = np.abs(outputs - neighbour).sum(axis=1) - np.abs(outputs - exact).sum(axis=1)
    ratio: NDArray[np.float64] = closer / float(scale)
    return ratio


def _choose(
    first: NDArray[np.float64], second: NDArray[np.float64], confidence: float
) -> tuple[float, bool]:
    """Choose the threshold and direction whose bound is best on these runs."""
    pooled = np.concatenate([first, second])
    thresholds = np.unique(np.quantile(pooled, np.linspace(0, 1, _THRESHOLDS), method="nearest"))
    best, chosen = -inf, (float(thresholds[0]), True)
    for upwards, likely, unlikely in ((True, first, second), (False, second, first)):
        hits, misses = (
            _counts(np.sort(values), thresholds, upwards=upwards) for values in (likely, unlikely)
        )
        bounds = _log_ratio_bound(hits, misses, len(first), 1 - confidence)
        position = int(np.argmax(bounds))
        if bounds[position] > best:
            best, chosen = float(bounds[position]), (float(thresholds[position]), upwards)
    return chosen


def _counts(
    ordered: NDArray[np.float64], thresholds: NDArray[np.float64], *, upwards: bool
) -> NDArray[np.intp]:
    if upwards:
        return len(ordered) - np.searchsorted(ordered, thresholds, side="left")
    return np.searchsorted(ordered, thresholds, side="right")


def _hits(values: NDArray[np.float64], threshold: float, *, upwards: bool) -> int:
    return int(np.count_nonzero(values >= threshold if upwards else values <= threshold))


def _log_ratio_bound(
    hits: NDArray[np.intp], misses: NDArray[np.intp], runs: int, failure: float
) -> NDArray[np.float64]:
    """log(lower / upper) of two Clopper-Pearson bounds that fail together with chance `failure`."""
    lower = np.where(hits == 0, 0.0, betaincinv(np.maximum(hits, 1), runs - hits + 1, failure / 2))
    upper = np.where(
        misses == runs,
        1.0,
        betainccinv(misses + 1, np.maximum(runs - misses, 1), failure / 2),
    )
    with np.errstate(divide="ignore"):
        bound: NDArray[np.float64] = np.log(lower) - np.log(upper)
    return bound
