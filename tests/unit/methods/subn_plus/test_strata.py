"""Stratified rows: those that the plain algorithm draws from the same bytes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.methods.subn_plus import strata
from common.methods.subn_plus.strata import order, stratified
from common.privacy.randomness import SeededRandomSource, uniforms


def systematic(weights, count, source):
    if count == 0:
        return np.zeros(0, dtype=int)
    edges = np.cumsum(weights)
    points = (np.arange(count) + uniforms(1, source)[0]) / count * edges[-1]
    return np.searchsorted(edges, points, side="right").clip(max=len(weights) - 1)


def oracle(weights, columns, rows, source):
    """Every point is looked up among the edges, and every column of a class is shuffled."""
    classes = np.bincount(systematic(weights, rows, source), minlength=len(weights))
    place = np.argsort(source.words(rows))
    out = np.zeros((len(columns), rows), dtype=int)
    start = 0
    for component, count in enumerate(classes):
        own = place[start : start + count]
        start += count
        for values, column in zip(out, columns, strict=True):
            drawn = systematic(column[component], count, source)
            values[own] = drawn[np.argsort(source.words(count))]
    return out


def mixture(classes, sizes, seed, sparse):
    rng = np.random.default_rng(seed)
    laws = [rng.dirichlet(np.full(size, 0.3), classes) for size in sizes]
    if sparse:
        laws = [np.round(law, 1) for law in laws]  # equal edges, and classes without any mass
    return rng.dirichlet(np.ones(classes)), laws


@settings(max_examples=60, deadline=None)
@given(
    rows=st.integers(0, 400),
    classes=st.integers(1, 9),
    sizes=st.lists(st.integers(1, 300), min_size=1, max_size=4),
    seed=st.integers(0, 10**6),
    sparse=st.booleans(),
    together=st.booleans(),
)
def test_the_same_bytes_give_the_same_rows_as_ever(rows, classes, sizes, seed, sparse, together):
    weights, laws = mixture(classes, sizes, seed, sparse)
    expected = oracle(weights, laws, rows, SeededRandomSource(seed))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strata, "_MOST_CELLS", 1 << 20 if together else 0)
        drawn = stratified(weights, laws, rows, SeededRandomSource(seed))
    assert np.array_equal(drawn, expected)


def test_every_value_has_its_share_of_every_class():
    weights, laws = mixture(3, (5, 2), 1, sparse=False)
    drawn = stratified(weights, laws, 10_000, SeededRandomSource(1))
    for values, law in zip(drawn, laws, strict=True):
        seen = np.bincount(values, minlength=law.shape[1])
        assert np.abs(seen - 10_000 * weights @ law).max() < 4


@pytest.mark.parametrize("number", [1, 2, 7, 1000])
def test_words_are_ordered_as_by_argsort(number):
    words = SeededRandomSource("order").words(3 * number).reshape(3, number)
    assert np.array_equal(order(words), np.argsort(words, axis=1))


def test_words_that_differ_in_their_last_bits_alone_are_told_apart():
    words = np.array([[9, 8, 1 << 40, 7], [5 << 50, 3 << 50, 4 << 50, 1 << 50]], dtype=np.uint64)
    assert order(words).tolist() == [[3, 1, 0, 2], [3, 1, 2, 0]]
