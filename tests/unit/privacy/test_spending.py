"""Two currencies together: no cap is passed, and what is shown holds."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.privacy.concentrated import epsilon_of, rho_of
from common.privacy.spending import Spending, fraction_words

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
    [("3", "3"), ("3/4", "3/4 (about 0.75)"), ("1234567890123456789/3210", "about 3.84601e+14")],
)
def test_fractions_are_written_for_people(value, said):
    assert fraction_words(Fraction(value)) == said


def test_words_name_the_delta():
    assert Spending.of(Fraction(3, 4)).words() == "epsilon 3/4 (about 0.75)"
    assert Spending.of(rho_of(ONE, DELTA), DELTA).words() == "epsilon 1 at delta 1e-09"
