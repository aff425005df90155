from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InputError, LocalError
from common.privacy.budget import parse_epsilon, shown, split


@pytest.mark.parametrize(
    "value", ["0.1", " 1/10 ", "1e-1", Decimal("0.1"), Fraction(1, 10), 0.1, np.float64(0.1)]
)
def test_every_way_to_write_a_tenth_is_exactly_a_tenth(value):
    assert parse_epsilon(value) == Fraction(1, 10)


@pytest.mark.parametrize(
    "value",
    ["", "abc", "1/0", "nan", "inf", float("nan"), float("inf"), Decimal("NaN"), True, None, [1]],
)
def test_what_is_not_a_number_is_refused(value):
    with pytest.raises(InputError, match="not a number"):
        parse_epsilon(value)


@pytest.mark.parametrize("value", [0, "-1", -0.5, Fraction(0)])
def test_a_budget_that_is_not_above_zero_is_refused(value):
    with pytest.raises(InputError, match="above zero"):
        parse_epsilon(value)


@given(
    st.fractions(min_value=Fraction(1, 1000), max_value=1000),
    st.lists(st.integers(min_value=0, max_value=10**6), min_size=1).filter(any),
)
def test_parts_add_up_exactly_and_keep_their_proportions(total, weights):
    parts = split(total, weights)
    assert sum(parts) == total
    assert all(
        part * sum(weights) == total * weight for part, weight in zip(parts, weights, strict=True)
    )


@pytest.mark.parametrize("value", ["1e999999999", "1e-999999999", "0e999999999"])
@pytest.mark.parametrize("kind", [str, Decimal])
def test_a_few_letters_do_not_become_gigabytes_of_digits(value, kind):
    with pytest.raises(InputError, match="meant for no table"):
        parse_epsilon(kind(value))


@pytest.mark.parametrize("weights", [[], [0, 0], [2, -1]])
def test_impossible_weights_are_refused(weights):
    with pytest.raises(LocalError):
        split(Fraction(1), weights)


@given(st.fractions(min_value=0, max_value=10**6))
def test_a_cost_is_never_shown_as_less_than_it_is(value):
    number = shown(value)
    assert Fraction(repr(number)) >= value
    assert Fraction(repr(float(np.nextafter(number, -np.inf)))) < value


@pytest.mark.parametrize("text", ["0.1", "0.3", "0.8", "1.6", "2"])
def test_a_budget_is_shown_as_it_was_typed(text):
    assert shown(parse_epsilon(text)) == float(text)
