"""The digest of rows depends on the rows and on nothing else."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.schema.codes import Codes
from party.sources.fingerprint import RowDigest

SIZES = (2, 3, 300)
ROWS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 299)), min_size=1, max_size=30
)


def digest_of(rows, *, chunk=1000, sizes=SIZES):
    result = RowDigest(sizes)
    for start in range(0, len(rows), chunk):
        columns = np.array(rows[start : start + chunk]).T
        result.add(Codes.from_columns(list(columns), sizes))
    return result.hexdigest()


@settings(max_examples=50, deadline=None)
@given(ROWS, st.randoms(use_true_random=False), st.integers(1, 7))
def test_order_and_chunks_do_not_matter(rows, random, chunk):
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert digest_of(rows) == digest_of(shuffled, chunk=chunk)


@settings(max_examples=100, deadline=None)
@given(ROWS, ROWS)
def test_different_multisets_have_different_digests(first, second):
    assert (digest_of(first) == digest_of(second)) == (sorted(first) == sorted(second))


def test_rows_with_the_same_one_way_counts_are_told_apart():
    assert digest_of([(0, 0, 0), (1, 1, 1)]) != digest_of([(0, 1, 0), (1, 0, 1)])


def test_a_row_that_comes_twice_counts_twice():
    assert digest_of([(0, 0, 0)] * 2) != digest_of([(0, 0, 0)] * 4)


def test_domains_are_a_part_of_it():
    assert digest_of([(0, 0, 0)]) != digest_of([(0, 0, 0)], sizes=(2, 4, 300))


@pytest.mark.parametrize("position", [0, 40_000, 99_999])
def test_one_cell_among_many_rows_shows(position):
    rows = np.random.default_rng(1).integers(0, (2, 3, 300), size=(100_000, 3))
    changed = rows.copy()
    changed[position, 2] = (changed[position, 2] + 1) % 300
    assert digest_of(rows, chunk=1 << 20) != digest_of(changed, chunk=1 << 20)
