"""A covering holds every set asked for, in fewer tables that stay small."""

import itertools
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from common.marginals import covering
from common.marginals.covering import CACHED_CELLS, cover


@settings(max_examples=100, deadline=None)
@given(st.data(), st.lists(st.integers(1, 300), min_size=1, max_size=8))
def test_every_set_lies_in_its_home_and_homes_grow_only_within_the_cache(data, sizes):
    attributes = st.lists(st.integers(0, len(sizes) - 1), unique=True, max_size=4).map(tuple)
    sets = data.draw(st.lists(attributes, max_size=12))
    homes = cover(sets, sizes)
    asked = {tuple(sorted(each)) for each in sets if each}
    assert set(homes) == asked
    for each, home in homes.items():
        assert set(each) <= set(home)
        assert list(home) == sorted(set(home))
        assert home in asked or math.prod(sizes[a] for a in home) <= CACHED_CELLS
    assert len(set(homes.values())) <= len(asked)


def test_all_pairs_of_small_domains_need_a_third_of_the_tables():
    pairs = list(itertools.combinations(range(15), 2))
    assert len(set(cover(pairs, [10] * 15).values())) <= len(pairs) // 2
    assert set(cover(pairs, [2] * 15).values()) != set(pairs)


def test_a_request_of_very_many_sets_is_counted_as_asked(monkeypatch):
    monkeypatch.setattr(covering, "_MOST_SETS", 2)
    sets = [(0, 1), (1, 2), (2, 0)]
    assert cover(sets, [2, 2, 2]) == {(0, 1): (0, 1), (1, 2): (1, 2), (0, 2): (0, 2)}
