from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from common.errors import LocalError
from common.privacy.randomness import OsRandomSource, SeededRandomSource
from common.privacy.sampling import discrete_laplace as laplace
from common.privacy.sampling.discrete_laplace import (
    LARGEST_SCALE,
    discrete_laplace,
    discrete_laplace_variance,
)


@pytest.mark.parametrize("count", [0, 1, 7, 16384, 16385])
def test_as_many_draws_as_asked_for(count):
    draws = discrete_laplace(Fraction(3), count, OsRandomSource())
    assert draws.shape == (count,)
    assert draws.dtype == np.int64


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), Fraction(LARGEST_SCALE) + 1])
def test_an_impossible_scale_is_refused(scale):
    with pytest.raises(LocalError, match="scale"):
        discrete_laplace(scale, 1, OsRandomSource())


def test_a_negative_count_is_refused():
    with pytest.raises(LocalError, match="count"):
        discrete_laplace(Fraction(1), -1, OsRandomSource())


def test_the_same_seed_gives_the_same_noise_and_another_seed_does_not():
    first, second, other = (
        discrete_laplace(Fraction(20), 100, SeededRandomSource(seed)) for seed in (1, 1, 2)
    )
    assert (first == second).all()
    assert (first != other).any()


def test_two_runs_without_a_seed_differ():
    draws = [discrete_laplace(Fraction(20), 100, OsRandomSource()) for _ in range(2)]
    assert (draws[0] != draws[1]).any()


def test_a_tiny_scale_is_all_zeros_and_a_huge_one_does_not_overflow():
    source = SeededRandomSource("extremes")
    assert not discrete_laplace(Fraction(1, 1000), 100_000, source).any()
    wide = discrete_laplace(Fraction(LARGEST_SCALE), 10_000, source)
    assert abs(np.abs(wide).mean() / LARGEST_SCALE - 1) < 0.06


class AlwaysHeads:
    """A source of zero bits: every coin comes up heads, so the high part never ends."""

    private = False

    def random_bytes(self, count: int) -> bytes:
        return bytes(count)


def test_a_draw_beyond_64_bits_is_refused_not_wrapped(monkeypatch):
    monkeypatch.setattr(laplace, "_LARGEST_DRAW", 1 << 50)  # the same way, in fewer steps
    with pytest.raises(LocalError, match="64-bit"):
        discrete_laplace(Fraction(LARGEST_SCALE), 1, AlwaysHeads())


@pytest.mark.parametrize("digits", [0, 2])
def test_the_law_does_not_depend_on_how_many_digits_are_coins(monkeypatch, digits):
    """So few digits that most draws continue in the high part, which is rare otherwise."""
    monkeypatch.setattr(laplace, "digit_count", lambda scale: digits)
    laplace._coins.cache_clear()
    scale, count = Fraction(4), 10_000
    seen = np.abs(discrete_laplace(scale, count, SeededRandomSource("digits")))
    laplace._coins.cache_clear()
    q = np.exp(-1 / 4)
    law = (1 - q) / (1 + q) * q ** np.arange(25) * np.array([1] + [2] * 24)
    law = np.append(law, 1 - law.sum())
    assert chisquare(np.bincount(np.minimum(seen, 25), minlength=26), count * law).pvalue > 1e-9


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(20), Fraction(1000)])
def test_the_variance_is_that_of_the_law(scale):
    values = np.arange(1, int(60 * scale) + 60)
    q = np.exp(-1 / float(scale))
    expected = 2 * (values**2 * (1 - q) / (1 + q) * q**values).sum()
    assert discrete_laplace_variance(scale) == pytest.approx(expected, rel=1e-9)
