"""The Skellam sampler's bounds against series of Bessel functions, and its tails."""

import math
from fractions import Fraction

import gmpy2
import numpy as np
import pytest
from scipy.stats import skellam as reference

from common.errors import LocalError
from common.privacy.randomness import KeyedRandomSource, SeededRandomSource
from common.privacy.sampling import skellam as sampler
from common.privacy.sampling.skellam import skellam, tail

VARIANCES = [Fraction(1, 100), Fraction(1), Fraction(7, 3), Fraction(40), Fraction(1000)]


def probability(k, variance):
    """exp(-s) I_k(s) by its power series, to some two hundred bits."""
    half = gmpy2.mpfr(gmpy2.mpq(variance.numerator, 2 * variance.denominator))
    term = gmpy2.exp(k * gmpy2.log(half) - gmpy2.lngamma(gmpy2.mpfr(k + 1)) - 2 * half)
    total, j = gmpy2.mpfr(0), 0
    while j <= float(half) or term > total * gmpy2.mpfr(2) ** -200:
        total += term
        j += 1
        term *= half * half / (j * (j + k))
    return total


@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.parametrize("bits", [64, 128])
def test_the_bounds_of_the_distribution_hold_it_and_are_tight(variance, bits):
    with gmpy2.context(gmpy2.get_context(), precision=400):
        below = gmpy2.mpfr(0)
        for k, (low, high) in enumerate(sampler._cumulative(variance, bits)):
            if k > 60:
                break
            below += probability(k, variance) * (1 if k == 0 else 2)
            assert low <= below * gmpy2.mpfr(2) ** bits <= high
            assert high - low <= 4


@pytest.mark.parametrize("variance", VARIANCES)
def test_the_last_bound_is_the_whole(variance):
    *_, (low, high) = sampler._cumulative(variance, 64)
    assert high == 1 << 64
    assert low >= (1 << 64) - 4


@pytest.mark.parametrize("variance", [*VARIANCES, Fraction(10**6)])
@pytest.mark.parametrize("bits", [10, 40, 128])
def test_the_tail_bound_holds_and_is_of_the_right_size(variance, bits):
    k, mean = tail(variance, bits), float(variance) / 2
    assert 2 * reference.sf(k, mean, mean) <= 2.0**-bits
    wanted = (bits + 1) * math.log(2)
    assert k <= 1.1 * math.sqrt(2 * float(variance) * wanted) + 1.6 * wanted + 2


def test_the_tail_bound_grows_with_the_variance():
    bounds = [tail(Fraction(variance, 7), 128) for variance in range(1, 3000)]
    assert bounds == sorted(bounds)


def test_cosh_is_below_the_parabola_that_the_tail_bound_uses():
    for x in np.linspace(1e-3, 1, 1000):
        assert math.cosh(x) - 1 <= float(sampler._CURVATURE) * x * x


@pytest.mark.parametrize("exponent", [16, 17, 40])
def test_a_draw_of_any_variance_reads_a_few_bytes(exponent):
    source = KeyedRandomSource(bytes(32))
    draws = skellam(Fraction(2**exponent), 20_000, source)
    assert source.drawn_bytes < 20 * len(draws)
    assert draws.var() == pytest.approx(2.0**exponent, rel=0.06)
    assert abs(draws.mean()) < 6 * math.sqrt(2.0**exponent / len(draws))


@pytest.mark.parametrize(("variance", "count"), [(0, 1), (-1, 1), (2**40 + 1, 1), (1, -1)])
def test_what_cannot_be_drawn_is_refused(variance, count):
    with pytest.raises(LocalError):
        skellam(Fraction(variance), count, SeededRandomSource(0))


def test_a_draw_that_64_bits_leave_open_is_settled_by_more():
    table = sampler._table(Fraction(7, 3))
    lower = int(table._lower[0])  # at the bound itself the first bits do not tell
    assert table.settle(np.array([lower], dtype=np.uint64))[0] == -1
    settled = {table.invert(lower, 64, SeededRandomSource(seed)) for seed in range(50)}
    assert settled <= {0, 1}
