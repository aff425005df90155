from fractions import Fraction

import numpy as np
import pytest

from common.privacy.randomness import SeededRandomSource
from common.privacy.sampling.coins import Coins, digit_count
from common.privacy.sampling.enclosure import exponential

PROBABILITIES = [exponential(Fraction(1, 7)), exponential(Fraction(3)), exponential(Fraction(40))]


class Scripted:
    """Answers the given 16-bit words first, then the given 64-bit continuations."""

    def __init__(self, words, continuations) -> None:
        self.answers = [np.array(words, dtype="<u2").tobytes()]
        self.answers += [value.to_bytes(8, "little") for value in continuations]

    def random_bytes(self, count: int) -> bytes:
        answer = self.answers.pop(0)
        assert len(answer) == count
        return answer


def test_words_on_the_threshold_are_settled_by_their_continuation_and_others_at_once():
    ties = [probability(16)[0] for probability in PROBABILITIES]
    beyond = [probability(80)[0] & (2**64 - 1) for probability in PROBABILITIES]
    words = [[tie, max(tie - 1, 0), tie + 1, tie] for tie in ties]
    # In the order of the array: the ties of each coin, the second of them just above its threshold.
    # The third probability is so small that "one below" is a tie as well.
    continuations = [
        *(beyond[0] - 2, beyond[0] + 2),
        *(beyond[1] - 2, beyond[1] + 2),
        *(beyond[2] - 2, beyond[2] - 2, beyond[2] + 2),
    ]
    source = Scripted(words, continuations)
    heads = Coins(PROBABILITIES).toss(4, source)
    assert heads.tolist() == [
        [True, True, False, False],
        [True, True, False, False],
        [True, True, False, False],
    ]
    assert source.answers == []


def test_tosses_have_their_probabilities_and_are_independent_rows():
    heads = Coins(PROBABILITIES).toss(50_000, SeededRandomSource("coins"))
    assert heads.shape == (3, 50_000)
    assert heads.mean(axis=1) == pytest.approx(np.exp([-1 / 7, -3, -40]), abs=0.012)
    assert abs(np.corrcoef(heads[0], heads[1])[0, 1]) < 0.03


@pytest.mark.parametrize("scale", [Fraction(1, 100), Fraction(1), Fraction(20), Fraction(2**40)])
def test_almost_nothing_lies_beyond_the_digits(scale):
    digits = digit_count(scale)
    assert 2**digits >= 12 * scale
    assert digits == 0 or 2 ** (digits - 1) < 12 * scale
