"""The worked examples of the paper, and vectors computed once in exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

from common.privacy.randomness import SeededRandomSource
from common.wavelet.axis import HaarAxis, haar_moments
from common.wavelet.decisions import make_plan
from common.wavelet.mechanism import count_cells, noisy_cells, thresholds
from common.wavelet.noisy_matrix import NoiseMoments
from tests.unit.wavelet.blocks import (
    FIG3,
    alone,
    haar,
    integer_coefficients,
    no_noise,
    nominal,
    rows_of,
    weighted_coefficients,
)
from tests.unit.wavelet.dense import Haar

MEDICAL = np.array([[0, 2], [0, 1], [1, 2], [0, 1], [1, 0]])
FOUR_BY_SIX = np.array(
    [[9, 3, 6, 2, 8, 2], [1, 0, 2, 4, 4, 1], [0, 0, 0, 3, 0, 0], [5, 1, 0, 0, 2, 7]]
)


def test_medical_records_have_the_published_coefficients():
    axes = (haar(5), nominal((0, 1)))
    heap = Haar(5).positions
    weighted = weighted_coefficients(MEDICAL, axes)[heap]
    expected = [
        [8, -2, 2],
        [6, -3, 3],
        [-1, -0.5, 0.5],
        [1, 0.5, -0.5],
        [1, -0.5, 0.5],
        [2, 0, 0],
        [1, 0.5, -0.5],
        [0, 0, 0],
    ]
    assert weighted.tolist() == expected
    paper = weighted / np.array([8, 8, 4, 4, 2, 2, 2, 2])[:, None]
    assert paper[1].tolist() == [0.75, -0.375, 0.375]
    assert paper[4].tolist() == [0.5, -0.25, 0.25]
    plan = make_plan(axes, Fraction(1), "privelet")
    assert (plan.sensitivity, plan.scale) == (8, 16)


def test_medical_records_answer_the_query_of_the_text():
    plan = make_plan((haar(5), nominal((0, 1))), Fraction(1), "privelet+", [1])
    assert plan.order == (1, 0)
    assert plan.sub_matrices == 2  # one column for each diagnosis
    cells = noisy_cells(rows_of(MEDICAL), plan, no_noise, SeededRandomSource(0))
    assert cells[0, :3].sum() == 1  # diabetes, age below 50
    assert cells[:, :5].T.tolist() == MEDICAL.tolist()


def test_a_replaced_row_moves_exactly_two_cells_by_one():
    plan = make_plan((haar(5), nominal((0, 1))), Fraction(1), "basic")
    moved = MEDICAL.copy()
    moved[0, 1] -= 1
    moved[1, 1] += 1
    change = count_cells(rows_of(moved), plan) - count_cells(rows_of(MEDICAL), plan)
    assert sorted(change[change != 0].tolist()) == [-1, 1]


def test_figure_2_haar_of_eight_cells():
    weighted = integer_coefficients([9, 3, 6, 2, 8, 4, 5, 7], (haar(8),))[Haar(8).positions]
    assert weighted.tolist() == [44, -4, 4, 0, 6, 4, 4, -2]
    paper = weighted / np.array([8, 8, 4, 4, 2, 2, 2, 2])
    assert paper.tolist() == [5.5, -0.5, 1, 0, 3, 2, 2, -1]
    assert paper[0] + paper[1] + paper[2] - paper[4] == 3  # the second cell
    plan = make_plan((haar(8),), Fraction(1), "privelet")
    assert (plan.sensitivity, plan.scale) == (4, 8)


def test_figure_3_nominal_of_six_leaves():
    axis = nominal(FIG3)
    integers = integer_coefficients([9, 3, 6, 2, 8, 2], (axis,))
    fan_out = np.array([1, 2, 2, 3, 3, 3, 3, 3, 3])
    assert (integers / fan_out).tolist() == [30, 3, -3, 3, -3, 0, -2, 4, -2]
    weights = fan_out[1:] / axis.multipliers[1:]
    assert weights.tolist() == [1, 1] + [0.75] * 6
    plan = make_plan((axis,), Fraction(1), "privelet")
    assert (plan.sensitivity, plan.scale) == (3, 6)
    second = axis.reach(np.array([0, 0, 0]), np.array([6, 3, 1]), padding=False).second.sum(axis=1)
    assert second.tolist() == pytest.approx([1, 3 / 4, 137 / 108], abs=1e-15)
    assert axis.worst_variance == Fraction(137, 108)


def test_figure_4_two_by_two():
    weighted = weighted_coefficients([[1, 2], [3, 4]], (haar(2), haar(2)))
    assert (weighted / 4).tolist() == [[2.5, -0.5], [-1, 0]]  # every weight is 2 * 2
    assert make_plan((haar(2), haar(2)), Fraction(1), "privelet").sensitivity == 4


@pytest.mark.parametrize(
    ("axis", "method", "bound"),
    [
        (haar(512), "privelet", 4400),
        (nominal(tuple(tuple(range(32 * g, 32 * g + 32)) for g in range(16))), "privelet", 288),
        (haar(16), "privelet", 600),
        (haar(16), "basic", 128),
        (alone(1), "basic", 8),
    ],
)
def test_variance_bounds_of_the_text(axis, method, bound):
    assert make_plan((axis,), Fraction(1), method).variance_bound == bound
    assert make_plan((axis,), Fraction(1, 2), method).variance_bound == 4 * bound


def test_four_by_six_with_both_transforms():
    weighted = weighted_coefficients(FOUR_BY_SIX, (haar(4), nominal(FIG3)))[Haar(4).positions]
    assert weighted.tolist() == [
        [60, -3, 3, 4.5, -3.75, -0.75, -1.5, 2.25, -0.75],
        [24, 3, -3, 0, -2.25, 2.25, 0, 5.25, -5.25],
        [18, 6, -6, 2.25, -1.5, -0.75, -2.25, 2.25, 0],
        [-12, 0, 0, -2.25, 0.75, 1.5, 3.75, 0, -3.75],
    ]
    assert make_plan((haar(4), nominal(FIG3)), Fraction(1), "privelet").sensitivity == 9


@pytest.mark.parametrize(
    ("depth", "worst", "low", "high"),
    [
        (0, 1, 0, 1),
        (1, 1, 0, 2),
        (2, 1, 0, 4),
        (3, 1.1875, 1, 7),
        (4, 1.421875, 1, 15),
        (5, 1.63671875, 3, 29),
        (6, 1.8623046875, 5, 59),
        (7, 2.082763671875, 11, 117),
        (8, 2.30584716796875, 21, 235),
        (9, 2.52763, 43, 469),
        (10, 2.75007, 85, 939),
    ],
)
def test_worst_haar_ranges(depth, worst, low, high):
    tolerance = 1e-15 if depth <= 8 else 5e-6
    assert HaarAxis(1 << depth).worst_variance == pytest.approx(worst, abs=tolerance)
    second, _ = haar_moments(np.array([low]), np.array([high]), depth)
    assert second[0] == pytest.approx(worst, abs=tolerance)


@pytest.mark.parametrize("depth", range(9))
def test_single_cells_and_the_full_range_of_haar(depth):
    cells = np.arange(1 << depth)
    second, _ = haar_moments(cells, cells + 1, depth)
    assert second == pytest.approx(1 / 3 + 2 / 3 * 4.0**-depth, abs=1e-15)
    assert haar_moments(np.array([0]), np.array([1 << depth]), depth)[0][0] == 1


@pytest.mark.parametrize(
    ("scale", "theta"),
    [(0.5, 0.0535576712), (1, 0.2188820446), (2, 0.9654436309), (4, 8.1972243623), (6, 10)],
)
def test_thresholds_of_six_coefficients(scale, theta):
    band = np.array([[10, -7, 3, -2, 1, 0.5]])
    assert thresholds(band, 2 * scale**2)[0] == pytest.approx(theta, abs=5e-11)


def test_two_dimensional_query_has_variance_1026():
    axes = (haar(8), nominal(FIG3))
    plan = make_plan(axes, Fraction(1), "privelet")
    assert plan.scale == 24
    ranges = {"haar": (1, 7), "nominal": (0, 3)}
    reaches = [
        axis.reach(*(np.array([end]) for end in ranges[axis.kind]), padding=False)
        for axis in plan.stored_axes
    ]
    exact = NoiseMoments(plan).variances(reaches)[0]
    assert exact == pytest.approx(1026, rel=1e-3)
    assert exact < 1026  # discrete noise has a little less variance than continuous noise
    assert plan.variance_bound == 11520


@pytest.mark.parametrize(
    ("sizes", "worst", "basic", "plain"),
    [
        ((101, 2, 512, 1001), 42_235_776, 828_219_392, 963_477_504),
        ((96, 2, 511, 1020), 40_144_896, 800_593_920, None),
    ],
)
def test_census_bounds(sizes, worst, basic, plain):
    age, gender, occupation, income = sizes
    groups = tuple(tuple(range(g, occupation, 16)) for g in range(16))
    axes = (haar(age), nominal((0, 1)), nominal(groups), haar(income))
    assert gender == 2
    plus = make_plan(axes, Fraction(1), "privelet+", "bound")
    assert [axis.kind for axis in plus.axes] == [
        "untransformed",
        "untransformed",
        "nominal",
        "haar",
    ]
    assert plus.scale == 66
    assert plus.variance_bound == worst
    assert make_plan(axes, Fraction(1), "basic").variance_bound == basic
    if plain:
        everything = make_plan(axes, Fraction(1), "privelet")
        assert (everything.scale, everything.variance_bound) == (1056, plain)
