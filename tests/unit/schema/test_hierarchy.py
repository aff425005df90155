"""Hierarchies: nested partitions with strictly decreasing sizes, and a tree without unary nodes."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import LocalError
from common.schema.attribute import Attribute
from common.schema.binning import Binning
from common.schema.hierarchy import Hierarchy, Node, binary_tree, contract, leaf
from tests.harness.schemas import level_sizes

SHAPES = st.recursive(
    st.none(), lambda below: st.lists(below, min_size=1, max_size=4), max_leaves=12
).filter(lambda shape: str(shape).count("None") >= 2)


@st.composite
def trees(draw):
    """A random tree over codes in random order, unary nodes and unequal depths included."""
    shape = draw(SHAPES)
    codes = iter(draw(st.permutations(range(str(shape).count("None")))))

    def grow(below):
        if below is None:
            code = next(codes)
            return leaf(f"v{code}", code)
        return Node("group", tuple(grow(member) for member in below))

    return grow(shape)


def depth(node):
    return 1 + max((depth(child) for child in node.children), default=0)


@given(trees())
def test_levels_are_nested_partitions_with_strictly_decreasing_sizes(tree):
    hierarchy = Hierarchy(tree)
    sizes = level_sizes(hierarchy)
    assert hierarchy.levels[0].tolist() == list(range(hierarchy.size))
    assert all(finer > coarser for finer, coarser in itertools.pairwise(sizes))
    assert sizes[-1] >= 2
    for size, level in zip(sizes, hierarchy.levels, strict=True):
        assert sorted(set(level.tolist())) == list(range(size))
    for finer, coarser in zip(hierarchy.levels, hierarchy.levels[1:], strict=False):
        parents = {(int(a), int(b)) for a, b in zip(finer, coarser, strict=True)}
        assert len(parents) == len({group for group, _ in parents})  # one parent per group


@given(trees(), st.data())
def test_counts_of_a_level_are_sums_of_counts_of_the_finer_level(tree, data):
    hierarchy = Hierarchy(tree)
    rows = np.array(data.draw(st.lists(st.integers(0, hierarchy.size - 1), min_size=1)))
    for finer, coarser in zip(hierarchy.levels, hierarchy.levels[1:], strict=False):
        fine = np.bincount(finer[rows], minlength=finer.max() + 1)
        up = np.zeros(finer.max() + 1, dtype=int)
        up[finer] = coarser
        summed = np.bincount(up, weights=fine)
        np.testing.assert_array_equal(np.bincount(coarser[rows], minlength=len(summed)), summed)


@given(trees())
def test_the_tree_keeps_every_group_and_no_unary_node(tree):
    hierarchy = Hierarchy(tree)

    def groups(node):
        return {frozenset(node.codes())} | {g for child in node.children for g in groups(child)}

    def fan_outs(node):
        return {len(node.children)} | {f for child in node.children for f in fan_outs(child)}

    assert groups(hierarchy.root) == groups(tree)
    assert 1 not in fan_outs(hierarchy.root)
    assert depth(hierarchy.root) <= depth(tree)
    assert contract(hierarchy.root) == hierarchy.root


def test_a_tree_as_deep_as_the_papers_figure_keeps_its_levels():
    six = [leaf(str(code), code) for code in range(6)]
    figure = Hierarchy(Node("", (Node("a", tuple(six[:3])), Node("b", tuple(six[3:])))))
    assert depth(figure.root) == 3
    assert depth(Hierarchy.flat(["f", "m"]).root) == 2


def test_a_shallow_leaf_is_its_own_group_in_every_coarser_level():
    tree = Node(
        "", (Node("g", (Node("h", (leaf("a", 0), leaf("b", 1))), leaf("c", 2))), leaf("d", 3))
    )
    hierarchy = Hierarchy(tree)
    assert [level.tolist() for level in hierarchy.levels] == [
        [0, 1, 2, 3],
        [0, 0, 1, 2],
        [0, 0, 0, 1],
    ]


@pytest.mark.parametrize("bins", [2, 3, 7, 8, 10, 16, 17, 100])
def test_bins_get_the_tree_of_shifted_bin_numbers(bins):
    levels = Hierarchy(binary_tree([str(b) for b in range(bins)])).levels
    assert len(levels) == (bins - 1).bit_length()
    for shift, level in enumerate(levels):
        np.testing.assert_array_equal(level, np.arange(bins) >> shift)


def test_sixteen_bins_have_levels_of_sixteen_eight_four_and_two():
    age = Attribute("age", "integer", Binning.equal_width(17, 90, 16, whole=True))
    assert level_sizes(age.hierarchy) == (16, 8, 4, 2)
    halves = [half.label for half in age.hierarchy.tree.children]
    assert halves == ["17..21 to 49..53", "54..58 to 86..90"]


def test_special_codes_hang_under_the_root_and_stay_apart():
    age = Attribute(
        "age", "integer", Binning.equal_width(0, 7, 8, whole=True), missing=True, other=True
    )
    assert level_sizes(age.hierarchy) == (10, 6, 4)
    assert age.hierarchy.levels[2].tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 2, 3]
    assert [child.label for child in age.hierarchy.root.children[2:]] == ["(other)", "(missing)"]


def test_one_bin_and_a_missing_category_make_a_flat_hierarchy():
    flat = Attribute("x", "real", Binning.equal_width(0, 1, 1, whole=False), missing=True).hierarchy
    assert level_sizes(flat) == (2,)
    assert depth(flat.root) == 2


@pytest.mark.parametrize("codes", [(0, 0), (1, 2), (0, 2)])
def test_a_tree_that_repeats_or_misses_a_code_is_refused(codes):
    with pytest.raises(LocalError, match="each once"):
        Hierarchy(Node("", tuple(leaf(str(code), code) for code in codes)))


def test_a_node_is_either_a_leaf_or_a_group():
    with pytest.raises(LocalError, match="leaf has a code"):
        Node("neither")
    with pytest.raises(LocalError, match="leaf has a code"):
        Node("both", (leaf("a", 0),), code=1)
