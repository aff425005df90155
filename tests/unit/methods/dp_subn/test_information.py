from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.papers.marginal_methods import covering_design
from common.errors import LocalError
from common.methods.designs.nocd import optimal_design
from common.methods.dp_subn.information import correlations, mutual_information, pair_tables


def test_exact_views_give_back_exact_pairs_and_their_information():
    sizes = (2, 3, 2, 4, 2, 3)
    rows = np.random.default_rng(1).integers(0, np.array(sizes)[:, None], (6, 500))
    rows[1] = np.minimum(rows[0] + rows[2], 2)
    joint = np.zeros(sizes)
    np.add.at(joint, tuple(rows), 1)
    for design in (optimal_design(sizes, cell_limit=40), covering_design(sizes, block=3)):
        tables = [
            joint.sum(axis=tuple(a for a in range(6) if a not in view)).transpose(
                np.argsort(np.argsort(view))
            )
            for view in design.views
        ]
        pairs = pair_tables(design.views, tables)
        assert set(pairs) == set(combinations(range(6), 2))
        for a, b in pairs:
            expected = joint.sum(axis=tuple(c for c in range(6) if c not in (a, b)))
            np.testing.assert_allclose(pairs[a, b], expected)
        matrix = correlations(6, pairs, 500)
        assert (matrix == matrix.T).all()
        assert matrix[0, 1] > 10 * matrix[3, 4]


def test_information_of_copies_is_the_entropy_and_of_nothing_is_zero():
    assert mutual_information(np.diag([10.0, 10.0, 10.0, 10.0]), 40) == pytest.approx(2.0)
    assert mutual_information(np.outer([1.0, 2.0], [3.0, 4.0]), 21) == pytest.approx(0.0, abs=1e-12)
    assert mutual_information(np.full((2, 2), -5.0), 0) == 0.0
    assert np.isfinite(mutual_information(np.full((3, 3), -1e9), 10))


def test_information_uses_the_marginals_own_row_count():
    table = np.diag([10.0, 10.0]) + 1.0  # one cell of noise everywhere
    assert mutual_information(table, 20) > mutual_information(table, 24)


def test_a_table_that_does_not_fit_its_view_is_refused():
    with pytest.raises(LocalError, match="dimensions"):
        pair_tables([(0, 1)], [np.zeros(4)])


@given(st.integers(0, 40), st.integers(2, 9))
def test_a_covering_covers_every_pair_with_blocks_of_the_size(attributes, block):
    design = covering_design([2] * attributes, block)
    covered = {pair for view in design.views for pair in combinations(view, 2)}
    assert covered == set(combinations(range(attributes), 2))
    assert all(2 <= len(view) <= block for view in design.views)


def test_blocks_of_one_cover_nothing_and_are_refused():
    with pytest.raises(LocalError, match="2 attributes or more"):
        covering_design([2, 2], 1)
