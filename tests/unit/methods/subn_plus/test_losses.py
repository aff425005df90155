"""Gradients of both losses are those of brute-force squared errors.

A loss gives derivatives by what it sees, over the class weights, as the whole objective wants them.
"""

from itertools import combinations, pairwise

import numpy as np
import pytest

from common.errors import LocalError
from common.methods.subn_plus import losses
from common.methods.subn_plus.latent import LatentModel
from common.methods.subn_plus.losses import (
    Measurement,
    MomentLoss,
    Moments,
    Scratch,
    Sights,
    TableLoss,
)
from common.privacy.sensitivity import CONTRAST_UNIT, contrast_shift

SIZES = (3, 2, 4, 2)
ROWS = 100
STARTS = [0, *np.cumsum(SIZES).tolist()]


def measurement(attributes, *, grouped, seed=1):
    maps = tuple(
        np.minimum(np.arange(SIZES[a]), 1).astype(np.intp) if grouped and SIZES[a] > 2 else None
        for a in attributes
    )
    shape = tuple(SIZES[a] if m is None else 2 for a, m in zip(attributes, maps, strict=True))
    counts = np.random.default_rng(seed).normal(10, 5, shape)
    return Measurement(attributes, maps, counts, 2.0 + seed)


def brute_force(table, weights, columns):
    """The loss of one table, over its full outer product."""
    seen = [
        columns[a] if m is None else np.stack([columns[a][:, m == g].sum(1) for g in (0, 1)], 1)
        for a, m in zip(table.attributes, table.groupings, strict=True)
    ]
    letters = "abcd"[: len(seen)]
    spec = "m," + ",".join(f"m{x}" for x in letters) + "->" + letters
    error = ROWS * np.einsum(spec, weights, *seen) - table.counts
    return np.sum(error**2) / (2 * table.variance)


def through_atoms(table):
    """The same table with a grouping for every attribute."""
    maps = tuple(
        np.arange(SIZES[a]) if m is None else m
        for a, m in zip(table.attributes, table.groupings, strict=True)
    )
    return Measurement(table.attributes, maps, table.counts, table.variance)


def derivatives(loss_of, weights, wide):
    """The derivatives by columns (atoms, classes), over the weights, and by the weights."""
    sights = Sights(STARTS)
    loss = loss_of(sights)
    seen = sights.of(wide)
    seen_slopes = sights.flat(len(weights))
    slopes, weight_slopes = np.zeros_like(wide), np.zeros(len(weights))
    loss.add_gradient(weights, seen, seen_slopes, weight_slopes)
    sights.pull_back(seen_slopes, slopes)
    return slopes, weight_slopes


ONE = [[measurement(a, grouped=g)] for a in [(0, 2), (2, 0, 1), (3, 1, 2, 0)] for g in (0, 1)]
MANY = [
    measurement(attributes, grouped=grouped, seed=seed)
    for seed, attributes in enumerate([(0, 2), (2, 0), (1, 3), (3, 1), (1, 3), (0, 1, 2)])
    for grouped in (False, True)
]


@pytest.mark.parametrize("tables", [*ONE, MANY])
@pytest.mark.parametrize("batch_cells", [1, 4, 1 << 12])
def test_the_gradient_is_that_of_the_brute_force_loss(tables, batch_cells, monkeypatch):
    monkeypatch.setattr(losses, "_BATCH_CELLS", batch_cells)
    rng = np.random.default_rng(7)
    own_weights = rng.dirichlet(np.ones(5))
    own_columns = [rng.dirichlet(np.ones(size), 5) for size in SIZES]

    def loss(weights, columns):
        return sum(brute_force(table, weights, columns) for table in tables)

    wide = np.concatenate(own_columns, axis=1).T
    slopes, weight_slope = derivatives(
        lambda sights: TableLoss([through_atoms(own) for own in tables], ROWS, sights),
        own_weights,
        wide,
    )
    step = 1e-6
    for attribute in range(4):
        columns = [c.copy() for c in own_columns]
        columns[attribute][2, 1] += step
        up = loss(own_weights, columns)
        columns[attribute][2, 1] -= 2 * step
        numeric = (up - loss(own_weights, columns)) / (2 * step)
        slope = own_weights[2] * slopes[STARTS[attribute] + 1, 2]
        assert slope == pytest.approx(numeric, rel=1e-4, abs=1e-5)
    weights = own_weights.copy()
    weights[3] += step
    up = loss(weights, own_columns)
    weights[3] -= 2 * step
    numeric = (up - loss(weights, own_columns)) / (2 * step)
    assert weight_slope[3] == pytest.approx(numeric, rel=1e-4)


def test_what_is_seen_are_sums_over_groups_and_slopes_go_back():
    rng = np.random.default_rng(3)
    wide, sights = rng.normal(size=(STARTS[-1], 6)), Sights(STARTS)
    groupings = [(2, [0, 1, 0, 1]), (0, [0, 1, 2]), (2, [2, 0, 1, 1]), (1, [1, 0])]
    rows = [sights.add(column, np.array(own)) for column, own in groupings]
    members = np.zeros((rows[-1].stop, STARTS[-1]))
    for place, (column, own) in zip(rows, groupings, strict=True):
        for atom, group in enumerate(own):
            members[place.start + group, STARTS[column] + atom] = 1
    np.testing.assert_allclose(sights.of(wide), members @ wide)
    seen_slopes, slopes = rng.normal(size=(len(members), 6)), np.ones_like(wide)
    sights.pull_back(seen_slopes, slopes)
    np.testing.assert_allclose(slopes, 1 + members.T @ seen_slopes)


def test_a_table_of_values_that_are_no_atoms_is_refused():
    with pytest.raises(LocalError, match="atoms"):
        TableLoss([measurement((0, 1), grouped=False)], ROWS, Sights(STARTS))


def test_scratch_is_the_same_memory_until_it_is_too_small():
    scratch = Scratch()
    first = scratch("a", 2, 3)
    assert np.shares_memory(first, scratch("a", 3, 2))
    assert not np.shares_memory(first, scratch("b", 2, 3))
    assert scratch("a", 4, 3).shape == (4, 3)


def loss(weights, columns, moments) -> float:
    """Half the squared error, set by set, over the variance."""
    model = LatentModel(weights, tuple(columns))
    total = 0.0
    sets = combinations(range(len(moments.columns)), moments.order)
    for own, target, times in zip(sets, moments.contrasts, moments.precisions, strict=True):
        held = [moments.columns[i] for i in own]
        if len(set(held)) < len(held):
            continue
        joint = model.marginal(held)
        for axis, i in enumerate(own):
            width = moments.widths[i]
            seen = np.eye(width)[moments.groupings[i]] - contrast_shift(width) / CONTRAST_UNIT
            joint = np.moveaxis(np.tensordot(joint, seen, axes=(axis, 0)), -1, axis)
        total += times * float(((joint - target) ** 2).sum()) / (2 * moments.variance)
    return total


@pytest.mark.parametrize(
    ("order", "looks"), [(2, ()), (3, ()), (2, (1.0, 2.5, 1.0, 4.0, 1.0, 0.5, 3.0, 1.0, 1.0, 2.0))]
)
def test_gradients_are_those_of_the_squared_error(order, looks):
    rng = np.random.default_rng(5)
    sizes, holders = (4, 3, 6, 2), (0, 1, 2, 2, 3)  # the third column holds two attributes
    groupings = tuple(
        np.array(own)
        for own in ([0, 1, 1, 2], [0, 1, 2], [0, 0, 1, 1, 2, 2], [0, 1, 0, 1, 0, 1], [0, 1])
    )
    widths = [int(own.max()) + 1 for own in groupings]
    sums = [rng.normal(size=[widths[i] for i in own]) for own in combinations(range(5), order)]
    moments = Moments(holders, groupings, sums, 0.3, looks)
    weights = rng.dirichlet(np.ones(3))
    columns = [rng.dirichlet(np.ones(size), 3) for size in sizes]
    wide = np.concatenate(columns, axis=1).T
    starts = [0, *np.cumsum(sizes).tolist()]
    sights = Sights(starts)
    own = MomentLoss(moments, groupings, sights, range(4))
    seen, seen_slopes = sights.of(wide), sights.flat(3)
    slopes, weight_slopes = np.zeros_like(wide), np.zeros(3)
    own.add_gradient(weights, seen, seen_slopes, weight_slopes)
    sights.pull_back(seen_slopes, slopes)
    slopes *= weights

    def at(weights, wide):
        parts = [wide[a:b].T for a, b in pairwise(starts)]
        return loss(weights, parts, moments)

    step = 1e-6
    for own, place, other in [(0, 0, 3), (1, 5, 4), (2, 9, 7), (2, 14, 13)]:
        moved = np.zeros_like(wide)  # columns stay distributions
        moved[place, own], moved[other, own] = step, -step
        measured = (at(weights, wide + moved) - at(weights, wide - moved)) / (2 * step)
        slope = slopes[place, own] - slopes[other, own]
        assert slope == pytest.approx(measured, rel=1e-5, abs=1e-6)
    for c in range(3):
        moved = np.eye(3)[c] * step
        measured = (at(weights + moved, wide) - at(weights - moved, wide)) / (2 * step)
        assert weight_slopes[c] == pytest.approx(measured, rel=1e-5, abs=1e-6)
