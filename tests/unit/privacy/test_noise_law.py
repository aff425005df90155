"""The cost of Skellam noise against exact Renyi divergences, and the rest of the law."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ive, logsumexp

from common.errors import InputError, LocalError
from common.privacy import sensitivity
from common.privacy.noise_law import DiscreteLaplace, Skellam
from common.privacy.randomness import SeededRandomSource
from common.privacy.sampling.discrete_laplace import LARGEST_SCALE
from common.privacy.sampling.skellam import LARGEST_VARIANCE
from common.privacy.sensitivity import Sensitivity

ORDERS = [2, 3, 4, 6, 10, 30, 100, 1000]


def log_law(variance):
    """Logarithms of P(k) on both sides as far as doubles carry them, and that reach."""
    reach = int(20 * math.sqrt(variance) + 60)
    with np.errstate(divide="ignore"):
        half = np.log(ive(np.arange(reach + 1), variance))
    reach = int(np.flatnonzero(np.isfinite(half))[-1])
    half = half[: reach + 1]
    return np.concatenate([half[:0:-1], half]), reach


def divergence(order, moved, variance):
    """The Renyi divergence of a count that moves by `moved`, by the sum that defines it."""
    law, _ = log_law(variance)
    before, after = law[moved:], law[: len(law) - moved]
    return logsumexp(order * before + (1 - order) * after) / (order - 1)


@pytest.mark.parametrize("variance", [0.5, 1, 2, 5, 20, 100, 2000])
@pytest.mark.parametrize("moved", [1, 2, 5])
def test_the_cost_is_never_below_the_divergence_at_any_order(variance, moved):
    cost = Skellam(Fraction(variance)).cost(Sensitivity(Fraction(moved), Fraction(moved**2)))
    assert all(
        divergence(order, moved, variance) <= order * float(cost) * (1 + 1e-9) for order in ORDERS
    )


@pytest.mark.parametrize("moves", [[1, -1], [1] * 6, [2, 1, 1], [5, 1, 1, 1, 3]])
@pytest.mark.parametrize("variance", [1, 3, 30, 400])
def test_the_cost_holds_for_several_counts_together(moves, variance):
    # Noise is independent, so divergences of the counts add up.
    moved = Sensitivity(Fraction(sum(map(abs, moves))), Fraction(sum(m * m for m in moves)))
    cost = float(Skellam(Fraction(variance)).cost(moved))
    for order in ORDERS:
        exact = sum(divergence(order, abs(move), variance) for move in moves)
        assert exact <= order * cost * (1 + 1e-9)


def test_the_cost_is_close_to_that_of_gaussian_noise_where_there_is_much_of_it():
    moved = sensitivity.histograms(20)
    assert Skellam(Fraction(2000)).cost(moved) == pytest.approx(40 / (2 * 2000), rel=2e-3)


def test_half_the_cost_would_be_convicted():
    moved = Sensitivity.moving(1)
    cost = float(Skellam(Fraction(100)).cost(moved))
    assert any(divergence(order, 1, 100) > order * cost / 1.1 for order in ORDERS)


positive = st.fractions(min_value=Fraction(1, 10**6), max_value=50, max_denominator=10**6)


@settings(deadline=None)
@given(positive, st.integers(1, 400))
def test_the_law_that_is_bought_costs_what_was_paid_and_hardly_less(rho, tables):
    moved = sensitivity.histograms(tables)
    law = Skellam.costing(rho, sensitivity=moved)
    assert rho * (1 - Fraction(1, 10**10)) <= law.cost(moved) <= rho
    assert law.scale.denominator <= 10**40


@settings(deadline=None)
@given(positive, st.integers(1, 5), st.integers(1, 50), st.integers(1, 6))
def test_k_rows_cost_at_most_k_squared_times_one(variance, step, counts, rows):
    law = Skellam(Fraction(variance) * 1000)
    one = Sensitivity(Fraction(step * counts), Fraction(step**2 * counts))
    many = Sensitivity(one.l1 * rows, one.l2_squared * rows**2)
    assert law.cost(many) <= rows**2 * law.cost(one)


def test_expected_sizes_are_those_of_the_law():
    for variance, copies in product([0.3, 4, 900], [Fraction(1), Fraction(3, 2)]):
        law, reach = log_law(variance * float(copies))
        values = np.abs(np.arange(-reach, reach + 1))
        noise = Skellam(Fraction(variance))
        assert noise.mean_absolute(copies) == pytest.approx((np.exp(law) * values).sum(), rel=1e-9)
        assert noise.variance(copies) == pytest.approx((np.exp(law) * values**2).sum(), rel=1e-9)


def test_shares_have_a_part_of_the_variance():
    law, source = Skellam(Fraction(90)), SeededRandomSource("shares")
    share = law.draw_share(100_000, makers=9, source=source)
    assert share.var() == pytest.approx(10, rel=0.03)
    assert law.draw(100_000, source).var() == pytest.approx(90, rel=0.03)
    with pytest.raises(LocalError):
        law.draw_share(1, makers=0, source=source)


def test_twice_the_noise_is_four_times_the_variance():
    assert Skellam(Fraction(3)).times(Fraction(2)) == Skellam(Fraction(12))


def test_more_draws_need_a_larger_bound():
    law = Skellam(Fraction(10**4))
    assert 14 * 100 < law.bound(1) < law.bound(10**6) < 25 * 100
    with pytest.raises(LocalError):
        law.bound(0)


def test_the_mean_absolute_value_is_finite_however_large_the_variance():
    below, above = (Skellam(Fraction(v)).mean_absolute() for v in (99_999_999, 100_000_001))
    assert above / below == pytest.approx(1, rel=1e-7)
    assert Skellam(Fraction(10**12)).mean_absolute() == pytest.approx(797_884.56, rel=1e-6)


def test_noise_outside_the_range_of_its_sampler_is_refused_as_a_small_epsilon():
    one = Sensitivity(Fraction(1), Fraction(1))
    largest = DiscreteLaplace.costing(Fraction(1, LARGEST_SCALE), sensitivity=one)
    assert largest.scale == LARGEST_SCALE
    with pytest.raises(InputError, match="epsilon: an answer needs noise of scale"):
        DiscreteLaplace.costing(Fraction(1, LARGEST_SCALE + 1), sensitivity=one)
    with pytest.raises(InputError, match="epsilon: an answer needs noise of variance"):
        Skellam.costing(Fraction(1, 4 * LARGEST_VARIANCE), sensitivity=one)
