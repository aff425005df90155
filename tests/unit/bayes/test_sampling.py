"""The sampler's integer tables stand for the conditionals they were made of, to the last unit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from common.bayes.domain import Domain, View
from common.bayes.network import Network, Pair
from common.bayes.sampling import Sampler, alias_table
from common.errors import LocalError
from common.marginals import count
from common.privacy.randomness import SeededRandomSource


def mass_of(thresholds, aliases):
    """What every value receives from all places, in units of 2^-32 / size."""
    mass = [0] * len(thresholds)
    for value, (threshold, alias) in enumerate(zip(thresholds, aliases, strict=True)):
        mass[value] += int(threshold)
        mass[int(alias)] += (1 << 32) - int(threshold)
    return mass


@settings(deadline=None)  # the first call compiles
@given(st.lists(st.integers(0, 1000), min_size=1, max_size=40).filter(any))
def test_the_places_of_a_table_add_up_to_the_probabilities(weights):
    law = np.array(weights) / sum(weights)
    thresholds, aliases = alias_table(law[None, :])
    size = len(law)
    for value, mass in enumerate(mass_of(thresholds[0], aliases[0])):
        assert abs(mass / size - law[value] * 2**32) <= size + 1
        if weights[value] == 0:
            assert mass == 0


def test_a_table_of_one_value_and_a_certain_value():
    assert alias_table(np.ones((1, 1)))[1].tolist() == [[0]]
    thresholds, aliases = alias_table(np.array([[0.0, 1.0, 0.0]]))
    assert mass_of(thresholds[0], aliases[0]) == [0, 3 << 32, 0]


def test_a_law_that_does_not_add_up_is_refused():
    with pytest.raises(LocalError, match="add up to one"):
        alias_table(np.array([[0.75, 0.75, 0.75]]))


def sampled(law, rows, seed):
    """Rows of a chain a -> b -> c with two parents for c, one of them generalised."""
    domain = Domain(((np.arange(6), np.arange(6) // 3), (np.arange(5),), (np.arange(300),)))
    network = Network((Pair(1), Pair(0, (View(1),)), Pair(2, (View(0, 1), View(1)))))
    return Sampler(network, domain, law).sample(rows, SeededRandomSource(seed))


def random_law(seed):
    generator = np.random.default_rng(seed)
    shapes = [(1, 5), (5, 6), (10, 300)]
    return [generator.dirichlet(np.full(width, 0.5), lines) for lines, width in shapes]


def test_rows_follow_the_network_with_generalised_parents_and_wide_domains():
    law, rows = random_law(1), 400_000
    drawn = sampled(law, rows, 2)
    assert drawn.columns[2].dtype == np.uint16
    pair = count(drawn, [(1, 0)])[0]
    expected = law[0][0][:, None] * law[1] * rows
    assert chisquare(pair.ravel(), expected.ravel()).pvalue > 1e-9
    group = np.stack([law[1][:, :3].sum(axis=1), law[1][:, 3:].sum(axis=1)])
    weight = (group * law[0][0]).reshape(-1)  # of (group of a, b)
    last = (weight[:, None] * law[2]).sum(axis=0) * rows
    seen = count(drawn, [(2,)])[0]
    assert last.min() > 5
    assert chisquare(seen, last).pvalue > 1e-9
    assert chisquare(seen, np.roll(last, 1)).pvalue < 1e-12


def test_the_order_of_attributes_is_the_schemas_whatever_the_networks():
    law = [np.eye(5)[[3]], np.eye(6)[[0, 0, 0, 4, 0]], np.eye(300)[[7] * 8 + [299, 7]]]
    drawn = sampled(law, 10, 1)
    assert [set(column.tolist()) for column in drawn.columns] == [{4}, {3}, {299}]
