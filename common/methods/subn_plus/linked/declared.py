"""What analyses of people and their events need is measured first, in one sum.

The plan is that of a single table (`common.methods.subn_plus.declared`), over the columns of both
tables. A table that has a column of events averages a person's events, and leaves people without
events out; so no table of people is merged with it. An analysis of events also names the number of
events, by which events follow from averages.

The model is fitted to the pairs of a declared table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import prod

import numpy as np

from common.methods.subn_plus.declared import DECLARED, TableGroups, tables_for
from common.methods.subn_plus.facts import PublicFacts
from common.methods.subn_plus.linked.requests import AveragedTables
from common.methods.subn_plus.losses import Floats
from common.methods.subn_plus.requests import Groups, TablesTogether
from common.methods.subn_plus.sums import fit_variance
from common.privacy import sensitivity
from common.study.analyses import about_events
from common.study.requests import Attributes, Counts
from common.study.script import Script, added_up


@dataclass(frozen=True, slots=True)
class DeclaredPair:
    """Two columns of a declared table: noisy proportions of the people, in groups."""

    variables: Attributes
    groups: tuple[Groups, Groups]  # of each value
    proportions: Floats
    variance: float  # of a cell


def ask_declared(
    every: PublicFacts, cost: Fraction, most: int, histograms: Sequence[Counts]
) -> Script[list[DeclaredPair]]:
    """Ask for the declared tables; their pairs come back for the fit.

    `every` are the facts of all columns, `most` is how many events of a person count.
    """
    groups = TableGroups(every, histograms)
    declared = tables_for(every, cost, groups.width)
    parts = tuple(
        AveragedTables((table.attributes,), groups.of(table), every.events, most)
        for table in declared.tables
    )
    request = TablesTogether(parts)
    moved = sensitivity.averaged(len(parts), unit=request.unit)
    answer, law = yield from added_up(every.sum_of(request, name=DECLARED, cost=cost, moved=moved))
    whole = request.unit * every.rows
    ends = np.cumsum([part.cells for part in parts])
    pairs = list[DeclaredPair]()
    for part, cells in zip(parts, np.split(answer, ends[:-1]), strict=True):
        pairs += _pairs(every, part, cells / whole, fit_variance(law, every) / whole**2)
    return pairs


def _pairs(
    every: PublicFacts, part: AveragedTables, cells: Floats, variance: float
) -> Iterator[DeclaredPair]:
    """Yield the pairs of a table, but for those of people in a table of events."""
    ((columns, shape),) = zip(part.sets, part.shapes, strict=True)
    table = cells.reshape(shape)
    for axes in combinations(range(len(columns)), 2):
        one, other = (columns[axis] for axis in axes)
        if about_events(columns, every.events) != about_events((one, other), every.events):
            continue
        others = tuple(axis for axis in range(len(columns)) if axis not in axes)
        yield DeclaredPair(
            (one, other),
            (part.groups[one], part.groups[other]),
            np.asarray(table.sum(axis=others), dtype=np.float64),
            variance * prod(shape[axis] for axis in others),
        )
