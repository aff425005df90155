"""The exponential mechanism, safe against floating point.

Candidate i is drawn with probability proportional to w_i = exp(epsilon * score_i / (2
sensitivity)). If replacing one row moves every score by at most `sensitivity`, the draw is
epsilon-differentially private [McSherry07, Theorem 6].

Why the draw is exact. It is an inversion: with C_k = w_1 + .. + w_k and u a uniform real, the
first k with u C_n < C_k. Doubles only serve to find k. They come with a bound on how far they can
be off (see `_settled_by_doubles`); where u C_n is further than that from both neighbouring sums,
infinite precision would choose the same k. Otherwise, about once in 10,000 draws at most, the sums
are computed between integer bounds, and u is read to more bits, until k is settled. So the law is
the stated one, not an approximation, for integer and fraction scores. A double is a fraction too:
the law is exact for the scores handed in.

Scores that were computed in floating point may be off. If each handed-in score t(D) is within
`score_error` of a true score s(D) of sensitivity S, then between neighbours D and E

    |t(D) - t(E)| <= |t(D) - s(D)| + |s(D) - s(E)| + |s(E) - t(E)| <= S + 2 score_error,

so t is itself a score of sensitivity S + 2 score_error. That is the sensitivity used, and the draw
is epsilon-differentially private without further assumptions.

[McSherry07] McSherry, Talwar: Mechanism design via differential privacy.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from common.errors import LocalError
from common.privacy.randomness import RandomSource
from common.privacy.sampling.enclosure import exponential_bounds, extend

Scores = Sequence[int] | Sequence[Fraction] | NDArray[np.int64] | NDArray[np.float64]

_WORD_BITS = 64
_NEGLIGIBLE_EXPONENT = 700.0
_HUGE = 2.0**1023
_SAFE_RATE = Fraction(1, 1 << 300)


def exponential_mechanism(
    scores: Scores,
    *,
    sensitivity: Fraction | int,
    epsilon: Fraction,
    source: RandomSource,
    score_error: Fraction | int = 0,
) -> int:
    """Draw an index with probability proportional to exp(epsilon * score / (2 * sensitivity)).

    Integers are the fast path: scores with a common denominator are best given as their numerators,
    with the sensitivity multiplied by the denominator.

    `score_error` bounds the absolute error of scores computed in floating point; it is paid for by
    a sensitivity larger by twice that.
    """
    if len(scores) == 0:
        raise LocalError("there is no candidate to choose from")
    if sensitivity < 0 or score_error < 0 or epsilon <= 0:
        raise LocalError(
            "the exponential mechanism needs epsilon above zero and no negative sensitivity or "
            f"score error, not {epsilon}, {sensitivity} and {score_error}"
        )
    effective = Fraction(sensitivity) + 2 * Fraction(score_error)
    if effective == 0:
        raise LocalError("scores of sensitivity zero do not depend on the rows: take the largest")
    rate = Fraction(epsilon) / (2 * effective)
    losses = _losses(scores)
    if len(losses) == 1:
        return 0
    word = int.from_bytes(source.random_bytes(_WORD_BITS // 8), "little")
    if _SAFE_RATE < rate < 1 / _SAFE_RATE:
        chosen = _settled_by_doubles(losses, float(rate), word)
        if chosen is not None:
            return chosen
    return _settled_by_integers(_exact_losses(scores), rate, word, source)


def _losses(scores: Scores) -> NDArray[np.float64]:
    """Return the largest score minus each, in doubles with a relative error of at most 2^-52."""
    if isinstance(scores, np.ndarray) and scores.ndim != 1:
        raise LocalError(f"scores must be a vector, not an array of shape {scores.shape}")
    if isinstance(scores, np.ndarray) and scores.dtype.kind == "f":
        values = scores.astype(np.float64, copy=False)
        if not np.isfinite(values).all():
            raise LocalError("a score is not finite")
        with np.errstate(over="ignore"):
            losses: NDArray[np.float64] = np.minimum(values.max() - values, _HUGE)
            return losses
    if isinstance(scores, np.ndarray) and scores.dtype.kind == "i":
        wide = scores.astype(np.int64, copy=False)
        # The difference of two int64 fits uint64; modular subtraction gives it exactly.
        differences: NDArray[np.uint64] = wide.max().astype(np.uint64) - wide.view(np.uint64)
        return differences.astype(np.float64)
    if isinstance(scores, np.ndarray):
        raise LocalError(f"scores must be signed integers or doubles, not {scores.dtype}")
    return np.array([float(min(loss, Fraction(_HUGE))) for loss in _exact_losses(scores)])


def _exact_losses(scores: Scores) -> list[Fraction]:
    values = scores.tolist() if isinstance(scores, np.ndarray) else scores
    try:
        exact = [Fraction(value) for value in values]
    except (OverflowError, ValueError) as error:
        raise LocalError("a score is not finite") from error
    largest = max(exact)
    return [largest - score for score in exact]


def _settled_by_doubles(losses: NDArray[np.float64], rate: float, word: int) -> int | None:
    """Return the index that inversion at word / 2^64 gives; None where doubles cannot tell.

    `rate`, each loss and their product have relative errors of at most 2^-53, 2^-52 and 2^-53. Up
    to an exponent of 700 that is less than 2^-41 in the exponent, hence in the weight; the
    exponential function of the C library is off by a few units of 2^-53 and is trusted here to
    2^-45 (a test compares it with MPFR). Larger exponents count as weight zero: at most 2^-1000 is
    lost in each. A running sum of n doubles adds at most n 2^-53 of the total. So each sum, and
    the total, is within (2^-40 + n 2^-52) of the total; the product of the total with the 64-bit
    uniform adds 2^-50.
    """
    with np.errstate(over="ignore"):  # an infinite exponent is a negligible weight, as it should be
        exponents = losses * rate
    weights = np.exp(-np.minimum(exponents, _NEGLIGIBLE_EXPONENT))
    weights[exponents > _NEGLIGIBLE_EXPONENT] = 0.0
    sums = np.cumsum(weights)
    target = word * 2.0**-_WORD_BITS * sums[-1]
    margin = 3 * (2.0**-40 + len(losses) * 2.0**-52) * sums[-1]
    chosen = int(np.searchsorted(sums, target, side="right"))
    if chosen == len(sums) or target + margin > sums[chosen]:
        return None
    if chosen > 0 and target - margin < sums[chosen - 1]:
        return None
    return chosen


def _settled_by_integers(
    losses: list[Fraction], rate: Fraction, word: int, source: RandomSource
) -> int:
    """Return the index that inversion at a uniform real with the leading bits `word` gives."""
    bits = _WORD_BITS
    while True:
        bounds = {loss: exponential_bounds(rate * loss, 2 * bits) for loss in set(losses)}
        lower = list(accumulate(bounds[loss][0] for loss in losses))
        upper = list(accumulate(bounds[loss][1] for loss in losses))
        # The first index whose sum is certainly above u * total ...
        chosen = bisect_left(lower, -(-(word + 1) * upper[-1] >> bits))
        # ... is the answer if the sum before it is certainly not.
        if chosen < len(lower) and (chosen == 0 or upper[chosen - 1] << bits <= word * lower[-1]):
            return chosen
        word, bits = extend(word, source), bits + _WORD_BITS
