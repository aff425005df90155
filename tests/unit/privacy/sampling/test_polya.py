from fractions import Fraction

import numpy as np
import pytest

from common.errors import LocalError
from common.privacy.randomness import OsRandomSource, SeededRandomSource
from common.privacy.sampling.polya import _cumulative, _table, polya_shares


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
