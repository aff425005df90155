"""CSFC: the search frontier, a DAG with more parents per attribute than the network [Su16, VI-B].

A structure is one tuple of parents per attribute. The frontier starts as the network and takes
pairs in descending correlation, as long as an attribute has room and the result stays acyclic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from graphlib import TopologicalSorter
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from common.errors import LocalError
from common.methods.network_model import Structure


class _Order:
    """Reachability, kept up to date: `reaches[x, y]` iff x is y or an ancestor of y."""

    def __init__(self, structure: Structure) -> None:
        self.reaches = np.eye(len(structure), dtype=np.bool_)
        for child in TopologicalSorter(dict(enumerate(structure))).static_order():
            for parent in structure[child]:
                self.reaches[:, child] |= self.reaches[:, parent]

    def comparable(self, x: int, y: int) -> bool:
        return bool(self.reaches[x, y] or self.reaches[y, x])

    def add(self, parent: int, child: int) -> None:
        self.reaches |= np.outer(self.reaches[:, parent], self.reaches[child])


def sparsity(structure: Sequence[Sequence[int]], ancestors: NDArray[np.bool_], degree: int) -> int:
    """Return Sp(X), the parents that X and its ancestors can still take together [Su16, Eq. 4]."""
    members = np.flatnonzero(ancestors)
    return degree * len(members) - sum(len(structure[int(member)]) for member in members)


def impact(
    information: NDArray[np.float64],
    *,
    ancestors: NDArray[np.bool_],
    descendants: NDArray[np.bool_],
    pair: tuple[int, int],
) -> float:
    """Return Im(X, Y), what ancestors of X share with descendants of Y, (X, Y) excepted.

    The paper's Eq. 5 is missing from its text; this is what the sentence after it describes.
    """
    return float(information[np.ix_(ancestors, descendants)].sum() - information[pair])


def _parent_of_incomparable(
    structure: Sequence[Sequence[int]],
    reaches: NDArray[np.bool_],
    information: NDArray[np.float64],
    pair: tuple[int, int],
    degree: int,
) -> int:
    """Return which of two incomparable attributes becomes the parent [Su16, Alg. 1, 11-16].

    The sentence after Algorithm 1 says the opposite; the paper's own example (3, 3, 2.83, 1.39
    gives X3 -> X2) agrees with the algorithm.
    """
    x, y = pair

    def weight(upper: int, lower: int) -> float:
        return sparsity(structure, reaches[:, upper], degree) * impact(
            information,
            ancestors=reaches[:, upper],
            descendants=reaches[lower],
            pair=(upper, lower),
        )

    return y if weight(x, y) >= weight(y, x) else x


def search_frontier(
    network: Structure,
    information: NDArray[np.float64],
    degree: int,
    fits: Callable[[int, Sequence[int]], bool] = lambda child, parents: True,
) -> Structure:
    """Return Algorithm 1 with its errata: the network plus edges, at most `degree` parents each.

    Where only one of an incomparable pair has room, the edge into it is added: it is as safe as for
    a comparable pair (the printed lines 19-22 leave it out). Where no edge applies, none is added
    (the printed line 24 would add a stale one).

    Args:
        network: the current network; attributes keep all its parents.
        information: the symmetric matrix of the pairs' (noisy) mutual information.
        degree: k', the most parents an attribute may have in the frontier.
        fits: whether an attribute (first) may have these parents, for domains on which the number
            of parents alone does not bound the table. What fits must fit with fewer parents too.
    """
    attributes = len(network)
    if information.shape != (attributes, attributes):
        raise LocalError(f"{attributes} attributes, but information of {information.shape}")
    parents = [list(family) for family in network]
    order = _Order(network)
    pairs = sorted(combinations(range(attributes), 2), key=lambda p: (-information[p], p))
    for x, y in pairs:
        if x in parents[y] or y in parents[x]:
            continue
        takers = [
            child
            for child, parent in ((x, y), (y, x))
            if len(parents[child]) < degree and fits(child, [*parents[child], parent])
        ]
        if order.comparable(x, y):
            child = y if order.reaches[x, y] else x
        elif len(takers) == 2:
            child = (
                x + y - _parent_of_incomparable(parents, order.reaches, information, (x, y), degree)
            )
        else:
            child = takers[0] if takers else x
        if child in takers:
            parent = x + y - child
            parents[child].append(parent)
            order.add(parent, child)
    return tuple(tuple(family) for family in parents)
