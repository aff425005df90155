"""Wishes about a network: contradictions are refused, and pools of parents obey them."""

import json
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.bayes.privbayes.constraints import Constraints
from common.errors import InputError

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
