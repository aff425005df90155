"""The fast transforms against dense matrices made from the paper's definitions."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.privacy.randomness import SeededRandomSource
from common.wavelet.axis import haar_moments
from common.wavelet.decisions import make_plan
from common.wavelet.mechanism import invert, noisy_cells, transform
from tests.unit.wavelet import dense
from tests.unit.wavelet.blocks import (
    FIG3,
    MIXED,
    alone,
    haar,
    integer_coefficients,
    no_noise,
    nominal,
    rows_of,
    weighted_coefficients,
)
from tests.unit.wavelet.dense import _dense, _trees

AXES = st.one_of(st.integers(1, 9).map(haar), st.integers(1, 4).map(alone), _trees(6).map(nominal))


@given(st.lists(AXES, min_size=1, max_size=4), st.data())
@settings(max_examples=60, deadline=None)
def test_every_subset_of_transforms_gives_the_cells_back(axes, data):
    shape = tuple(axis.size for axis in axes)
    seed = data.draw(st.integers(0, 2**31))
    cells = np.random.default_rng(seed).integers(0, 50, shape)
    left = data.draw(st.sets(st.integers(0, len(axes) - 1)))
    plan = make_plan(axes, Fraction(1), "privelet+", sorted(left))
    noiseless = noisy_cells(rows_of(cells), plan, no_noise, SeededRandomSource(0))
    back = noiseless[tuple(slice(0, axis.size) for axis in plan.stored_axes)]
    expected = cells.transpose(plan.order)
    if any(axis.kind == "nominal" for axis in plan.axes):
        assert np.allclose(back, expected, rtol=1e-9, atol=1e-9)
    else:
        assert np.array_equal(back, expected)  # halves are exact


@given(
    st.lists(st.one_of(st.integers(2, 8).map(haar), _trees(5).map(nominal)), max_size=3, min_size=1)
)
@settings(max_examples=40, deadline=None)
def test_fast_transform_is_the_kronecker_product_of_the_definitions(axes):
    shape = tuple(axis.size for axis in axes)
    cells = np.random.default_rng(0).integers(0, 9, shape)
    fast = weighted_coefficients(cells, axes)
    oracles = [_dense(axis) for axis in axes]
    slow = dense.kron([o.forward.astype(float) for o in oracles])
    weights = dense.kron([np.array(o.weights, dtype=float) for o in oracles])
    padded = np.zeros(tuple(o.forward.shape[1] for o in oracles))
    padded[tuple(slice(0, n) for n in shape)] = cells
    expected = (weights * slow.dot(padded.ravel())).reshape([len(o.forward) for o in oracles])
    assert np.allclose(fast[np.ix_(*(o.positions for o in oracles))], expected)


def test_transforms_commute_with_transposition():
    axes = (haar(6), nominal(MIXED), haar(3))
    cells = np.random.default_rng(1).integers(0, 20, (6, 9, 3))
    base = integer_coefficients(cells, axes)
    for order in itertools.permutations(range(3)):
        swapped = integer_coefficients(cells.transpose(order), [axes[i] for i in order])
        assert np.array_equal(swapped, base.transpose(order))


@pytest.mark.parametrize("nested", [FIG3, MIXED, (0, 1), ((0, 1), 2), (0, (1, (2, (3, 4))))])
class TestMeanSubtraction:
    """Identities on perturbed coefficients, which no true matrix could have."""

    def _sums(self, axis, perturbed):
        """Every node's sum after the inverse."""
        block = perturbed[None].astype(np.float64)
        axis.inverse(block.reshape(1, axis.coefficients, -1))
        return block[0]

    def test_root_keeps_its_noisy_total_and_children_add_up(self, nested):
        axis = nominal(nested)
        noisy = np.random.default_rng(0).integers(-50, 50, axis.coefficients)
        sums = self._sums(axis, noisy)
        assert sums[0] == noisy[0]
        for node in axis.tree.inner_nodes:
            assert sums[axis.tree.children(node)].sum() == pytest.approx(sums[node])

    def test_refined_coefficients_of_siblings_add_up_to_zero(self, nested):
        axis = nominal(nested)
        noisy = np.random.default_rng(1).integers(-50, 50, axis.coefficients)
        sums = self._sums(axis, noisy)
        for node in axis.tree.inner_nodes:
            kids = axis.tree.children(node)
            refined = sums[kids] - sums[node] / axis.tree.fan_out[node]
            raw = noisy[kids] / axis.tree.fan_out[node]
            assert refined.sum() == pytest.approx(0, abs=1e-9)
            assert refined == pytest.approx(raw - raw.mean())

    def test_a_constant_added_to_all_siblings_changes_nothing(self, nested):
        axis = nominal(nested)
        noisy = np.random.default_rng(2).integers(-50, 50, axis.coefficients)
        for node in axis.tree.inner_nodes:
            shifted = noisy.copy()
            shifted[axis.tree.children(node)] += 1000
            assert self._sums(axis, shifted) == pytest.approx(self._sums(axis, noisy))

    def test_forward_of_the_result_is_a_projection(self, nested):
        axis = nominal(nested)
        noisy = np.random.default_rng(3).integers(-50, 50, axis.coefficients) * 5040
        once = self._sums(axis, noisy)
        again = np.where(axis.tree.fan_out == 0, once, 0.0)[None, :, None]
        axis.forward(again)
        assert self._sums(axis, again[0, :, 0]) == pytest.approx(once)

    def test_it_happens_along_an_axis_of_many(self, nested):
        axes = (haar(4), nominal(nested))
        block = np.random.default_rng(4).integers(-50, 50, (1, 4, axes[1].coefficients))
        perturbed = block.astype(np.float64)
        shifted = perturbed.copy()
        shifted[:, :, axes[1].tree.children(0)] += 7
        invert(perturbed, axes)
        invert(shifted, axes)
        assert np.allclose(perturbed, shifted)


def test_transforming_in_place_touches_the_block_itself():
    block = np.arange(2 * 8 * 9, dtype=np.int64).reshape(2, 8, 9)
    before = block.copy()
    transform(block, (haar(8), nominal(FIG3)))
    assert not np.array_equal(before, block)


def _all_ranges(size):
    low, high = np.triu_indices(size + 1, k=1)
    return low, high


@pytest.mark.parametrize("size", [2, 3, 5, 8, 13, 16])
def test_haar_moments_are_those_of_the_dense_inverse(size):
    oracle = dense.Haar(size)
    low, high = _all_ranges(oracle.padded)
    second, fourth = haar_moments(low, high, oracle.levels)
    scaled = (oracle.inverse / np.array(oracle.weights, dtype=object)).astype(float)
    sums = np.vstack([np.zeros(oracle.padded), np.cumsum(scaled, axis=0)])
    weights = sums[high] - sums[low]
    assert np.allclose(second, (weights**2).sum(axis=1), rtol=1e-13)
    assert np.allclose(fourth, (weights**4).sum(axis=1), rtol=1e-13)


@pytest.mark.parametrize("depth", range(9))
def test_haar_ranges_stay_below_the_bound(depth):
    low, high = _all_ranges(1 << depth)
    assert haar_moments(low, high, depth)[0].max() <= (2 + depth) / 2


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
