"""A hierarchy as arrays: the shape the nominal wavelet transform walks along.

Nodes are numbered breadth first, so the children of a node are neighbours and a level is a slice.
Leaves also have a depth-first position, in which the leaves below any node are an interval.
A node with a single child says nothing its child does not say, and its coefficient would always be
zero: such nodes are contracted here, which also lowers the height, and with it the noise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError

Nested: TypeAlias = "int | Sequence[Nested]"
"""A hierarchy written down: a leaf is its code, an inner node the sequence of its children."""


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """A rooted tree over the codes 0..size-1, without unary nodes, numbered breadth first.

    Attributes:
        parent: parent node of each node; -1 for the root, node 0.
        first_child: first child of each inner node (its children are consecutive); 0 for a leaf.
        fan_out: number of children of each node; 0 for a leaf.
        low: first depth-first leaf position below each node.
        high: one past the last depth-first leaf position below each node.
        level_starts: first node of each level, then the number of nodes.
        leaf_nodes: node of the leaf at each depth-first position.
        leaf_codes: code of the leaf at each depth-first position.
    """

    parent: NDArray[np.intp]
    first_child: NDArray[np.intp]
    fan_out: NDArray[np.intp]
    low: NDArray[np.intp]
    high: NDArray[np.intp]
    level_starts: tuple[int, ...]
    leaf_nodes: NDArray[np.intp]
    leaf_codes: NDArray[np.intp]

    @classmethod
    def from_nested(cls, root: Nested, size: int) -> Tree:
        """The tree of a nested hierarchy.

        Raises:
            InputError: a code is missing, repeated or outside 0..size-1, or a group is empty.
        """
        parents, codes, level_starts = _breadth_first(root)
        _check_codes([code for code in codes if code >= 0], size)
        parent = np.array(parents, dtype=np.intp)
        count = len(parent)
        fan_out = np.bincount(parent[1:], minlength=count).astype(np.intp)
        first_child = np.zeros(count, dtype=np.intp)
        # Walking backwards, the last child seen of a parent is its first.
        for node in range(count - 1, 0, -1):
            first_child[parent[node]] = node
        low, high = _leaf_intervals(parent, fan_out, first_child)
        node_codes = np.array(codes, dtype=np.intp)
        leaves = np.flatnonzero(fan_out == 0)
        leaf_nodes = leaves[np.argsort(low[leaves])]
        return cls(
            parent,
            first_child,
            fan_out,
            low,
            high,
            level_starts,
            leaf_nodes,
            node_codes[leaf_nodes],
        )

    @property
    def nodes(self) -> int:
        return len(self.parent)

    @property
    def size(self) -> int:
        return len(self.leaf_nodes)

    @property
    def height(self) -> int:
        """The number of LEVELS, root and leaves included; counting edges would break epsilon."""
        return len(self.level_starts) - 1

    @property
    def inner_nodes(self) -> NDArray[np.intp]:
        """The nodes that have children, parents before their children."""
        return np.flatnonzero(self.fan_out)

    def children(self, node: int) -> slice:
        first = int(self.first_child[node])
        return slice(first, first + int(self.fan_out[node]))


def _breadth_first(root: Nested) -> tuple[list[int], list[int], tuple[int, ...]]:
    """Parent of each node, code of each leaf (-1 for inner nodes), first node of each level."""
    parents: list[int] = []
    codes: list[int] = []
    level_starts = [0]
    level: list[tuple[int, Nested]] = [(-1, root)]
    while level:
        following: list[tuple[int, Nested]] = []
        for parent, unread in level:
            node = _contracted(unread)
            index = len(parents)
            parents.append(parent)
            if isinstance(node, int):
                codes.append(node)
            else:
                codes.append(-1)
                following.extend((index, child) for child in node)
        level_starts.append(len(parents))
        level = following
    return parents, codes, tuple(level_starts)


def _contracted(node: Nested) -> Nested:
    """The node itself, or its first descendant that is a leaf or has two children."""
    while not isinstance(node, int):
        if len(node) == 0:
            raise InputError("a hierarchy has a group without members; remove the group")
        if len(node) > 1:
            break
        node = node[0]
    if isinstance(node, int) and node < 0:
        raise InputError(f"a hierarchy has the code {node}; codes count from 0")
    return node


def _check_codes(codes: list[int], size: int) -> None:
    """Refuse a hierarchy whose leaves are not exactly the domain."""
    seen = Counter(codes)
    if len(seen) < len(codes):
        twice = sorted(code for code, times in seen.items() if times > 1)
        raise InputError(f"a hierarchy names the codes {twice[:5]} more than once")
    missing = [code for code in range(size) if code not in seen]
    if missing:
        raise InputError(f"a hierarchy misses the codes {missing[:5]} of a domain of {size}")
    if len(codes) > size:
        raise InputError(f"a hierarchy names codes that are not below the domain size {size}")


def _leaf_intervals(
    parent: NDArray[np.intp], fan_out: NDArray[np.intp], first_child: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The interval of depth-first leaf positions below each node."""
    leaves = (fan_out == 0).astype(np.intp)
    for node in range(len(parent) - 1, 0, -1):
        leaves[parent[node]] += leaves[node]
    low = np.zeros(len(parent), dtype=np.intp)
    for node in np.flatnonzero(fan_out).tolist():
        kids = slice(first_child[node], first_child[node] + fan_out[node])
        low[kids] = low[node] + np.cumsum(leaves[kids]) - leaves[kids]
    return low, low + leaves
