"""From rows to a release, a file, and answers."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from common.errors import InputError, LocalError, PolicyError
from common.privacy.randomness import OsRandomSource, SeededRandomSource
from common.privacy.sampling.discrete_laplace import discrete_laplace_variance
from common.schema import Schema
from common.wavelet import plan_privelet
from common.wavelet.decisions import make_plan
from common.wavelet.noisy_matrix import NoiseMoments, prefix_sums, range_sums
from tests.unit.wavelet import dense
from tests.unit.wavelet.blocks import (
    CODES,
    FIG3,
    MIXED,
    REPEATS,
    SCHEMA,
    accountant_of,
    alone,
    errors_of_a_query,
    haar,
    nominal,
    privelet_of,
    query_variance,
    release_of,
)


@pytest.mark.parametrize("method", ["basic", "privelet", "privelet+", "privelet*"])
def test_every_method_answers_near_the_truth(method):
    release = release_of(CODES, method, epsilon=50)
    answer = release.count(
        "age in 20..69 and sex = Female and country in Europe", confidence=0.999999
    )
    age, sex, country = CODES.columns
    truth = ((age >= 20) & (age < 70) & (sex == 0) & np.isin(country, [0, 2])).sum()
    if method == "privelet*":
        assert answer.standard_deviation is answer.low is answer.high is None
        assert answer.value == pytest.approx(truth, abs=50)
    else:
        assert answer.low <= truth <= answer.high
        assert answer.low < answer.value < answer.high
        assert answer.standard_deviation < 30


def test_batches_and_single_questions_agree():
    release = release_of(CODES)
    queries = ["", "age >= 100", "sex = Male and country = (missing)", "country in America"]
    many = release.counts(queries)
    for number, query in enumerate(queries):
        one = release.count(query)
        assert one.value == many.values[number]
        assert one.standard_deviation == many.standard_deviations[number]
        assert (one.low, one.high) == (many.low[number], many.high[number])
    assert len(release.counts([]).values) == 0


def test_the_matrix_is_in_the_order_of_the_schema():
    counts = np.zeros(SCHEMA.sizes)
    np.add.at(counts, tuple(CODES.columns), 1)
    for method in ("basic", "privelet", "privelet+"):
        close = release_of(CODES, method, epsilon=10**4).matrix()
        assert close.shape == SCHEMA.sizes
        assert np.abs(close - counts).max() < 1
    assert np.array_equal(
        release_of(CODES, "basic").matrix(), np.rint(release_of(CODES, "basic").matrix())
    )


def test_answers_are_sums_of_the_matrix_where_no_padding_is_used():
    release = release_of(CODES)
    matrix = release.matrix()
    value = release.count("age in 3..77 and country in Europe").value
    assert value == pytest.approx(matrix[3:78, :, [0, 2]].sum())


def test_the_total_uses_the_padding_of_the_haar_axis():
    release = release_of(CODES)
    assert [axis.kind for axis in release.plan.axes] == ["haar", "untransformed", "untransformed"]
    variance = 10 * discrete_laplace_variance(release.plan.scale)
    assert release.count("").standard_deviation == pytest.approx(np.sqrt(variance))


def test_the_plan_states_what_was_spent():
    plan = plan_privelet(SCHEMA, "0.5")
    assert (plan.epsilon, plan.sensitivity, plan.scale) == (Fraction(1, 2), 9, 36)
    assert release_of(CODES, epsilon=0.5).plan.scale == 36
    named = plan_privelet(SCHEMA, 1, untransformed=["country"])
    assert [axis.kind for axis in named.axes] == ["haar", "nominal", "untransformed"]


def test_unknown_attributes_and_bad_budgets_are_refused():
    with pytest.raises(InputError, match="agee"):
        plan_privelet(SCHEMA, 1, untransformed=["agee"])
    with pytest.raises(InputError, match="unknown rule 'best'"):
        plan_privelet(SCHEMA, 1, untransformed="best")
    for epsilon in (0, -1, "nan", "inf", "much"):
        with pytest.raises(InputError):
            plan_privelet(SCHEMA, epsilon)


def test_a_domain_too_large_is_refused_before_the_rows_are_read():
    attribute = '[[attribute]]\nname = "{}"\nkind = "integer"\nmin = 0\nmax = 999\nbins = 1000\n'
    large = Schema.from_toml("".join(map(attribute.format, "abc")))
    with pytest.raises(InputError, match=r"1,000,000,000 cells .*PrivBayes"):
        plan_privelet(large, 1)


@pytest.mark.parametrize("method", ["basic", "privelet", "privelet+", "privelet*"])
def test_exactly_epsilon_is_charged(method):
    accountant = accountant_of(Fraction(1, 3))
    privelet_of(CODES, "1/3", SeededRandomSource(0), accountant, method=method)
    assert accountant.spent("owner") == Fraction(1, 3)
    assert method in accountant.charges[0].mechanism


class ForbiddenSource:
    private = True

    def random_bytes(self, count):
        raise AssertionError("noise was drawn")

    words = random_bytes


def test_an_overspent_budget_is_refused_before_a_draw():
    accountant = accountant_of(Fraction(1, 2))
    with pytest.raises(PolicyError, match="cap"):
        privelet_of(CODES, 1, ForbiddenSource(), accountant)
    assert accountant.spent("owner") == 0


def test_nothing_is_charged_for_what_cannot_be_done():
    accountant = accountant_of()
    with pytest.raises(InputError, match="meant for no table"):
        privelet_of(CODES, "1e-15", ForbiddenSource(), accountant)
    with pytest.raises(LocalError, match="domain sizes"):
        privelet_of(CODES.select([0, 1]), 1, ForbiddenSource(), accountant)
    assert accountant.charges == ()


def test_a_release_says_whether_its_noise_was_private():
    assert not release_of(CODES).private
    assert privelet_of(CODES, 1, OsRandomSource()).private


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
