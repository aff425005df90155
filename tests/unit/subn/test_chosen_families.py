from itertools import combinations, product
from math import prod

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from common.privacy import sensitivity
from common.schema.codes import Codes
from common.subn.chosen_families import Family, FamilyTables, choose_families, groups_that_fit
from parley.in_process import RowsInMemory

FAMILIES = FamilyTables(
    (Family((1, 0), ((0, 1), (0, 1, 1))), Family((2, 0, 1), ((0, 0, 1, 2), (0, 1, 2), (0, 1))))
)


def codes(rows) -> Codes:
    return Codes.from_columns([np.array(column) for column in zip(*rows, strict=True)], (3, 2, 4))


def test_tables_count_groups_by_brute_force():
    rng = np.random.default_rng(3)
    rows = [tuple(int(v) for v in rng.integers(0, (3, 2, 4))) for _ in range(40)]
    answer = FAMILIES.answer(RowsInMemory(codes(rows)))
    assert len(answer) == FAMILIES.cells == 4 + 18
    for family, table in zip(FAMILIES.families, FAMILIES.tables(answer), strict=True):
        for cell in product(*map(range, family.shape)):
            seen = sum(
                all(
                    own[r[a]] == g
                    for a, own, g in zip(family.attributes, family.groups, cell, strict=True)
                )
                for r in rows
            )
            assert table[cell] == seen


def test_no_replaced_row_moves_the_tables_by_more_than_the_sensitivity():
    values = list(product(range(3), range(2), range(4)))
    exact = [FAMILIES.answer(RowsInMemory(codes([value]))) for value in values]
    moved = max(int(np.abs(x - y).sum()) for x in exact for y in exact)
    assert moved == sensitivity.histograms(FAMILIES.count) == 4


@settings(deadline=None)
@given(st.data())
def test_families_form_a_network_that_keeps_the_limits(data):
    width = data.draw(st.integers(2, 7))
    sizes = data.draw(st.lists(st.integers(1, 20), min_size=width, max_size=width))
    pairs = list(combinations(range(width), 2))
    scores = data.draw(st.lists(st.integers(-50, 100), min_size=len(pairs), max_size=len(pairs)))
    least, cells = data.draw(st.integers(0, 60)), data.draw(st.integers(4, 500))
    families = choose_families(scores, sizes, least=least, cells=cells)
    score = dict(zip(pairs, scores, strict=True))
    children = [family[0] for family in families]
    assert len(set(children)) == len(children)
    strongest = tuple(sorted(families[0]))
    assert score[strongest] == max(scores)
    for i, (child, *parents) in enumerate(families):
        later = {family[0] for family in families[i:]}
        assert parents
        assert not later & set(parents)
        if i:
            assert all(score[min(child, p), max(child, p)] >= least for p in parents)
        if len(parents) > 1:
            assert prod(min(sizes[a], 5) for a in (child, *parents)) <= cells


def test_without_larger_tables_the_families_are_a_heaviest_forest_by_brute_force():
    rng = np.random.default_rng(9)
    for _ in range(20):
        scores = [int(s) for s in rng.permutation(30)[:10]]
        pairs = list(combinations(range(5), 2))
        chosen = choose_families(scores, [9] * 5, least=0, cells=1)
        score = dict(zip(pairs, scores, strict=True))

        def spans(edges) -> bool:
            reached = {0}
            for _ in edges:
                reached |= {v for e in edges if set(e) & reached for v in e}
            return len(reached) == 5

        best = max(sum(score[e] for e in t) for t in combinations(pairs, 4) if spans(t))
        assert sum(score[min(f), max(f)] for f in chosen) == best


def test_attributes_without_a_link_stay_alone():
    assert choose_families([90, 1, 2], [8, 8, 8], least=10, cells=100) == ((1, 0),)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=4), st.integers(4, 2000))
def test_as_many_groups_as_fit(sizes, cells):
    groups = groups_that_fit(sizes, cells)
    assert groups == 2 or prod(min(s, groups) for s in sizes) <= cells
    assert groups >= max(sizes) or prod(min(s, groups + 1) for s in sizes) > cells
