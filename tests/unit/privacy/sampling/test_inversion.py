"""Inversion: the value that infinite precision would give, however few bits settle it."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from common.privacy.randomness import SeededRandomSource
from common.privacy.sampling.inversion import Inversion

THIRDS = [Fraction(1, 3), Fraction(2, 3), Fraction(1)]  # no number of bits writes these


def known_as(thresholds, slack=0):
    """A distribution whose bounds are as far apart as `slack`, at every precision."""

    def distribution(bits):
        for threshold in thresholds:
            scaled = threshold * (1 << bits)
            yield max(0, int(scaled) - slack), -int(-scaled // 1) + slack

    return distribution


class Scripted:
    """Hands out given bytes and counts them."""

    private = False

    def __init__(self, data):
        self.data, self.read = data, 0

    def random_bytes(self, count):
        self.read += count
        return self.data[self.read - count : self.read]


def test_every_word_is_settled_as_the_thresholds_say_or_left_open():
    table = Inversion(known_as(THIRDS))
    assert len(table) == 3
    third = (1 << 64) // 3
    words = np.array([0, third - 1, third, third + 1, 2 * third, 2 * third + 1], np.uint64)
    # The 64-bit words that begin 1/3 and 2/3 lie on both sides of the thresholds.
    assert table.settle(words).tolist() == [0, 0, -1, 1, -1, 2]


@pytest.mark.parametrize(("following", "value"), [(b"\x00" * 8, 0), (b"\xff" * 8, 1)])
def test_a_word_between_the_bounds_is_settled_by_the_bits_that_follow(following, value):
    source = Scripted(following)
    assert Inversion(known_as(THIRDS)).invert((1 << 64) // 3, 64, source) == value
    assert source.read == 8


def test_bits_are_read_until_one_differs():
    third = b"\x55" * 8  # 1/3 is 0.010101... in binary
    source = Scripted(third * 3 + b"\x54" + b"\x55" * 7)
    assert Inversion(known_as(THIRDS)).invert((1 << 64) // 3, 64, source) == 0
    assert source.read == 32


@pytest.mark.parametrize("slack", [0, 1 << 46, 1 << 61])
def test_draws_follow_the_law_whether_the_guide_the_word_or_more_bits_settle_them(slack):
    """Wide bounds leave most words open: the law must not move, and 0.7 and 1.3 of it fail."""

    def narrowing(bits):
        return known_as(THIRDS, slack if bits == 64 else 0)(bits)

    drawn = Inversion(narrowing).draw(6000, SeededRandomSource(slack))
    counted = np.bincount(drawn, minlength=3)
    assert chisquare(counted).pvalue > 1e-6
    for factor in (0.7, 1.3):
        others = (3 - factor) / 2
        expected = 2000 * np.array([factor, others, others])
        assert chisquare(counted, expected).pvalue < 1e-6


def test_a_distribution_without_an_end_is_cut_where_no_word_reaches():
    def halves(bits):
        power = 1
        while True:
            power *= 2
            threshold = (1 - Fraction(1, power)) * (1 << bits)
            yield int(threshold), -int(-threshold // 1)

    table = Inversion(halves)
    assert len(table) == 65
    assert table.settle(np.array([2**63 - 1, 2**63, 2**64 - 2], np.uint64)).tolist() == [0, 1, 63]
    assert table.settle(np.array([2**64 - 1], np.uint64)).tolist() == [-1]
    assert table.invert(2**64 - 1, 64, Scripted(b"\x00" * 8)) == 64
