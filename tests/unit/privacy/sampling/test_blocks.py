"""Large scales: exact rejection in blocks, held against its parts and against the table."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from common.errors import LocalError
from common.privacy.randomness import SeededRandomSource
from common.privacy.sampling import blocks
from common.privacy.sampling.blocks import PolyaBlocks

NEVER = 1e-9


def rising(parties: int, value: int) -> Fraction:
    r = Fraction(1, parties)
    return math.prod((Fraction(k - 1 + r, k) for k in range(1, value + 1)), start=Fraction(1))


@pytest.mark.parametrize("parties", [1, 2, 7])
@pytest.mark.parametrize("value", [0, 1, 2, 3, 4, 17, 200])
def test_bounds_enclose_the_rising_factorial_and_are_tight(parties, value):
    lower, upper = PolyaBlocks(Fraction(5), parties)._rising(value, 100)
    assert lower <= rising(parties, value) * 2**100 <= upper
    assert upper - lower <= 2


@pytest.mark.parametrize("parties", [1, 2, 3, 10, 1000])
def test_doubles_are_as_close_to_the_ratio_as_they_claim(parties):
    sampler = PolyaBlocks(Fraction(10**6), parties)
    first = 2 ** np.arange(0, 24, dtype=np.int64)
    for proposed in (first, first + first // 3, 2 * first - 1):
        ratio, error = sampler._approximate(first, proposed)
        for k in range(len(first)):
            lower, upper = sampler._ratio_bounds(int(proposed[k]), int(first[k]), 60)
            assert (ratio[k] - error[k]) * 2**60 <= lower
            assert upper <= (ratio[k] + error[k]) * 2**60


def test_blocks_have_the_mass_of_the_larger_weights():
    scale, parties = Fraction(3), 3
    sampler = PolyaBlocks(scale, parties)
    q = math.exp(-1 / 3)
    weights = [1 - q]
    for digit in range(sampler._digits + 1):
        end = q ** (2 ** (digit + 1)) if digit < sampler._digits else 0
        weights.append(float(rising(parties, 2**digit)) * (q ** (2**digit) - end))
    expected = np.cumsum(weights) / sum(weights)
    bounds = np.array([[lower, upper] for lower, upper in sampler._block_bounds(50)]) / 2**50
    assert np.allclose(bounds[:, 0], expected, atol=1e-12)
    assert (bounds[:, 1] - bounds[:, 0] <= 2.0**-48).all()


@pytest.mark.parametrize(("scale", "parties"), [(1, 2), (3, 3), (20, 10), (40, 1)])
def test_draws_follow_the_negative_binomial_and_no_other(scale, parties):
    draws = 60_000
    seen = PolyaBlocks(Fraction(scale), parties).draw(draws, SeededRandomSource("blocks"))

    def fit(factor: float) -> float:
        q = math.exp(-1 / (scale * factor))
        law = [(1 - q) ** (1 / parties)]
        while draws * law[-1] > 10:
            law.append(law[-1] * q * (len(law) - 1 + 1 / parties) / len(law))
        law.append(1 - sum(law))
        counts = np.bincount(np.minimum(seen, len(law) - 1), minlength=len(law))
        return chisquare(counts, draws * np.array(law)).pvalue

    assert fit(1.0) > NEVER
    assert fit(0.7) < NEVER
    assert fit(1.3) < NEVER


def test_the_law_does_not_depend_on_where_the_last_block_starts(monkeypatch):
    """Blocks up to 4 only: nearly every draw continues in the last block, rare otherwise."""
    monkeypatch.setattr(blocks, "digit_count", lambda scale: 2)
    test_draws_follow_the_negative_binomial_and_no_other(8, 3)


def test_acceptance_is_right_where_doubles_cannot_tell():
    sampler = PolyaBlocks(Fraction(10**6), 3)
    first, proposed = 4096, 6000
    lower, _ = sampler._ratio_bounds(proposed, first, 64)

    class Words(SeededRandomSource):
        def __init__(self, word: int) -> None:
            super().__init__(0)
            self.word = word

        def words(self, count: int) -> np.ndarray:
            return np.full(count, self.word, dtype=np.uint64)

    for word, outcome in ((lower - 5, True), (lower + 5, False)):
        accepted = sampler._accept(np.array([first]), np.array([proposed]), Words(word))
        assert accepted[0] == outcome


def test_a_share_beyond_64_bits_is_refused_not_wrapped(monkeypatch):
    monkeypatch.setattr(blocks, "_LARGEST_DRAW", 1 << 30)

    class AlwaysHeads:
        def random_bytes(self, count: int) -> bytes:
            return bytes(count)

    with pytest.raises(LocalError, match="64-bit"):
        PolyaBlocks(Fraction(10**6), 3)._beyond(AlwaysHeads())
