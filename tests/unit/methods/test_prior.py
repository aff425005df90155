"""Noisy sums drawn towards an earlier release: exact, bounded, and better on average."""

import itertools
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import isqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from common.errors import InputError
from common.methods.prior import Prior, drawn_towards, near_prior
from common.methods.registry import methods, run_of
from common.schema.codes import Codes
from common.study.document import Study
from common.study.requests import TableRequest, scaled
from tests.harness.run_script import random_tables, study_of

COUNTS = arrays.arrays(np.int64, st.integers(1, 60), elements=st.integers(-(10**9), 10**9))


def by_hand(expected, counts, variance):
    """The estimator in fractions, as it stands in the module's head."""
    off = [int(y) - int(p) for y, p in zip(counts, expected, strict=True)]
    squares, cells = sum(each**2 for each in off), len(off)
    if squares == 0:
        return list(expected), Fraction(1)
    least = Fraction(isqrt((8 << 40) // cells), 1 << 20)
    keep = min(max(1 - max(cells - 2, 0) * variance / squares, least), Fraction(1))
    return [p + keep * each for p, each in zip(map(int, expected), off, strict=True)], keep


@given(COUNTS, st.integers(1, 10**12), st.randoms(use_true_random=False))
def test_it_is_the_estimator_of_james_and_stein(counts, variance, random):
    expected = np.array([random.randint(-(10**9), 10**9) for _ in counts], dtype=np.int64)
    found, kept = drawn_towards(expected, counts, Fraction(variance))
    wanted, keep = by_hand(expected, counts, Fraction(variance))
    assert abs(kept - keep) <= Fraction(1, 1 << 20)
    largest = int(np.abs(counts - expected).max())
    assert all(
        abs(int(own) - exact) <= 1 + Fraction(largest, 1 << 20)
        for own, exact in zip(found, wanted, strict=True)
    )


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_tables_that_are_not_small_are_drawn_by_themselves(sizes, random):
    cells = sum(sizes)
    expected = np.array([random.randint(0, 1000) for _ in range(cells)], dtype=np.int64)
    counts = expected + np.array([random.randint(-90, 90) for _ in range(cells)], dtype=np.int64)
    found, kept = drawn_towards(expected, counts, Fraction(900), sizes)
    ends = np.cumsum([0, *sizes])
    parts = [np.arange(a, b) for a, b in itertools.pairwise(ends)]
    small = [part for part in parts if len(part) < 16]
    alone = [part for part in parts if len(part) >= 16]
    total = Fraction(0)
    for part in [*alone, *([np.concatenate(small)] if small else [])]:
        own, keep = drawn_towards(expected[part], counts[part], Fraction(900))
        assert np.array_equal(found[part], own)
        total += keep * len(part)
    assert kept == total / cells


def test_numbers_that_do_not_fit_64_bits_when_squared_are_exact():
    counts = np.full(50, 1 << 40, dtype=np.int64)
    found, kept = drawn_towards(np.zeros(50, dtype=np.int64), counts, Fraction(1))
    assert kept == 1 - Fraction(1, 1 << 20)
    assert np.array_equal(found, scaled(counts, top=(1 << 20) - 1, bottom=1 << 20))


def test_cells_without_noise_do_not_count():
    expected = np.zeros(200, dtype=np.int64)
    counts = np.concatenate([np.tile([40, -40], 50), np.zeros(100, dtype=np.int64)])
    noisy = np.arange(200) < 100
    _, half = drawn_towards(expected, counts, Fraction(800), noisy=noisy)
    assert half == Fraction(int((1 - Fraction(98 * 800, 100 * 1600)) * 2**20), 2**20)


@pytest.mark.parametrize("away", [0.0, 0.5, 1.0, 2.0, 10.0])
def test_the_squared_error_is_never_larger_on_average(away):
    """Laplace noise, and a prior that is off by `away` deviations of it in every cell."""
    rng = np.random.default_rng(1)
    truth, scale, cells, runs = 500, 40.0, 100, 400
    deviation = scale * 2**0.5
    expected = truth + np.rint(away * deviation * rng.choice([-1, 1], cells)).astype(np.int64)
    gained = []
    for _ in range(runs):
        noise = np.rint(rng.laplace(0, scale, cells)).astype(np.int64)
        found, _ = drawn_towards(expected, truth + noise, Fraction(2 * 40**2))
        gained.append(float((noise**2).sum() - ((found - truth) ** 2).sum()) / cells)
    mean, error = np.mean(gained), np.std(gained) / runs**0.5
    assert mean > -3 * error
    if away <= 1:
        assert mean > 0.2 * deviation**2  # a prior that is right takes much of the noise off


def test_the_share_that_is_kept_is_the_variance_that_is_left():
    rng = np.random.default_rng(2)
    cells, away = 400, 60
    expected = rng.choice([-away, away], cells).astype(np.int64)
    ratios, kept = [], []
    for _ in range(200):
        noise = np.rint(rng.normal(0, 80, cells)).astype(np.int64)
        found, keep = drawn_towards(expected, noise, Fraction(80**2))
        ratios.append(float((found**2).mean()) / 80**2)
        kept.append(float(keep))
    assert np.mean(ratios) == pytest.approx(np.mean(kept), rel=0.1)


def test_a_prior_answers_like_as_many_rows():
    table = Codes.from_columns([np.array([0, 0, 1, 1, 1])], (2,))
    request = TableRequest(((0,),), (2,))
    assert Prior(table).answer(request, 1000).tolist() == [400, 600]


def test_a_study_runs_with_the_prior_that_it_names_and_not_without():
    tables = random_tables((3, 4), (40, 50, 60))
    study = study_of(tables, method="subn+", prior="ab" * 32)
    prior = Prior(next(iter(tables.values())))
    assert run_of(study, prior).step() is not None
    with pytest.raises(InputError, match="release abababababababab is not here"):
        run_of(study)
    with pytest.raises(InputError, match="the study names none"):
        run_of(replace(study, prior=""), prior)
    with pytest.raises(InputError, match="dp-subn does not only add up"):
        run_of(replace(study, method="dp-subn"), prior)


def test_steps_and_model_are_those_of_the_sums_drawn_towards_the_prior():
    """The published result stays as it was; the script is given what is nearer to the prior."""
    tables = random_tables((6, 7), (300, 300, 300))
    study = study_of(tables, method="floor", prior="ab" * 32)
    prior = Prior(tables["p0"])
    given = []

    def script(study):
        step = next(methods()["floor"].script(study))
        given.append((yield step))
        return lambda: None

    run = replace(methods()["floor"], script=partial(near_prior, script, prior)).run(study)
    step = run.step()
    exact = sum(step.request.answer(Prior(table)) for table in tables.values())
    rng = np.random.default_rng(3)
    result = exact + np.rint(rng.normal(0, 30, step.cells)).astype(np.int64)
    run.advance(result)
    variance = step.law.nominal_variance * study.noise_shares(3)
    shapes = [table.cells for table in step.request.shown]
    counts, kept = drawn_towards(prior.answer(step.request, 900), result, variance, shapes)
    assert np.array_equal(given[0].counts, counts)
    assert given[0].variance_ratio == kept
    assert not np.array_equal(counts, result)


class WithoutTables(TableRequest):
    """As criteria are: what it asks is not about rows alone."""

    shown = ()


def test_a_request_that_shows_no_table_is_left_as_it_is():
    tables = random_tables((6, 7), (300, 300, 300))
    study = study_of(tables, method="floor", prior="ab" * 32)
    given = []

    def script(study):
        step = next(methods()["floor"].script(study))
        request = WithoutTables(((0,), (1,)), (6, 7))
        given.append((yield replace(step, request=request)))
        return lambda: None

    towards = partial(near_prior, script, Prior(tables["p0"]))
    run = replace(methods()["floor"], script=towards).run(study)
    result = np.arange(13, dtype=np.int64)
    run.advance(result)
    assert np.array_equal(given[0].counts, result)
    assert given[0].variance_ratio == 1


def test_the_digest_of_a_study_names_its_prior():
    tables = random_tables((3, 4), (40, 50, 60))
    plain = study_of(tables, method="subn+")
    named = replace(plain, prior="ab" * 32)
    assert Study.from_toml(named.to_toml()) == named
    assert len({plain.digest, named.digest, replace(plain, prior="cd" * 32).digest}) == 3
    with pytest.raises(InputError, match="prior: expected the SHA-256"):
        replace(plain, prior="last year")
