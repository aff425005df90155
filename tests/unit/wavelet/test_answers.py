"""Exact moments of the noise in answers: against dense linear maps, and against draws."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from common.errors import InputError, LocalError
from common.privacy.randomness import SeededRandomSource
from common.privacy.sampling.discrete_laplace import discrete_laplace, discrete_laplace_variance
from common.wavelet import haar as haar_module
from common.wavelet.answers import NoiseLaw, prefix_sums, range_sums
from common.wavelet.decisions import make_plan
from common.wavelet.intervals import discrete_laplace_fourth_cumulant, half_widths
from common.wavelet.mechanism import noisy_cells
from tests.unit.wavelet import dense
from tests.unit.wavelet.blocks import FIG3, MIXED, alone, haar, nominal, rows_of


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


def _query_variance(plan, ranges, *, padding=False):
    reaches = [
        plan.axes[i].reach(*(np.array([end]) for end in ranges[i]), padding=padding)
        for i in plan.order
    ]
    return NoiseLaw(plan).variances(reaches)[0], reaches


def test_variance_of_basic_is_that_of_the_cells_covered():
    plan = make_plan((haar(6), nominal(FIG3)), Fraction(1, 3), "basic")
    variance, _ = _query_variance(plan, [(1, 5), (0, 3)])
    assert variance == pytest.approx(12 * discrete_laplace_variance(Fraction(6)))


def test_variance_shrinks_with_the_square_of_epsilon():
    axes = (haar(300), nominal(tuple(range(60))))
    small = _query_variance(make_plan(axes, Fraction(1, 10), "privelet+"), [(3, 77), (0, 60)])[0]
    large = _query_variance(make_plan(axes, Fraction(1, 5), "privelet+"), [(3, 77), (0, 60)])[0]
    assert small / large == pytest.approx(4, rel=1e-5)


REPEATS = 40_000


def _errors(scale_factor, seed):
    """Errors of the query [1, 7) x group 1, of variance 1026, in independent sub-matrices."""
    axes = (alone(REPEATS), haar(8), nominal(FIG3))
    plan = make_plan(axes, Fraction(1), "privelet+", [0])
    assert plan.scale == 24

    def sampler(scale, count, source):
        return discrete_laplace(scale * scale_factor, count, source)

    cells = noisy_cells(
        rows_of(np.zeros((REPEATS, 8, 6), int)), plan, sampler, SeededRandomSource(seed)
    )
    return cells[:, 0:3, 1:7].sum(axis=(1, 2))


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("factor", "fits"), [(Fraction(1), True), (Fraction(7, 10), False), (Fraction(13, 10), False)]
)
def test_empirical_variance_is_the_exact_one_and_no_other(factor, fits):
    errors = _errors(factor, seed=f"variance {factor}")
    plan = make_plan((alone(REPEATS), haar(8), nominal(FIG3)), Fraction(1), "privelet+", [0])
    exact, reaches = _query_variance(plan, [(0, 1), (1, 7), (0, 3)])
    kurtosis = NoiseLaw(plan).fourth_cumulants(reaches)[0] / exact**2
    standard_error = exact * math.sqrt((kurtosis + 2) / REPEATS)
    deviation = abs(errors.var() - exact) / standard_error
    assert (deviation < 6) == fits
    assert abs(errors.mean()) < 6 * math.sqrt(errors.var() / REPEATS)  # unbiased either way
    if fits:
        assert stats.kurtosis(errors) == pytest.approx(kurtosis, abs=0.2)


@pytest.mark.parametrize("scale", [Fraction(1, 4), Fraction(1), Fraction(24), Fraction(1000)])
def test_fourth_cumulant_of_a_draw_by_summation(scale):
    reach = int(80 * scale) + 80
    k = np.arange(-reach, reach + 1, dtype=float)
    p = np.exp(-np.abs(k) / float(scale))
    p /= p.sum()
    second, fourth = (p * k**2).sum(), (p * k**4).sum()
    assert discrete_laplace_variance(scale) == pytest.approx(second, rel=1e-10)
    assert discrete_laplace_fourth_cumulant(scale) == pytest.approx(
        fourth - 3 * second**2, rel=1e-8
    )


def _coverage_of_one_draw(scale, confidence):
    variance = np.array([discrete_laplace_variance(scale)])
    fourth = np.array([discrete_laplace_fourth_cumulant(scale)])
    reach = math.floor(half_widths(variance, fourth, confidence)[0])
    ratio = math.exp(-1 / float(scale))
    return 1 - 2 * ratio ** (reach + 1) / (1 + ratio)


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.9, 0.95, 0.99, 0.999])
def test_interval_of_a_single_draw_covers(confidence):
    for scale in (Fraction(n, 20) for n in itertools.chain(range(1, 200, 3), (500, 2000, 10_000))):
        assert _coverage_of_one_draw(scale, confidence) >= confidence - 1e-3
    assert _coverage_of_one_draw(Fraction(1000), confidence) <= confidence + 1e-3


@pytest.mark.statistical
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_intervals_of_transformed_queries_cover(confidence):
    errors = _errors(Fraction(1), seed="coverage")
    plan = make_plan((alone(REPEATS), haar(8), nominal(FIG3)), Fraction(1), "privelet+", [0])
    exact, reaches = _query_variance(plan, [(0, 1), (1, 7), (0, 3)])
    margin = half_widths(np.array([exact]), NoiseLaw(plan).fourth_cumulants(reaches), confidence)[0]
    inside = int((np.abs(errors) <= margin).sum())
    assert stats.binomtest(inside, REPEATS, confidence).pvalue > 1e-9
    for wrong in (0.7, 1.3):
        inside = int((np.abs(errors) <= wrong * margin).sum())
        assert stats.binomtest(inside, REPEATS, confidence).pvalue < 1e-20


def test_a_normal_limit_gives_the_normal_interval():
    half = half_widths(np.array([1e6]), np.array([0.0]), 0.95)[0]
    assert half == pytest.approx(1959.964 + 1, abs=1e-2)


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 95, math.nan])
def test_impossible_confidences_are_refused(confidence):
    with pytest.raises(InputError, match="between 0 and 1"):
        half_widths(np.array([1.0]), np.array([1.0]), confidence)


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
