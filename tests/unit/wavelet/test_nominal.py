"""Hierarchies as trees; the nominal transform and its mean subtraction."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import LocalError
from common.wavelet.mechanism import invert
from tests.unit.wavelet.blocks import cell_index, haar, nominal
from tests.unit.wavelet.dense import _dense, _trees


@given(st.integers(2, 8), _trees(6), st.integers(0, 2**31))
@settings(max_examples=40, deadline=None)
def test_inverse_subtracts_means_as_the_paper_does(size, tree, seed):
    axes = (haar(size), nominal(tree))
    oracles = [_dense(axis) for axis in axes]
    rng = np.random.default_rng(seed)
    noisy = rng.integers(-99, 99, tuple(a.coefficients for a in axes)).astype(np.float64)
    # The oracle wants paper-form coefficients: divide by multiplier and weight, then reorder.
    paper = noisy[np.ix_(*(o.positions for o in oracles))]
    paper = paper / np.array(oracles[0].weights, dtype=float)[:, None]
    factor = np.array(oracles[1].weights, dtype=float) * np.array(oracles[1].multipliers)
    paper = paper / factor
    inverse = [o.inverse.astype(float) for o in oracles]
    expected = inverse[0] @ paper @ inverse[1].T
    block = noisy[None].copy()
    invert(block, axes)
    assert np.allclose(block[cell_index(axes)][0], expected[:size])


@pytest.mark.parametrize("nested", [(0, 1, 1), (0, 2), (0, ()), (0, -1)])
def test_broken_hierarchies_are_refused(nested):
    with pytest.raises(LocalError, match=r"each once|a group has children"):
        nominal(nested)


def test_unary_nodes_are_contracted_and_lower_the_height():
    tree = nominal(((((0, 1),), (2,)),)).tree
    assert tree.height == 3
    assert tree.nodes == 5
    assert tree.fan_out.tolist() == [2, 2, 0, 0, 0]
    assert nominal(((((0, 1),), (2,)),)).multipliers.tolist() == [1, 2, 2, 2, 2]


def test_leaves_below_every_node_are_an_interval_in_depth_first_order():
    tree = nominal(((4, (0, 3)), 1, (2, 5))).tree
    assert tree.leaf_codes.tolist() == [4, 0, 3, 1, 2, 5]
    assert [(int(a), int(b)) for a, b in zip(tree.low, tree.high, strict=True)] == [
        (0, 6), (0, 3), (3, 4), (4, 6), (0, 1), (1, 3), (4, 5), (5, 6), (1, 2), (2, 3)
    ]  # fmt: skip
