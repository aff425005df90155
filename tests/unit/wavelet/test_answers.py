"""Exact moments of the noise in answers: against dense linear maps, and against draws."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from common.errors import LocalError
from common.privacy.sampling.discrete_laplace import discrete_laplace_variance
from common.wavelet.answers import NoiseMoments, prefix_sums, range_sums
from common.wavelet.decisions import make_plan
from tests.unit.wavelet import dense
from tests.unit.wavelet.blocks import (
    FIG3,
    MIXED,
    REPEATS,
    alone,
    errors_of_a_query,
    haar,
    nominal,
    query_variance,
)


@pytest.mark.parametrize(
    "nested", [FIG3, MIXED, (0, 1), tuple(range(9)), ((0, 1), 2), (0, (1, (2, (3, (4, 5)))))]
)
def test_nominal_moments_are_those_of_the_dense_inverse(nested):
    oracle, axis = dense.Nominal(nested), nominal(nested)
    factor = np.array(oracle.weights, dtype=object)
    rows = (oracle.inverse / factor).astype(float)
    intervals = np.array(oracle.intervals)
    reach = axis.reach(intervals[:, 0], intervals[:, 1], padding=False)
    for number, (low, high) in enumerate(oracle.intervals):
        weights = rows[low:high].sum(axis=0)
        for place, multiplier in enumerate(axis.classes):
            own = weights[np.array(oracle.multipliers) == multiplier]
            assert reach.second[number, place] == pytest.approx((own**2).sum(), rel=1e-12)
            assert reach.fourth[number, place] == pytest.approx((own**4).sum(), rel=1e-12)
    assert reach.second.sum(axis=1).max() < 4
    assert float(axis.worst_variance) == pytest.approx(reach.second.sum(axis=1).max())


def test_without_mean_subtraction_the_figure_3_root_would_be_far_worse():
    oracle = dense.Nominal(FIG3)
    rows = (oracle.rebuild / np.array(oracle.weights, dtype=object)).astype(float)
    by_range = [(rows[a:b].sum(axis=0) ** 2).sum() for a, b in ((0, 6), (0, 3), (0, 1))]
    assert by_range == pytest.approx([13.667, 6.583, 1.917], abs=5e-4)


def test_a_range_that_is_no_node_is_refused():
    with pytest.raises(LocalError, match="one node"):
        nominal(FIG3).reach(np.array([1]), np.array([3]), padding=False)


def test_variance_of_basic_is_that_of_the_cells_covered():
    plan = make_plan((haar(6), nominal(FIG3)), Fraction(1, 3), "basic")
    variance, _ = query_variance(plan, [(1, 5), (0, 3)])
    assert variance == pytest.approx(12 * discrete_laplace_variance(Fraction(6)))


def test_variance_shrinks_with_the_square_of_epsilon():
    axes = (haar(300), nominal(tuple(range(60))))
    small = query_variance(make_plan(axes, Fraction(1, 10), "privelet+"), [(3, 77), (0, 60)])[0]
    large = query_variance(make_plan(axes, Fraction(1, 5), "privelet+"), [(3, 77), (0, 60)])[0]
    assert small / large == pytest.approx(4, rel=1e-5)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("factor", "fits"), [(Fraction(1), True), (Fraction(7, 10), False), (Fraction(13, 10), False)]
)
def test_empirical_variance_is_the_exact_one_and_no_other(factor, fits):
    errors = errors_of_a_query(factor, seed=f"variance {factor}")
    plan = make_plan((alone(REPEATS), haar(8), nominal(FIG3)), Fraction(1), "privelet+", [0])
    exact, reaches = query_variance(plan, [(0, 1), (1, 7), (0, 3)])
    kurtosis = NoiseMoments(plan).fourth_cumulants(reaches)[0] / exact**2
    standard_error = exact * math.sqrt((kurtosis + 2) / REPEATS)
    deviation = abs(errors.var() - exact) / standard_error
    assert (deviation < 6) == fits
    assert abs(errors.mean()) < 6 * math.sqrt(errors.var() / REPEATS)  # unbiased either way
    if fits:
        assert stats.kurtosis(errors) == pytest.approx(kurtosis, abs=0.2)


@pytest.mark.parametrize("shape", [(7,), (1, 5), (4, 3, 6), (2, 3, 4, 5), (3, 600, 601)])
def test_prefix_sums_answer_like_slicing(shape):
    rng = np.random.default_rng(sum(shape))
    cells = rng.normal(size=shape)
    sums = prefix_sums(cells)
    low = np.array([[rng.integers(0, n) for n in shape] for _ in range(60)])
    high = np.array(
        [[rng.integers(a + 1, n + 1) for a, n in zip(row, shape, strict=True)] for row in low]
    )
    low[0], high[0] = 0, shape  # everything
    low[1], high[1] = 0, 1  # the first cell
    low[2], high[2] = np.array(shape) - 1, shape  # the last cell
    reaches = [alone(n).reach(low[:, i], high[:, i], padding=False) for i, n in enumerate(shape)]
    naive = [cells[tuple(map(slice, a, b))].sum() for a, b in zip(low, high, strict=True)]
    assert np.allclose(range_sums(sums, reaches), naive, atol=1e-9)
