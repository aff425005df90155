"""Attributes of many values in linked tables: counts descend their hierarchies first.

As for a single table (`common.methods.subn_plus.descent`), rounds of sums find cells of values that
hold more than noise; the method sees cells, and a cell's probability is spread over its values. The
variables are those of `linked.requests`: people's attributes, the number of events, events'
attributes. Events are averaged, so a diagnosis is heavy if it is in many people's histories.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np

from common.bayes.form import Model
from common.errors import LocalError
from common.methods.subn_plus.descent import (
    Asked,
    Cells,
    Frequencies,
    HierarchyTree,
    descend,
    frequencies_of,
    has_many_values,
    in_cells,
    within_cells,
)
from common.methods.subn_plus.linked.model import LinkedModel
from common.methods.subn_plus.linked.plans import LinkedFacts
from common.methods.subn_plus.linked.requests import AveragedTables
from common.methods.subn_plus.losses import Floats
from common.study.document import Study
from common.study.script import Fit, Script, added_up


def descending_linked(script: Callable[[LinkedFacts], Script[Fit]], study: Study) -> Script[Fit]:
    """Run a script of linked tables that sees attributes of many values in cells."""
    facts = LinkedFacts.of(study)
    every = facts.every
    attributes = dict(enumerate(study.schema.attributes))
    attributes |= dict(enumerate(study.schema.of_events.attributes, start=facts.width))
    trees = {
        v: HierarchyTree.of(attribute.hierarchy)
        for v, attribute in attributes.items()
        if has_many_values(attribute, every)
    }
    if not trees:
        return (yield from script(facts))
    cells, left = yield from descend(every, trees, partial(_averaged, facts))
    fit = yield from in_cells(script(_in_cells(facts, cells, left)), cells)
    public = {v: frequencies_of(attributes[v]) for v in cells}
    return lambda: _of_values(fit(), facts.width, cells, public)


def _averaged(facts: LinkedFacts, name: str, cost: Fraction, groups: Mapping[int, Cells]) -> Asked:
    """Count people, and events by their weights, by each of these variables in groups."""
    every = (groups.get(v, tuple(range(size))) for v, size in enumerate(facts.every_size))
    request = AveragedTables(tuple((v,) for v in groups), tuple(every), facts.width, facts.most)
    step = facts.people.sum_of(
        request, name=name, phase="descent", cost=cost, moved=request.sensitivity
    )
    answer, law = yield from added_up(step)
    tables = request.split(answer)
    whole = [tables[v,] // request.unit for v in groups]
    return whole, facts.people.variance(law) / request.unit**2


def _in_cells(facts: LinkedFacts, cells: Mapping[int, Cells], left: Fraction) -> LinkedFacts:
    """Return the facts of cells in place of values, with the budget that is left."""
    sizes = [max(cells[v]) + 1 if v in cells else s for v, s in enumerate(facts.every_size)]
    ordered = [0 if v in cells else run for v, run in enumerate(facts.every_order)]
    spans = [() if v in cells else widths for v, widths in enumerate(facts.every.spans)]
    alone, width = len(facts.people.sizes), facts.width
    people = replace(
        facts.people,
        sizes=tuple(sizes[:alone]),
        ordered=tuple(ordered[:alone]),
        spans=tuple(spans[:alone]),
        promise=replace(facts.people.promise, left=left),
    )
    return replace(
        facts,
        people=people,
        sizes=tuple(sizes[width:]),
        ordered=tuple(ordered[width:]),
        spans=tuple(spans[width:]),
    )


def _of_values(
    model: Model, width: int, cells: Mapping[int, Cells], public: Mapping[int, Frequencies]
) -> LinkedModel:
    """Return a model of values, from one of cells."""
    if not isinstance(model, LinkedModel):
        raise LocalError(f"{type(model).__name__}: not a model of people and events")

    def spread(column: Floats, v: int) -> Floats:
        if v not in cells:
            return column
        cell_of = np.array(cells[v], dtype=np.intp)
        return np.asarray(column[:, cell_of] * within_cells(cell_of, public[v]), dtype=np.float64)

    people = tuple(spread(column, v) for v, column in enumerate(model.people.columns))
    events = tuple(spread(column, v) for v, column in enumerate(model.columns, start=width))
    return replace(model, people=replace(model.people, columns=people), columns=events)
