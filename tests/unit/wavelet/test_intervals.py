"""Intervals of answers cover what they say."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from common.errors import InputError
from common.privacy.sampling.discrete_laplace import discrete_laplace_variance
from common.wavelet.decisions import make_plan
from common.wavelet.noisy_matrix import NoiseMoments, discrete_laplace_fourth_cumulant, half_widths
from tests.unit.wavelet.blocks import (
    FIG3,
    REPEATS,
    alone,
    errors_of_a_query,
    haar,
    nominal,
    query_variance,
)


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
    errors = errors_of_a_query(Fraction(1), seed="coverage")
    plan = make_plan((alone(REPEATS), haar(8), nominal(FIG3)), Fraction(1), "privelet+", [0])
    exact, reaches = query_variance(plan, [(0, 1), (1, 7), (0, 3)])
    margin = half_widths(
        np.array([exact]), NoiseMoments(plan).fourth_cumulants(reaches), confidence
    )[0]
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
