"""Looks that sums are split into, and the price that they choose."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from common.methods.subn_plus.facts import PublicFacts
from common.methods.subn_plus.latent import LatentModel
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


def test_noisier_sums_have_the_same_noise_again():
    noise = np.random.default_rng(2).normal(0, 3, 100_000)
    contrasts = Moments((0, 1), (np.arange(1),) * 2, [noise[:, None]], 9.0, (4.0,))
    table = Measurement((0,), (None,), noise, 9.0)
    noisier = Evidence((table,), (contrasts,), 1, (table,)).noisier()
    for again in (noisier.tables[0], noisier.pairs[0]):
        assert again.variance == 18.0
        assert (again.counts - noise).std() == pytest.approx(3, rel=0.02)
        assert abs(np.corrcoef(again.counts - noise, noise)[0, 1]) < 0.02
    (moments,) = noisier.moments
    assert moments.variance == 18.0
    assert (moments.contrasts[0][:, 0] - noise).std() == pytest.approx(1.5, rel=0.02)


def mixture_of(*columns):
    """Return a mixture of two even classes, from each column's law in both."""
    return LatentModel(np.array([0.5, 0.5]), tuple(np.array(column) for column in columns))


def contrasts_of(mixture, groups, variance, seed):
    """Return the noisy contrasts of all pairs of a mixture's columns, in groups."""
    rng, widths = np.random.default_rng(seed), [int(own.max()) + 1 for own in groups]
    seen = [
        column @ np.eye(width)[own] - contrast_shift(width) / CONTRAST_UNIT
        for column, own, width in zip(mixture.columns, groups, widths, strict=True)
    ]
    sums = [
        (seen[a] * mixture.weights[:, None]).T @ seen[b]
        + rng.normal(0, variance**0.5, (widths[a], widths[b]))
        for a, b in combinations(range(len(seen)), 2)
    ]
    return Moments(tuple(range(len(seen))), tuple(groups), sums, variance)


def truly_off(one, other):
    """Return the mean total variation distance of two mixtures' pairs."""
    pairs = list(combinations(range(len(one.columns)), 2))
    return float(np.mean([np.abs(one.together(p) - other.together(p)).sum() / 2 for p in pairs]))


def test_the_forecast_of_a_distance_is_the_distance():
    """A bias that groups show, read off a look with noise; and what a fit changes within groups."""
    skew = np.array([0.4, 0.3, 0.2, 0.1])
    true = mixture_of(*([skew, skew[::-1]] for _ in range(6)))
    flat = mixture_of(*([np.full(4, 0.25)] * 2 for _ in range(6)))
    for variance in (1e-10, 1e-5):
        look = Evidence((), (contrasts_of(true, (np.arange(4),) * 6, variance, 3),), 10_000)
        right, far = look.distance(true, true), truly_off(flat, true)
        assert right < 16 * variance**0.5
        assert far < look.distance(flat, flat) < 1.3 * far + right  # as if all cells were off alike
    within = np.kron(skew, [0.9, 0.1]), np.kron(skew[::-1], [0.1, 0.9])
    noisy = mixture_of(*([*within] for _ in range(6)))
    even = mixture_of(*([np.kron(own, [0.5, 0.5]) for own in (skew, skew[::-1])] for _ in range(6)))
    groups = (np.repeat(np.arange(4), 2),) * 6
    look = Evidence((), (contrasts_of(even, groups, 1e-10, 4),), 10_000)
    assert look.distance(even, even) < 0.001
    hidden = look.distance(even, noisy)
    assert 0.9 * truly_off(even, noisy) < hidden <= truly_off(even, noisy) + 0.001
    detail = tuple(
        Measurement(pair, (None, None), 10_000 * even.together(pair), 1e-4)
        for pair in combinations(range(6), 2)
    )
    known = replace(look, pairs=detail)  # in detail nothing is hidden
    assert known.distance(even, noisy) < 0.001


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
