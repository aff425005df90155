"""Answers in their order, and none where none is known."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.schema.ordered import in_order


@pytest.mark.parametrize(
    "order",
    [
        ("<5", "5-9", "10+"),
        ("0", "1-2", "3-9", "10 or more"),
        ("Under 18", "18 to 64", "65 and over"),
        ("none", "<$10k", "$10k-$50k", ">$50k"),
        ("never", "Sometimes", "often", "always"),
        ("strongly disagree", "disagree", "agree"),
    ],
)
def test_known_orders(order):
    for shuffled in itertools.permutations(order):
        assert in_order(shuffled) == order


@pytest.mark.parametrize(
    "values", [("A", "B"), ("1", "2", "9"), ("<5", "n/a"), ("red", "low"), ("9-5", "1-2"), ()]
)
def test_what_has_no_order(values):
    assert in_order(values) is None


@given(st.lists(st.integers(0, 99), min_size=2, max_size=20, unique=True))
def test_any_cuts_of_a_range_come_back_in_order(cuts):
    ends = sorted(cuts)
    between = [f"{low}-{high}" for low, high in itertools.pairwise(ends)]
    ranges = (f"<{ends[0]}", *between, f"{ends[-1]}+")
    assert in_order(sorted(ranges)) == ranges
