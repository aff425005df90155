"""Parent sets against brute force, constraints, and the degrees of the papers' tables."""

import json
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.bayes.domain import Domain, View
from common.bayes.privbayes.parent_sets import (
    Constraints,
    TooManyParentSetsError,
    affordable_degree,
    cell_limit,
    choose_degree,
    maximal_parent_sets,
    usefulness,
)
from common.errors import InputError, LocalError


def nested(sizes):
    """An attribute with levels of these sizes, e.g. 16, 8, 4, 2."""
    values = np.arange(sizes[0])
    return tuple(values * size // sizes[0] for size in sizes)


def brute_force(domain, attributes, cells, max_parents=None):
    """All sets that fit, less those that a fitting set extends or refines."""
    choices = [
        [None, *(View(a, level) for level in range(domain.height(a)))] for a in sorted(attributes)
    ]
    fitting = []
    for choice in product(*choices):
        views = tuple(view for view in choice if view is not None)
        small = max_parents is None or len(views) <= max_parents
        if small and np.prod([domain.size(v) for v in views], dtype=int) <= cells:
            fitting.append(views)

    def refines(fine, coarse):
        levels = dict(fine)
        return fine != coarse and all(a in levels and levels[a] <= lv for a, lv in coarse)

    return {s for s in fitting if not any(refines(other, s) for other in fitting)}


attribute = st.lists(st.integers(2, 12), min_size=1, max_size=3, unique=True).map(
    lambda sizes: nested(sorted(sizes, reverse=True))
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(attribute, min_size=1, max_size=4), st.integers(0, 80), st.none() | st.integers(0, 3)
)
def test_maximal_sets_equal_brute_force(levels, cells, cap):
    try:
        domain = Domain(tuple(levels))
    except Exception:  # noqa: BLE001 (rounding made a level that is not nested: not a domain)
        return
    found = maximal_parent_sets(domain, range(domain.width), cells, max_parents=cap)
    assert len(found) == len(set(found))
    assert set(found) == brute_force(domain, range(domain.width), cells, cap)
    shuffled = maximal_parent_sets(domain, range(domain.width)[::-1], cells, max_parents=cap)
    assert set(shuffled) == set(found)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [(6, [{0, 1}, {2}]), (5, [{0}, {1}, {2}]), (0, []), (1, [set()])],
)
def test_vanilla_vectors(cells, expected):
    found = maximal_parent_sets(Domain.flat([2, 3, 4]), [0, 1, 2], cells)
    assert sorted(tuple(sorted(view.attribute for view in s)) for s in found) == sorted(
        tuple(sorted(s)) for s in expected
    )


def test_hierarchical_vector_of_age_and_sex():
    domain = Domain((nested([16, 8, 4, 2]), nested([2])))
    found = maximal_parent_sets(domain, [0, 1], 8)
    assert set(found) == {(View(0, 1),), (View(0, 2), View(1, 0))}


def test_no_possible_parents_leave_the_empty_set():
    assert maximal_parent_sets(Domain.flat([2]), [], 1) == [()]
    assert maximal_parent_sets(Domain.flat([2]), [], 0) == []


def test_an_explosion_of_sets_is_stopped():
    with pytest.raises(TooManyParentSetsError):
        maximal_parent_sets(Domain.flat([2] * 30), range(30), 1 << 10, max_sets=1000)


EDGES = st.frozensets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=6)


def test_contradictory_wishes_are_refused():
    with pytest.raises(InputError, match="both required and forbidden"):
        Constraints(required=frozenset({(0, 1)}), forbidden=frozenset({(0, 1)})).check(2)
    with pytest.raises(InputError, match="different attributes"):
        Constraints(required=frozenset({(0, 5)})).check(2)
    with pytest.raises(InputError, match="more required parents"):
        Constraints(required=frozenset({(0, 2), (1, 2)}), max_parents=1).check(3)
    with pytest.raises(InputError, match="0 or more"):
        Constraints(max_parents=-1).check(3)
    with pytest.raises(InputError, match="cycle"):
        Constraints(required=frozenset({(0, 1), (1, 2), (2, 0)})).check(3)
    with pytest.raises(InputError, match=r"edge 1 -> 1: .* in 0\.\.2"):
        Constraints(forbidden=frozenset({(1, 1)})).check(3)


@given(EDGES, EDGES, st.none() | st.integers(0, 3))
def test_wishes_that_pass_can_all_be_had(required, forbidden, most):
    """An oracle of one's own: an order of the attributes in which every required edge points on."""
    wishes = Constraints(required, forbidden, most)
    assert Constraints.from_json(json.loads(json.dumps(wishes.to_json()))) == wishes
    children = [child for _, child in required]
    possible = (
        all(parent != child for parent, child in required | forbidden)
        and not required & forbidden
        and (most is None or all(children.count(child) <= most for child in children))
        and not any(
            all(any((parent, child) in required for parent in group) for child in group)
            for size in range(2, 6)
            for group in combinations(range(5), size)
        )
    )
    try:
        wishes.check(5)
    except InputError:
        assert not possible
    else:
        assert possible


@given(EDGES, EDGES, st.sets(st.integers(0, 4)))
def test_a_pool_waits_for_required_parents_and_leaves_forbidden_ones_out(
    required, forbidden, available
):
    wishes = Constraints(required, forbidden)
    for child in range(5):
        must = {parent for parent, own in required if own == child}
        pool = wishes.pool(child, available)
        assert wishes.required_parents(child) == sorted(must)
        assert (pool is None) == bool(must - available)
        if pool is not None:
            assert pool == [p for p in range(5) if p in available and (p, child) not in forbidden]


EPSILONS = [Fraction(n, 20) for n in (1, 2, 4, 8, 16, 32)]
DEGREES = {  # (rows, attributes): degrees over the epsilons at beta = .3, .5, 0
    (21574, 16): ([1, 2, 3, 5, 6, 7], [1, 2, 3, 4, 5, 6], [2, 3, 4, 5, 6, 8]),
    (17259, 16): ([1, 2, 3, 4, 5, 7], [0, 1, 3, 4, 5, 6], [1, 3, 4, 5, 6, 7]),
    (47461, 23): ([2, 3, 4, 5, 6, 7], [1, 2, 3, 5, 6, 7], [2, 3, 5, 6, 7, 8]),
    (37968, 23): ([1, 3, 4, 5, 6, 7], [1, 2, 3, 4, 5, 6], [2, 3, 4, 5, 6, 7]),
    (45222, 52): ([0, 1, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6]),
    (38000, 32): ([1, 2, 3, 4, 5, 6], [0, 1, 3, 4, 5, 6], [1, 3, 4, 5, 6, 7]),
    (40000, 77): ([0, 1, 2, 3, 4, 5], [0, 0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5]),
}


def degrees(rows, attributes, beta):
    return [
        choose_degree(
            rows=rows, attributes=attributes, epsilon=(1 - beta) * epsilon, theta=Fraction(4)
        )
        for epsilon in EPSILONS
    ]


@pytest.mark.parametrize(("rows", "attributes"), DEGREES)
def test_degrees_equal_the_table_of_the_specification(rows, attributes):
    for beta, expected in zip(
        (Fraction(3, 10), Fraction(1, 2), Fraction(0)), DEGREES[rows, attributes], strict=True
    ):
        assert degrees(rows, attributes, beta) == expected


@given(st.integers(2, 60), st.integers(1, 10**6), st.fractions(Fraction(1, 100), 4))
def test_degrees_are_the_largest_useful_ones(attributes, rows, epsilon):
    def useful(k, tables, theta):
        return rows * epsilon / (tables * 2 ** (k + 2)) >= theta

    public = {"rows": rows, "attributes": attributes, "epsilon": epsilon}
    k = choose_degree(**public, theta=Fraction(6))
    assert k == 0 or useful(k, attributes - k, 6)
    assert k == attributes - 1 or not useful(k + 1, attributes - k - 1, 6)
    frontier = choose_degree(**public, theta=Fraction(2), tables=attributes - 1)
    assert frontier == 0 or useful(frontier, attributes - 1, 2)
    assert frontier == attributes - 1 or not useful(frontier + 1, attributes - 1, 2)


def test_a_large_share_for_learning_leaves_degree_zero():
    assert degrees(47461, 23, Fraction(9, 10)) == [0, 0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("rows", "attributes", "epsilon", "degree", "expected"),
    [
        (21574, 16, Fraction(7, 10), 3, 36.3024),
        (21574, 16, Fraction(7, 100), 2, 6.741875),
        (1000, 10, Fraction(1, 2), 1, 6.9444),
    ],
)
def test_usefulness_spot_values(rows, attributes, epsilon, degree, expected):
    found = usefulness(rows=rows, attributes=attributes, degree=degree, epsilon=epsilon)
    assert float(found) == pytest.approx(expected, abs=5e-5)


def test_the_degree_never_reaches_the_number_of_attributes():
    for attributes in range(1, 6):
        huge = choose_degree(
            rows=10**9, attributes=attributes, epsilon=Fraction(10**6), theta=Fraction(4)
        )
        assert huge == attributes - 1
    with pytest.raises(LocalError, match="degree"):
        usefulness(rows=10, attributes=3, degree=3, epsilon=Fraction(1))


def test_usefulness_never_rises_with_the_degree():
    values = [usefulness(rows=1000, attributes=9, degree=k, epsilon=Fraction(1)) for k in range(9)]
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize(
    ("rows", "attributes", "expected"),
    [
        (45222, 15, [13.2, 26.4, 52.8, 105.5, 211.0, 422.1]),
        (38000, 14, [11.9, 23.8, 47.5, 95.0, 190.0, 380.0]),
        (21574, 16, [5.9, 11.8, 23.6, 47.2, 94.4, 188.8]),
        (47461, 23, [9.0, 18.1, 36.1, 72.2, 144.4, 288.9]),
    ],
)
def test_cell_limits_equal_the_specification(rows, attributes, expected):
    share = Fraction(7, 10)
    found = [
        cell_limit(rows=rows, attributes=attributes, epsilon=share * e, theta=Fraction(4))
        for e in EPSILONS
    ]
    assert found == [int(value) for value in expected]


def test_candidate_tables_are_kept_within_a_public_limit():
    assert affordable_degree(attributes=52, degree=6, max_cells=1 << 23) == 3
    assert affordable_degree(attributes=16, degree=7, max_cells=1 << 23) == 7
    assert affordable_degree(attributes=2000, degree=3, max_cells=1 << 20) == 1
