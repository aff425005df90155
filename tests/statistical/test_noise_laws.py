"""The laws of the noise against exact probabilities, with power, and against another sampler.

Every test accepts at the true scale and rejects at 0.7 and 1.3 of it, at p-values so small that
chance plays no part: acceptance above 1e-9, rejection below 1e-20.
"""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2_contingency, chisquare, norm
from scipy.stats import skellam as skellam_law

from common.privacy.noise_law import Skellam
from common.privacy.randomness import OsRandomSource
from common.privacy.sampling.discrete_laplace import discrete_laplace, discrete_laplace_variance
from common.privacy.sampling.polya import polya_shares
from common.privacy.sampling.skellam import skellam

pytestmark = pytest.mark.statistical

DRAWS = 200_000
ACCEPT, REJECT = 1e-9, 1e-20
SCALES = [Fraction(3, 10), Fraction(1), Fraction(7, 3), Fraction(20), Fraction(1000)]


def fit(draws: np.ndarray, scale: float) -> float:
    """p-value of a chi-square of integers against the discrete Laplace of `scale`."""
    q = np.exp(-1 / scale)
    # Cells of equal width with at least twenty expected draws, and two tails.
    width = max(1, int(scale / 3))
    reach = max(1, int(scale * np.log(len(draws) / 40)))
    edges = np.arange(-reach, reach + width, width)

    def below(values: np.ndarray) -> np.ndarray:
        """P(k < value): a tail of q^j / (1 + q), with j the distance of the tail from zero."""
        upper = q ** np.maximum(values, 0) / (1 + q)
        lower = q ** (1 - np.minimum(values, 0)) / (1 + q)
        return np.where(values > 0, 1 - upper, lower)

    expected = np.diff(np.concatenate([[0.0], below(edges), [1.0]])) * len(draws)
    seen = np.bincount(np.searchsorted(edges, draws, side="right"), minlength=len(edges) + 1)
    keep = expected >= 5
    seen = np.append(seen[keep], seen[~keep].sum())
    expected = np.append(expected[keep], expected[~keep].sum())
    if expected[-1] == 0:
        seen, expected = seen[:-1], expected[:-1]
    return chisquare(seen, expected).pvalue


def assert_law(draws: np.ndarray, scale: Fraction) -> None:
    assert fit(draws, float(scale)) > ACCEPT
    assert fit(draws, 0.7 * float(scale)) < REJECT
    assert fit(draws, 1.3 * float(scale)) < REJECT


@pytest.mark.parametrize("scale", SCALES)
def test_discrete_laplace_has_its_law_and_no_other(scale):
    assert_law(discrete_laplace(scale, DRAWS, OsRandomSource()), scale)


@pytest.mark.parametrize("scale", [Fraction(2**14) + 1, Fraction(10**9)])
def test_discrete_laplace_of_a_large_scale_has_its_law(scale):
    assert_law(discrete_laplace(scale, DRAWS, OsRandomSource()), scale)


@pytest.mark.parametrize("parties", [1, 2, 3, 10])
@pytest.mark.parametrize("scale", [Fraction(3, 10), Fraction(7, 3), Fraction(20)])
def test_shares_add_up_to_discrete_laplace(scale, parties):
    source = OsRandomSource()
    assert_law(
        sum(polya_shares(scale, DRAWS, source, parties=parties) for _ in range(parties)), scale
    )


@pytest.mark.parametrize("parties", [1, 3])
def test_shares_of_a_large_scale_add_up_to_discrete_laplace(parties):
    scale, source = Fraction(10**6), OsRandomSource()
    draws = sum(polya_shares(scale, DRAWS // 2, source, parties=parties) for _ in range(parties))
    assert_law(draws, scale)


def test_one_share_too_few_is_noticed():
    source = OsRandomSource()
    draws = sum(polya_shares(Fraction(20), DRAWS, source, parties=10) for _ in range(9))
    assert fit(draws, 20.0) < REJECT


def test_draws_are_independent_of_their_neighbours():
    draws = discrete_laplace(Fraction(5), DRAWS, OsRandomSource())
    for lag in (1, 2, 16384):
        table = np.zeros((3, 3))
        np.add.at(table, (np.sign(draws[:-lag]) + 1, np.sign(draws[lag:]) + 1), 1)
        assert chi2_contingency(table).pvalue > ACCEPT
        correlation = np.corrcoef(np.abs(draws[:-lag]), np.abs(draws[lag:]))[0, 1]
        assert abs(correlation) < 7 / np.sqrt(DRAWS)


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(20)])
def test_variance_is_as_computed(scale):
    draws = discrete_laplace(scale, DRAWS, OsRandomSource())
    # The kurtosis of the law is below 10, so the variance is off by 3 / sqrt(n) at most.
    assert draws.var() / discrete_laplace_variance(scale) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_an_independent_exact_sampler_agrees(scale):
    """OpenDP's discrete Laplace, the oracle: the same law at the same scale, not at another."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    count = 40_000
    theirs = np.array(dp.m.make_laplace(*space, scale=scale)([0] * count))
    reach = int(scale * 6)

    def agreement(factor: Fraction) -> float:
        ours = discrete_laplace(Fraction(scale) * factor, count, OsRandomSource())
        width = max(1, int(scale / 3))
        cells = [
            np.bincount((np.clip(draws, -reach, reach) + reach) // width)
            for draws in (ours, theirs)
        ]
        longest = max(map(len, cells))
        table = np.array([np.pad(cell, (0, longest - len(cell))) for cell in cells])
        return chi2_contingency(table[:, table.sum(axis=0) > 10]).pvalue

    assert agreement(Fraction(1)) > ACCEPT
    assert agreement(Fraction(7, 10)) < REJECT
    assert agreement(Fraction(13, 10)) < REJECT


def skellam_cdf(values: np.ndarray, variance: float) -> np.ndarray:
    """SciPy's; beyond 2^20, where SciPy's becomes slow and inexact, the normal law's.

    The law is symmetric and of integers, so the normal law at half-integers is off by less than
    0.033 / variance (a test compares the two), of which 200,000 draws show nothing.
    """
    if variance <= 2**20:
        return skellam_law.cdf(values, variance / 2, variance / 2)
    return norm.cdf((values + 0.5) / np.sqrt(variance))


def skellam_fit(draws: np.ndarray, variance: float) -> float:
    """p-value of a chi-square of integers against the Skellam law of this variance."""
    deviation = np.sqrt(variance)
    width = max(1, int(deviation / 3))
    edges = np.arange(-int(4 * deviation) - 1, int(4 * deviation) + 2, width)
    below = skellam_cdf(edges - 1, variance)
    expected = np.diff(np.concatenate([[0.0], below, [1.0]])) * len(draws)
    seen = np.bincount(np.searchsorted(edges, draws, side="right"), minlength=len(edges) + 1)
    keep = expected >= 5
    seen = np.append(seen[keep], seen[~keep].sum())
    expected = np.append(expected[keep], max(expected[~keep].sum(), 1e-3))
    return chisquare(seen, expected * seen.sum() / expected.sum()).pvalue


def assert_skellam(draws: np.ndarray, variance: Fraction) -> None:
    assert skellam_fit(draws, float(variance)) > ACCEPT
    assert skellam_fit(draws, 0.7 * float(variance)) < REJECT
    assert skellam_fit(draws, 1.3 * float(variance)) < REJECT


@pytest.mark.parametrize("variance", [2.0**8, 2.0**12, 2.0**16])
def test_the_normal_law_at_half_integers_is_as_near_to_skellam_as_is_said(variance):
    values = np.arange(-int(5 * variance**0.5), int(5 * variance**0.5))
    normal = norm.cdf((values + 0.5) / np.sqrt(variance))
    exact = skellam_law.cdf(values, variance / 2, variance / 2)
    assert np.abs(normal - exact).max() < 0.033 / variance + 1e-11  # and what SciPy is off by


@pytest.mark.parametrize(
    "variance",
    [
        *(Fraction(2) ** exponent for exponent in (-2, 0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40)),
        *(Fraction(3, 10), Fraction(7, 3), Fraction(400), Fraction(2**16 + 1), Fraction(10**9, 7)),
    ],
)
def test_skellam_noise_has_its_law_and_no_other(variance):
    assert_skellam(skellam(variance, DRAWS, OsRandomSource()), variance)


def low_bits_fit(draws: np.ndarray, bits: int) -> float:
    """p-value of a chi-square of the last binary digits against a uniform law.

    The characteristic function of Skellam noise is exp(-s (1 - cos x)). It says how far a draw
    modulo 2^bits is from uniform: by less than exp(-2 s / 4^bits) < 1e-30 where s > 40 * 4^bits.
    """
    return chisquare(np.bincount(draws & ((1 << bits) - 1), minlength=1 << bits)).pvalue


@pytest.mark.parametrize("exponent", [16, 17, 24, 32, 40])
def test_the_last_digits_of_large_noise_are_uniform(exponent):
    draws = skellam(Fraction(2) ** exponent, DRAWS, OsRandomSource())
    for bits in (1, 3, 5):
        assert low_bits_fit(draws, bits) > ACCEPT
        assert low_bits_fit(draws // 2 * 2, bits) < REJECT  # rounded to even
        assert low_bits_fit(draws - (draws % 64 == 1), bits) < REJECT  # one value in 64 is moved


@pytest.mark.parametrize("exponent", [17, 24, 40])
def test_large_noise_has_no_steps_where_the_sampler_has_blocks(exponent):
    """Bins of a hundredth of a deviation are narrower than blocks."""
    variance = Fraction(2) ** exponent
    draws = skellam(variance, 10 * DRAWS, OsRandomSource())
    edges = np.linspace(-3, 3, 601) * 2 ** (exponent / 2)
    whole = np.unique(np.ceil(edges))
    below = skellam_cdf(whole - 1, float(variance))
    expected = np.diff(np.concatenate([[0.0], below, [1.0]])) * len(draws)
    seen = np.bincount(np.searchsorted(whole, draws, side="right"), minlength=len(expected))
    assert chisquare(seen, expected * len(draws) / expected.sum()).pvalue > ACCEPT


@pytest.mark.parametrize("makers", [2, 3, 9])
@pytest.mark.parametrize(
    "variance", [Fraction(7, 3), Fraction(5000), Fraction(2**18), Fraction(2**40)]
)
def test_skellam_shares_add_up_to_skellam_noise(variance, makers):
    law, source = Skellam(variance), OsRandomSource()
    draws = sum(law.draw_share(DRAWS, makers=makers, source=source) for _ in range(makers))
    assert_skellam(draws, variance)


def test_one_skellam_share_too_few_is_noticed():
    law, source = Skellam(Fraction(90)), OsRandomSource()
    draws = sum(law.draw_share(DRAWS, makers=10, source=source) for _ in range(9))
    assert skellam_fit(draws, 90.0) < REJECT
    assert skellam_fit(draws, 81.0) > ACCEPT
