from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import LocalError, PolicyError
from common.privacy.accountant import (
    Accountant,
    Charge,
    laplace_charge,
)

HALF = Fraction(1, 2)


def release(step="step", **epsilons):
    return Charge(step=step, mechanism="any", costs=epsilons)


def test_a_party_pays_for_what_covers_it_and_for_nothing_else():
    accountant = Accountant({"a": None, "b": None, "c": None})
    accountant.charge(release(a=HALF, b=HALF))
    accountant.charge(release(a=Fraction(1, 3)))
    assert accountant.spent("a") == Fraction(5, 6)
    assert accountant.spent("b") == HALF
    assert accountant.spent("c") == 0
    assert accountant.most_spent == Fraction(5, 6)
    assert [len(each.costs) for each in accountant.charges] == [2, 1]


def test_a_cap_can_be_reached_exactly_but_not_passed():
    accountant = Accountant({"a": Fraction(1)})
    for _ in range(10):
        accountant.charge(release(a=Fraction(1, 10)))
    assert accountant.remaining("a") == 0
    with pytest.raises(PolicyError, match="cap"):
        accountant.charge(release(a=Fraction(1, 10**30)))


def test_a_refused_release_charges_nobody():
    accountant = Accountant({"a": Fraction(10), "b": HALF})
    with pytest.raises(PolicyError):
        accountant.charge(release(a=Fraction(1), b=Fraction(1)))
    assert accountant.spent("a") == accountant.spent("b") == 0
    assert accountant.charges == ()


def test_an_unknown_party_is_refused_and_nobody_is_charged():
    accountant = Accountant({"a": None})
    with pytest.raises(LocalError, match="unknown"):
        accountant.charge(release(a=HALF, stranger=HALF))
    assert accountant.spent("a") == 0
    for question in (accountant.spent, accountant.remaining, accountant.claimed):
        with pytest.raises(LocalError):
            question("stranger")


fractions = st.integers(0, 400).map(lambda hundredths: Fraction(hundredths, 99))


@given(
    st.lists(st.tuples(fractions, fractions, fractions), max_size=8).map(
        lambda rows: [dict(zip("abc", row, strict=True)) for row in rows]
    ),
    fractions,
)
def test_no_sequence_of_releases_ever_passes_a_cap(charges, cap):
    accountant = Accountant(dict.fromkeys("abc", cap))
    for epsilons in charges:
        before = {party: accountant.spent(party) for party in "abc"}
        try:
            accountant.charge(release(**epsilons))
        except PolicyError:
            assert before == {party: accountant.spent(party) for party in "abc"}
    for party in "abc":
        accepted = sum(each.costs.get(party, 0) for each in accountant.charges)
        assert accountant.spent(party) == accepted <= cap


def test_the_epsilon_of_laplace_noise_is_derived_from_sensitivity_and_scale():
    made = laplace_charge("marginals", scale=Fraction(40), sensitivities={"a": 20, "b": 10})
    assert made.costs == {"a": HALF, "b": Fraction(1, 4)}
    assert made.scale == 40
    with pytest.raises(LocalError, match="scale"):
        laplace_charge("marginals", scale=Fraction(0), sensitivities={"a": 1})


def test_draws_of_the_exponential_mechanism_add_up():
    accountant = Accountant({"a": None})
    for _ in range(15):
        made = Charge(
            step="structure",
            mechanism="exponential mechanism",
            costs={"a": Fraction(1, 30)},
            sensitivities={"a": Fraction(3)},
        )
        accountant.charge(made)
    assert accountant.spent("a") == HALF


def test_noise_replacement_costs_early_parties_more_than_the_paper_says():
    """K releases of m marginals, each with fresh noise; release r covers the parties up to r."""
    parties, marginals, epsilon = ["p1", "p2", "p3"], 7, Fraction(1, 5)
    accountant = Accountant(dict.fromkeys(parties))
    for last in range(1, 4):
        made = laplace_charge(
            "structure update",
            scale=2 * marginals / epsilon,
            sensitivities=dict.fromkeys(parties[:last], 2 * marginals),
        )
        accountant.charge(replace(made, claimed={parties[last - 1]: epsilon}))
    assert [accountant.spent(party) for party in parties] == [3 * epsilon, 2 * epsilon, epsilon]
    assert [accountant.claimed(party) for party in parties] == [epsilon] * 3


def test_a_release_cannot_change_after_it_was_recorded():
    costs = {"a": HALF}
    made = Charge(step="s", mechanism="m", costs=costs)
    costs["a"] = Fraction(0)
    assert made.costs == {"a": HALF}
    with pytest.raises(TypeError):
        made.costs["a"] = Fraction(0)


@pytest.mark.parametrize("costs", [{}, {"a": Fraction(-1)}, {"a": 0.5}])
def test_a_cost_that_is_missing_negative_or_inexact_is_refused(costs):
    with pytest.raises(LocalError):
        Charge(step="s", mechanism="m", costs=costs)
