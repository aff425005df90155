"""The nominal wavelet transform along a hierarchy, in integers, in place.

[Xiao11, Sec. 5] gives the root the coefficient c = total, and every other node, leaves included,
c = S(node) - S(parent) / f, where S is the sum of the cells below and f the fan-out of the parent;
the weights are 1 and f / (2f - 2). The integers used here are c~ = total and
c~ = f * S(node) - S(parent) = W(c) * c * 2(f - 1): noise of scale t = lambda * 2(f - 1) on c~ is
noise of scale lambda on the weighted coefficient, and never leaves the integers.

Layout: one position per node of the tree, breadth first; the cells sit at the leaves' positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.errors import LocalError
from common.schema.hierarchy import Hierarchy, Node
from common.wavelet.axis import Axis, AxisKind, Floats, Integers, Reach


@dataclass(frozen=True, slots=True, eq=False)
class ArrayTree:
    """A hierarchy as arrays: a rooted tree over the codes 0..size-1, numbered breadth first.

    So the children of a node are neighbours and a level is a slice. Leaves also have a depth-first
    position, in which the leaves below any node are an interval. A node with a single child says
    nothing its child does not say, and its coefficient would always be zero: the hierarchy's `root`
    has no such nodes, which also lowers the height, and with it the noise.
    """

    parent: NDArray[np.intp]  # parent node of each node; -1 for the root, node 0
    # First child of each inner node (its children are consecutive); 0 for a leaf.
    first_child: NDArray[np.intp]
    fan_out: NDArray[np.intp]  # number of children of each node; 0 for a leaf
    low: NDArray[np.intp]  # first depth-first leaf position below each node
    high: NDArray[np.intp]  # one past the last depth-first leaf position below each node
    level_starts: tuple[int, ...]  # first node of each level, then the number of nodes
    leaf_nodes: NDArray[np.intp]  # node of the leaf at each depth-first position
    leaf_codes: NDArray[np.intp]  # code of the leaf at each depth-first position

    @classmethod
    def of(cls, hierarchy: Hierarchy) -> ArrayTree:
        parent, codes, level_starts = _breadth_first(hierarchy.root)
        count = len(parent)
        fan_out = np.bincount(parent[1:], minlength=count).astype(np.intp)
        # Breadth first, parents ascend: the first node with a parent is that parent's first child.
        first_child = np.where(fan_out > 0, np.searchsorted(parent, np.arange(count)), 0)
        low, high = _leaf_intervals(parent, fan_out, first_child)
        leaves = np.flatnonzero(fan_out == 0)
        leaf_nodes = leaves[np.argsort(low[leaves])]
        return cls(
            parent, first_child, fan_out, low, high, level_starts, leaf_nodes, codes[leaf_nodes]
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


def _breadth_first(root: Node) -> tuple[NDArray[np.intp], NDArray[np.intp], tuple[int, ...]]:
    """Return each node's parent, each leaf's code (-1 for inner nodes), each level's first node."""
    parents: list[int] = []
    codes: list[int] = []
    level_starts = [0]
    level = [(-1, root)]
    while level:
        following: list[tuple[int, Node]] = []
        for parent, node in level:
            following += [(len(parents), child) for child in node.children]
            parents.append(parent)
            codes.append(-1 if node.code is None else node.code)
        level_starts.append(len(parents))
        level = following
    return np.array(parents, np.intp), np.array(codes, np.intp), tuple(level_starts)


def _leaf_intervals(
    parent: NDArray[np.intp], fan_out: NDArray[np.intp], first_child: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the interval of depth-first leaf positions below each node."""
    leaves = (fan_out == 0).astype(np.intp)
    for node in range(len(parent) - 1, 0, -1):
        leaves[parent[node]] += leaves[node]
    low = np.zeros(len(parent), dtype=np.intp)
    for node in np.flatnonzero(fan_out).tolist():
        kids = slice(first_child[node], first_child[node] + fan_out[node])
        low[kids] = low[node] + np.cumsum(leaves[kids]) - leaves[kids]
    return low, low + leaves


class NominalAxis(Axis):
    """An attribute with a hierarchy; there is one coefficient per node, leaves included.

    The generalised sensitivity is h, the number of levels [Xiao11, Lemma 4]. Proof: adding 1 to one
    cell moves the base by 1, with weight 1. At each deeper level on its path the node on the path
    moves by 1 - 1/f and its f - 1 siblings by -1/f, in all 2(f - 1)/f; times the weight f / (2f -
    2) that is 1. Nothing else moves. So a cell at depth k (root 1) costs k, and the maximum over
    the cells is the height.
    """

    kind: AxisKind = "nominal"

    def __init__(self, tree: ArrayTree) -> None:
        super().__init__(tree.size, tree.leaf_codes)
        self.tree = tree
        self.coefficients = tree.nodes
        first = int(tree.leaf_nodes[0])
        last = first + tree.size
        one_level = np.array_equal(tree.leaf_nodes, np.arange(first, last))
        self.cells = slice(first, last) if one_level else tree.leaf_nodes
        self.sensitivity = tree.height

    @property
    def variance_bound(self) -> Fraction:
        """[Xiao11, Lemma 5]."""
        return Fraction(4)

    @cached_property
    def worst_variance(self) -> Fraction:
        """The largest sum of squares over all nodes, exactly; see `moments`."""
        variances = [Fraction(1)] * self.tree.nodes
        for node in self.tree.inner_nodes:
            f = int(self.tree.fan_out[node])
            below = variances[node] / f**2 + 4 * (1 - Fraction(1, f)) ** 3
            children: Any = self.tree.children(node)
            variances[children] = [below] * f
        return max(variances)

    @cached_property
    def multipliers(self) -> NDArray[np.int64]:
        """c~ / (W(c) * c) of each node: 1 for the base, otherwise 2(f - 1), f of the parent."""
        result = np.ones(self.tree.nodes, dtype=np.int64)
        result[1:] = 2 * (self.tree.fan_out[self.tree.parent[1:]] - 1)
        return result

    @property
    def bands(self) -> tuple[slice, ...]:
        """Each level; the base is the first."""
        return tuple(slice(low, high) for low, high in pairwise(self.tree.level_starts))

    def forward(self, values: NDArray[np.int64]) -> None:
        """Replace cells, at the leaves' positions and zeros elsewhere, by coefficients."""
        inner = self.tree.inner_nodes
        for node in inner[::-1]:  # children before parents: sums climb up
            np.sum(values[:, self.tree.children(node)], axis=1, out=values[:, node])
        for node in inner[::-1]:  # a parent's sum must still be there when its children use it
            children = values[:, self.tree.children(node)]
            children *= int(self.tree.fan_out[node])
            children -= values[:, node, None]

    def inverse(self, values: Floats) -> None:
        """Subtract the mean of each sibling group and undo `forward`.

        Afterwards every position holds the sum of its node, and children add up to their parent.
        Subtracting the mean costs no privacy, and without it the variance bound does not hold
        [Xiao11, Sec. 5.2].
        """
        for node in self.tree.inner_nodes:  # parents before children: sums climb down
            fan_out = int(self.tree.fan_out[node])
            children = values[:, self.tree.children(node)]
            children /= fan_out
            surplus = values[:, node] - children.sum(axis=1)
            surplus /= fan_out
            children += surplus[:, None]

    def reach(self, low: Integers, high: Integers, *, padding: bool = True) -> Reach:
        """Refuse ranges that are no nodes of the hierarchy."""
        keys, order = self._by_interval
        sought = low.astype(np.intp) * (self.size + 1) + high
        place = np.minimum(np.searchsorted(keys, sought), len(keys) - 1)
        if not np.array_equal(keys[place], sought):
            raise LocalError("a range along a hierarchy must be exactly the leaves of one node")
        node = order[place]
        second, fourth = self.moments
        return Reach(low, high, second[node], fourth[node])

    @cached_property
    def _by_interval(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The nodes' intervals as sorted keys, and the nodes in that order."""
        keys = self.tree.low * (self.size + 1) + self.tree.high
        order = np.argsort(keys)
        return keys[order], order

    @cached_property
    def moments(self) -> tuple[Floats, Floats]:
        """Sums of squares and of fourth powers of the weights with which nodes use coefficients.

        Weights are with respect to the weighted coefficients u = W(c) * c BEFORE the mean is
        subtracted. A node below the fan-outs f_0 .. f_k uses the base with 1 / (f_0 * .. * f_k),
        and of a sibling group on its path, with s the product of 1/f below that group, the node on
        the path with 2 s (1 - 1/f)^2 and each of its f - 1 siblings with -2 s (1 - 1/f) / f. The
        squares add up to V_0 = 1, V_{j+1} = V_j / f_j^2 + 4 (1 - 1/f_j)^3, which stays below 4
        [Xiao11, Lemma 5].

        Both have the shape (nodes, noise classes).
        """
        tree, classes = self.tree, self.classes
        second = np.zeros((tree.nodes, len(classes)))
        fourth = np.zeros_like(second)
        second[0, 0] = fourth[0, 0] = 1.0  # the base has multiplier 1, the smallest
        for node in tree.inner_nodes:
            f = float(tree.fan_out[node])
            rest = 1 - 1 / f
            children = tree.children(node)
            second[children] = second[node] / f**2
            fourth[children] = fourth[node] / f**4
            position = np.searchsorted(classes, 2 * (int(f) - 1))
            second[children, position] += 4 * rest**3
            fourth[children, position] += (2 * rest) ** 4 * (rest**4 + (f - 1) / f**4)
        return second, fourth
