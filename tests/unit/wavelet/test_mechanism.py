"""The mechanism as a whole: degenerate cases, slabs, and the thresholds of Privelet*."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import optimize

from common.errors import LocalError
from common.privacy.randomness import SeededRandomSource
from common.privacy.sampling.discrete_laplace import discrete_laplace
from common.schema.codes import Codes
from common.wavelet.decisions import make_plan
from common.wavelet.mechanism import Shrinkage, count_cells, noisy_cells, soft_threshold, thresholds
from tests.unit.wavelet.blocks import FIG3, MIXED, alone, haar, no_noise, noisy, nominal, rows_of


def test_leaving_every_attribute_alone_is_basic():
    axes = (haar(5), nominal(FIG3))
    assert np.array_equal(noisy(axes, "privelet+", [0, 1]), noisy(axes, "basic"))


def test_basic_adds_integer_noise_to_every_cell():
    axes = (haar(50), haar(20))
    counts = np.arange(1000).reshape(50, 20) % 5
    noise = noisy(axes, "basic") - counts
    assert np.array_equal(noise, np.rint(noise))
    assert (noise != 0).mean() > 0.5


def test_leaving_none_alone_is_privelet():
    axes = (haar(5), nominal(FIG3))
    assert np.array_equal(noisy(axes, "privelet+", []), noisy(axes, "privelet"))


def test_noise_does_not_depend_on_the_rows():
    axes = (haar(6), nominal(MIXED))
    counts = np.random.default_rng(0).integers(0, 9, (6, 9))
    plan = make_plan(axes, Fraction(1), "privelet")
    empty = noisy(axes, "privelet", counts=np.zeros((6, 9), dtype=int))
    full = noisy(axes, "privelet", counts=counts)
    clean = noisy_cells(rows_of(counts), plan, no_noise, SeededRandomSource(0))
    assert np.allclose(full - empty, clean)


def test_the_same_draws_twice_as_large_make_twice_the_error():
    axes, epsilon = (haar(6), nominal(MIXED)), Fraction(1)
    plan = make_plan(axes, epsilon, "privelet")
    zeros = rows_of(np.zeros((6, 9), dtype=int))

    def sampler(times):
        return lambda scale, count, source: times * discrete_laplace(scale, count, source)

    one = noisy_cells(zeros, plan, sampler(1), SeededRandomSource(0))
    two = noisy_cells(zeros, plan, sampler(2), SeededRandomSource(0))
    assert np.allclose(two, 2 * one)
    assert make_plan(axes, epsilon / 2, "privelet").scale == 2 * plan.scale


def test_rows_of_another_domain_are_refused():
    plan = make_plan((haar(4),), Fraction(1), "basic")
    with pytest.raises(LocalError, match="domain sizes"):
        plan.check_rows(Codes.from_columns([np.array([0])], [5]))


def test_codes_outside_the_domain_cannot_be_made():
    with pytest.raises(LocalError, match=r"0\.\.3"):
        Codes.from_columns([np.array([4])], [4])


def test_counts_are_signed_integers_in_leaf_order():
    axis = nominal(((4, (0, 3)), 1, (2, 5)))
    plan = make_plan((axis,), Fraction(1), "privelet")
    counts = count_cells(Codes.from_columns([np.array([0, 0, 1, 4, 5, 5, 5])], [6]), plan)
    assert counts.dtype == np.int64
    assert counts.tolist() == [1, 2, 0, 1, 0, 3]  # codes 4 0 3 1 2 5


def _energy(band, theta):
    return (np.maximum(np.abs(band) - theta, 0) ** 2).sum()


BANDS = hnp.arrays(
    np.float64, st.integers(1, 40), elements=st.floats(-1e4, 1e4, allow_subnormal=False)
)


@given(BANDS, st.floats(0, 1e6))
@settings(max_examples=200, deadline=None)
def test_threshold_leaves_the_energy_expected_of_the_signal(band, noise_variance):
    theta = thresholds(band[None], noise_variance)[0]
    target = (band**2).sum() - noise_variance * (len(band) - 1)
    largest = np.abs(band).max()
    tolerance = 1e-9 * max((band**2).sum(), 1e-30)
    if target <= 0 and len(band) > 1:
        assert theta == largest
    elif largest > 0 and target > tolerance:
        by_bisection = optimize.brentq(lambda t: _energy(band, t) - target, 0, largest, xtol=1e-14)
        assert _energy(band, theta) == pytest.approx(target, abs=10 * tolerance)
        assert _energy(band, by_bisection) == pytest.approx(target, abs=10 * tolerance)


@given(BANDS, st.floats(0, 1e6), st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_threshold_ignores_signs_and_order(band, noise_variance, random):
    order = list(range(len(band)))
    random.shuffle(order)
    signs = np.array([random.choice((-1, 1)) for _ in order])
    other = thresholds((band * signs)[order][None], noise_variance)
    assert other == pytest.approx(thresholds(band[None], noise_variance), rel=1e-9, abs=1e-9)


def test_a_band_of_one_and_a_band_without_noise_are_left_alone():
    assert thresholds(np.array([[5.0], [-3.0], [0.0]]), 1e9).tolist() == [0, 0, 0]
    theta = thresholds(np.array([[5.0, -3.0, 0.5]]), 0.0)
    assert theta == pytest.approx(0, abs=1e-12)


def test_shrinking_never_adds_energy_and_keeps_signs():
    band = np.random.default_rng(0).normal(size=(20, 50))
    shrunk = soft_threshold(band, thresholds(band, 0.7))
    assert (np.abs(shrunk) <= np.abs(band)).all()
    assert (shrunk * band >= 0).all()


def test_bands_partition_every_coefficient_and_know_their_noise():
    plan = make_plan((haar(8), nominal(MIXED), haar(2)), Fraction(1), "privelet*", [])
    seen = np.zeros(plan.sub_matrix_shape, dtype=int)
    for levels, _, variance in Shrinkage.of(plan).bands:
        seen[levels] += 1
        assert variance == pytest.approx(2 * float(plan.scale) ** 2, rel=1e-3)
    assert (seen == 1).all()


def test_sub_matrices_are_shrunk_one_by_one():
    """A loud neighbour does not change how quiet cells are shrunk."""
    plan = make_plan((alone(2), haar(16)), Fraction(1), "privelet*", [0])
    shrinkage = Shrinkage.of(plan)
    rng = np.random.default_rng(0)
    quiet, loud = rng.normal(size=(2, 16)) * [[10], [1e6]]
    alone_block, together = quiet[None].copy(), np.stack([quiet, loud])
    shrinkage.apply(alone_block)
    shrinkage.apply(together)
    assert np.array_equal(alone_block[0], together[0])


def test_shrinking_removes_noise_from_an_empty_table():
    axes = (haar(256), haar(256))
    zeros = np.zeros((256, 256), dtype=int)
    plain = noisy(axes, "privelet+", [], counts=zeros)
    shrunk = noisy(axes, "privelet*", [], counts=zeros)
    assert np.abs(shrunk).mean() < 0.2 * np.abs(plain).mean()
