"""What theory predicts for the paper's experiment; the noise does not depend on data."""

from fractions import Fraction

import numpy as np
import pytest

from benchmarks.census_like import Shape, coverage, random_boxes
from common.privacy.randomness import SeededRandomSource
from common.privacy.sampling.discrete_laplace import discrete_laplace
from common.wavelet.decisions import axes_of, make_plan
from common.wavelet.mechanism import count_cells, noisy_cells
from common.wavelet.noisy_matrix import NoiseMoments, prefix_sums, range_sums
from tests.unit.wavelet.blocks import alone, haar, rows_of

BRAZIL = Shape()
# Mean coverage, mean squared error of Basic, of Privelet+, by coverage quintile at epsilon 1.
PREDICTED = [
    (4.0e-5, 3.28e4, 1.35e6),
    (2.3e-4, 1.87e5, 3.42e6),
    (1.1e-3, 9.03e5, 7.41e6),
    (6.1e-2, 5.03e7, 1.84e6),
    (4.2e-1, 3.51e8, 1.84e6),
]


def _variances(plan, boxes, *, padding):
    reaches = [
        axis.reach(boxes[:, i, 0], boxes[:, i, 1], padding=padding)
        for i, axis in zip(plan.order, plan.stored_axes, strict=True)
    ]
    return NoiseMoments(plan).variances(reaches)


@pytest.fixture(scope="module")
def brazil():
    axes = axes_of(BRAZIL.schema())
    boxes = random_boxes(axes, 40_000, seed=8)
    basic = _variances(make_plan(axes, Fraction(1), "basic"), boxes, padding=False)
    plan = make_plan(axes, Fraction(1), "privelet+")
    plus = _variances(plan, boxes, padding=False)
    padded = _variances(plan, boxes, padding=True)
    return coverage(boxes, BRAZIL.sizes), basic, plus, padded


def test_mean_squared_errors_by_coverage_quintile(brazil):
    share, basic, plus, _ = brazil
    for group, expected in zip(np.array_split(np.argsort(share), 5), PREDICTED, strict=True):
        measured = share[group].mean(), basic[group].mean(), plus[group].mean()
        assert measured == pytest.approx(expected, rel=0.08)


def test_the_crossover_is_near_one_percent_coverage(brazil):
    share, basic, plus, _ = brazil
    largest_loss = share[plus > basic].max()
    assert 0.008 < largest_loss < 0.02
    assert (plus < basic).mean() == pytest.approx(0.39, abs=0.02)
    assert plus.max() == pytest.approx(1.65e7, rel=0.1)


def test_using_the_padding_never_hurts_and_often_helps(brazil):
    _, _, plus, padded = brazil
    assert (padded <= plus).all()
    assert padded.mean() < 0.95 * plus.mean()


def test_shrinking_helps_small_queries_on_smooth_data():
    """256 x 256 cells, 100,000 correlated rows: queries of small and of large coverage."""
    rng = np.random.default_rng(0)
    points = rng.multivariate_normal([128, 128], [[1600, 1100], [1100, 1600]], 100_000)
    x, y = np.clip(points, 0, 255).astype(int).T
    counts = np.zeros((256, 256), dtype=int)
    np.add.at(counts, (x, y), 1)
    codes = rows_of(counts)
    boxes = random_boxes((haar(256), haar(256)), 5000, seed=1)
    groups = np.array_split(np.argsort(coverage(boxes, (256, 256))), 5)
    error = {}
    for method in ("privelet+", "privelet*", "basic"):
        plan = make_plan((haar(256), haar(256)), Fraction(1), method, [])
        reaches = [alone(256).reach(boxes[:, i, 0], boxes[:, i, 1], padding=False) for i in (0, 1)]
        truth = range_sums(prefix_sums(count_cells(codes, plan).astype(float)), reaches)
        errors = np.zeros(len(boxes))
        for seed in range(3):
            cells = noisy_cells(codes, plan, discrete_laplace, SeededRandomSource(f"{seed} trend"))
            errors += np.abs(range_sums(prefix_sums(cells), reaches) - truth)
        error[method] = [errors[group].mean() / 3 for group in groups]
    assert error["privelet*"][0] < 0.6 * error["privelet+"][0]
    assert error["privelet*"][4] < error["privelet+"][4]
    assert error["basic"][0] < error["privelet*"][0]  # small cells: 256 is below the threshold
