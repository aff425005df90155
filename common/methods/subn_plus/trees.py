"""Columns of a mixture that hang on each other: trees of attributes that depend strongly.

A hidden class can hardly say that one attribute determines another: it would need a class for every
value. So strong pairs are edges of a forest, with a table in detail each. Within a class, a tree of
attributes has the law

    P(x) proportional to  prod over attributes of phi_u(x_u)  *  prod over edges of psi(x_p, x_u),

where the potentials phi are the class's own and the tables psi are common to all classes. A class
that moves one attribute moves along what hangs on it, and chains of near-copies cost a table each
[Meila00 has mixtures of trees]. For the rest of the fit an attribute of a tree is a column like any
other: its law in each class, which belief propagation gives [Pearl88]. `Trees` does that, and takes
slopes by these laws back to slopes by the logarithms of potentials and tables.

Arrays are (atoms, classes), as in `common.methods.subn_plus.latent`.

[Meila00] Meila, Jordan: Learning with mixtures of trees. [Pearl88] Pearl: Probabilistic reasoning
in intelligent systems.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.bayes.postprocessing import marginal_table
from common.methods.subn_plus.losses import Floats, Grouping, Measurement
from common.privacy.randomness import RandomSource, uniforms

_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Edge:
    """A pair in detail, as the fit sees it; the child hangs on the parent.

    Attributes:
        groups: the group of each value of the parent, and of the child.
        joint: the estimated probabilities of the groups, (parent, child), all above 0.
        precision: of one of them: the inverse of the variance of its noise.
    """

    parent: int
    child: int
    groups: tuple[Grouping, Grouping]
    joint: Floats
    precision: float


@dataclass(frozen=True, slots=True)
class Link:
    """An edge of a model: P(child | parent, class), up to a factor, is table * potentials.

    Attributes:
        groups: the group of each value of the parent, and of the child.
        table: of the groups, (parent, child).
        potentials: of the child's values in each class (m, s).
    """

    parent: int
    child: int
    groups: tuple[Grouping, Grouping]
    table: Floats
    potentials: Floats

    def conditionals(self) -> Floats:
        """Return P(child's value | class, parent's group), as (classes, groups, values)."""
        odds = self.potentials[:, None, :] * self.table[:, self.groups[1]]
        odds += _TINY * self.potentials[:, None, :]
        total = odds.sum(axis=2, keepdims=True)
        return np.asarray(odds / np.maximum(total, np.finfo(float).tiny), dtype=np.float64)

    def draw(
        self, classes: NDArray[np.integer], parents: NDArray[np.integer], source: RandomSource
    ) -> NDArray[np.intp]:
        """Draw the child of rows of which class and parent are known, stratified.

        The rows of a class and a group have the child's values in their expected numbers, up to
        rounding; who has which is left to chance.
        """
        law = self.conditionals()
        keys = classes.astype(np.intp) * law.shape[1] + self.groups[0][parents]
        order = np.lexsort((source.words(len(keys)), keys))
        numbers = np.bincount(keys, minlength=law.shape[0] * law.shape[1])
        begins = np.cumsum(numbers) - numbers
        sorted_keys = keys[order]
        rank = np.arange(len(keys)) - begins[sorted_keys]
        offset = uniforms(len(numbers), source)
        points = (rank + offset[sorted_keys]) / numbers[sorted_keys]
        edges = np.cumsum(law.reshape(-1, law.shape[2]), axis=1)
        edges /= edges[:, -1:]
        ladder = (edges + np.arange(len(edges))[:, None]).ravel()  # key k climbs from k to k + 1
        places = np.searchsorted(ladder, sorted_keys + points, side="right")
        low = sorted_keys * law.shape[2]
        drawn = np.empty(len(keys), dtype=np.intp)
        drawn[order] = np.clip(places - low, 0, law.shape[2] - 1)
        return drawn

    def as_json(self) -> dict[str, object]:
        return {
            "parent": self.parent,
            "child": self.child,
            "groups": [grouping.tolist() for grouping in self.groups],
            "table": self.table.tolist(),
            "potentials": self.potentials.tolist(),
        }


def tree_of(columns: int, edges: Sequence[Edge | Link]) -> list[int]:
    """Return the tree of each column, by its least column."""
    trees = list(range(columns))
    for edge in edges:
        old, new = sorted((trees[edge.parent], trees[edge.child]), reverse=True)
        trees = [new if tree == old else tree for tree in trees]
    return trees


def apart(tables: Sequence[Measurement], trees: Sequence[int]) -> list[Measurement]:
    """Return tables without two columns of one tree, which are not independent given the class.

    A table that has some becomes as many tables, with one of them each, which share its precision.
    """
    parts: list[Measurement] = []
    for table in tables:
        together = [[b for b in table.attributes if trees[b] == trees[a]] for a in table.attributes]
        if max(map(len, together)) == 1:
            parts.append(table)
            continue
        sets = {
            tuple(of_tree[place % len(of_tree)] for of_tree in together)
            for place in range(max(map(len, together)))
        }
        for attributes in sorted(sets):
            axes = [axis for axis, a in enumerate(table.attributes) if a in attributes]
            counts = marginal_table(table.counts, axes)
            parts.append(
                Measurement(
                    tuple(table.attributes[axis] for axis in axes),
                    tuple(table.groupings[axis] for axis in axes),
                    counts,
                    len(sets) * table.variance * (table.counts.size // counts.size),
                )
            )
    return parts


class Trees:
    """The laws of attributes in trees, and slopes by them; edges lead from the roots outwards.

    Args:
        edges: a parent's own edge comes before those of its children.
        groups: of each edge, the group of each atom of the parent, and of the child.
        spans: the atoms of every column.
        scale: what every precision is divided by.
    """

    def __init__(
        self,
        edges: Sequence[Edge],
        groups: Sequence[tuple[Grouping, Grouping]],
        spans: Sequence[slice],
        scale: float,
    ) -> None:
        self.edges, self._groups, self._spans = edges, groups, spans
        self._members = [
            tuple(
                np.eye(size)[:, group_of]
                for size, group_of in zip(edge.joint.shape, both, strict=True)
            )
            for edge, both in zip(edges, groups, strict=True)
        ]
        self._precision = [edge.precision / scale for edge in edges]
        children = {edge.child for edge in edges}
        self.roots = sorted({edge.parent for edge in edges} - children)
        self.columns = sorted(children.union(self.roots))
        self._tables: list[Floats] = []
        self._below: dict[int, Floats] = {}  # the weight of an atom and of all that hangs on it
        self._laws: dict[int, Floats] = {}
        self._sent: list[Floats] = []  # from each edge's child to the groups of its parent
        self._ratios: list[Floats] = []  # the parent's law over what it was sent

    def first_tables(self) -> list[Floats]:
        """Return logarithms of tables that make each edge's joint law, if all classes are alike."""
        return [
            np.log(edge.joint / np.outer(edge.joint.sum(axis=1), edge.joint.sum(axis=0)))
            for edge in self.edges
        ]

    def known(self, links: Sequence[Link]) -> list[Link | None]:
        """Return of each edge the link of another model, if that has the same groups."""
        by_pair = {(link.parent, link.child): link for link in links}
        by_edge = [by_pair.get((edge.parent, edge.child)) for edge in self.edges]
        return [
            link
            if link is not None and all(map(np.array_equal, link.groups, edge.groups))
            else None
            for link, edge in zip(by_edge, self.edges, strict=True)
        ]

    def start(self, links: Sequence[Link | None], logits: Floats) -> list[Floats]:
        """Return logarithms of tables: those of known links, and the first ones of other edges.

        `logits` are of roots' laws, and of potentials times all that hangs on an attribute: what
        hangs on it is taken off.
        """
        tables = [
            first if link is None else np.log(np.maximum(link.table, _TINY))
            for link, first in zip(links, self.first_tables(), strict=True)
        ]
        below = {edge.child: np.exp(logits[self._spans[edge.child]]) for edge in self.edges}
        for k, edge in enumerate(self.edges):
            sent = np.exp(tables[k]) @ (self._members[k][1] @ below[edge.child])
            logits[self._spans[edge.parent]] -= np.log(np.maximum(sent, _TINY))[self._groups[k][0]]
        return tables

    def laws(self, logits: Floats, tables: Sequence[Floats]) -> dict[int, Floats]:
        """Return the law of every attribute of a tree (atoms, classes), from its potentials."""
        self._tables = [np.exp(logarithms) for logarithms in tables]
        below = {
            u: np.exp(logits[self._spans[u]] - logits[self._spans[u]].max(axis=0))
            for u in self.columns
        }
        self._below, self._sent, self._ratios = below, [np.empty(0)] * len(self.edges), []
        for k in reversed(range(len(self.edges))):
            edge = self.edges[k]
            sent = self._tables[k] @ (self._members[k][1] @ below[edge.child])
            largest = sent.max(axis=0)  # no law changes if what is sent is scaled on both sides
            below[edge.child] /= largest
            sent /= largest
            self._sent[k] = sent
            below[edge.parent] *= sent[self._groups[k][0]]
        self._laws = {u: below[u] / below[u].sum(axis=0) for u in self.roots}
        for k, edge in enumerate(self.edges):
            self._ratios.append((self._members[k][0] @ self._laws[edge.parent]) / self._sent[k])
            coming = self._tables[k].T @ self._ratios[k]
            self._laws[edge.child] = below[edge.child] * coming[self._groups[k][1]]
        return self._laws

    def slopes(
        self, weights: Floats, by_laws: dict[int, Floats], weight_slopes: Floats
    ) -> tuple[dict[int, Floats], list[Floats]]:
        """Return the slopes by potentials' and tables' logarithms; edges' errors are added.

        `by_laws` are the slopes by the laws that the last call of `laws` returned; they change.
        """
        below, laws, count = self._below, self._laws, len(self.edges)
        by_below = {u: np.zeros_like(weight) for u, weight in below.items()}
        by_sent, by_tables = [np.empty(0)] * count, [np.empty(0)] * count
        for k in reversed(range(count)):
            edge, table, ratio = self.edges[k], self._tables[k], self._ratios[k]
            inside, group = self._members[k], self._groups[k]
            u, p = edge.child, edge.parent
            group_weights = inside[1] @ below[u]
            product = (ratio * weights) @ group_weights.T
            error = self._precision[k] * (table * product - edge.joint)
            tilted = error * table
            by_ratio = (tilted @ group_weights) * weights
            weight_slopes += np.einsum("gc,gc->c", tilted @ group_weights, ratio)
            by_group_weights = (tilted.T @ ratio) * weights
            coming = table.T @ ratio
            by_below[u] += by_laws[u] * coming[group[1]] + by_group_weights[group[1]]
            by_coming = inside[1] @ (by_laws[u] * below[u])
            by_tables[k] = error * product + ratio @ by_coming.T
            by_ratio += table @ by_coming
            by_ratio /= self._sent[k]
            by_laws[p] += by_ratio[group[0]]
            by_sent[k] = -by_ratio * ratio
        for u in self.roots:
            total = below[u].sum(axis=0)
            by_below[u] += (by_laws[u] - (by_laws[u] * laws[u]).sum(axis=0)) / total
        by_logits = {u: by_below[u] * below[u] for u in self.roots}
        for k, edge in enumerate(self.edges):
            inside, group = self._members[k], self._groups[k]
            sent = by_sent[k] + (inside[0] @ by_logits[edge.parent]) / self._sent[k]
            group_weights = inside[1] @ below[edge.child]
            by_tables[k] = (by_tables[k] + sent @ group_weights.T) * self._tables[k]
            by_below[edge.child] += (self._tables[k].T @ sent)[group[1]]
            by_logits[edge.child] = by_below[edge.child] * below[edge.child]
        return by_logits, by_tables

    def potentials(self, column: int) -> Floats:
        """Return a child's potentials times all that hangs on it, as the last `laws` had them."""
        return self._below[column]

    def error(self, weights: Floats) -> float:
        """Return the edges' part of the loss: for tests of the slopes."""
        total = 0.0
        for k, edge in enumerate(self.edges):
            group_weights = self._members[k][1] @ self._below[edge.child]
            joint = self._tables[k] * ((self._ratios[k] * weights) @ group_weights.T)
            total += self._precision[k] * float(((joint - edge.joint) ** 2).sum()) / 2
        return total
