"""Trees of columns: belief propagation and its slopes against brute force, and rows of a chain."""

from itertools import pairwise

import numpy as np
import pytest

from common.methods.subn_plus.latent import fit
from common.methods.subn_plus.losses import Measurement
from common.methods.subn_plus.models import edges_of
from common.methods.subn_plus.trees import Edge, Link, Trees, apart, tree_of
from common.privacy.randomness import SeededRandomSource
from common.schema.conditions import CellWeights

SIZES = (4, 5, 3, 6, 2)
STARTS = [0, *np.cumsum(SIZES).tolist()]
SPANS = [slice(*span) for span in pairwise(STARTS)]
CLASSES = 3


def edge(rng, parent, child, shape):
    groups = tuple(
        np.sort(np.arange(SIZES[u]) % width)
        for u, width in zip((parent, child), shape, strict=True)
    )
    joint = rng.random(shape) + 0.1
    return Edge(parent, child, groups, joint / joint.sum(), 50.0)


@pytest.fixture
def trees():
    rng = np.random.default_rng(0)
    edges = [edge(rng, 1, 0, (5, 4)), edge(rng, 1, 2, (3, 3)), edge(rng, 2, 3, (3, 4))]
    return Trees(edges, [own.groups for own in edges], SPANS, 1.0)


def brute_force(trees, logits, tables):
    """Return the joint law of the first four columns in each class, (4, 5, 3, 6, classes)."""
    joint = np.ones((*SIZES[:4], CLASSES))
    for u in range(4):
        shape = [1] * 4
        shape[u] = SIZES[u]
        joint = joint * np.exp(logits[SPANS[u]]).reshape(*shape, CLASSES)
    for own, table in zip(trees.edges, tables, strict=True):
        seen = np.exp(table)[np.ix_(*own.groups)]  # (parent's values, child's values)
        low, high = sorted((own.parent, own.child))
        seen = seen if own.parent == low else seen.T
        shape = [SIZES[u] if u in (low, high) else 1 for u in range(4)]
        joint = joint * seen.reshape(*shape, 1)
    return joint / joint.sum(axis=(0, 1, 2, 3))


def test_laws_are_those_of_the_whole_joint_table(trees):
    logits = np.random.default_rng(1).normal(size=(STARTS[-1], CLASSES))
    tables = trees.first_tables()
    joint = brute_force(trees, logits, tables)
    for u, law in trees.laws(logits, tables).items():
        others = tuple(v for v in range(4) if v != u)
        np.testing.assert_allclose(law, joint.sum(axis=others), rtol=1e-12)


def test_slopes_are_those_of_laws_and_edges(trees):
    rng, step = np.random.default_rng(2), 1e-6
    logits, tables = rng.normal(size=(STARTS[-1], CLASSES)), trees.first_tables()
    weights = rng.dirichlet(np.ones(CLASSES))
    heights = {u: rng.normal(size=(SIZES[u], CLASSES)) for u in range(4)}

    def at(logits, tables, weights):
        laws = trees.laws(logits, tables)
        return sum((heights[u] * law).sum() for u, law in laws.items()) + trees.error(weights)

    trees.laws(logits, tables)
    weight_slopes = np.zeros(CLASSES)
    by_laws = {u: own.copy() for u, own in heights.items()}
    by_logits, by_tables = trees.slopes(weights, by_laws, weight_slopes)
    for u in range(4):
        for place in np.ndindex(by_logits[u].shape):
            moved = np.zeros_like(logits)
            moved[SPANS[u]][place] = step
            measured = at(logits + moved, tables, weights) - at(logits - moved, tables, weights)
            assert by_logits[u][place] == pytest.approx(measured / (2 * step), abs=1e-7)
    for k, own in enumerate(by_tables):
        for place in np.ndindex(own.shape):
            up, down = ([t.copy() for t in tables] for _ in range(2))
            up[k][place] += step
            down[k][place] -= step
            measured = at(logits, up, weights) - at(logits, down, weights)
            assert own[place] == pytest.approx(measured / (2 * step), abs=1e-7)
    for c in range(CLASSES):
        moved = step * np.eye(CLASSES)[c]
        measured = at(logits, tables, weights + moved) - at(logits, tables, weights - moved)
        assert weight_slopes[c] == pytest.approx(measured / (2 * step), abs=1e-7)


def test_a_table_of_one_tree_is_taken_apart():
    rng = np.random.default_rng(3)
    together = tree_of(4, [Edge(0, 2, (np.arange(2),) * 2, np.ones((2, 2)) / 4, 1.0)])
    assert together == [0, 1, 0, 3]
    counts = rng.random((2, 3, 2))
    table = Measurement((0, 1, 2), (None,) * 3, counts, 5.0)
    other = Measurement((1, 3), (None, None), rng.random((3, 2)), 1.0)
    first, second, same = apart([table, other], together)
    assert same is other
    assert (first.attributes, second.attributes) == ((0, 1), (1, 2))
    np.testing.assert_allclose(first.counts, counts.sum(axis=2))
    assert first.variance == second.variance == 2 * 5.0 * 2  # two cells summed, two tables


def chain(rows=20_000):
    """Return columns a - b - c, each nearly a permutation of the one before."""
    rng = np.random.default_rng(4)
    columns = [rng.integers(0, 12, rows)]
    for _ in range(2):
        noise = np.where(rng.random(rows) < 0.1, rng.integers(0, 12, rows), columns[-1])
        columns.append(rng.permutation(12)[noise])
    return columns


def pair_of(columns, a, b):
    table = np.zeros((12, 12))
    np.add.at(table, (columns[a], columns[b]), 1)
    return table


def test_a_chain_of_near_copies_is_met_and_so_are_rows_and_conditions():
    columns, rows = chain(), 20_000
    margins = [np.bincount(own, minlength=12) / rows for own in columns]
    alone = [Measurement((a,), (None,), rows * own, 25.0) for a, own in enumerate(margins)]
    pairs = [
        Measurement((a, b), (None, None), pair_of(columns, a, b), 25.0) for a, b in ((0, 1), (1, 2))
    ]
    edges = edges_of(pairs, margins, rows)
    assert [(own.parent, own.child) for own in edges] == [(1, 0), (1, 2)]
    model = fit(margins, rows, alone, edges=edges, components=4, iterations=300)
    made = model.sample(rows, SeededRandomSource("chain"))
    for a, b in ((0, 1), (1, 2), (0, 2)):
        off = np.abs(pair_of(columns, a, b) - pair_of(made.columns, a, b)).sum() / (2 * rows)
        assert off < 0.03  # of .8 for independent columns
    (form,) = model.form()
    form = form.weighted(())
    for a in range(3):
        np.testing.assert_allclose(form.marginal(a), margins[a], atol=0.01)
    assert len(model.as_json()["links"]) == 2


def test_two_columns_together_are_those_of_the_network_form():
    columns, rows = chain(), 20_000
    margins = [np.bincount(own, minlength=12) / rows for own in columns]
    pairs = [
        Measurement((a, b), (None, None), pair_of(columns, a, b), 25.0) for a, b in ((0, 1), (1, 2))
    ]
    edges = edges_of(pairs, margins, rows)
    model = fit(margins, rows, [], edges=edges, components=4, iterations=40)
    (form,) = model.form()
    for a, b in ((0, 1), (1, 2), (0, 2), (2, 0)):
        joint = model.together((a, b))
        known = [CellWeights((a,), own) for own in np.eye(12)]
        given = np.stack([form.weighted([own]).marginal(b) for own in known])
        law = joint / joint.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(joint.sum(), 1, atol=1e-9)
        np.testing.assert_allclose(law, given, atol=1e-6)


def test_a_fit_starts_with_the_laws_of_the_model_that_it_starts_near(trees):
    rng = np.random.default_rng(8)
    logits = rng.normal(size=(STARTS[-1], CLASSES))
    tables = [rng.normal(size=own.shape) for own in trees.first_tables()]
    laws = {u: law.copy() for u, law in trees.laws(logits, tables).items()}
    links = [
        Link(own.parent, own.child, own.groups, np.exp(table), trees.potentials(own.child).T.copy())
        for own, table in zip(trees.edges, tables, strict=True)
    ]
    assert trees.known(links[::-1]) == links
    near = logits.copy()
    for u in trees.roots:
        near[SPANS[u]] = np.log(laws[u])
    for link in links:
        scaled = link.potentials / link.potentials.sum(axis=1, keepdims=True)  # as models have them
        near[SPANS[link.child]] = np.log(scaled.T)
    again = trees.laws(near, trees.start(links, near))
    for u, law in laws.items():
        np.testing.assert_allclose(again[u], law, rtol=1e-9)


def test_an_edge_that_a_model_does_not_have_starts_with_its_own_table(trees):
    other = tuple(np.zeros_like(own) for own in trees.edges[1].groups)
    known = [
        Link(own.parent, own.child, groups, np.ones(own.joint.shape), np.ones((CLASSES, 3)))
        for own, groups in zip(trees.edges[1:], (other, trees.edges[2].groups), strict=True)
    ]
    links = trees.known(known)
    assert links == [None, None, known[1]]
    tables = trees.start(links, np.zeros((STARTS[-1], CLASSES)))
    first = trees.first_tables()
    np.testing.assert_array_equal(tables[0], first[0])
    np.testing.assert_array_equal(tables[1], first[1])
    np.testing.assert_array_equal(tables[2], np.zeros_like(first[2]))
