from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.methods.subn_plus.dependence import (
    DEVIATIONS,
    LEAST_DISTANCE,
    Departure,
    departure,
    departures,
    strong_pairs,
)
from common.methods.subn_plus.requests import group_weights
from common.privacy.randomness import SeededRandomSource
from common.privacy.sampling.discrete_laplace import discrete_laplace

tables = st.tuples(st.integers(2, 4), st.integers(2, 4)).flatmap(
    lambda shape: st.lists(
        st.integers(-100, 10**6), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]
    ).map(lambda cells: np.array(cells).reshape(shape))
)


def centred(table: np.ndarray) -> np.ndarray:
    return table - table.mean(0) - table.mean(1)[:, None] + table.mean()


@settings(deadline=None)
@given(tables, st.data())
def test_a_departure_is_the_centred_square_less_the_noise(table, data):
    weights = [
        data.draw(st.lists(st.integers(1, 10**6), min_size=size, max_size=size))
        for size in table.shape
    ]
    found = departure(table, *weights, Fraction(7, 3), 1000)
    shares = [np.array(own) / sum(own) for own in weights]
    squares = (centred(table - 1000 * np.outer(*shares)) ** 2).sum()
    noise = (table.shape[0] - 1) * (table.shape[1] - 1) * 7 / 3
    assert np.isclose(float(found.squares), squares - noise, rtol=1e-6, atol=1e-3)


def test_independent_tables_depart_by_nothing_and_margins_that_are_off_do_not_matter():
    table = np.outer([10, 20, 30], [1, 2, 3, 4])
    assert departure(table, [1, 2, 3], [1, 2, 3, 4], Fraction(0), 600).squares == 0
    shifted = table + np.array([5, -3, 0])[:, None] + np.array([1, 0, 0, 7])
    assert departure(shifted, [1, 2, 3], [1, 2, 3, 4], Fraction(0), 600).squares == 0


def test_noise_alone_seldom_stands_out_and_its_mean_is_taken_off():
    source, scale, rows = SeededRandomSource("noise"), Fraction(400), 10_000
    found = [
        departure(
            discrete_laplace(scale, 9, source).reshape(3, 3) + rows // 9,
            [1, 1, 1],
            [1, 1, 1],
            2 * scale**2,
            rows,
        )
        for _ in range(2000)
    ]
    mean = np.mean([float(own.squares / own.variance) for own in found])
    assert abs(mean) < 0.4  # of an expected 4 before it is taken off; standard error .1
    assert sum(own.is_strong(rows) for own in found) < 60


def test_a_departure_must_be_large_and_clear():
    rows = 1000
    enough = int((2 * LEAST_DISTANCE * rows) ** 2 / 4) + 1
    assert Departure(Fraction(enough), Fraction(1), (2, 2)).is_strong(rows)
    assert not Departure(Fraction(enough - 1), Fraction(1), (2, 2)).is_strong(rows)
    noisy = Fraction(enough, 4 * DEVIATIONS**2)
    assert not Departure(Fraction(enough), noisy, (2, 2)).is_strong(rows)
    assert not Departure(Fraction(-enough), Fraction(1), (2, 2)).is_strong(rows)


def test_every_pair_is_read_off_the_view_that_holds_it():
    rng = np.random.default_rng(1)
    views, sizes = ((2, 0, 3), (1, 3), (0, 1), (1, 2)), (2, 3, 2, 4)
    whole = rng.integers(0, 1000, sizes)
    weights = [rng.integers(1, 9, size).tolist() for size in sizes]
    rows = int(whole.sum())
    seen = [
        whole.sum(axis=tuple(a for a in range(4) if a not in view)).transpose(
            np.argsort(np.argsort(view))
        )
        for view in views
    ]
    variances = [Fraction(own) for own in (5, 7, 11, 13)]
    found = departures(views, seen, weights, variances, rows)
    assert set(found) == set(combinations(range(4), 2))
    for (a, b), own in found.items():
        view, variance = next(
            (view, own) for view, own in zip(views, variances, strict=True) if {a, b} <= set(view)
        )
        summed = int(np.prod([sizes[x] for x in view])) // (sizes[a] * sizes[b])
        pair = whole.sum(axis=tuple(x for x in range(4) if x not in (a, b)))
        assert own == departure(pair, weights[a], weights[b], variance * summed, rows)


def of_strength(squares: int) -> Departure:
    return Departure(Fraction(squares), Fraction(1, 100), (2, 2))


def test_the_strongest_disjoint_pairs_that_the_budget_bears_are_chosen():
    found = {
        (0, 1): of_strength(900),
        (1, 2): of_strength(800),  # shares an attribute with a stronger pair
        (2, 3): of_strength(700),
        (4, 5): of_strength(600),
        (0, 5): of_strength(1),  # too weak
    }
    sizes = (4, 4, 4, 4, 10, 10)

    def chosen(cells, most=1000):
        return strong_pairs(found, sizes, rows=10, cells=cells, most=most)

    assert chosen(1000) == ((0, 1), (2, 3), (4, 5))
    assert chosen(299) == ((0, 1), (2, 3))  # three tables, one of 100 cells
    assert chosen(1000, most=99) == ((0, 1), (2, 3))
    assert chosen(31) == ((0, 1),)
    assert chosen(15) == ()


def test_weights_are_never_all_zero():
    assert group_weights(np.array([5, -2, 7]), (0, 0, 1), 100) == (5, 7)
    assert group_weights(np.array([-5, -2, -7]), (0, 0, 1), 100) == (1, 1)


@pytest.mark.parametrize("shape", [(2, 2), (4, 3), (16, 16)])
def test_what_sampling_alone_shows_is_not_clear_but_dependence_is(shape):
    rng = np.random.default_rng(8)
    rows, pairs = 20_000, 100
    alike = [(1,) * size for size in shape]
    independent = rng.multinomial(rows, np.full(shape, 1 / np.prod(shape)).ravel(), pairs)
    found = [departure(t.reshape(shape), *alike, Fraction(1), rows) for t in independent]
    assert not any(own.clear_among(pairs, sampled=rows) for own in found)
    assert any(own.clear_among(pairs) for own in found)
    tilted = np.full(shape, 1.0)
    tilted[: shape[0] // 2, : shape[1] // 2] += 1.0
    sample = rng.multinomial(rows, (tilted / tilted.sum()).ravel()).reshape(shape)
    weights = [tuple(sample.sum(axis=axis).tolist()) for axis in (1, 0)]
    assert departure(sample, *weights, Fraction(1), rows).clear_among(pairs, sampled=rows)
