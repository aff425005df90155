"""Tails of noisy margins that fall outwards."""

import doctest
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.bayes.simplex import onto_simplex
from common.methods import tails
from common.methods.tails import falling_tails, margin_of, ordered_values
from common.schema import Schema

COUNTS = st.lists(st.integers(-50, 400), min_size=1, max_size=30).map(
    lambda own: np.array(own, dtype=np.float64)
)


def test_the_example_is_true():
    assert doctest.testmod(tails, extraglobs={"np": np}).failed == 0


def pooled(run):
    """The closest counts that never fall: max-min over all intervals around a place."""
    size = len(run)
    return [
        max(min(run[a : b + 1].mean() for b in range(at, size)) for a in range(at + 1))
        for at in range(size)
    ]


def one_tail(counts, deviation):
    """From the first bin on: the run within the noise, and the bin that ends it."""
    end = len(counts)
    for length in range(1, len(counts) + 1):
        if counts[:length].sum() > tails.WITHIN * deviation * length**0.5:
            end = length
            break
    return np.concatenate([pooled(counts[:end]), counts[end:]])


@given(COUNTS, st.floats(0.5, 60))
def test_tails_are_the_closest_that_never_rise_outwards(counts, deviation):
    expected = one_tail(one_tail(counts, deviation)[::-1], deviation)[::-1]
    assert falling_tails(counts, deviation) == pytest.approx(expected, abs=1e-9)


@given(COUNTS, st.floats(0.5, 60), st.integers(0, 30))
def test_a_margin_keeps_its_rows_and_leaves_unordered_values_alone(counts, deviation, ordered):
    made = margin_of(counts, 1000, deviation, min(ordered, len(counts)))
    assert made.sum() == pytest.approx(1000)
    assert (made >= 0).all()
    assert margin_of(counts, 1000, deviation, 0) == pytest.approx(onto_simplex(counts, total=1000))


def test_counts_that_are_more_than_noise_stay():
    counts = np.array([300.0, 20.0, 260.0, 500.0, 30.0, 310.0])
    assert falling_tails(counts, 10.0).tolist() == counts.tolist()
    assert falling_tails(counts, 0.001).tolist() == counts.tolist()


def test_the_mean_of_a_long_tail_is_closer_and_distances_are_no_larger():
    rng = np.random.default_rng(3)
    centres = np.arange(50) + 0.5
    exact = np.bincount(np.minimum(rng.geometric(0.25, 5000) - 1, 49), minlength=50)
    off, far = [], []
    for _ in range(300):
        noisy = exact + rng.laplace(0, 20, 50)
        pair = [margin_of(noisy, 5000, 20 * 2**0.5, run) for run in (50, 0)]
        off.append([abs(((own - exact) * centres).sum()) for own in pair])
        far.append([np.abs(own - exact).sum() for own in pair])
    with_tails, without = np.mean(off, axis=0)
    assert with_tails < 0.6 * without
    with_tails, without = np.mean(far, axis=0)
    assert with_tails < 0.9 * without


def test_special_codes_and_unordered_values_have_no_tail():
    schema = Schema.from_toml(
        '[[attribute]]\nname = "a"\nkind = "integer"\nmin = 0\nmax = 9\nbins = 5\nmissing = true\n'
        '[[attribute]]\nname = "b"\nkind = "categorical"\nvalues = ["x", "y"]\n'
    )
    assert [ordered_values(own) for own in schema.attributes] == [5, 0]
    counts = np.array([900.0, 30.0, 5.0, -4.0, 3.0, 200.0])
    made = margin_of(counts, 1130, 5.0, 5)
    assert all(one >= other for one, other in pairwise(made[:5]))
    assert made[5] > 190
