"""The blocks of the Poisson sampler against exact ratios of probabilities."""

from fractions import Fraction

import gmpy2
import numpy as np
import pytest
from scipy.stats import chisquare, poisson

from common.errors import LocalError
from common.privacy.randomness import SeededRandomSource
from common.privacy.sampling import poisson as sampler
from common.privacy.sampling.poisson import LARGEST_MEAN, LEAST_MEAN, Poisson

MEANS = [
    Fraction(LEAST_MEAN),
    LEAST_MEAN + Fraction(999, 1000),
    Fraction(10**6 + 1, 3),
    Fraction(2**30) - Fraction(1, 7),
    Fraction(LARGEST_MEAN),
]


def ratio(law, value):
    """P(mode + value) / P(mode) to a thousand bits, by the definition."""
    mean = gmpy2.mpq(law._mean.numerator, law._mean.denominator)
    with gmpy2.context(gmpy2.get_context(), precision=1000):
        gammas = [gmpy2.lngamma(gmpy2.mpfr(law._mode + 1 + v)) for v in (0, value)]
        return gmpy2.exp(value * gmpy2.log(gmpy2.mpfr(mean)) + gammas[0] - gammas[1])


def edges_of(law, block):
    """The most and the least likely value of a block, or one that is less likely than all."""
    right = block < law._side
    near = (block if right else block - law._side) << law._bits
    far = near + (1 << law._bits)
    return (near, far) if right else (-near, -far)


def some_blocks(law):
    side = law._side
    return [0, 1, side // 2, side - 1, side, side + 1, 2 * side - side // 3, 2 * side - 1]


@pytest.mark.parametrize("mean", MEANS)
def test_every_integer_between_the_tails_is_in_one_block_chosen_by_its_weight(mean):
    law = Poisson(mean)
    starts = np.sort(law._first[: law._blocks])
    assert (np.diff(starts) == 1 << law._bits).all()
    assert (starts[0], starts[-1]) == (-law._side << law._bits, (law._side - 1) << law._bits)
    drawn = np.bincount(law._block, minlength=law._blocks + 3)
    assert (drawn[: law._blocks] == law._weights).all()
    assert drawn[law._blocks :].tolist()[:2] == [1, 1]
    assert drawn[-1] < 700  # words that choose nothing


@pytest.mark.parametrize("mean", MEANS)
def test_weights_hold_the_likeliest_value_and_certain_acceptances_the_least_likely(mean):
    law = Poisson(mean)
    for block in some_blocks(law):
        near, far = edges_of(law, block)
        weight = int(law._weights[block])
        assert law._unit * ratio(law, near) <= weight
        certain = int(law._certain[block])
        assert certain <= law._unit * ratio(law, far) / weight * 2**law._real_bits
        assert certain > 0 or weight == 1  # far out, nothing is certain


@pytest.mark.parametrize("mean", MEANS)
def test_acceptances_in_doubles_are_as_exact_as_is_claimed(mean):
    law, rng = Poisson(mean), np.random.default_rng(1)
    for block in some_blocks(law):
        width = 1 << law._bits
        values = law._first[block] + np.array([0, width - 1, *rng.integers(width, size=5)])
        seen = law._acceptance(np.full(len(values), block), values)
        for value, probability in zip(values.tolist(), seen.tolist(), strict=True):
            exact = law._unit * ratio(law, value) / int(law._weights[block])
            assert abs(probability - exact) < sampler._ERROR / 100


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("bits", [0, 64, 200])
def test_exact_bounds_hold_the_ratio_and_are_tight(mean, bits):
    law = Poisson(mean)
    for value in (-3 << law._bits, -1, 0, 1, 12345, law._side << law._bits):
        low, high = law._times_ratio(Fraction(2, 3), value)(bits)
        with gmpy2.context(gmpy2.get_context(), precision=1000):
            exact = ratio(law, value) * 2 / 3 * gmpy2.mpfr(2) ** bits
        assert low <= exact <= high <= low + 2


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("sign", [1, -1])
def test_acceptances_in_the_tails_are_probabilities(mean, sign):
    law = Poisson(mean)
    for heads in range(6):
        nearest = sign * ((law._side << law._bits) + (heads << (law._bits + sampler._TAIL_BITS)))
        if nearest > -law._mode:
            assert ratio(law, nearest) * law._unit * 2 ** (heads + sampler._TAIL_BITS + 1) <= 1


@pytest.mark.parametrize("sign", [1, -1])
def test_what_comes_from_a_tail_has_its_law(sign):
    """Tails that begin earlier, where a good part is accepted."""
    law, tries = Poisson(LEAST_MEAN + Fraction(1, 3)), 10_000
    law._side = round(4.8 * float(law._mean) ** 0.5) >> law._bits
    start = law._side << law._bits
    assert 64 * law._unit * ratio(law, sign * start) <= 1
    source = SeededRandomSource(f"tail {sign}")
    proposals = [law._from_tail(sign, source) for _ in range(tries)]
    beyond = np.array([value if sign > 0 else -1 - value for value, _ in proposals]) - start
    accepted = beyond[[accepted for _, accepted in proposals]]
    edges = np.array([0, 8, 16, 24, 40, 60])
    ends = law._mode + (start + edges - 1 if sign > 0 else -start - edges - 1)
    upper = poisson.sf if sign > 0 else poisson.cdf
    masses = upper(ends, float(law._mean))
    share = masses[0] / poisson.pmf(law._mode, float(law._mean)) * law._unit / (1 << law._bits)
    assert len(accepted) == pytest.approx(tries * share, abs=5 * (tries * share) ** 0.5)
    expected = -np.diff(np.append(masses, 0)) / masses[0]

    def fits(values):
        seen = np.bincount(np.searchsorted(edges, values, side="right") - 1, minlength=len(edges))
        return chisquare(seen, expected * len(values)).pvalue

    assert fits(accepted) > 1e-6
    assert fits(beyond) < 1e-6


def fit_of(law, draws, mean):
    deviations = np.linspace(-3, 3, 31)
    edges = np.floor(float(mean) + deviations * float(mean) ** 0.5)
    masses = np.diff(np.concatenate([[0], poisson.cdf(edges, float(mean)), [1]]))
    seen = np.bincount(np.searchsorted(edges, draws, side="left"), minlength=len(masses))
    return chisquare(seen, masses * len(draws)).pvalue


@pytest.mark.parametrize("error", [sampler._ERROR, 0.05])
@pytest.mark.parametrize("mean", [Fraction(LEAST_MEAN), Fraction(10**7, 3)])
def test_draws_have_the_law_whether_doubles_or_exact_bounds_settle_them(mean, error, monkeypatch):
    law = Poisson(mean)
    monkeypatch.setattr(sampler, "_ERROR", error)
    draws = law.draw(20_000, SeededRandomSource(f"{error}"))
    assert fit_of(law, draws, mean) > 1e-6
    for wrong in (mean + 30 * round(float(mean) ** 0.5 / 100), mean * Fraction(99, 100)):
        assert fit_of(law, draws, wrong) < 1e-6


def test_without_their_coins_draws_have_another_law(monkeypatch):
    """The test above notices if every proposal is accepted."""
    mean = Fraction(LEAST_MEAN)
    law = Poisson(mean)
    law._certain[:] = (1 << 64) - 1
    draws = law.draw(2_000_000, SeededRandomSource("no coins"))
    assert fit_of(law, draws, mean) < 1e-6


@pytest.mark.parametrize("mean", [LEAST_MEAN - Fraction(1, 2), LARGEST_MEAN + Fraction(1)])
def test_other_means_are_refused(mean):
    with pytest.raises(LocalError, match="mean"):
        Poisson(mean)
