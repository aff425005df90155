"""Bins: exact, never empty, both ends inside, and drawn numbers stay in their bin."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from common.errors import InputError
from common.schema.binning import Binning

WHOLE_RANGES = st.tuples(
    st.integers(-(2**53), 2**53), st.integers(0, 2**30) | st.integers(0, 40)
).map(lambda pair: (pair[0], min(pair[0] + pair[1], 2**53)))


@given(WHOLE_RANGES, st.integers(1, 200))
def test_equal_whole_bins_cover_the_range_without_gap_or_empty_bin(ends, bins):
    low, high = ends
    bins = min(bins, high - low + 1)
    binning = Binning.equal_width(low, high, bins, whole=True)
    assert binning.count == bins
    assert binning.first[0] == low
    assert binning.last[-1] == high
    assert (binning.first <= binning.last).all()
    np.testing.assert_array_equal(binning.first[1:], binning.last[:-1] + 1)


@given(st.integers(-50, 50), st.integers(1, 300), st.integers(1, 40))
def test_equal_whole_bins_follow_the_papers_half_open_rule(low, width, bins):
    high, bins = low + width, min(bins, width + 1)
    numbers = np.arange(low, high + 1)
    assigned, outside = Binning.equal_width(low, high, bins, whole=True).assign(numbers)
    # Bin k is (low + k step, low + (k + 1) step]: ceil((v - low) / step) - 1, the low end in bin 0.
    expected = [max(0, -(-(int(v) - low) * bins // width) - 1) for v in numbers]
    assert outside is None
    assert assigned.tolist() == expected


@given(
    st.floats(-1e12, 1e12),
    st.floats(1e-3, 1e12),
    st.integers(1, 300),
    st.lists(st.floats(0, 1), max_size=30),
)
def test_the_fast_real_path_equals_a_search_of_the_edges(low, width, bins, fractions):
    try:
        binning = Binning.equal_width(low, low + width, bins, whole=False)
    except InputError:
        return  # too narrow for that many bins
    edges = np.array(binning.edges)
    near = [edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf)]
    points = np.clip(np.concatenate([*near, low + np.array(fractions) * width]), low, low + width)
    assigned, outside = binning.assign(points)
    expected = np.clip(np.searchsorted(edges, points, side="left") - 1, 0, bins - 1)
    assert outside is None
    np.testing.assert_array_equal(assigned, expected)


@given(WHOLE_RANGES, st.integers(1, 200), st.lists(st.floats(0, 1), max_size=30))
def test_the_fast_whole_path_equals_a_search_of_the_starts(ends, bins, fractions):
    low, high = ends
    binning = Binning.equal_width(low, high, min(bins, high - low + 1), whole=True)
    near = [binning.first, binning.last, binning.last - 1, binning.first + 1]
    inner = np.array([low + int(f * (high - low)) for f in fractions], dtype=np.int64)
    points = np.clip(np.concatenate([*near, inner]), low, high)
    expected = np.searchsorted(binning.first, points, side="right") - 1
    np.testing.assert_array_equal(binning.assign(points)[0], expected)


def test_listed_edges_start_their_bin_and_the_last_closes_it():
    whole = Binning.from_edges([0, 18, 65, 120], whole=True)
    assert whole.assign(np.array([0, 17, 18, 64, 65, 120]))[0].tolist() == [0, 0, 1, 1, 2, 2]
    real = Binning.from_edges([0, 0.5, 2], whole=False)
    assert real.assign(np.array([0, 0.49, 0.5, 2.0]))[0].tolist() == [0, 0, 1, 1]


def test_numbers_outside_are_reported_and_get_the_nearest_bin():
    binning = Binning.equal_width(0, 9, 5, whole=True)
    bins, outside = binning.assign(np.array([-1, 0, 9, 10, 2**62, -(2**62)]))
    assert bins.tolist() == [0, 0, 4, 4, 4, 0]
    assert outside.tolist() == [True, False, False, True, True, True]


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("equal", [True, False])
@given(seed=st.integers(0, 99))
def test_drawn_and_central_numbers_are_inside_their_bin(whole, equal, seed):
    binning = (
        Binning.equal_width(-3, 1_000, 16, whole=whole)
        if equal
        else Binning.from_edges([-3, 0, 1, 700, 1_000], whole=whole)
    )
    generator = np.random.default_rng(seed)
    bins = generator.integers(0, binning.count, 200)
    uniforms = generator.random(200)
    uniforms[:2] = 0.0, np.nextafter(1.0, 0.0)
    for numbers in (binning.draw(bins, uniforms), binning.centre(bins)):
        assert numbers.dtype == (np.int64 if whole else np.float64)
        np.testing.assert_array_equal(binning.assign(numbers)[0], bins)


def test_draws_reach_both_ends_of_a_bin_equally_often():
    binning = Binning.equal_width(0, 9, 2, whole=True)
    grid = (np.arange(10_000) + 0.5) / 10_000
    drawn = binning.draw(np.ones(10_000, dtype=np.uint8), grid)
    assert np.unique(drawn, return_counts=True)[1].tolist() == [2_000] * 5


def test_real_bins_are_cut_at_the_decimals_that_one_would_write():
    edges = Binning.equal_width(-1.6, 2.8, 22, whole=False).edges
    assert edges == tuple(round(-1.6 + 0.2 * step, 1) for step in range(23))


@pytest.mark.parametrize(
    ("edges", "equal", "decimals"),
    [
        ((6.0, 28.0, 50.0), True, 2),
        ((-1.6, -1.4, -1.2), True, 4),
        ((0.0, 18.5, 65.0), False, 2),
        ((0.0, 75_000.0, 150_000.0), True, 0),
    ],
)
def test_drawn_real_numbers_have_no_more_decimals_than_they_need(edges, equal, decimals):
    binning = Binning(edges, equal)
    bins = np.arange(4_000) % binning.count
    drawn = binning.draw(bins, np.random.default_rng(1).random(4_000))
    assert [round(number, decimals) for number in drawn.tolist()] == drawn.tolist()
    assert len(np.unique(drawn)) > 1_000
    assert binning.assign(drawn)[0].tolist() == bins.tolist()


@pytest.mark.parametrize("edges", [(0.0, 1e-300), (1e15, 1e15 + 1), (0.0, 1e-14)])
def test_numbers_that_no_decimals_fit_are_drawn_as_they_come(edges):
    binning = Binning(edges, equal=True)
    drawn = binning.draw(np.zeros(100, dtype=int), np.random.default_rng(1).random(100))
    assert binning.assign(drawn)[1] is None
    assert len(np.unique(drawn)) > 5


def test_declared_decimals_are_those_of_every_number_drawn():
    binning = Binning.from_edges([0, 0.01, 0.3, 500], whole=False).with_decimals(2)
    assert binning.steps.tolist() == [1, 29, 49_971]
    grid = (np.arange(29_000) + 0.5) / 29_000
    drawn = binning.draw(np.ones(29_000, dtype=int), grid)
    numbers, counts = np.unique(drawn, return_counts=True)
    assert numbers.tolist() == [hundredths / 100 for hundredths in range(1, 30)]
    assert counts.tolist() == [1_000] * 29
    assert (binning.draw(np.zeros(10, dtype=int), grid[:10]) == 0).all()
    assert binning.draw(np.array([2]), np.array([np.nextafter(1.0, 0.0)])).tolist() == [500.0]
    assert binning.centre(np.arange(3)).tolist() == [0.0, 0.15, 250.15]


@given(
    low=st.integers(-500, 500),
    widths=st.lists(st.integers(1, 400), min_size=1, max_size=6),
    decimals=st.integers(0, 4),
    equal=st.booleans(),
)
def test_every_decimal_of_a_bin_is_drawn_and_no_other(low, widths, decimals, equal):
    edges = [step / 10**decimals for step in np.cumsum([low, *widths]).tolist()]
    if equal:
        binning = Binning.equal_width(edges[0], edges[-1], len(widths), whole=False)
        assume(min(np.diff(binning.edges)) * 10**decimals >= 1)
    else:
        binning = Binning.from_edges(edges, whole=False)
    binning = binning.with_decimals(decimals)
    all_numbers = np.arange(low, low + sum(widths) + 1) / 10**decimals
    expected = np.bincount(binning.assign(all_numbers)[0], minlength=binning.count)
    assert binning.steps.tolist() == expected.tolist()
    bins = np.arange(300) % binning.count
    drawn = binning.draw(bins, np.random.default_rng(1).random(300))
    assert set(drawn.tolist()) <= set(all_numbers.tolist())
    assert binning.assign(drawn)[0].tolist() == bins.tolist()


@pytest.mark.parametrize(
    ("edges", "decimals", "words"),
    [
        ((0.0, 0.25, 0.5, 9.0), 0, r"no such number is in the bin from 0.25 to 0.5"),
        ((0.0, 1e9), 12, "more than numbers this large can have"),
        ((0.0, 1.0), 16, "0 to 15"),
        ((0.0, 1.0), -1, "0 to 15"),
    ],
)
def test_decimals_that_a_bin_cannot_have_are_refused(edges, decimals, words):
    with pytest.raises(InputError, match=words):
        Binning.from_edges(edges, whole=False).with_decimals(decimals)


def test_bins_default_to_sixteen_or_one_per_whole_number():
    assert Binning.equal_width(0, 1_000, None, whole=True).count == 16
    assert Binning.equal_width(1, 5, None, whole=True).count == 5
    assert Binning.equal_width(0, 1, None, whole=False).count == 16


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((5, 4, None), "empty"),
        ((0, 9, 11), "only 10 values"),
        ((0, 9, 0), "at least 1"),
        ((0, 2**53 + 1, 4), "2\\^53"),
    ],
)
def test_an_impossible_range_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        Binning.equal_width(*arguments, whole=True)


@pytest.mark.parametrize(
    "ends", [(float("nan"), 1.0), (0.0, float("inf")), (-1.7e308, 1.7e308), (1.0, 1.0)]
)
def test_a_real_range_must_be_finite_and_wide(ends):
    with pytest.raises(InputError, match=r"not finite|empty"):
        Binning.equal_width(*ends, 4, whole=False)


def test_more_real_bins_than_numbers_are_refused():
    with pytest.raises(InputError, match="too many"):
        Binning.equal_width(1.0, float(np.nextafter(1.0, 2.0)), 3, whole=False)


@pytest.mark.parametrize("edges", [[1], [1, 1], [2, 1, 3]])
def test_edges_must_increase(edges):
    with pytest.raises(InputError, match="edges"):
        Binning.from_edges(edges, whole=True)


@given(st.integers(-50, 50), st.integers(1, 60), st.integers(1, 8), st.sets(st.integers(0, 60)))
def test_heaps_are_bins_of_their_own_and_cut_no_other_number_off(low, width, bins, heaps):
    around = Binning.equal_width(low, low + width, min(bins, width + 1), whole=True)
    heaps = sorted(low + heap for heap in heaps if heap <= width)
    assume(heaps)
    binning = around.with_heaps(heaps)
    numbers = np.arange(low, low + width + 1)
    own, outside = binning.assign(numbers)
    assert outside is None
    assert (np.diff(own) >= 0).all()
    for number, code in zip(numbers.tolist(), own.tolist(), strict=True):
        alone = binning.first[code] == binning.last[code] == number
        assert alone or number not in heaps
    assert (np.diff(around.assign(numbers)[0]) <= np.diff(own)).all()  # bins are cut, not joined


def test_real_heaps_are_single_numbers_in_their_decimals():
    binning = Binning.equal_width(0, 10, 2, whole=False).with_decimals(2).with_heaps([0, 5, 10])
    own, _ = binning.assign(np.array([0, 0.01, 4.99, 5, 5.01, 9.99, 10]))
    assert own.tolist() == [0, 1, 1, 2, 3, 3, 4]
    assert binning.spans[[0, 2, 4]].tolist() == [0, 0, 0]
    assert np.unique(binning.draw(np.full(50, 2), np.linspace(0, 0.99, 50))).tolist() == [5.0]


@pytest.mark.parametrize("whole", [False, True])
def test_places_are_parts_of_the_way_through_a_bin(whole):
    binning = Binning.from_edges([0, 10, 30, 31], whole=whole)
    numbers = np.array([0, 5, 9, 10, 20, 29, 30, 31, 99, -9], dtype=int if whole else float)
    bins, _ = binning.assign(numbers)
    found = binning.places(numbers, bins)
    exact = (np.clip(numbers, 0, 31) - binning.first[bins]) / np.maximum(binning.spans[bins], 1e-9)
    assert np.abs(found - 254 * exact).max() <= 0.5
    single = Binning.from_edges([0, 1, 2], whole=True)
    assert single.places(np.array([0]), np.array([0])).tolist() == [127]
