"""Looks that sums are split into, and the price that they choose."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from common.methods.subn_plus.facts import PublicFacts
from common.methods.subn_plus.losses import Measurement, Moments
from common.methods.subn_plus.models import mixture_model
from common.methods.subn_plus.thinning import HELD_BACK, Evidence, best_factor, normals
from common.privacy.promise import Promise
from common.privacy.randomness import SeededRandomSource
from common.privacy.sensitivity import CONTRAST_UNIT, contrast_shift


def test_normals_are_normal():
    drawn = normals(200_001, SeededRandomSource("normal"))
    assert abs(drawn.mean()) < 0.01
    assert abs(drawn.std() - 1) < 0.01
    assert abs((np.abs(drawn) < 1).mean() - 0.6827) < 0.005
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 0.01


def test_two_looks_are_uncorrelated_and_average_to_the_sum():
    noise = np.random.default_rng(1).normal(0, 3, 100_000)
    whole = Evidence((Measurement((0,), (None,), noise, 9.0),), (), 1)
    first, second = (own.tables[0] for own in whole.split())
    assert first.counts.var() == pytest.approx(first.variance, rel=0.02)
    assert second.counts.var() == pytest.approx(second.variance, rel=0.02)
    assert abs(np.corrcoef(first.counts, second.counts)[0, 1]) < 0.02
    mean = (1 - HELD_BACK) * first.counts + HELD_BACK * second.counts
    np.testing.assert_allclose(mean, noise, atol=1e-9)
    again, _ = (own.tables[0] for own in whole.split())
    np.testing.assert_array_equal(again.counts, first.counts)  # a function of the sums


@pytest.mark.parametrize(("least", "wanted"), [(-0.3, 2**-0.3), (1.6, 2**1.6), (9, 8), (-9, 1 / 8)])
def test_the_factor_is_that_of_the_least_error(least, wanted):
    found = best_factor(lambda factor: (np.log2(factor) - least) ** 2)
    assert found == pytest.approx(wanted)


def some_moments(dependence, variance, seed=0):
    """Return margins and contrasts of eight columns in four groups that share one factor."""
    rng, rows = np.random.default_rng(seed), 20_000
    factor = rng.random(rows) < 0.5
    columns = [
        np.where(rng.random(rows) < dependence, 2 * factor, 0) + rng.integers(0, 2, rows)
        for _ in range(8)
    ]
    shift = contrast_shift(4) / CONTRAST_UNIT
    seen = [np.eye(4)[own] - shift for own in columns]
    sums = [
        seen[a].T @ seen[b] / rows + rng.normal(0, variance**0.5, (4, 4))
        for a, b in combinations(range(8), 2)
    ]
    moments = Moments(tuple(range(8)), (np.arange(4),) * 8, sums, variance)
    tables = [
        Measurement((a,), (None,), np.bincount(own, minlength=4).astype(float), 100.0)
        for a, own in enumerate(columns)
    ]
    return tables, moments, rows


def test_noise_alone_is_dearer_than_dependence():
    facts = PublicFacts(sizes=(4,) * 8, parties=("a",), rows=20_000, promise=Promise(Fraction(1)))
    prices = []
    for dependence in (0.0, 0.9):
        tables, moments, _ = some_moments(dependence, 1e-4)
        model = mixture_model(facts, tables, (), [moments])
        prices.append(model.price)
        same = mixture_model(facts, tables, (), [moments])
        assert model.as_json() == same.as_json()
    assert prices[0] > 1.5 * prices[1]


def test_pairs_that_were_looked_at_again_are_split_by_their_own_noise():
    tables, moments, rows = some_moments(0.5, 1e-4)
    looks = tuple(4.0 if place == 0 else 1.0 for place in range(len(moments.contrasts)))
    first, second = Evidence(tuple(tables), (replace(moments, looks=looks),), rows).split()
    apart = [
        float(np.std(one - other))
        for one, other in zip(first.moments[0].contrasts, second.moments[0].contrasts, strict=True)
    ]
    assert apart[0] < 0.75 * np.mean(apart[1:])  # half, by 16 draws
