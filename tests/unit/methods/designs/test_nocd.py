from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import LocalError
from common.methods.designs.nocd import Design, lines, optimal_design, pairs_design, printed_design

# Squared error per pair, and the number of views.
FIGURES = {
    8: (3136, (256, 1), (256, 1), (256, 1)),
    16: (57_600, (131_955, 52), (12_544, 28), (6_400, 20)),
    23: (256_036, (314_383, 185), (25_129, 30), (25_129, 30)),
    52: (7_033_104, (3_882_919, 493), (1_219_548, 281), (607_657, 71)),
}


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


def test_a_matrix_with_more_rows_than_columns_is_refused():
    with pytest.raises(LocalError, match="at least as many columns"):
        lines(range(7), 2)
