"""Networks times weights, against the whole joint table."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.bayes import weighting
from common.bayes.domain import Domain, View
from common.bayes.network import Network
from common.bayes.weighting import TooManyCells, WeightedNetwork, Weights, stratified
from common.privacy.randomness import SeededRandomSource


def some_network(seed, width=5, *, levels=False):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 4, width)
    if levels:
        domain = Domain(tuple((np.arange(4), np.array([0, 0, 1, 1])) for _ in range(width)))
    else:
        domain = Domain.flat(sizes.tolist())
    parents = {}
    for child in range(width):
        own = sorted(rng.permutation(child)[: rng.integers(0, min(child, 2) + 1)].tolist())
        parents[child] = [View(a, int(rng.integers(0, domain.height(a)))) for a in own]
    network = Network.from_parents(parents)
    conditionals = tuple(
        rng.dirichlet(np.ones(domain.sizes[p.child]), math.prod(domain.shape(p.parents)))
        for p in network.pairs
    )
    return WeightedNetwork(network, domain, conditionals)


def joint(net):
    """Every row's probability, one row at a time."""
    table = np.ones(net.domain.sizes)
    for row in np.ndindex(*table.shape):
        for pair, own in zip(net.network.pairs, net.conditionals, strict=True):
            at = 0
            for view in pair.parents:
                group = net.domain.levels[view.attribute][view.level][row[view.attribute]]
                at = at * net.domain.size(view) + group
            table[row] *= own[at, row[pair.child]]
    return table


def some_weights(net, seed, *, sets):
    rng = np.random.default_rng(seed)
    found = []
    for size in sets:
        variables = tuple(sorted(rng.permutation(net.domain.width)[:size].tolist()))
        table = rng.random([net.domain.sizes[a] for a in variables])
        found.append(Weights(variables, table * (rng.random(table.shape) < 0.7)))
    return found


def times(table, weights):
    table = table.copy()
    for each in weights:
        table *= each.table.reshape(
            [size if a in each.variables else 1 for a, size in enumerate(table.shape)]
        )
    return table


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000), sets=st.lists(st.integers(1, 3), max_size=3), levels=st.booleans()
)
def test_a_weighted_network_is_the_weighted_joint_table(seed, sets, levels):
    net = some_network(seed, 4 if levels else 5, levels=levels)
    weights = some_weights(net, seed + 1, sets=sets)
    wanted = times(joint(net), weights)
    found = net.weighted(weights)
    if wanted.sum() == 0:
        assert found.log_mass == -math.inf
        return
    assert math.exp(found.log_mass) == pytest.approx(wanted.sum())
    np.testing.assert_allclose(joint(found), wanted / wanted.sum(), atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), kept=st.sets(st.integers(0, 4), min_size=1, max_size=3))
def test_marginals_are_those_of_the_joint_table(seed, kept):
    net = some_network(seed)
    others = tuple(set(range(5)) - kept)
    np.testing.assert_allclose(net.marginal(sorted(kept)), joint(net).sum(axis=others), atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), sets=st.lists(st.integers(1, 3), max_size=3))
def test_a_network_by_the_values_of_its_first_variable_is_the_weighted_joint_table(seed, sets):
    net = some_network(seed)
    weights = some_weights(net, seed, sets=sets)
    expected = times(joint(net), weights)
    (first,) = (own for pair, own in zip(net.network.pairs, net.conditionals, strict=True)
                if pair.child == 0)  # fmt: skip
    masses, given_first = net.by_value(0, weights)
    np.testing.assert_allclose(masses * first[0], expected.sum(axis=(1, 2, 3, 4)), atol=1e-12)
    if masses.min() > 0:
        whole = joint(given_first) * masses.reshape(-1, 1, 1, 1, 1)
        np.testing.assert_allclose(whole, expected, atol=1e-12)


def test_rows_of_given_values_are_drawn_one_by_one():
    net = some_network(8)
    values = np.tile(np.arange(net.domain.sizes[0]), 20_000)
    columns = net.by_value(0, [])[1].sample_given(0, values, SeededRandomSource("given"))
    seen = np.zeros(net.domain.sizes)
    np.add.at(seen, tuple(columns), 1)
    table = joint(net)
    expected = 20_000 * table / table.sum(axis=(1, 2, 3, 4), keepdims=True)
    assert (np.abs(seen - expected) < 5 * np.sqrt(expected) + 1).all()
    assert (columns[0] == values).all()


def test_rows_follow_the_network_and_never_leave_its_support():
    net = some_network(3)
    weights = some_weights(net, 11, sets=[3, 2])
    wanted = times(joint(net), weights)
    wanted /= wanted.sum()
    rows = net.weighted(weights).sample(40_000, SeededRandomSource(1))
    found = np.zeros(wanted.shape)
    np.add.at(found, tuple(rows.columns), 1 / rows.rows)
    assert not found[wanted == 0].any()
    assert np.abs(found - wanted).sum() / 2 < 0.02
    tilted = wanted * np.linspace(0.7, 1.3, wanted.size).reshape(wanted.shape)
    assert np.abs(found - tilted / tilted.sum()).sum() / 2 > 0.03  # another law is told apart


def test_a_rare_condition_is_drawn_from_directly():
    """Mass 1e-12: no rejection would ever find such a row."""
    rare = np.array([1 - 1e-6, 1e-6])
    net = WeightedNetwork(
        Network.from_parents({0: (), 1: ()}), Domain.flat([2, 2]), (rare[None], rare[None])
    )
    only = Weights((0,), np.array([0.0, 1.0])), Weights((1,), np.array([0.0, 1.0]))
    found = net.weighted(only)
    assert math.exp(found.log_mass) == pytest.approx(1e-12)
    assert all(column.all() for column in found.sample(100, SeededRandomSource(1)).columns)


def test_stratified_counts_are_the_expected_ones_up_to_rounding():
    table = np.array([[0.2, 0.0, 0.8], [0.5, 0.5, 0.0]])
    configuration = np.repeat([0, 1], [1000, 500])
    drawn = stratified(table, configuration, SeededRandomSource(1))
    counts = [np.bincount(drawn[configuration == c], minlength=3) for c in (0, 1)]
    assert np.abs(np.array(counts) - table * [[1000], [500]]).max() <= 1


def test_tables_beyond_the_limit_are_refused(monkeypatch):
    monkeypatch.setattr(weighting, "MOST_CELLS", 3)
    net = some_network(3)
    with pytest.raises(TooManyCells):
        net.weighted(some_weights(net, 1, sets=[2]))
