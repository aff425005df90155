"""Blocks of attributes that are counted together."""

from fractions import Fraction
from itertools import combinations
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.methods.designs.blocks import disjoint_blocks, margin_error, margin_sums


@settings(deadline=None)
@given(st.lists(st.integers(1, 50), min_size=1, max_size=20), st.sampled_from([1, 64, 1024]))
def test_blocks_are_a_partition_that_is_never_worse_than_histograms(sizes, limit):
    blocks = disjoint_blocks(sizes, limit)
    assert sorted(a for block in blocks for a in block) == list(range(len(sizes)))
    assert margin_error(sizes, blocks) <= margin_error(sizes, [(a,) for a in range(len(sizes))])
    for block in blocks:
        assert len(block) == 1 or np.prod([sizes[a] for a in block]) <= limit


def test_binary_attributes_share_blocks_and_large_domains_stay_alone():
    blocks = disjoint_blocks([2] * 9 + [40, 40], 1024)
    assert {(9,), (10,)} <= set(blocks)
    assert all(len(block) > 1 for block in blocks if block[0] < 9)


def error_of(sizes, sums, norm):
    """The noise in all margins: V tables at a share x of the cost have V / x, or its root."""
    total = 0.0
    for blocks, share in sums:
        tables = len(blocks) / share
        deviation = float(tables) if norm == 1 else sqrt(tables)
        for block in blocks:
            cells = np.prod([sizes[a] for a in block])
            total += deviation * sum(sqrt(sizes[a] * cells) for a in block)
    return total


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(1, 300), min_size=1, max_size=6), st.sampled_from([1, 2]))
def test_margins_are_one_sum_or_the_best_two(sizes, norm):
    blocks = tuple((a,) for a in range(len(sizes)))
    sums = margin_sums(sizes, blocks, norm)
    assert sorted(block for own, _ in sums for block in own) == list(blocks)
    assert sum(share for _, share in sums) == 1
    least = min(
        (
            error_of(sizes, ((some, share), (tuple(set(blocks) - set(some)), 1 - share)), norm)
            for count in range(1, len(blocks))
            for some in combinations(blocks, count)
            for share in (Fraction(part, 40) for part in range(1, 40))
        ),
        default=float("inf"),
    )
    alone = error_of(sizes, ((blocks, Fraction(1)),), norm)
    if len(sums) == 1:
        assert least > 0.949 * alone
    else:
        assert error_of(sizes, sums, norm) == pytest.approx(least, rel=1e-4)
        assert least < 0.951 * alone


def test_a_large_domain_among_small_ones_gets_most_of_the_cost():
    (small, share), (large, rest) = margin_sums([2, 3, 500, 4], [(0, 1), (2,), (3,)], 1)
    assert (small, large) == (((0, 1), (3,)), ((2,),))
    assert rest > Fraction(2, 3) > share


def test_of_many_tables_a_smaller_gain_is_worth_a_second_sum_with_a_delta():
    sizes = [2] * 35 + [3] * 7 + [4] * 13 + [5] * 9 + [8] * 8 + [12] * 4
    for own, sums in ((sizes, 2), (sizes[::3], 1), ([9] * 40, 1)):
        assert len(margin_sums(own, [(a,) for a in range(len(own))], 2)) == sums
