"""Slabs of a large matrix, one after the other: the same noise, and little memory."""

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

from common.privacy.randomness import SeededRandomSource
from common.privacy.sampling.discrete_laplace import discrete_laplace
from common.schema.codes import Codes
from common.wavelet.decisions import make_plan
from common.wavelet.mechanism import noisy_cells
from common.wavelet.noisy_matrix import prefix_sums
from tests.unit.wavelet.blocks import alone, haar, no_noise, noisy, nominal, rows_of


def test_slabs_are_the_tensor_with_an_untransformed_axis(monkeypatch):
    """One slab or many: the same noise, the same release."""
    axes = (alone(9), haar(8), haar(3))
    whole = noisy(axes, "privelet+", [0])
    monkeypatch.setattr("common.wavelet.decisions.SLAB_COEFFICIENTS", 70)
    monkeypatch.setattr("common.wavelet.mechanism._DRAWS_AT_ONCE", 1 << 14)  # the sampler's chunk
    plan = make_plan(axes, Fraction(1), "privelet+", [0])
    assert plan.slab == 2
    draws = iter(discrete_laplace(plan.scale, 9 * 8 * 4, SeededRandomSource(0)).tolist())

    def replay(scale, count, source):
        return np.array([next(draws) for _ in range(count)])

    counts = np.arange(9 * 8 * 3).reshape(9, 8, 3) % 5
    assert np.array_equal(noisy_cells(rows_of(counts), plan, replay, SeededRandomSource(0)), whole)


def test_slabs_do_not_share_noise(monkeypatch):
    monkeypatch.setattr("common.wavelet.decisions.SLAB_COEFFICIENTS", 64)
    cells = noisy((alone(4), haar(64)), "privelet+", [0], counts=np.zeros((4, 64), dtype=int))
    assert len({row.tobytes() for row in cells}) == 4


def test_memory_stays_below_three_copies_of_the_matrix(monkeypatch):
    monkeypatch.setattr("common.wavelet.decisions.SLAB_COEFFICIENTS", 1 << 16)
    monkeypatch.setattr("common.wavelet.mechanism._DRAWS_AT_ONCE", 1 << 14)
    groups = tuple(tuple(range(8 * g, 8 * g + 8)) for g in range(8))
    axes = (haar(64), nominal(groups), haar(64), alone(8))
    codes = Codes.from_columns(
        [np.random.default_rng(0).integers(0, a.size, 10_000) for a in axes],
        [a.size for a in axes],
    )
    matrix_bytes = 8 * 64 * 64 * 64 * 8
    for untransformed, limit in (([3], 1.5), ([], 3.0)):
        plan = make_plan(axes, Fraction(1), "privelet+", untransformed)
        if not untransformed:
            plan = make_plan((*axes[:3], haar(8)), Fraction(1), "privelet")
        tracemalloc.start()
        try:
            noisy_cells(codes, plan, no_noise, SeededRandomSource(0))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < limit * matrix_bytes


@pytest.mark.slow
def test_a_census_of_a_hundred_million_cells_fits_in_three_copies():
    groups = tuple(tuple(range(32 * g, 32 * g + 32)) for g in range(16))
    axes = (haar(101), nominal((0, 1)), nominal(groups), haar(1001))
    plan = make_plan(axes, Fraction(1), "privelet+")
    rng = np.random.default_rng(0)
    sizes = [axis.size for axis in axes]
    codes = Codes.from_columns([rng.integers(0, size, 1_000_000) for size in sizes], sizes)
    tracemalloc.start()
    try:
        cells = noisy_cells(codes, plan, discrete_laplace, SeededRandomSource(0))
        sums = prefix_sums(cells)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert plan.cells == 103_527_424
    assert peak < 2.1 * 8 * plan.cells
    # The whole padded matrix: 202 base coefficients of scale 66.
    assert abs(sums[-1, -1, -1, -1] - 1_000_000) < 8 * np.sqrt(202 * 2 * 66**2)
