"""Shares of noise: by a table, and for large scales by exact rejection in blocks."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from common.errors import LocalError
from common.privacy.randomness import OsRandomSource, SeededRandomSource
from common.privacy.sampling.polya import Blocks, _cumulative, _table, polya_shares


@pytest.mark.parametrize("count", [0, 1, 32768, 32769])
def test_as_many_shares_as_asked_for(count):
    shares = polya_shares(Fraction(3), count, OsRandomSource(), parties=3)
    assert shares.shape == (count,)
    assert shares.dtype == np.int64


@pytest.mark.parametrize(("scale", "parties", "count"), [(0, 1, 1), (1, 0, 1), (1, 1, -1)])
def test_impossible_requests_are_refused(scale, parties, count):
    with pytest.raises(LocalError):
        polya_shares(Fraction(scale), count, OsRandomSource(), parties=parties)


def test_the_same_seed_gives_the_same_shares():
    first, second = (
        polya_shares(Fraction(9), 50, SeededRandomSource(4), parties=3) for _ in range(2)
    )
    assert (first == second).all()


def negative_binomial(scale: Fraction, parties: int, values: int) -> list[float]:
    q, r = np.exp(-1 / float(scale)), 1 / parties
    probability, law = (1 - q) ** r, []
    for value in range(values):
        law.append(probability)
        probability *= q * (value + r) / (value + 1)
    return law


@pytest.mark.parametrize("scale", [Fraction(1, 7), Fraction(2), Fraction(40)])
@pytest.mark.parametrize("parties", [1, 2, 3, 10, 100])
def test_thresholds_enclose_the_distribution_function(scale, parties):
    expected = np.cumsum(negative_binomial(scale, parties, 60))
    for total, (lower, upper), _ in zip(
        expected, _cumulative(scale, parties, 40), range(60), strict=False
    ):
        assert lower - 1 <= total * 2**40 <= upper + 1
        assert upper - lower <= 2


def test_more_bits_refine_the_same_thresholds():
    for coarse, fine, _ in zip(
        _cumulative(Fraction(5), 3, 32), _cumulative(Fraction(5), 3, 200), range(100), strict=False
    ):
        assert coarse[0] << 168 <= fine[1]
        assert fine[0] <= coarse[1] << 168


@pytest.mark.parametrize("scale", [Fraction(1, 5), Fraction(3), Fraction(50)])
@pytest.mark.parametrize("parties", [1, 3])
def test_table_guide_and_slow_inversion_agree(scale, parties):
    """The three ways to invert are one function."""
    table = _table(scale, parties)
    words = SeededRandomSource("inversion").words(300)
    settled = table.settle(words)
    assert (settled >= 0).all()
    assert settled.tolist() == [
        table.invert(int(word), 64, SeededRandomSource(0)) for word in words
    ]
    guided = table._guide[(words >> np.uint64(48)).astype(np.intp)]
    assert ((guided == settled) | (guided == -1)).all()


@pytest.mark.parametrize("value", [0, 1, 30])
def test_a_word_on_a_threshold_is_left_open_and_then_settled(value):
    scale, parties = Fraction(10), 3
    table = _table(scale, parties)
    word = int(table._lower[value])
    assert table.settle(np.array([word], dtype=np.uint64))[0] == -1

    class Scripted:
        def __init__(self, word: int) -> None:
            self.data = word.to_bytes(8, "little")

        def random_bytes(self, count: int) -> bytes:
            taken, self.data = self.data[:count], self.data[count:]
            assert len(taken) == count
            return taken

    bounds = list(zip(range(value + 1), _cumulative(scale, parties, 128), strict=False))
    threshold = bounds[value][1][0] & (2**64 - 1)
    for rest, outcome in ((threshold - 2, value), (threshold + 2, value + 1)):
        assert table.invert(word, 64, Scripted(rest)) == outcome


def test_a_word_beyond_the_table_is_settled_by_the_tail():
    scale, parties = Fraction(2), 2
    beyond = len(_table(scale, parties))
    value = _table(scale, parties).invert(2**64 - 1, 64, SeededRandomSource("tail"))
    assert beyond - 3 <= value <= beyond + 60


def test_a_draw_on_a_threshold_goes_the_exact_way_through_the_whole_sampler():
    """Words crafted so that the guide and the table both leave the draw open."""
    scale, parties = Fraction(10), 3
    word = int(_table(scale, parties)._lower[5])

    class Crafted:
        private = False

        def __init__(self) -> None:
            self.answers = [
                (word >> 48).to_bytes(2, "little") * 2,
                *[bytes(8)] * 10,
            ]

        def random_bytes(self, count: int) -> bytes:
            return self.answers.pop(0).ljust(count, b"\0")[:count]

        def words(self, count: int) -> np.ndarray:
            return np.array([(word << 16) % 2**64, 0], dtype=np.uint64)[:count]

    # The first half sits on the lower bound of F(5) and its further bits are zero: just below F(5).
    second = _table(scale, parties).settle(np.array([word >> 48 << 48], dtype=np.uint64))[0]
    assert second >= 0
    assert polya_shares(scale, 1, Crafted(), parties=parties)[0] == 5 - second


@pytest.mark.parametrize("scale", [Fraction(300), Fraction(2**14), Fraction(2**14) + 1])
def test_a_few_shares_of_a_large_scale_do_not_wait_for_a_table(scale):
    before = _table.cache_info().misses
    shares = polya_shares(scale, 100, SeededRandomSource("few"), parties=3)
    assert _table.cache_info().misses == before
    assert shares.any()


NEVER = 1e-9


def rising(parties: int, value: int) -> Fraction:
    r = Fraction(1, parties)
    return math.prod((Fraction(k - 1 + r, k) for k in range(1, value + 1)), start=Fraction(1))


@pytest.mark.parametrize("parties", [1, 2, 7])
@pytest.mark.parametrize("value", [0, 1, 2, 3, 4, 17, 200])
def test_bounds_enclose_the_rising_factorial_and_are_tight(parties, value):
    lower, upper = Blocks(Fraction(5), parties)._rising(value, 100)
    assert lower <= rising(parties, value) * 2**100 <= upper
    assert upper - lower <= 2


@pytest.mark.parametrize("parties", [1, 2, 3, 10, 1000])
def test_doubles_are_as_close_to_the_ratio_as_they_claim(parties):
    sampler = Blocks(Fraction(10**6), parties)
    first = 2 ** np.arange(0, 24, dtype=np.int64)
    for proposed in (first, first + first // 3, 2 * first - 1):
        ratio, error = sampler._approximate(first, proposed)
        for k in range(len(first)):
            lower, upper = sampler._ratio_bounds(int(proposed[k]), int(first[k]), 60)
            assert (ratio[k] - error[k]) * 2**60 <= lower
            assert upper <= (ratio[k] + error[k]) * 2**60


def test_blocks_have_the_mass_of_the_larger_weights():
    scale, parties = Fraction(3), 3
    sampler = Blocks(scale, parties)
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
    seen = Blocks(Fraction(scale), parties).draw(draws, SeededRandomSource("blocks"))

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
    monkeypatch.setattr("common.privacy.sampling.polya.digit_count", lambda scale: 2)
    test_draws_follow_the_negative_binomial_and_no_other(8, 3)


def test_acceptance_is_right_where_doubles_cannot_tell():
    sampler = Blocks(Fraction(10**6), 3)
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
    monkeypatch.setattr("common.privacy.sampling.polya._LARGEST_DRAW", 1 << 30)

    class AlwaysHeads:
        def random_bytes(self, count: int) -> bytes:
            return bytes(count)

    with pytest.raises(LocalError, match="64-bit"):
        Blocks(Fraction(10**6), 3)._beyond(AlwaysHeads())
