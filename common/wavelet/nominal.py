"""The nominal wavelet transform along a hierarchy, in integers, in place.

[Xiao11, Sec. 5] gives the root the coefficient c = total, and every other node, leaves included,
c = S(node) - S(parent) / f, where S is the sum of the cells below and f the fan-out of the parent;
the weights are 1 and f / (2f - 2). The integers used here are c~ = total and
c~ = f * S(node) - S(parent) = W(c) * c * 2(f - 1): noise of scale t = lambda * 2(f - 1) on c~ is
noise of scale lambda on the weighted coefficient, and never leaves the integers.

Layout: one position per node of the tree, breadth first; the cells sit at the leaves' positions.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.wavelet.tree import Tree


def sensitivity(tree: Tree) -> int:
    """Generalised sensitivity h, the number of levels, of the transform [Xiao11, Lemma 4].

    Proof: adding 1 to one cell moves the base by 1, with weight 1. At each deeper level on its path
    the node on the path moves by 1 - 1/f and its f - 1 siblings by -1/f, in all 2(f - 1)/f; times
    the weight f / (2f - 2) that is 1. Nothing else moves. So a cell at depth k (root 1) costs k,
    and the maximum over the cells is the height.
    """
    return tree.height


def multipliers(tree: Tree) -> NDArray[np.int64]:
    """c~ / (W(c) * c) of each node: 1 for the base, otherwise 2(f - 1), f of the parent."""
    result = np.ones(tree.nodes, dtype=np.int64)
    result[1:] = 2 * (tree.fan_out[tree.parent[1:]] - 1)
    return result


def forward(cells: NDArray[np.int64], tree: Tree) -> None:
    """Replace cells by integer coefficients along the middle of three axes, in place.

    Args:
        cells: shape (before, nodes, after); cells at the leaves' positions, zeros elsewhere.
        tree: the hierarchy.
    """
    inner = tree.inner_nodes
    for node in inner[::-1]:  # children before parents: sums climb up
        np.sum(cells[:, tree.children(node)], axis=1, out=cells[:, node])
    for node in inner[::-1]:  # a parent's sum must still be there when its children use it
        children = cells[:, tree.children(node)]
        children *= int(tree.fan_out[node])
        children -= cells[:, node, None]


def inverse(coefficients: NDArray[np.float64], tree: Tree) -> None:
    """Subtract the mean of each sibling group and undo `forward`, in place.

    Afterwards every position holds the sum of its node, and children add up to their parent.
    Subtracting the mean costs no privacy, and without it the variance bound does not hold
    [Xiao11, Sec. 5.2].
    """
    for node in tree.inner_nodes:  # parents before children: sums climb down
        fan_out = int(tree.fan_out[node])
        children = coefficients[:, tree.children(node)]
        children /= fan_out
        surplus = coefficients[:, node] - children.sum(axis=1)
        surplus /= fan_out
        children += surplus[:, None]


def bands(tree: Tree) -> tuple[slice, ...]:
    """The positions of each level; the base is level 1."""
    return tuple(
        slice(a, b) for a, b in zip(tree.level_starts, tree.level_starts[1:], strict=False)
    )


def moments(
    tree: Tree, classes: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sums of squares and of fourth powers of the weights with which nodes use coefficients.

    Weights are with respect to the weighted coefficients u = W(c) * c BEFORE the mean is
    subtracted. A node below the fan-outs f_0 .. f_k uses the base with 1 / (f_0 * .. * f_k), and
    of a sibling group on its path, with s the product of 1/f below that group, the node on the path
    with 2 s (1 - 1/f)^2 and each of its f - 1 siblings with -2 s (1 - 1/f) / f. The squares add up
    to V_0 = 1, V_{j+1} = V_j / f_j^2 + 4 (1 - 1/f_j)^3, which stays below 4 [Xiao11, Lemma 5].

    Args:
        tree: the hierarchy.
        classes: the distinct multipliers, sorted; the noise of a class has one scale.

    Returns:
        Two arrays of shape (nodes, len(classes)).
    """
    second = np.zeros((tree.nodes, len(classes)))
    fourth = np.zeros_like(second)
    second[0, 0] = fourth[0, 0] = 1.0  # the base has multiplier 1, the smallest
    for node in tree.inner_nodes:
        f = float(tree.fan_out[node])
        rest = 1 - 1 / f
        children = tree.children(node)
        second[children] = second[node] / f**2
        fourth[children] = fourth[node] / f**4
        own = np.searchsorted(classes, 2 * (int(f) - 1))
        second[children, own] += 4 * rest**3
        fourth[children, own] += (2 * rest) ** 4 * (rest**4 + (f - 1) / f**4)
    return second, fourth


def worst_variance(tree: Tree) -> Fraction:
    """The largest sum of squares over all nodes, exactly."""
    variances = [Fraction(1)] * tree.nodes
    for node in tree.inner_nodes:
        f = int(tree.fan_out[node])
        below = variances[node] / f**2 + 4 * (1 - Fraction(1, f)) ** 3
        children: Any = tree.children(node)
        variances[children] = [below] * f
    return max(variances)
