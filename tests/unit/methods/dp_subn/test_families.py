"""Which families a step may choose."""

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from common.methods.dp_subn.families import (
    FamilyLimit,
    candidate_families,
    frontier_limit,
    network_limit,
)


@settings(deadline=None)
@given(
    st.lists(st.integers(1, 6), min_size=2, max_size=6),
    st.data(),
    st.integers(0, 4),
    st.integers(0, 80),
)
def test_candidates_are_exactly_the_families_that_a_check_accepts(sizes, data, parents, cells):
    placed = data.draw(st.lists(st.sampled_from(range(len(sizes))), unique=True, min_size=1))
    limit = FamilyLimit(parents, cells)
    offered = set(candidate_families(sizes, placed, limit))
    waiting = set(range(len(sizes))) - set(placed)
    accepted = {
        (child, *chosen)
        for child in waiting
        for chosen in _subsets(sorted(placed))
        if limit.maximal(sizes, child, chosen, placed)
    }
    assert offered == accepted


def _subsets(items):
    for mask in range(1 << len(items)):
        yield [item for i, item in enumerate(items) if mask >> i & 1]


def test_limits_on_binary_data_are_the_papers_degrees():
    # N * eps_4 / ((d-k) * 2^(k+2)) >= 6 on Adult's 52 bits: k = 2 at epsilon 0.8, k = 3 at 1.6.
    sizes = (2,) * 52
    for epsilon, degree in ((Fraction(1, 5), 2), (Fraction(2, 5), 3), (Fraction(1, 1000), 0)):
        limit = network_limit(sizes, 45_222, epsilon)
        assert limit == FamilyLimit(degree, 2 << degree)
        assert frontier_limit(sizes, 45_222, epsilon, limit).parents >= degree


def test_limits_stay_enumerable_at_any_budget():
    huge = Fraction(10**12)
    assert network_limit((2,) * 52, 10**6, huge).parents <= 10
    limit = network_limit((2, 3, 100, 40, 7) * 4, 10**6, huge)
    assert limit.cells <= 1 << 16
    assert frontier_limit((2, 3, 100, 40, 7) * 4, 10**6, huge, limit).cells <= 1 << 16
