"""The encodings as PrivBayes uses them: the papers' figures, and round trips."""

from itertools import pairwise

import numpy as np
import pytest

from common.bayes.domain import Domain, View
from common.marginals import count
from common.schema.codes import Codes
from common.schema.encodings import binarise, debinarise
from common.schema.hierarchy import Hierarchy, binary_tree


def bits_of(size, *, gray):
    encoded = binarise(Codes.from_columns([np.arange(size)], [size]), gray)
    return ["".join(str(int(b)) for b in row) for row in np.array(encoded.columns).T]


def test_figure_2_of_the_paper_ages_in_eight_bins():
    assert bits_of(8, gray=False) == [f"{i:03b}" for i in range(8)]
    assert bits_of(8, gray=True) == ["000", "001", "011", "010", "110", "111", "101", "100"]
    assert bits_of(8, gray=True)[3] == "010"  # (30, 40]
    sizes = Hierarchy(binary_tree([str(i) for i in range(8)])).level_sizes
    assert sizes == (8, 4, 2)


@pytest.mark.parametrize("gray", [False, True])
def test_codes_survive_bits_and_impossible_bits_are_noticed(gray):
    for size in range(2, 42):
        codes = Codes.from_columns([np.arange(size)], [size])
        bits = binarise(codes, gray)
        (column,), valid = debinarise(bits, [size], gray)
        assert np.array_equal(column, np.arange(size))
        assert valid.all()
        every = np.arange(2**bits.width)
        patterns = [(every >> j) & 1 for j in reversed(range(bits.width))]
        (column,), valid = debinarise(Codes.from_columns(patterns, [2] * bits.width), [size], gray)
        assert valid.sum() == size
        assert column.max() < size


def test_gray_neighbours_differ_in_one_bit():
    for size in range(2, 42):
        codes = bits_of(size, gray=True)
        for left, right in pairwise(codes):
            assert sum(a != b for a, b in zip(left, right, strict=True)) == 1


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
