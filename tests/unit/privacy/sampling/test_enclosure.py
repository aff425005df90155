from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.privacy.randomness import SeededRandomSource
from common.privacy.sampling.enclosure import (
    Coins,
    digit_count,
    exponential,
    exponential_bounds,
    falls_below,
    half_tangent,
    odds,
)

exponents = st.fractions(min_value=0, max_value=200)
precisions = st.integers(min_value=0, max_value=300)


def series(exponent: Fraction, terms: int = 40) -> tuple[Fraction, Fraction]:
    """Rational bounds on exp(-x) by halving x below one, its alternating series, and squaring."""
    halvings = max(0, int(exponent)).bit_length()
    small = exponent / 2**halvings
    term, total = Fraction(1), Fraction(1)
    for k in range(1, 2 * terms):
        term *= -small / k
        total += term
    return total ** (2**halvings), (total - term) ** (2**halvings)  # an odd and an even partial sum


@given(st.fractions(min_value=0, max_value=4, max_denominator=100), st.integers(0, 128))
def test_bounds_enclose_the_exponential_and_are_tight(exponent, bits):
    lower, upper = exponential_bounds(exponent, bits)
    below, above = series(exponent)
    assert lower <= above * 2**bits
    assert below * 2**bits <= upper
    assert upper - lower <= 2


@pytest.mark.parametrize("kind", [exponential, odds, half_tangent])
@given(exponent=exponents, bits=precisions, more=st.integers(1, 64))
def test_finer_bounds_lie_within_coarser_ones_up_to_rounding(kind, exponent, bits, more):
    coarse, fine = kind(exponent)(bits), kind(exponent)(bits + more)
    assert coarse[0] - 1 <= Fraction(fine[0], 2**more) <= coarse[1] + 1
    assert 0 <= coarse[0] <= coarse[1] <= 2**bits
    assert coarse[1] - coarse[0] <= 2


@given(st.fractions(min_value=Fraction(1, 100), max_value=4, max_denominator=100))
def test_odds_and_half_tangent_are_what_they_say(exponent):
    below, above = (value for value in series(exponent))
    lower, upper = odds(exponent)(80)
    assert lower <= above / (1 + above) * 2**80
    assert below / (1 + below) * 2**80 <= upper
    lower, upper = half_tangent(exponent)(80)
    assert lower <= (1 - below) / (1 + below) * 2**80
    assert (1 - above) / (1 + above) * 2**80 <= upper


@pytest.mark.parametrize("exponent", [Fraction(10**6), Fraction(10**15)])
def test_an_exponential_too_small_for_any_float_is_still_above_zero(exponent):
    assert exponential_bounds(exponent, 64) == (0, 1)


class Scripted:
    """A source that hands out given bytes and then zeros."""

    private = False

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.read = 0

    def random_bytes(self, count: int) -> bytes:
        self.read += count
        taken, self.data = self.data[:count], self.data[count:]
        return taken.ljust(count, b"\0")


def test_a_tie_is_settled_by_reading_more_bits():
    probability = exponential(Fraction(1, 20))
    tie, _ = probability(16)
    threshold = probability(80)[0] & (2**64 - 1)
    for rest, outcome in ((threshold - 3, True), (threshold + 3, False)):
        source = Scripted(rest.to_bytes(8, "little"))
        assert falls_below(tie, 16, probability, source) is outcome
        assert source.read == 8


def test_clear_cases_read_nothing():
    probability = exponential(Fraction(1, 20))
    source = Scripted(b"")
    tie, _ = probability(16)
    assert falls_below(tie - 1, 16, probability, source)
    assert not falls_below(tie + 1, 16, probability, source)
    assert source.read == 0


def test_a_fresh_coin_has_its_probability():
    source = SeededRandomSource("fresh coin")
    heads = sum(falls_below(0, 0, exponential(Fraction(1)), source) for _ in range(20_000))
    assert abs(heads - 20_000 * 0.36788) < 6 * 68.2


PROBABILITIES = [exponential(Fraction(1, 7)), exponential(Fraction(3)), exponential(Fraction(40))]


class ScriptedTosses:
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
    source = ScriptedTosses(words, continuations)
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
