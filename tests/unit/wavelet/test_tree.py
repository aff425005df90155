"""Hierarchies as trees."""

import pytest

from common.errors import InputError
from common.wavelet.nominal import Tree
from tests.unit.wavelet.blocks import nominal


@pytest.mark.parametrize(
    ("nested", "size", "words"),
    [
        ((0, 1, 1), 2, "more than once"),
        ((0, 2), 3, "misses the codes [1]"),
        ((0, 1, 2), 2, "not below the domain size 2"),
        ((0, ()), 1, "without members"),
        ((0, -1), 2, "count from 0"),
    ],
)
def test_broken_hierarchies_are_refused(nested, size, words):
    with pytest.raises(InputError, match=words.replace("[", r"\[").replace("]", r"\]")):
        Tree.from_nested(nested, size)


def test_unary_nodes_are_contracted_and_lower_the_height():
    tree = Tree.from_nested(((((0, 1),), (2,)),), 3)
    assert tree.height == 3
    assert tree.nodes == 5
    assert tree.fan_out.tolist() == [2, 2, 0, 0, 0]
    assert nominal(((((0, 1),), (2,)),)).multipliers.tolist() == [1, 2, 2, 2, 2]


def test_leaves_below_every_node_are_an_interval_in_depth_first_order():
    tree = Tree.from_nested(((4, (0, 3)), 1, (2, 5)), 6)
    assert tree.leaf_codes.tolist() == [4, 0, 3, 1, 2, 5]
    assert [(int(a), int(b)) for a, b in zip(tree.low, tree.high, strict=True)] == [
        (0, 6), (0, 3), (3, 4), (4, 6), (0, 1), (1, 3), (4, 5), (5, 6), (1, 2), (2, 3)
    ]  # fmt: skip
