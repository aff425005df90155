import numpy as np
import pytest

from common.methods.subn_plus import table_loss
from common.methods.subn_plus.table_loss import Measurement, TableLoss

SIZES = (3, 2, 4, 2)
ROWS = 100


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


ONE = [[measurement(a, grouped=g)] for a in [(1,), (0, 2), (2, 0, 1), (3, 1, 2, 0)] for g in (0, 1)]
MANY = [
    measurement(attributes, grouped=grouped, seed=seed)
    for seed, attributes in enumerate([(0, 2), (2, 0), (1, 3), (3, 1), (1, 3), (0, 1, 2), (2,)])
    for grouped in (False, True)
]


@pytest.mark.parametrize("tables", [*ONE, MANY])
@pytest.mark.parametrize("batch_cells", [1, 4, 1 << 12])
def test_the_gradient_is_that_of_the_brute_force_loss(tables, batch_cells, monkeypatch):
    monkeypatch.setattr(table_loss, "_BATCH_CELLS", batch_cells)
    rng = np.random.default_rng(7)
    own_weights = rng.dirichlet(np.ones(5))
    own_columns = [rng.dirichlet(np.ones(size), 5) for size in SIZES]

    def loss(weights, columns):
        return sum(brute_force(table, weights, columns) for table in tables)

    slopes, weight_slope = [np.zeros_like(c) for c in own_columns], np.zeros(5)
    TableLoss(tables, ROWS).add_gradient(own_weights, own_columns, slopes, weight_slope)
    step = 1e-6
    for attribute in range(4):
        columns = [c.copy() for c in own_columns]
        columns[attribute][2, 1] *= np.exp(step)
        up = loss(own_weights, columns)
        columns[attribute][2, 1] *= np.exp(-2 * step)
        numeric = (up - loss(own_weights, columns)) / (2 * step)
        assert slopes[attribute][2, 1] == pytest.approx(numeric, rel=1e-4, abs=1e-5)
    weights = own_weights.copy()
    weights[3] *= np.exp(step)
    up = loss(weights, own_columns)
    weights[3] *= np.exp(-2 * step)
    numeric = (up - loss(weights, own_columns)) / (2 * step)
    assert weight_slope[3] == pytest.approx(numeric, rel=1e-4)
