from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.methods.subn_plus.dependence import (
    FEW_VALUES,
    LEAST_DISTANCE,
    LEAST_IN_TREE,
    LEAST_OF_CODES,
    MOST_IN_TREE,
    NOISE_LEFT,
    Departure,
    departure,
    departures,
    depends,
    scatter,
    strong_forest,
)
from common.methods.subn_plus.requests import Agreements, group_weights
from common.privacy.noise_law import DiscreteLaplace, Skellam
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
    assert sum(own.clear for own in found) < 60
    assert np.mean([own.distance(rows) for own in found]) < 0.03  # of a mean norm of .18


def test_a_distance_is_half_the_absolute_deviation_less_that_of_noise():
    rng, rows = np.random.default_rng(3), 20_000
    law = np.full((4, 5), 1 / 20)
    law[:2, :2] += 0.03
    law[2:, :2] -= 0.03
    first, second = law.sum(1), law.sum(0)
    true = np.abs(law - np.outer(first, second)).sum() / 2
    weights = [tuple((own * 10**6).astype(int).tolist()) for own in (first, second)]
    found = []
    for _ in range(300):
        table = np.rint(rows * law + rng.normal(0, 40, law.shape)).astype(np.int64)
        found.append(departure(table, *weights, Fraction(1600), rows))
    assert true / 2 < np.mean([own.distance(rows) for own in found]) < 1.02 * true
    strength = np.mean([float(own.strength) ** 0.5 / (2 * rows) for own in found])
    assert strength > 1.02 * true  # which is why it is not what a pair in detail is judged by


def _looked(excesses, variance):
    return {
        (0, pair): Departure(own * own - variance, variance, (2, 2))
        for pair, own in enumerate(excesses)
    }


@pytest.mark.parametrize("law", [DiscreteLaplace(Fraction(300)), Skellam(Fraction(180_000))])
def test_a_look_is_seldom_wrong_about_independence_and_sees_one_strong_pair(law):
    source, pairs, alarms, seen = SeededRandomSource("look"), 300, 0, 0
    variance, runs = law.nominal_variance, 40
    strong = int((law.deviations(7 + 9) + 2.5) * float(variance) ** 0.5)
    for _ in range(runs):
        noise = [int(own) for own in law.draw(pairs, source)]
        alarms += depends(_looked(noise, variance), 0, law)
        seen += depends(_looked([noise[0] + strong, *noise[1:]], variance), 0, law)
    assert alarms <= 5
    assert seen >= runs - 3


@pytest.mark.parametrize("law", [DiscreteLaplace(Fraction(300)), Skellam(Fraction(180_000))])
def test_the_law_of_all_pairs_together_is_that_of_noise_they_share(law):
    """Twelve attributes, most of them uneven: an error in a half's count enters eleven pairs."""
    rng, rows, columns, runs = np.random.default_rng(6), 10_000, 12, 20_000
    first, second = np.array(list(combinations(range(columns), 2))).T
    shares = np.linspace(0.5, 0.98, columns)
    deviation = float(law.nominal_variance) ** 0.5
    draw = rng.laplace if law.norm == 1 else rng.normal
    scale = deviation / 2**0.5 if law.norm == 1 else deviation
    noise, alone = draw(0, scale, (runs, len(first))), draw(0, scale, (runs, columns))
    tilts = 2 * shares - 1
    off = noise - tilts[second] * alone[:, first] - tilts[first] * alone[:, second]
    variances = 1 + tilts[first] ** 2 + tilts[second] ** 2
    seen = (off**2 / variances).sum(1) / deviation**2
    request = Agreements(((0, 1),) * columns, alone=True)
    weights = [(round(rows * share), rows - round(rows * share)) for share in shares]
    counts, noises = [0] * len(first), [law.nominal_variance] * len(first)
    found = request.departures(counts, weights, noises, rows)
    forecast = scatter(found, law.kurtosis)
    assert 0.9 < seen.var() / forecast < 1.1  # .7 and 1.3 would be seen
    low, high = 0.0, 10.0 * len(first)
    while high - low > 0.1:  # what the verdict begins at
        middle = (low + high) / 2
        low, high = (low, middle) if depends(_together(found, middle), 0, law) else (middle, high)
    assert 0.6 < 32 * (seen > high).mean() < 1.4
    assert (seen + 0.8 * len(first) > high).mean() > 0.5


def _together(found, total):
    """Departures of the same noise whose squares have this sum, all alike."""
    part = Fraction(total) / len(found)
    return {pair: replace(own, squares=(part - 1) * own.variance) for pair, own in found.items()}


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


def at_distance(distance: float, shape: tuple[int, int] = (10, 10)) -> Departure:
    """A clear departure of 1,000 rows."""
    absolute = Fraction(2000 * distance).limit_denominator(10**6)
    return Departure(absolute**2 / 4, Fraction(1, 10**12), shape, absolute)


def test_pairs_in_detail_make_a_forest_of_what_is_stronger_than_its_noise():
    strong, weak = LEAST_IN_TREE + 0.1, (LEAST_DISTANCE + LEAST_IN_TREE) / 2
    found = {
        (0, 1): at_distance(strong + 0.02),
        (1, 2): at_distance(strong + 0.01),  # a chain
        (0, 2): at_distance(strong),  # closes a circle
        (2, 3): at_distance(weak),  # too weak for a tree of more than two
        (4, 5): at_distance(weak),
        (5, 6): at_distance(LEAST_DISTANCE - 0.05),
        (6, 7): at_distance(strong),  # one class says it all: two values
    }
    sizes = (8, 8, 8, 8, 10, 10, 10, 2)

    def chosen(noise):
        return strong_forest(found, sizes, rows=1000, noise=noise)

    assert chosen(lambda cells, tables: 0.0) == ((0, 1), (1, 2), (4, 5))
    drowned = 1.01 * weak / NOISE_LEFT
    assert chosen(lambda cells, tables: drowned * (cells > 64)) == ((0, 1), (1, 2))
    assert chosen(lambda cells, tables: 2 / NOISE_LEFT * (tables > 1)) == ((0, 1),)
    few = (FEW_VALUES,) * 8
    pairs = strong_forest(found, few, rows=1000, noise=lambda cells, tables: 0.0)
    assert pairs == ((0, 1), (6, 7), (2, 3), (4, 5))  # no tree of more than two


def test_a_code_in_groups_is_asked_for_beside_the_few_values_that_it_determines():
    found = {(0, 1): at_distance(0.4, (8, 2)), (0, 2): at_distance(0.25, (8, 3))}
    told, both = ((0, 2),), ((0, 1), (0, 2))
    for sizes, ordered, pairs in [
        ((24, 2, 3), (), both),
        ((24, 2, 3), (0, 0, 0), both),
        ((24, 2, 3), (24, 0, 0), told),
        ((8, 2, 3), (), told),
    ]:
        chosen = strong_forest(
            found, sizes, rows=1000, noise=lambda cells, tables: 0.0, ordered=ordered
        )
        assert chosen == pairs


def test_a_weaker_code_is_asked_for_beside_others_only():
    weak = (LEAST_OF_CODES + LEAST_DISTANCE) / 2

    def chosen(**found):
        pairs = {tuple(map(int, name[1:].split("_"))): off for name, off in found.items()}
        return strong_forest(pairs, (24, 2, 3), rows=1000, noise=lambda cells, tables: 0.0)

    code, other = at_distance(weak, (8, 2)), at_distance(0.4, (8, 3))
    assert chosen(p0_1=code) == ()
    assert chosen(p0_1=code, p0_2=other) == ((0, 2), (0, 1))
    assert chosen(p0_1=at_distance(LEAST_OF_CODES - 0.01, (8, 2)), p0_2=other) == ((0, 2),)


def test_a_tree_does_not_grow_without_end():
    found = {(a, a + 1): at_distance(0.9 - a / 100) for a in range(9)}
    chosen = strong_forest(found, (8,) * 10, rows=1000, noise=lambda cells, tables: 0.0)
    assert chosen[: MOST_IN_TREE - 1] == tuple((a, a + 1) for a in range(MOST_IN_TREE - 1))
    assert (MOST_IN_TREE - 1, MOST_IN_TREE) not in chosen


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
