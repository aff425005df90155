"""Hierarchies over the codes of an attribute: trees for Privelet, nested partitions for PrivBayes.

A hierarchy is public, like the domain: it comes from knowledge of the subject, never from the data.
It is offered in two forms, because its two users read it differently:

* `root`, the tree with unary nodes contracted. Privelet's nominal transform divides by fan-out - 1
  and pays for every level, so a node with a single child must not be there.
* `levels`, maps from code to group, finest first. PrivBayes generalises a parent attribute to one
  level of the tree; leaves of unequal depth are padded so that every level is a partition. The root
  is left out (one group says nothing), and sizes strictly decrease.

    >>> tree = Node("", (Node("low", (leaf("a", 0), leaf("b", 1))), leaf("c", 2)))
    >>> [level.tolist() for level in Hierarchy(tree).levels]
    [[0, 1, 2], [0, 0, 1]]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from common.errors import LocalError


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a tree: a leaf has a `code` and no children, a group has children and no code."""

    label: str
    children: tuple[Node, ...] = ()
    code: int | None = None

    def __post_init__(self) -> None:
        """Refuse a node that is both a leaf and a group, or neither."""
        if (self.code is None) != bool(self.children):
            raise LocalError(f"node {self.label!r}: a leaf has a code, a group has children")

    @property
    def is_leaf(self) -> bool:
        return self.code is not None

    def codes(self) -> list[int]:
        """Return the codes of the leaves below (or at) this node, from left to right."""
        codes, waiting = list[int](), [self]
        while waiting:
            node = waiting.pop()
            waiting += reversed(node.children)
            if node.code is not None:
                codes.append(node.code)
        return codes


def leaf(label: str, code: int) -> Node:
    return Node(label, code=code)


def contract(node: Node) -> Node:
    """Remove unary nodes: an only child takes the place of its parent."""
    while len(node.children) == 1:
        node = node.children[0]
    if node.is_leaf:
        return node
    return Node(node.label, tuple(contract(child) for child in node.children))


@dataclass(frozen=True)
class Hierarchy:
    """A rooted tree whose leaves are the codes 0..size-1, each exactly once."""

    tree: Node  # as declared: it may contain unary nodes and leaves of unequal depth

    def __post_init__(self) -> None:
        """Refuse a tree that misses or repeats a code."""
        codes = self.tree.codes()
        if sorted(codes) != list(range(len(codes))):
            raise LocalError("the leaves of a hierarchy are the codes 0..size-1, each once")

    @classmethod
    def flat(cls, labels: Sequence[str]) -> Hierarchy:
        """Return a tree without groups: every code is a child of the root."""
        return cls(Node("", tuple(leaf(label, code) for code, label in enumerate(labels))))

    @property
    def size(self) -> int:
        return len(self.levels[0])

    @cached_property
    def root(self) -> Node:
        """The tree with unary nodes contracted."""
        return contract(self.tree)

    @cached_property
    def levels(self) -> tuple[NDArray[np.intp], ...]:
        """Code to group, finest (the identity) first; the root is omitted."""
        order = np.array(self.tree.codes(), dtype=np.intp)
        size, groups = len(order), 1
        maps: list[NDArray[np.intp]] = []
        cut = [self.tree]
        leaves = _leaf_counts(self.tree)
        while not all(node.is_leaf for node in cut):  # the cut below the root, then below that, ...
            # A leaf stays in every deeper cut: that is the padding.
            cut = [below for node in cut for below in (node.children or (node,))]
            if len(cut) > groups:
                groups = len(cut)
                maps.append(np.empty(size, dtype=np.intp))
                maps[-1][order] = np.repeat(np.arange(groups), [leaves[id(node)] for node in cut])
        # The finest cut is the leaves in tree order; its groups must be numbered by code.
        maps[-1:] = [np.arange(size, dtype=np.intp)]
        return tuple(reversed(maps))


def _leaf_counts(tree: Node) -> dict[int, int]:
    """Return the number of leaves below (or at) every node, by its id."""
    nodes = [tree]
    for node in nodes:  # parents before their children
        nodes += node.children
    counts: dict[int, int] = {}
    for node in reversed(nodes):
        counts[id(node)] = sum(counts[id(child)] for child in node.children) or 1
    return counts


def binary_tree(labels: Sequence[str]) -> Node:
    """Return the binary tree over bins: group k of level l holds the bins with bin >> l = k.

    [Zhang17, Sec. 5.1]: a continuous attribute of b bins gets a tree of height ceil(log2 b).
    """
    nodes = [leaf(label, code) for code, label in enumerate(labels)]
    while len(nodes) > 1:
        pairs = [tuple(nodes[start : start + 2]) for start in range(0, len(nodes), 2)]
        nodes = [Node(_span(pair), pair) for pair in pairs]
    return nodes[0]


def _span(nodes: tuple[Node, ...]) -> str:
    """Name neighbouring bins by the first and the last of them."""
    first, last = nodes[0], nodes[-1]
    while first.children:
        first = first.children[0]
    while last.children:
        last = last.children[-1]
    return first.label if first is last else f"{first.label} to {last.label}"
