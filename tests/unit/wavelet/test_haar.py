"""Moments of the noise in Haar ranges, against dense linear maps."""

import numpy as np
import pytest

from common.wavelet import haar as haar_module
from tests.unit.wavelet import dense
from tests.unit.wavelet.blocks import haar


def _all_ranges(size):
    low, high = np.triu_indices(size + 1, k=1)
    return low, high


@pytest.mark.parametrize("size", [2, 3, 5, 8, 13, 16])
def test_haar_moments_are_those_of_the_dense_inverse(size):
    oracle = dense.Haar(size)
    low, high = _all_ranges(oracle.padded)
    second, fourth = haar_module.moments(low, high, oracle.levels)
    scaled = (oracle.inverse / np.array(oracle.weights, dtype=object)).astype(float)
    sums = np.vstack([np.zeros(oracle.padded), np.cumsum(scaled, axis=0)])
    weights = sums[high] - sums[low]
    assert np.allclose(second, (weights**2).sum(axis=1), rtol=1e-13)
    assert np.allclose(fourth, (weights**4).sum(axis=1), rtol=1e-13)


@pytest.mark.parametrize("depth", range(9))
def test_haar_ranges_stay_below_the_bound(depth):
    low, high = _all_ranges(1 << depth)
    assert haar_module.moments(low, high, depth)[0].max() <= (2 + depth) / 2


@pytest.mark.parametrize(
    ("size", "without", "taken"),
    [(101, 1.42, 1.0), (1001, 1.73, 1.0), (1020, 1.33, 1.0), (96, 0.875, 0.875)],
)
def test_the_padding_is_used_where_it_helps(size, without, taken):
    axis = haar(size)
    low, high = np.array([0]), np.array([size])
    plain, better = axis.reach(low, high, padding=False), axis.reach(low, high, padding=True)
    assert plain.second[0, 0] == pytest.approx(without, abs=5e-3)
    assert better.second[0, 0] == pytest.approx(taken, abs=1e-12)
    assert better.high[0] == (size + 1 if taken < without - 0.01 else size)
