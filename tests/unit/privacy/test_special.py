"""What nodes compute without SciPy is what SciPy computes."""

import math

import numpy as np
import pytest
from scipy import integrate, special

from common.privacy.special import chi_square_tail, integral


@pytest.mark.parametrize("freedom", [1, 2, 3, 10, 77, 1_000, 65_025, 1_000_000])
def test_the_tail_of_chi_square_is_scipys(freedom):
    spread = math.sqrt(2 * freedom)
    for deviations in np.linspace(-6, 12, 37):
        value = max(freedom + deviations * spread, 0.0)
        expected = float(special.chdtrc(freedom, value))
        assert chi_square_tail(value, freedom) == pytest.approx(expected, rel=1e-7, abs=1e-12)


def test_nothing_is_below_zero_and_far_out_there_is_nothing():
    assert chi_square_tail(0.0, 3) == chi_square_tail(-1.0, 3) == 1.0
    assert chi_square_tail(1e6, 3) == 0.0


@pytest.mark.parametrize("power", [1.0, 30.0, 1e4])
def test_integrals_of_smooth_functions_are_scipys(power):
    def height(x):
        return np.exp(-power * x) * (1 + np.sin(x))

    expected, _ = integrate.quad(height, 0, 1, points=[1 / power], epsabs=0, epsrel=1e-12)
    assert integral(height, 0.0, 1.0) == pytest.approx(expected, rel=1e-10)


def test_a_function_that_never_settles_ends():
    rng = np.random.default_rng(1)
    assert math.isfinite(integral(lambda x: rng.random(x.shape), 0.0, 1.0))
