"""What epsilon allows an attack, against mechanisms that reach it; and exact rates."""

import math

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from common.analysis.attacks_bounds import Guarantee, Rate, epsilon_at_least


@pytest.mark.parametrize(("hits", "trials"), [(0, 50), (3, 50), (25, 50), (50, 50), (1, 1)])
def test_bounds_are_those_of_clopper_and_pearson(hits, trials):
    rate = Rate.of(hits, trials=trials, level=0.025)
    exact = binomtest(hits, trials).proportion_ci(0.95, method="exact")
    assert (rate.low, rate.high) == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_bounds_hold_as_often_as_they_say():
    """By the whole law: for every true rate, each bound fails with at most its level."""
    trials, level = 40, 0.05
    rates = [Rate.of(hits, trials=trials, level=level) for hits in range(trials + 1)]
    for truth in np.linspace(0.01, 0.99, 33):
        law = binom.pmf(np.arange(trials + 1), trials, truth)
        assert law @ [rate.low > truth for rate in rates] <= level
        assert law @ [rate.high < truth for rate in rates] <= level


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_the_leakiest_mechanism_reaches_the_bound_and_no_other_passes_it(epsilon, delta):
    """With delta it tells the truth; else it answers at random, right exp(epsilon) times as often.

    Its attacks are all sets of its four outcomes: no set passes the bound, and some reach it.
    """
    growth, promise = math.exp(epsilon), Guarantee(epsilon=epsilon, delta=delta)
    honest = (1 - delta) / (1 + growth)
    inside = np.array([delta, honest * growth, honest, 0.0])
    outside = np.array([0.0, honest, honest * growth, delta])
    chosen = [[bool(number >> bit & 1) for bit in range(4)] for number in range(16)]
    rates = [(inside @ each, outside @ each) for each in chosen]
    gaps = [promise.most_hits(others) - members for members, others in rates]
    assert min(gaps) >= -1e-12
    assert sum(gap < 1e-12 for gap in gaps) > 2
    assert promise.advantage == pytest.approx(max(p - q for p, q in rates))


def test_without_an_epsilon_everything_is_allowed():
    nothing = Guarantee(epsilon=None)
    assert (nothing.most_hits(0.0), nothing.advantage) == (1.0, 1.0)
    assert nothing.most_about_a_table(0.0, rows=10) == 1.0
    assert nothing.words() == "no epsilon"


def test_an_epsilon_beyond_all_measure_does_not_overflow():
    huge = Guarantee(epsilon=1e6)
    assert (huge.most_hits(0.5), huge.advantage) == (1.0, 1.0)
    assert huge.most_about_a_table(0.5, rows=10) == 1.0


def test_statements_about_a_table_are_bounded_row_by_row():
    promise = Guarantee(epsilon=math.log(2), delta=0.001)
    assert promise.most_about_a_table(0.1, rows=50) == pytest.approx(2 * 0.1 + 50 * 0.001)
    assert promise.most_about_a_table(0.9, rows=50) == 1.0


def test_rates_prove_an_epsilon_that_the_mechanism_has_and_no_larger_one():
    """A mechanism of epsilon 2 attacked 20,000 times proves nearly 2, and not more."""
    growth, trials = math.exp(2), 20_000
    inside = Rate.of(round(trials * growth / (1 + growth)), trials=trials, level=0.001)
    outside = Rate.of(round(trials / (1 + growth)), trials=trials, level=0.001)
    assert 1.85 < epsilon_at_least(inside, outside, delta=0) < 2
    assert epsilon_at_least(inside, outside, delta=0.5) < epsilon_at_least(inside, outside, delta=0)
    assert epsilon_at_least(outside, inside, delta=0) == 0
