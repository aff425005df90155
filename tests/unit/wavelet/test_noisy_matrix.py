"""From rows to a release, a file, and answers."""

from fractions import Fraction

import numpy as np
import pytest

from common.errors import InputError, LocalError, PolicyError
from common.privacy.randomness import OsRandomSource, SeededRandomSource
from common.privacy.sampling.discrete_laplace import discrete_laplace_variance
from common.schema import Schema
from common.wavelet import plan_privelet
from tests.unit.wavelet.blocks import (
    CODES,
    SCHEMA,
    accountant_of,
    privelet_of,
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
