"""Maximal parent sets against brute force."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.bayes.domain import Domain, View
from common.bayes.privbayes.greedy_general import TooManyParentSetsError, maximal_parent_sets


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
