"""Attributes of many values: counts descend the hierarchy as far as the noise allows.

A histogram of 20,000 codes of diagnoses is a histogram of noise. Where an attribute has many values
and the schema declares a hierarchy of them, a few sums come before those of the method: each counts
the children of the nodes that the last one found heavy (more rows than noise). What they find is a
partition of the values into cells: single values that are heavy, and what is left below each heavy
node. The method then sees the attribute in these cells, and rows are spread over the values of a
cell: by the public frequencies of the schema where it has them, else evenly.

    found = yield from descend(facts, trees)             # rounds of sums
    fit = yield from in_cells(script(coarse), cells)     # the method's own steps, of cells

The cells are public, because they follow from noisy sums and the schema. Which nodes are heavy is
decided on integers and fractions. The fraction of the budget that the rounds take follows from the
schema; what they leave is the method's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from math import isqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from common.bayes.form import Model, NetworkForm, of_values
from common.crypto.framing import frame
from common.errors import LocalError
from common.methods.subn_plus.facts import PublicFacts
from common.methods.subn_plus.requests import GroupedTables
from common.privacy import sensitivity
from common.privacy.randomness import RandomSource, uniforms
from common.schema.attribute import Attribute
from common.schema.codes import NO_GROUPS, Codes, Groups
from common.schema.hierarchy import Hierarchy, Node
from common.study.document import Study
from common.study.requests import Attributes, Counts, PartyRows, Request, TableShape
from common.study.script import Fit, Script, measured

Cells: TypeAlias = tuple[int, ...]
"""The cell of each value of an attribute; cells are numbered from 0 by their first value."""

MANY = 256  # values, up to which a histogram is asked for
MOST_HEAVY = 1 << 11  # nodes of an attribute: there are at most twice as many cells
HEAVY = Fraction(3, 2)  # deviations of the noise that a heavy node is above
ENOUGH = 2  # deviations of a histogram's noise: where an average value has more, no descent
_FORMAT = "parley model of cells 1"


def descending(script: Callable[[PublicFacts], Script[Fit]], study: Study) -> Script[Fit]:
    """Run the script of a method that sees attributes of many values in cells."""
    facts = PublicFacts.of(study)
    trees = {
        a: HierarchyTree.of(attribute.hierarchy)
        for a, attribute in enumerate(study.schema.attributes)
        if has_many_values(attribute, facts)
    }
    if not trees:
        return (yield from script(facts))
    cells, left = yield from descend(facts, trees)
    sizes = tuple(max(cells[a]) + 1 if a in cells else s for a, s in enumerate(facts.sizes))
    ordered = tuple(0 if a in cells else run for a, run in enumerate(facts.ordered))
    spans = tuple(() if a in cells else span for a, span in enumerate(facts.spans))
    promise = replace(facts.promise, left=left)
    coarse = replace(facts, sizes=sizes, promise=promise, ordered=ordered, spans=spans)
    fit = yield from in_cells(script(coarse), cells)
    public = {a: frequencies_of(study.schema.attributes[a]) for a in cells}
    return lambda: SpreadModel(fit(), facts.sizes, cells, public)


def has_many_values(attribute: Attribute, facts: PublicFacts) -> bool:
    """Decide, before the first sum, whether counts of an attribute descend its hierarchy."""
    if attribute.tree is None or attribute.size <= MANY:
        return False
    law = facts.promise.law(facts.budget, sensitivity.histograms(len(facts.sizes)))
    return facts.rows**2 < (ENOUGH * attribute.size) ** 2 * law.nominal_variance


@dataclass(frozen=True, slots=True)
class HierarchyTree:
    """A hierarchy as lists, a node before its children; the root is node 0.

    Attributes:
        size: how many values there are.
        children: of each node; none of a leaf.
        codes: of each node: of the values below or at it.
    """

    size: int
    children: tuple[tuple[int, ...], ...]
    codes: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, hierarchy: Hierarchy) -> HierarchyTree:
        """Return the tree of a hierarchy, without unary nodes."""
        children: list[tuple[int, ...]] = []
        codes: list[tuple[int, ...]] = []

        def add(node: Node) -> int:
            place = len(children)
            children.append(())
            codes.append(tuple(node.codes()))
            children[place] = tuple(add(child) for child in node.children)
            return place

        add(hierarchy.root)
        return cls(hierarchy.size, tuple(children), tuple(codes))

    def below(self, nodes: Sequence[int]) -> tuple[int, ...]:
        return tuple(child for node in nodes for child in self.children[node])

    def first(self, most: int) -> tuple[int, ...]:
        """Return the nodes to begin with: the deepest level of at most `most` below the root."""
        level, deeper = self.children[0], self._deeper(self.children[0])
        while len(level) < len(deeper) <= most:
            level, deeper = deeper, self._deeper(deeper)
        return level

    def _deeper(self, level: Sequence[int]) -> tuple[int, ...]:
        return tuple(below for node in level for below in self.children[node] or (node,))

    def levels(self, nodes: tuple[int, ...]) -> int:
        """Return how many levels there are from some nodes on."""
        number = 0
        while nodes:
            nodes, number = self.below(nodes), number + 1
        return number


@dataclass(slots=True)
class _Descent:
    """What is known about one attribute.

    Attributes:
        frontier: the nodes to count next.
        first: the nodes that were counted first.
        heavy: the nodes that were found heavy.
        noisy: the count of every node that was asked for, and the variance of its noise.
    """

    tree: HierarchyTree
    frontier: tuple[int, ...]
    first: frozenset[int]
    heavy: set[int] = field(default_factory=set)
    noisy: dict[int, tuple[int, Fraction]] = field(default_factory=dict)

    @classmethod
    def of(cls, tree: HierarchyTree, first: tuple[int, ...]) -> _Descent:
        return cls(tree, first, frozenset(first))

    def groups(self) -> Cells:
        """Return the group of each value: its node that is asked for, or 0 for all others."""
        groups = [0] * self.tree.size
        for group, node in enumerate(self.frontier, start=1):
            for code in self.tree.codes[node]:
                groups[code] = group
        return tuple(groups)

    def learn(self, table: Counts, variance: Fraction) -> None:
        """Find out which of the nodes that were asked for are heavy, and ask for their children."""
        nodes = self.frontier
        counts = [int(number) for number in table[1:]]
        self.noisy.update((n, (c, variance)) for n, c in zip(nodes, counts, strict=True))
        heaviest = sorted((-c, n) for n, c in zip(nodes, counts, strict=True))
        room = MOST_HEAVY - len(self.heavy)
        heavy = [n for _, n in heaviest[: max(room, 0)] if is_heavy(*self.noisy[n])]
        self.heavy.update(heavy)
        self.frontier = self.tree.below(sorted(heavy))

    def cells(self) -> Cells:
        """Return the partition: heavy nodes without heavy children, and the rest below others."""
        parts: list[tuple[int, ...]] = []
        self._divide(0, parts)
        return numbered(parts, self.tree.size)

    def _divide(
        self, node: int, parts: list[tuple[int, ...]]
    ) -> tuple[tuple[int, ...], int, Fraction]:
        """Put the cells below a node into `parts`; what is too light for a cell comes back."""
        rest: tuple[int, ...] = ()
        total, variance = 0, Fraction(0)
        for child in self.tree.children[node]:
            opened = any(below in self.noisy for below in self.tree.children[child])
            if child in self.first.union(self.heavy) and not opened:
                parts.append(self.tree.codes[child])
                continue
            if child in self.noisy and child not in self.heavy and child not in self.first:
                codes, (light, noise) = self.tree.codes[child], self.noisy[child]
            else:
                codes, light, noise = self._divide(child, parts)
            rest, total, variance = rest + codes, total + light, variance + noise
        if rest and (node in self.first or is_heavy(total, variance)):
            parts.append(rest)
            return (), 0, Fraction(0)
        return rest, total, variance


def is_heavy(noisy: int, variance: Fraction) -> bool:
    """Return whether a noisy count is more than noise."""
    return noisy > 0 and noisy**2 >= HEAVY**2 * variance


def numbered(parts: Sequence[Sequence[int]], size: int) -> Cells:
    """Return the cell of each value; cells are numbered by their first value."""
    part_of = np.empty(size, dtype=np.intp)
    for number, part in enumerate(parts):
        part_of[list(part)] = number
    numbers: dict[int, int] = {}
    return tuple(numbers.setdefault(part, len(numbers)) for part in part_of.tolist())


Asked: TypeAlias = Script[tuple[Sequence[Counts], Fraction]]
"""A table for each attribute that is asked for, and the variance of the noise in a cell."""


def descend(
    facts: PublicFacts,
    trees: Mapping[int, HierarchyTree],
    ask: Callable[[str, Fraction, Mapping[int, Cells]], Asked] | None = None,
) -> Script[tuple[dict[int, Cells], Fraction]]:
    """Ask for the children of heavy nodes, round by round.

    Return the cells of the attributes that have many values, and the budget that is left. `ask`
    counts attributes in groups; by default, rows by their attributes.
    """
    ask = ask or partial(_counted, facts)
    cost = round_cost(facts, [tree.levels(tree.children[0]) for tree in trees.values()])
    law = facts.promise.law(cost, sensitivity.histograms(len(trees)))
    deviation = isqrt(int(facts.variance(law))) + 1
    most = int(facts.rows / (HEAVY * deviation))
    state = {a: _Descent.of(tree, tree.first(most)) for a, tree in trees.items()}
    cost = round_cost(facts, [descent.tree.levels(descent.frontier) for descent in state.values()])
    left = facts.budget
    number = 0
    while attributes := tuple(a for a, descent in state.items() if descent.frontier):
        number += 1
        groups = {a: state[a].groups() for a in attributes}
        tables, variance = yield from ask(f"descent {number}", cost, groups)
        left -= cost
        for a, table in zip(attributes, tables, strict=True):
            state[a].learn(table, variance)
    return {a: descent.cells() for a, descent in state.items()}, left


def _counted(facts: PublicFacts, name: str, cost: Fraction, groups: Mapping[int, Cells]) -> Asked:
    """Count rows, by each of these attributes in groups."""
    every = (groups.get(a, tuple(range(size))) for a, size in enumerate(facts.sizes))
    step = facts.sum_of(
        GroupedTables(tuple((a,) for a in groups), tuple(every)),
        name=name,
        phase="descent",
        cost=cost,
        moved=sensitivity.histograms(len(groups)),
    )
    tables, law = yield from measured(step)
    return tables, facts.variance(law)


def round_cost(facts: PublicFacts, rounds: Sequence[int]) -> Fraction:
    """Return what a round costs: as much as an attribute, and all rounds at most half."""
    every = sum(rounds)
    return facts.budget * Fraction(every, every + max(len(facts.sizes), every)) / max(rounds)


@dataclass(frozen=True)
class RowsInCells:
    """A party's rows with some attributes in cells."""

    data: PartyRows
    parts: Mapping[int, Cells]

    @property
    def rows(self) -> int:
        return self.data.rows

    def count(self, sets: Sequence[Attributes], groups: Groups = NO_GROUPS) -> list[Counts]:
        """Count the rows in every attribute set; groups are of cells."""
        coarse = {
            a: [groups[a][cell] for cell in cell_of]
            for a, cell_of in self.parts.items()
            if a in groups
        }
        return self.data.count(sets, {**groups, **self.parts, **coarse})

    def codes(self) -> Codes:
        return self.data.codes().in_groups(self.parts)

    def chunks(self) -> Iterator[Codes]:
        return (chunk.in_groups(self.parts) for chunk in self.data.chunks())


@dataclass(frozen=True)
class RequestInCells:
    """A request about attributes of which some are in cells.

    Attributes:
        request: as a method makes it.
        parts: the cells, by attribute.
    """

    request: Request
    parts: Mapping[int, Cells]

    @cached_property
    def tables(self) -> tuple[TableShape, ...]:
        return tuple(map(self._in_cells, self.request.tables))

    @cached_property
    def shown(self) -> tuple[TableShape, ...]:
        return tuple(map(self._in_cells, self.request.shown))

    @property
    def unit(self) -> int:
        return self.request.unit

    def _in_cells(self, shape: TableShape) -> TableShape:
        pairs = zip(shape.variables, shape.grouped, strict=True)
        return replace(shape, grouped=tuple(in_groups or v in self.parts for v, in_groups in pairs))

    @property
    def links(self) -> Sequence[Attributes]:
        return self.request.links

    @property
    def cells(self) -> int:
        return self.request.cells

    @property
    def canonical(self) -> bytes:
        cells = (frame((a, frame(cell_of))) for a, cell_of in sorted(self.parts.items()))
        return frame(("in cells", frame(cells), self.request.canonical))

    def limit(self, rows: int) -> int:
        return self.request.limit(rows)

    def answer(self, data: PartyRows) -> Counts:
        return self.request.answer(RowsInCells(data, self.parts))


def in_cells(script: Script[Fit], parts: Mapping[int, Cells]) -> Script[Fit]:
    """Run a script about attributes in cells; LocalError if it has a step that is no sum."""
    try:
        step = next(script)
        while True:
            if not step.counts_all:
                raise LocalError(f"step {step.name!r}: only sums can be about cells")
            total = yield replace(step, request=RequestInCells(step.counted, parts))
            step = script.send(total)
    except StopIteration as end:
        fit: Fit = end.value
        return fit


Frequencies: TypeAlias = NDArray[np.float64] | None
"""Of each value of an attribute, in public; None if the schema has none."""


def frequencies_of(attribute: Attribute) -> Frequencies:
    """Return each code's frequency; `other` and `missing` are as frequent as the average."""
    if not attribute.frequencies:
        return None
    known = np.array(attribute.frequencies, dtype=np.float64)
    return np.append(known, np.full(attribute.size - len(known), known.mean()))


def within_cells(cell_of: NDArray[np.intp], frequencies: Frequencies) -> NDArray[np.float64]:
    """Return each value's probability in its cell; even where nothing in it is frequent."""
    weights = np.ones(len(cell_of)) if frequencies is None else frequencies
    totals = np.bincount(cell_of, weights)
    weights = np.where(totals[cell_of] > 0, weights, 1.0)
    return np.asarray(weights / np.bincount(cell_of, weights)[cell_of], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class SpreadModel(Model):
    """A model of attributes of which some are in cells.

    Attributes:
        model: of the cells.
        sizes: of the attributes.
        parts: the cells, by attribute.
        public: the public frequencies of the values, by attribute; a cell's values are drawn by
            them, else equally likely.
    """

    model: Model
    sizes: tuple[int, ...]
    parts: Mapping[int, Cells]
    public: Mapping[int, Frequencies] = field(default_factory=dict)

    def sample(self, rows: int, source: RandomSource) -> Codes:
        """Draw rows of the model, each cell's spread over its values."""
        drawn = self.model.sample(rows, source)
        columns = list[NDArray[np.integer]](drawn.columns)
        for a, cell_of in self.parts.items():
            columns[a] = spread(np.array(cell_of), columns[a], source, self.public.get(a))
        return Codes.from_columns(columns, self.sizes)

    def form(self) -> list[NetworkForm]:
        """Return the form of the cells' model, with the values of each cell."""
        forms = list(self.model.form())
        for a, parts in self.parts.items():
            cells = np.array(parts, dtype=np.intp)
            within = within_cells(cells, self.public.get(a))
            forms = [of_values(form, a, cells, within) for form in forms]
        return forms

    @property
    def by_public_frequencies(self) -> list[int]:
        """The attributes in cells whose public frequencies are known."""
        return [a for a, frequencies in self.public.items() if frequencies is not None]

    def as_json(self) -> dict[str, object]:
        return {
            "format": _FORMAT,
            "cells": [
                {
                    "attribute": a,
                    "of values": list(cell_of),
                    "by public frequencies": self.public.get(a) is not None,
                }
                for a, cell_of in self.parts.items()
            ],
            "model": self.model.as_json(),
        }


def spread(
    cell_of: NDArray[np.intp],
    cells: NDArray[np.integer],
    source: RandomSource,
    frequencies: Frequencies = None,
) -> NDArray[np.intp]:
    """Draw a value of each cell, by public frequency or all of its values equally likely."""
    values = np.argsort(cell_of, kind="stable")
    ladder = np.cumsum(within_cells(cell_of, frequencies)[values])  # cell c is from c to c + 1
    ends = np.cumsum(np.bincount(cell_of))
    places = np.searchsorted(ladder, cells + uniforms(len(cells), source), side="right")
    return np.asarray(
        values[np.clip(places, (ends - np.bincount(cell_of))[cells], ends[cells] - 1)]
    )
