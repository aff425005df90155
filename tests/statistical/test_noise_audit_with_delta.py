"""Skellam noise audited: the right one passes, too little of it is convicted.

[Balle18] Balle, Wang: Improving the Gaussian mechanism for differential privacy. ICML 2018.
"""

from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ive
from scipy.stats import norm

from common.privacy import sensitivity
from common.privacy.noise_law import Skellam
from common.privacy.promise import Promise
from common.privacy.randomness import SeededRandomSource
from common.privacy.sampling.discrete_laplace import discrete_laplace
from common.privacy.sampling.skellam import skellam
from tests.harness.audit import audit, delta_lower_bound, laplace_log_likelihood_ratio

RUNS = 200_000
TABLES = 4
MOVED = sensitivity.histograms(TABLES)
# One row moves from one cell to another in each of four tables: the worst neighbours there are.
EXACT, NEIGHBOUR = np.tile([6, 4], TABLES), np.tile([5, 5], TABLES)
PROMISE = Promise(Fraction(1), Fraction(1, 1000))
LAW = PROMISE.law(PROMISE.budget, MOVED)
MAKERS = 3


def statistics(noise):
    """Of runs on both inputs: the sum of the cells that a row leaves or enters, with its sign."""
    source, found = SeededRandomSource("audit"), []
    for start in (EXACT, NEIGHBOUR):
        outputs = start + noise(RUNS * len(start), source).reshape(RUNS, len(start))
        found.append((outputs @ (EXACT - NEIGHBOUR)).astype(float))
    return found


def exact_delta(epsilon):
    """Of that sum under the claimed law: Skellam noise again, and it moves by all eight cells."""
    moved, values = int(MOVED.l1), np.arange(-4000, 4001)
    variance = moved * float(LAW.scale)
    before, after = ive(np.abs(values - moved), variance), ive(np.abs(values), variance)
    return float(np.maximum(before - np.exp(epsilon) * after, 0).sum())


EPSILON = 0.1  # where the claimed law's delta is large enough to be measured
CLAIMED = exact_delta(EPSILON)


def convicted(noise):
    return delta_lower_bound(*statistics(noise), epsilon=EPSILON) > CLAIMED


def shares(count_of_shares):
    return lambda count, source: sum(
        LAW.draw_share(count, makers=MAKERS, source=source) for _ in range(count_of_shares)
    )


def test_the_claimed_law_keeps_the_stated_promise():
    assert exact_delta(1.0) <= float(PROMISE.delta)


def test_the_right_noise_passes_and_the_bound_comes_close():
    bound = delta_lower_bound(*statistics(LAW.draw), epsilon=EPSILON)
    assert 0.8 * CLAIMED < bound <= CLAIMED
    assert not convicted(shares(MAKERS))


@pytest.mark.parametrize("factor", [Fraction(7, 10), Fraction(1, 2)])
def test_too_little_variance_is_convicted(factor):
    assert convicted(Skellam(LAW.scale * factor).draw)


def gaussian_delta(moved, epsilon):
    """Of the normal law that moves by so many deviations [Balle18, Theorem 8]."""
    low, high = moved / 2 - epsilon / moved, -moved / 2 - epsilon / moved
    return norm.cdf(low) - np.exp(epsilon) * norm.cdf(high)


@pytest.mark.parametrize("exponent", [16, 17, 24, 32, 40])
def test_large_noise_passes_and_too_little_of_it_is_convicted(exponent):
    """Beyond 2^16 the two laws' deltas differ by less than 1e-5 of themselves."""
    variance, moved = Fraction(2) ** exponent, round(2 ** (exponent / 2 - 1))
    claimed = gaussian_delta(moved / 2 ** (exponent / 2), EPSILON)

    def bound(factor):
        source = SeededRandomSource(f"large {exponent}")
        draws = skellam(variance * factor, 2 * RUNS, source).astype(float)
        return delta_lower_bound(draws[:RUNS] + moved, draws[RUNS:], epsilon=EPSILON)

    assert 0.8 * claimed < bound(Fraction(1)) <= claimed
    assert bound(Fraction(7, 10)) > claimed


def test_one_missing_share_is_convicted():
    assert convicted(shares(MAKERS - 1))


def test_a_sensitivity_that_was_not_squared_is_convicted():
    wrong = sensitivity.Sensitivity(MOVED.l1, Fraction(round(MOVED.l2_squared**0.5)))
    assert convicted(PROMISE.law(PROMISE.budget, wrong).draw)


def test_laplace_noise_calibrated_to_the_l2_norm_is_convicted():
    """The L1 norm is what Laplace noise must have: the L2 norm of four tables is too little."""
    epsilon, source = Fraction(1), SeededRandomSource("norms")
    for order, wrong in ((1, False), (2, True)):
        scale = MOVED.in_norm(order) / epsilon
        found = []
        for start in (EXACT, NEIGHBOUR):
            drawn = discrete_laplace(scale, RUNS * len(start), source).reshape(RUNS, len(start))
            found.append(laplace_log_likelihood_ratio(start + drawn, EXACT, NEIGHBOUR, scale))
        assert audit(*found).contradicts(epsilon) is wrong
