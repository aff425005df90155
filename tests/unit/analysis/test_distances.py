"""Distances of marginals, against brute force."""

import itertools

import numpy as np
import pytest

from common.analysis.distances import MOST_MARGINALS, marginal_sets, total_variation
from common.schema import Codes


def codes_of(rows, sizes):
    return Codes.from_columns([np.array(c) for c in zip(*rows, strict=True)], sizes)


def brute_force_distance(left, right, positions):
    def law(rows):
        keys = [tuple(row[p] for p in positions) for row in rows]
        return {key: keys.count(key) / len(keys) for key in keys}

    a, b = law(left), law(right)
    return sum(abs(a.get(k, 0) - b.get(k, 0)) for k in a.keys() | b.keys()) / 2


def test_distances_are_those_of_brute_force():
    rng = np.random.default_rng(3)
    sizes = (2, 3, 4)
    left = [tuple(int(rng.integers(s)) for s in sizes) for _ in range(50)]
    right = [tuple(int(rng.integers(s)) for s in sizes) for _ in range(80)]
    sets = [s for order in (1, 2, 3) for s in itertools.combinations(range(3), order)]
    found = total_variation(codes_of(left, sizes), codes_of(right, sizes), sets)
    assert found == pytest.approx([brute_force_distance(left, right, s) for s in sets])


def test_too_many_marginals_are_thinned_evenly_and_counted():
    sets = marginal_sets(52, order=3)
    assert len(sets) == len(set(sets)) == MOST_MARGINALS
    assert {p for s in sets for p in s} == set(range(52))
