"""The nominal transform and its mean subtraction."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

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
