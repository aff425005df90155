from graphlib import CycleError, TopologicalSorter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.methods.dp_subn.csfc import impact, search_frontier, sparsity


def symmetric(attributes, values):
    matrix = np.zeros((attributes, attributes))
    for (a, b), value in values.items():
        matrix[a, b] = matrix[b, a] = value
    return matrix


def topological_order(structure):
    return list(TopologicalSorter(dict(enumerate(structure))).static_order())


def reachability(structure):
    reaches = np.eye(len(structure), dtype=bool)
    for child in topological_order(structure):
        for parent in structure[child]:
            reaches[:, child] |= reaches[:, parent]
    return reaches


# The paper's Fig. 1: X1 -> X2, X1 -> X3 -> X4, and the edge X1 -> X4 just added (attribute i is
# X_i, 0 is not used). Its table of information is lost; this one has the sums the text reports.
INFORMATION = symmetric(
    5,
    {(1, 2): 1.39, (1, 3): 1.2, (1, 4): 1.0, (2, 4): 0.63, (2, 3): 0.9},
)
BEFORE = ((), (), (1,), (1,), (3, 1))


def test_the_papers_example_gives_3_3_283_139_and_the_edge_from_x3_to_x2():
    reaches = reachability(BEFORE)
    assert sparsity(BEFORE, reaches[:, 2], 2) == 3
    assert sparsity(BEFORE, reaches[:, 3], 2) == 3
    for (x, y), expected in {(2, 3): 2.83, (3, 2): 1.39}.items():
        actual = impact(INFORMATION, ancestors=reaches[:, x], descendants=reaches[y], pair=(x, y))
        assert actual == pytest.approx(expected)
    frontier = search_frontier(BEFORE, INFORMATION, 2)
    assert 3 in frontier[2]
    assert 2 not in frontier[3]


def test_an_incomparable_pair_takes_the_edge_into_the_only_one_with_room():
    network = ((), (), (0, 1))
    information = symmetric(4, {(2, 3): 1.0})
    assert search_frontier((*network, ()), information, 2)[3][0] == 2


def test_nothing_is_added_when_nobody_has_room():
    network = ((), (0,), (0,))
    assert search_frontier(network, symmetric(3, {(1, 2): 1.0}), 1) == network


def test_a_cycle_is_refused():
    with pytest.raises(CycleError):
        search_frontier(((1,), (0,)), np.zeros((2, 2)), 2)


@settings(deadline=None)
@given(st.integers(1, 9), st.integers(0, 3), st.integers(0, 5), st.integers(0, 2**32))
def test_the_frontier_keeps_the_network_and_the_degree_and_stays_acyclic(
    attributes, degree, more, seed
):
    rng = np.random.default_rng(seed)
    label = rng.permutation(attributes)
    parents = [()] * attributes
    for place in range(attributes):
        count = rng.integers(0, min(degree, place) + 1)
        parents[label[place]] = tuple(map(int, label[rng.permutation(place)[:count]]))
    values = rng.random((attributes, attributes))
    frontier = search_frontier(tuple(parents), values + values.T, degree + more)
    topological_order(frontier)
    for before, after in zip(parents, frontier, strict=True):
        assert after[: len(before)] == before
        assert len(set(after)) == len(after) <= degree + more
    # Every attribute with room is already tied to everyone it could be tied to.
    edges = {frozenset((c, p)) for c, own in enumerate(frontier) for p in own}
    full = sum(len(own) == degree + more for own in frontier)
    if not full:
        assert len(edges) == attributes * (attributes - 1) // 2
