"""The transforms by their definitions in the paper, as dense matrices of fractions: the oracle.

Nothing here is shared with the package but the nested way to write a hierarchy. Haar coefficients
are in heap order (base, root, left, right, ...), nominal ones breadth first.
"""

import itertools
from fractions import Fraction
from functools import reduce

import numpy as np
from hypothesis import strategies as st

from tests.unit.wavelet import dense


def matrix(rows):
    return np.array(rows, dtype=object)


def kron(factors):
    return reduce(np.kron, factors)


def identity(size):
    return matrix([[Fraction(int(i == j)) for j in range(size)] for i in range(size)])


class Haar:
    """[Xiao11, Sec. 4] over `size` cells, zero-padded."""

    def __init__(self, size):
        self.size = size
        self.levels = 0
        while 2**self.levels < size:
            self.levels += 1
        self.padded = 2**self.levels
        rows = [[Fraction(1, self.padded)] * self.padded]
        self.weights = [Fraction(self.padded)]
        for level in range(1, self.levels + 1):
            leaves = 2 ** (self.levels - level + 1)
            for start in range(0, self.padded, leaves):
                row = [Fraction(0)] * self.padded
                for cell in range(start, start + leaves):
                    # (average of left - average of right) / 2
                    row[cell] = Fraction(1 if cell < start + leaves // 2 else -1, leaves)
                rows.append(row)
                self.weights.append(Fraction(leaves))
        self.forward = matrix(rows)
        self.inverse = matrix(
            [
                [Fraction(1)] + [self._sign(cell, j) for j in range(1, self.padded)]
                for cell in range(self.padded)
            ]
        )
        self.cells = list(range(size))
        self.sensitivity = 1 + self.levels
        # Where the package keeps the coefficient of each heap number.
        self.positions = [0] + [
            2 ** (self.levels - j.bit_length()) * (2 * (j - 2 ** (j.bit_length() - 1)) + 1)
            for j in range(1, self.padded)
        ]

    def _sign(self, cell, heap):
        level = heap.bit_length()
        node = (cell + self.padded) >> (self.levels - level + 1)
        if node != heap:
            return Fraction(0)
        return Fraction(1 if ((cell + self.padded) >> (self.levels - level)) % 2 == 0 else -1)


class Nominal:
    """[Xiao11, Sec. 5] along a nested hierarchy; `inverse` subtracts the means first."""

    def __init__(self, nested):
        nodes, parents, depth = [nested], [-1], [1]
        for index, node in enumerate(nodes):  # grows while it is walked: breadth first
            if not isinstance(node, int):
                nodes.extend(node)
                parents.extend([index] * len(node))
                depth.extend([depth[index] + 1] * len(node))
        self.nodes, self.parents = nodes, parents
        self.codes = _codes(nested)
        self.size = len(self.codes)
        position = {code: place for place, code in enumerate(self.codes)}
        sums = [[Fraction(int(c in set(_codes(node)))) for c in self.codes] for node in nodes]
        fan = [0 if isinstance(node, int) else len(node) for node in nodes]
        self.fan = fan
        self.forward = matrix(
            [sums[0]]
            + [
                [a - b / fan[p] for a, b in zip(sums[i], sums[p], strict=True)]
                for i, p in list(enumerate(parents))[1:]
            ]
        )
        self.weights = [Fraction(1)] + [Fraction(fan[p], 2 * fan[p] - 2) for p in parents[1:]]
        self.multipliers = [1] + [2 * (fan[p] - 1) for p in parents[1:]]
        self.refine = identity(len(nodes))
        for i in range(1, len(nodes)):
            for j in range(1, len(nodes)):
                if parents[i] == parents[j]:
                    self.refine[i, j] -= Fraction(1, fan[parents[i]])
        # Top down: S(node) = c(node) + S(parent) / f(parent).
        build = [[Fraction(int(j == 0)) for j in range(len(nodes))]]
        for i in range(1, len(nodes)):
            row = [value / fan[parents[i]] for value in build[parents[i]]]
            row[i] += 1
            build.append(row)
        leaves = sorted((position[n], i) for i, n in enumerate(nodes) if isinstance(n, int))
        self.rebuild = matrix([build[i] for _, i in leaves])
        self.inverse = self.rebuild.dot(self.refine)
        self.sensitivity = max(depth)
        self.positions = list(range(len(nodes)))
        self.intervals = [
            (min(position[c] for c in _codes(n)), max(position[c] for c in _codes(n)) + 1)
            for n in nodes
        ]


def _codes(node):
    return [node] if isinstance(node, int) else [c for child in node for c in _codes(child)]


def _trees(max_leaves=9):
    """Nested hierarchies with the codes in depth-first order, without unary nodes."""
    shapes = st.recursive(
        st.just(0), lambda kids: st.lists(kids, min_size=2, max_size=4), max_leaves=max_leaves
    )

    def number(shape, counter):
        if shape == 0:
            return next(counter)
        return tuple(number(child, counter) for child in shape)

    return shapes.map(lambda shape: number(shape, itertools.count())).filter(lambda t: t != 0)


def _dense(axis):
    if axis.kind == "haar":
        return dense.Haar(axis.size)
    if axis.kind == "nominal":
        return dense.Nominal(_nested(axis.tree, 0))
    return None


def _nested(tree, node):
    if tree.fan_out[node] == 0:
        return int(tree.low[node])
    kids = tree.children(node)
    return tuple(_nested(tree, child) for child in range(kids.start, kids.stop))
