from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.methods.designs.nocd import optimal_design
from common.methods.designs.projective import best_design, projective_design


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
