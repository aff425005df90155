"""Noisy tables made possible: the nearest one, falling tails, and tables that agree."""

import doctest
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.fft import dct, idct
from scipy.optimize import isotonic_regression, minimize

from common.bayes import postprocessing
from common.bayes.domain import Domain, View
from common.bayes.network import sum_out
from common.bayes.postprocessing import (
    consistent_tables,
    falling_tails,
    margin_of,
    mutual_information,
    onto_simplex,
    overlaps,
    reconcile,
    smoothed,
)
from common.errors import LocalError
from common.marginals import count
from common.schema.codes import Codes

finite = st.floats(-1e6, 1e6, allow_nan=False)


@given(arrays(np.float64, (3, 4), elements=finite), st.floats(0, 1e6))
def test_the_projection_is_non_negative_sums_to_the_total_and_keeps_order(values, total):
    projected = onto_simplex(values, total=total)
    assert (projected >= 0).all()
    assert projected.sum() == pytest.approx(total, abs=1e-6 * (1 + np.abs(values).sum()))
    order = np.argsort(values, axis=None, kind="stable")
    assert (np.diff(projected.ravel()[order]) >= -1e-9).all()


def test_projection_is_the_nearest_non_negative_table():
    generator = np.random.default_rng(2)
    for _ in range(20):
        table = generator.normal(0, 5, (3, 4))
        found = onto_simplex(table, total=10)
        assert found.sum() == pytest.approx(10)
        assert (found >= 0).all()
        for _ in range(50):  # no other feasible table is nearer
            other = generator.dirichlet(np.ones(12)).reshape(3, 4) * 10
            step = found + 0.1 * (other - found)
            assert ((step - table) ** 2).sum() >= ((found - table) ** 2).sum() - 1e-9


def test_a_negative_total_is_refused():
    with pytest.raises(LocalError, match="cannot sum to -1"):
        onto_simplex(np.ones(3), total=-1)


def test_information_is_one_bit_of_a_copy_and_none_of_independent_columns():
    assert mutual_information(np.diag([5.0, 5.0])) == pytest.approx(1)
    assert mutual_information(np.outer([1.0, 3.0], [2.0, 2.0])) == pytest.approx(0)
    assert mutual_information(-np.ones((2, 2))) == 0


DOMAIN = Domain(
    (
        (np.arange(8), np.arange(8) // 2, np.arange(8) // 4),
        (np.arange(3),),
        (np.arange(2),),
        (np.arange(2),),
    )
)
FAMILIES = [
    (View(1), View(0, 1)),
    (View(2), View(0, 2), View(1)),
    (View(3), View(0, 0), View(2)),
]


def noisy_tables(scale, seed=0, rows=5000):
    generator = np.random.default_rng(seed)
    a = generator.choice(8, rows, p=np.arange(1, 9) / 36)
    codes = Codes.from_columns([a, a % 3, a // 4, generator.integers(0, 2, rows)], DOMAIN.sizes)
    expanded, columns = DOMAIN.expand(codes), {v: i for i, v in enumerate(DOMAIN.views)}
    exact = count(expanded, [[columns[v] for v in f] for f in FAMILIES])
    truth = dict(zip(FAMILIES, exact, strict=True))
    noise = {f: t + np.rint(generator.laplace(0, scale, t.shape)) for f, t in truth.items()}
    return truth, noise


def test_overlaps_are_closed_under_intersection_and_smallest_first():
    found = overlaps(FAMILIES, DOMAIN)
    assert {(View(0, 2),), (View(0, 2), View(1)), (View(0, 2), View(2)), (View(0, 1),)} <= set(
        found
    )
    sizes = [np.prod(DOMAIN.shape(family)) for family in found]
    assert sizes == sorted(sizes)


def test_tables_agree_on_every_overlap_and_on_the_number_of_rows():
    _, noise = noisy_tables(30)
    agreed = reconcile(noise, DOMAIN, rows=5000)
    for table in agreed.values():
        assert table.sum() == pytest.approx(5000)
    for wanted in ((View(0, 2),), (View(0, 1),), (View(0, 2), View(1)), (View(0, 2), View(2))):
        versions = [
            sum_out(table, family, wanted, DOMAIN)
            for family, table in agreed.items()
            if {v.attribute for v in wanted} <= {v.attribute for v in family}
            and all(dict(family)[a] <= level for a, level in wanted)
        ]
        assert len(versions) >= 2
        for version in versions[1:]:
            assert version == pytest.approx(versions[0], abs=1e-6)


def test_exact_tables_are_left_alone():
    truth, _ = noisy_tables(1)
    for family, table in consistent_tables(truth, DOMAIN, rows=5000).items():
        assert table == pytest.approx(truth[family], abs=1e-6)


def test_consistency_brings_tables_closer_to_the_truth():
    before = after = 0.0
    for seed in range(20):
        truth, noise = noisy_tables(30, seed)
        repaired = consistent_tables(noise, DOMAIN, rows=5000)
        before += sum(((noise[f] - truth[f]) ** 2).sum() for f in FAMILIES)
        after += sum(((repaired[f] - truth[f]) ** 2).sum() for f in FAMILIES)
        assert all((table >= 0).all() for table in repaired.values())
    assert after < 0.7 * before


@pytest.mark.parametrize("variances", [None, (1.0, 9.0), (4.0, 0.25)])
def test_two_tables_with_one_shared_attribute_take_the_least_squares_solution(variances):
    """The averaging is generalised least squares: compare with a numerical optimiser."""
    domain = Domain.flat([2, 2, 3])
    generator = np.random.default_rng(1)
    noise = {
        (View(0), View(1)): generator.normal(25, 10, (2, 2)),
        (View(0), View(2)): generator.normal(17, 10, (2, 3)),
    }
    weighted = variances and dict(zip(noise, variances, strict=True))
    agreed = reconcile(noise, domain, rows=100, variances=weighted)
    start = np.concatenate([t.ravel() for t in noise.values()])
    spread = np.repeat(variances or (1.0, 1.0), (4, 6))

    def constraints(x):
        first, second = x[:4].reshape(2, 2), x[4:].reshape(2, 3)
        return np.r_[first.sum(axis=1) - second.sum(axis=1), first.sum() - 100]

    best = minimize(
        lambda x: ((x - start) ** 2 / spread).sum(),
        start,
        constraints={"type": "eq", "fun": constraints},
        method="SLSQP",
    )
    found = np.concatenate([t.ravel() for t in agreed.values()])
    assert found == pytest.approx(best.x, abs=1e-3)


COUNTS = st.lists(st.integers(-50, 400), min_size=1, max_size=30).map(
    lambda own: np.array(own, dtype=np.float64)
)


def test_the_example_is_true():
    assert doctest.testmod(postprocessing, extraglobs={"np": np}).failed == 0


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
        if counts[:length].sum() > postprocessing.WITHIN * deviation * length**0.5:
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


def test_values_that_are_in_no_order_have_no_tail():
    counts = np.array([900.0, 30.0, 5.0, -4.0, 3.0, 200.0])
    made = margin_of(counts, 1130, 5.0, 5)
    assert all(one >= other for one, other in pairwise(made[:5]))
    assert made[5] > 190


def parts_of_least_risk(counts, deviation):
    """By another way: scipy's cosines, and falling parts of the least unbiased estimate of risk."""
    squares = dct(counts, norm="ortho")[1:] ** 2

    def risk(parts):
        return (deviation**2 * (2 * parts - 1) + squares * (1 - parts) ** 2).sum()

    fall = {"type": "ineq", "fun": lambda parts: -np.diff(parts)}
    start = np.linspace(0.9, 0.1, len(squares))
    found = minimize(risk, start, bounds=[(0, 1)] * len(squares), constraints=[fall], tol=1e-12)
    return risk, found.x


@pytest.mark.parametrize("seed", range(8))
def test_no_falling_parts_of_waves_have_less_estimated_risk(seed):
    rng = np.random.default_rng(seed)
    counts = 150 + 20 * np.sin(np.arange(9) / 2) + rng.normal(0, 12, 9)
    risk, least = parts_of_least_risk(counts, 12.0)
    made = smoothed(counts, round(counts.sum()), 12.0, 0)
    parts = dct(made, norm="ortho")[1:] / dct(counts, norm="ortho")[1:]
    assert (np.diff(parts) <= 1e-9).all()
    assert risk(parts) <= risk(least) + 1e-6 * abs(risk(least))
    assert np.abs(made - counts).max() > 1


@given(COUNTS, st.floats(0.5, 60), st.integers(0, 30))
def test_smoothing_keeps_the_sum_and_what_is_in_no_order(counts, deviation, ordered):
    made = smoothed(counts, 1000, deviation, min(ordered, len(counts)))
    run = ordered if 0 < ordered < len(counts) else len(counts)
    assert made.shape == counts.shape
    assert made[:run].sum() == pytest.approx(counts[:run].sum(), abs=1e-6)
    assert made[run:].tolist() == counts[run:].tolist()
    assert np.square(made).sum() <= np.square(counts).sum() * (1 + 1e-9) + 1e-9


def test_scipy_pools_the_parts_alike():
    counts = np.random.default_rng(5).normal(100, 30, 60)
    waves = dct(counts, norm="ortho")
    squares = waves[1:] ** 2
    parts = isotonic_regression(1 - 400 / squares, weights=squares, increasing=False).x
    waves[1:] *= np.maximum(parts, 0)
    assert smoothed(counts, 6000, 20.0, 0) == pytest.approx(idct(waves, norm="ortho"))


def test_few_values_and_no_noise_change_nothing():
    assert smoothed(np.array([3.0, 9.0, 4.0]), 16, 5.0, 0).tolist() == [3, 9, 4]
    counts = np.array([3.0, 900.0, 4.0, 80.0, 0.0])
    assert smoothed(counts, 987, 1e-6, 0) == pytest.approx(counts, abs=1e-9)
    assert smoothed(np.full(6, 7.0), 42, 2.0, 0) == pytest.approx(np.full(6, 7.0))


@pytest.mark.parametrize(("deviation", "gained"), [(3.0, 0), (30.0, 1), (120.0, 1)])
@pytest.mark.parametrize(
    ("shape", "ratio"),
    [
        (np.full(24, 200.0), 0.4),
        (4000 * np.diff(np.exp(-np.arange(25) / 6)) / -0.98, 0.92),
        (np.array([2000.0, 3, 900, 0, 0, 40, 700, 2, 5, 1200, 0, 8]), 1.05),
        (np.array([4000.0, 10, 0, 0, 900, 0, 3, 0, 0, 30, 0, 0, 50, 0, 0, 0, 2, 0, 0, 0]), 1.05),
    ],
    ids=["level", "falling", "spikes", "sparse"],
)
def test_noise_of_any_size_is_taken_off_and_spikes_are_kept(shape, ratio, deviation, gained):
    """Against the projection alone; where noise is small, at least nothing is lost."""
    rng = np.random.default_rng(8)
    rows, far = round(shape.sum()), []
    for _ in range(300):
        noisy = shape + rng.normal(0, deviation, len(shape))
        pair = [onto_simplex(c, total=rows) for c in (smoothed(noisy, rows, deviation, 0), noisy)]
        far.append([np.abs(own - shape).sum() for own in pair])
    smooth, projected = np.mean(far, axis=0)
    assert smooth < (ratio if gained else 1.05) * projected
