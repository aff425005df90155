"""What rho amounts to, and two currencies together: no cap is passed, what is shown holds."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from common.errors import LocalError
from common.privacy.promise import Promise
from common.privacy.spending import Spending, best_order, epsilon_of, fraction_words, rho_of

DELTA = Fraction(1, 10**9)
ONE = Fraction(1)
epsilons = st.lists(st.fractions(min_value=0, max_value=2, max_denominator=100), max_size=6)
rhos = st.fractions(min_value=0, max_value=Fraction(1, 2), max_denominator=10**4)


def test_pure_studies_add_up():
    spent = Spending.of(ONE) + Spending.of(Fraction(1, 2))
    assert (spent.pure, spent.epsilon, spent.paid, spent.rho) == (1.5, 1.5, 1.5, 0)
    assert spent.within(Fraction(3, 2), Fraction(0))
    assert not spent.within(Fraction(149, 100), Fraction(0))


def test_a_study_fits_exactly_into_a_cap_of_its_own_epsilon():
    whole = Spending.of(rho_of(ONE, DELTA), DELTA)
    assert whole.epsilon == 1
    assert whole.within(ONE, DELTA)
    assert not (whole + Spending.of(Fraction(1, 10**9), DELTA)).within(ONE, DELTA)


def test_what_has_a_delta_fits_into_no_pure_cap():
    assert not Spending.of(Fraction(1, 10**6), DELTA).within(Fraction(100), Fraction(0))


def test_many_small_studies_cost_less_than_their_sum():
    spent = Spending.together([Spending.of(rho_of(Fraction(1, 10), DELTA), DELTA)] * 100)
    assert spent.epsilon < 2
    pure = Spending.together([Spending.of(Fraction(1, 100))] * 1000)
    assert (pure.epsilon, pure.pure) == (10, 10)
    assert pure.epsilon_at(DELTA) < 3
    assert pure.within(Fraction(3), DELTA)


@settings(deadline=None, max_examples=40)
@given(epsilons, rhos, st.fractions(min_value=Fraction(1, 10), max_value=8, max_denominator=10))
def test_what_is_within_a_cap_amounts_to_no_more_at_its_delta(pure, rho, cap):
    spent = Spending(epsilons=tuple(pure), rho=rho, delta=DELTA if rho else Fraction(0))
    if spent.within(cap, DELTA):
        assert spent.epsilon_at(DELTA) <= cap
    more = spent + Spending.of(Fraction(1, 100))
    assert spent.within(cap, DELTA) or not more.within(cap, DELTA)
    assert spent.epsilon_at(DELTA) <= spent.pure + epsilon_of(rho, DELTA) + Fraction(1, 10**6)


@pytest.mark.parametrize(
    ("value", "said"),
    [("3", "3"), ("3/4", "0.75"), ("1234567890123456789/3210", "about 3.84601e+14")],
)
def test_fractions_are_written_for_people(value, said):
    assert fraction_words(Fraction(value)) == said


def test_words_name_the_delta():
    assert Spending.of(Fraction(3, 4)).words() == "epsilon 0.75"
    assert Spending.of(rho_of(ONE, DELTA), DELTA).words() == "epsilon 1 at delta 1e-09"


promises = st.fractions(min_value=Fraction(1, 1000), max_value=50, max_denominator=10**4)
deltas = st.integers(4, 30).map(lambda places: Fraction(1, 10**places))


def of_orders(rho, delta):
    """The same in doubles, every order up to a few thousand tried."""
    return min(
        a * rho + (math.log(1 / delta) - math.log(a)) / (a - 1) + math.log1p(-1 / a)
        for a in range(2, 5000)
    )


@pytest.mark.parametrize("rho", ["1/10000", "0.002", "0.03", "1", "40"])
@pytest.mark.parametrize("delta", ["1e-4", "1e-9", "1e-20"])
def test_epsilon_is_the_smallest_over_all_orders_rounded_up(rho, delta):
    found = epsilon_of(Fraction(rho), Fraction(delta))
    expected = of_orders(float(Fraction(rho)), float(Fraction(delta)))
    assert expected * (1 - 1e-9) <= found <= expected * (1 + 1e-8)


@settings(deadline=None, max_examples=60)
@given(promises, deltas)
def test_what_is_bought_costs_no_more_than_what_was_paid(epsilon, delta):
    rho = rho_of(epsilon, delta)
    assert 0 < rho < epsilon
    promise = Promise(epsilon, delta)
    assert promise.budget == rho
    assert promise.delivered(rho) <= epsilon
    assert epsilon_of(rho, delta) >= epsilon * (1 - Fraction(1, 10**8))
    assert epsilon_of(rho * Fraction(101, 100), delta) > epsilon


@settings(deadline=None, max_examples=60)
@given(promises, deltas)
def test_gaussian_noise_of_that_cost_keeps_the_promise(epsilon, delta):
    """The exact delta of Gaussian noise (Balle, Wang 2018, Theorem 8) is below the stated one."""
    shift = math.sqrt(2 * float(rho_of(epsilon, delta)))  # sensitivity over standard deviation
    e = float(epsilon)
    exact = norm.cdf(shift / 2 - e / shift) - math.exp(
        min(e + norm.logcdf(-shift / 2 - e / shift), 0)
    )
    assert exact <= float(delta)


def test_published_figures_are_met():
    assert float(rho_of(Fraction(2, 5), DELTA)) == pytest.approx(0.00257, rel=2e-3)
    textbook = (math.sqrt(math.log(1e9) + 0.4) - math.sqrt(math.log(1e9))) ** 2
    assert float(rho_of(Fraction(2, 5), DELTA)) > 1.3 * textbook


def test_a_smaller_delta_needs_a_larger_epsilon():
    found = [epsilon_of(Fraction(1, 100), Fraction(1, 10**places)) for places in (3, 6, 9, 12)]
    assert found == sorted(found)
    assert epsilon_of(Fraction(0), DELTA) == 0
    assert best_order(Fraction(1), DELTA) > best_order(Fraction(10), DELTA) >= 2


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: epsilon_of(Fraction(-1), DELTA),
        lambda: epsilon_of(Fraction(1), Fraction(0)),
        lambda: rho_of(Fraction(1), Fraction(1)),
        lambda: rho_of(Fraction(0), DELTA),
    ],
)
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(LocalError):
        wrong()


def test_without_a_delta_the_promise_is_pure():
    pure = Promise(Fraction(1))
    assert (pure.budget, pure.delta, pure.currency) == (1, 0, "epsilon")
    assert pure.delivered(Fraction(1, 2), rows=3) == Fraction(3, 2)
    both = Promise(Fraction(1), DELTA)
    assert (both.delta, both.currency) == (DELTA, "rho")
    assert both.delivered(both.budget) == 1
    assert 2 < both.delivered(both.budget, rows=2) < 2.2
