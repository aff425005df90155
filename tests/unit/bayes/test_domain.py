"""Views of attributes: levels are nested partitions, regrouping and expanding agree with them."""

import numpy as np
import pytest

from common.bayes.domain import Domain, View
from common.errors import LocalError
from common.marginals import count
from common.schema.codes import Codes
from common.schema.hierarchy import Hierarchy, binary_tree


def test_levels_must_be_nested_partitions():
    with pytest.raises(LocalError, match="nested"):
        Domain(((np.arange(4), np.array([0, 0, 1, 2]), np.array([0, 1, 1, 1])),))
    with pytest.raises(LocalError, match="fewer groups"):
        Domain(((np.arange(2), np.array([1, 0])),))
    with pytest.raises(LocalError, match="level 0"):
        Domain(((np.array([0, 0, 1]),),))


def test_regrouping_maps_fine_groups_to_coarse_ones():
    domain = Domain(((np.arange(8), np.arange(8) // 2, np.arange(8) // 4),))
    assert domain.regroup(View(0, 1), View(0, 2)).tolist() == [0, 0, 1, 1]
    with pytest.raises(LocalError, match="generalisation"):
        domain.regroup(View(0, 2), View(0, 1))


def test_levels_are_nested_partitions_and_counts_add_up():
    hierarchy = Hierarchy(binary_tree([str(i) for i in range(16)]))
    domain = Domain.of([hierarchy, Hierarchy.flat(["a", "b"])])
    assert domain.level_sizes[0] == (16, 8, 4, 2)
    generator = np.random.default_rng(1)
    codes = Codes.from_columns(
        [generator.integers(0, 16, 500), generator.integers(0, 2, 500)], domain.sizes
    )
    expanded = domain.expand(codes)
    columns = {view: i for i, view in enumerate(domain.views)}
    tables = count(expanded, [(columns[View(0, level)], columns[View(1)]) for level in range(4)])
    for level in range(3):
        groups = domain.regroup(View(0, level), View(0, level + 1))
        merged = np.zeros_like(tables[level + 1])
        np.add.at(merged, groups, tables[level])
        assert np.array_equal(merged, tables[level + 1])


def test_a_domain_says_which_views_there_are_and_how_large_a_table_of_them_is():
    domain = Domain(((np.arange(4), np.array([0, 1, 1, 1])), (np.arange(3),)))
    assert domain.views == [View(0), View(0, 1), View(1)]
    assert (domain.width, domain.sizes, domain.height(0), domain.height(1)) == (2, (4, 3), 2, 1)
    assert domain.shape([View(1), View(0, 1)]) == (3, 2)
    plain = domain.without_levels()
    assert plain.views == [View(0), View(1)] == Domain.flat([4, 3]).views


def test_expanding_rows_of_other_domains_is_refused():
    codes = Codes.from_columns([np.array([0, 1])], [3])
    with pytest.raises(LocalError, match=r"have domains \(3,\), not \(2,\)"):
        Domain.flat([2]).expand(codes)
    with pytest.raises(LocalError, match="generalisation"):
        Domain.flat([2, 2]).regroup(View(0), View(1))
