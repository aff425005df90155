"""The mechanism as a whole: degenerate cases, slabs, thresholding."""

from fractions import Fraction

import numpy as np
import pytest

from common.errors import LocalError
from common.privacy.randomness import SeededRandomSource
from common.privacy.sampling.discrete_laplace import discrete_laplace
from common.schema.codes import Codes
from common.wavelet.decisions import make_plan
from common.wavelet.mechanism import count_cells, noisy_cells
from tests.unit.wavelet.blocks import FIG3, MIXED, haar, no_noise, noisy, nominal, rows_of


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
