from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.methods.designs.nocd import (
    Design,
    best_design,
    optimal_design,
    printed_design,
    projective_design,
)

# Squared error per pair, and the number of views.
FIGURES = {
    8: (3136, (256, 1), (256, 1), (256, 1)),
    16: (57_600, (131_955, 52), (12_544, 28), (6_400, 20)),
    23: (256_036, (314_383, 185), (25_129, 30), (25_129, 30)),
    52: (7_033_104, (3_882_919, 493), (1_219_548, 281), (607_657, 71)),
}


def pairs_design(sizes):
    """Every pair is its own view."""
    return Design(tuple(combinations(range(len(sizes)), 2)), tuple(sizes))


def holds_every_pair_once(design: Design) -> bool:
    seen = Counter(pair for view in design.views for pair in combinations(sorted(view), 2))
    return seen == Counter(dict.fromkeys(combinations(range(len(design.sizes)), 2), 1))


@pytest.mark.parametrize("attributes", FIGURES)
def test_the_published_figures_are_reproduced(attributes):
    direct, printed, primes, powers = FIGURES[attributes]
    binary = [2] * attributes
    assert round(pairs_design(binary).error_per_pair) == direct
    for design, (error, views) in [
        (printed_design(attributes), printed),
        (optimal_design(binary, orders="primes"), primes),
        (optimal_design(binary, orders="prime-powers"), powers),
    ]:
        assert (round(design.error_per_pair), len(design.views)) == (error, views)


@pytest.mark.parametrize("stride", [9, pytest.param(1, marks=pytest.mark.slow)])
def test_every_pair_is_in_exactly_one_view_for_every_number_of_attributes(stride):
    for attributes in (*range(12), *range(12, 201, stride)):
        assert holds_every_pair_once(printed_design(attributes)), attributes


@pytest.mark.parametrize("orders", ["primes", "prime-powers"])
@pytest.mark.parametrize("attributes", [0, 1, 2, 3, 5, 9, 17, 26, 40, 50, 64, 73, 90])
def test_every_pair_is_in_exactly_one_view_of_the_optimal_design(attributes, orders):
    assert holds_every_pair_once(optimal_design([2] * attributes, orders=orders))


@pytest.mark.slow
def test_every_pair_is_in_exactly_one_view_of_every_optimal_design_up_to_200():
    for attributes in range(201):
        assert holds_every_pair_once(optimal_design([2] * attributes)), attributes


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 60), max_size=24), st.sampled_from([16, 400, 1 << 16]))
def test_mixed_domains_hold_every_pair_once_and_respect_the_cell_limit(sizes, cell_limit):
    design = optimal_design(sizes, cell_limit=cell_limit)
    assert holds_every_pair_once(design)
    assert all(design.cells(view) <= cell_limit for view in design.views if len(view) > 2)
    assert design.squared_error <= pairs_design(sizes).squared_error


def pairs_of(design) -> list[tuple[int, int]]:
    return sorted(tuple(sorted(pair)) for view in design.views for pair in combinations(view, 2))


@pytest.mark.parametrize("order", [2, 3, 4, 5, 7, 8, 9])
def test_a_full_plane_has_as_many_lines_as_points_and_holds_every_pair_once(order):
    points = order * order + order + 1
    design = projective_design((2,) * points, order)
    assert len(design.views) == points
    assert {len(view) for view in design.views} == {order + 1}
    assert pairs_of(design) == list(combinations(range(points), 2))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(1, 9), min_size=2, max_size=24), st.integers(4, 5000))
def test_the_best_design_holds_every_pair_once_within_its_cells_and_beats_nocd(sizes, cells):
    design = best_design(tuple(sizes), cell_limit=cells)
    assert pairs_of(design) == list(combinations(range(len(sizes)), 2))
    assert all(design.cells(view) <= cells for view in design.views if len(view) > 2)
    assert design.squared_error <= optimal_design(sizes, cell_limit=cells).squared_error


@pytest.mark.parametrize(("attributes", "views"), [(12, 13), (13, 13), (21, 21), (31, 31)])
def test_planes_need_fewer_views_than_nocd(attributes, views):
    assert len(best_design((2,) * attributes, cell_limit=1 << 12).views) == views
    assert len(optimal_design([2] * attributes, cell_limit=1 << 12).views) > 1.3 * views


def test_large_domains_come_to_lie_on_different_lines():
    sizes = (9, 9, 9, 9, *(2,) * 9)
    design = projective_design(sizes, 3)
    assert max(sum(a < 4 for a in view) for view in design.views) == 2
    assert projective_design((*(2,) * 9, 9, 9, 9, 9), 3).squared_error == design.squared_error
