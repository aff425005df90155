"""Degrees that are useful."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from common.methods.dp_subn.usefulness import frontier_degree, network_degree


@given(st.integers(2, 60), st.integers(1, 10**6), st.fractions(Fraction(1, 100), 4))
def test_degrees_are_the_largest_useful_ones_on_binary_data(attributes, rows, epsilon):
    def useful(k, marginals, theta):
        return rows * epsilon / (marginals * 2 ** (k + 2)) >= theta

    k = network_degree([2] * attributes, rows, epsilon)
    assert k == 0 or useful(k, attributes - k, 6)
    assert k == attributes - 1 or not useful(k + 1, attributes - k - 1, 6)
    frontier = frontier_degree([2] * attributes, rows, epsilon)
    assert frontier == 0 or useful(frontier, attributes - 1, 2)
    assert frontier == attributes - 1 or not useful(frontier + 1, attributes - 1, 2)


def test_larger_domains_take_fewer_parents():
    assert network_degree([16] * 15, 45_222, Fraction(1, 5)) < network_degree(
        [2] * 15, 45_222, Fraction(1, 5)
    )
