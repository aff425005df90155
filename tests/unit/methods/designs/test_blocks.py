"""Blocks of attributes that are counted together."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from common.methods.designs.blocks import disjoint_blocks, margin_error


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
