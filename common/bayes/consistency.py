"""Make noisy tables agree where they overlap: free post-processing that averages noise away.

Tables that share attributes each carry a noisy version of the same sub-table, and all know the
public number of rows. For every shared sub-table, smallest first, the versions are averaged with
weights inverse to their variance, and each table is moved onto the average by the smallest change
(an equal share for every cell summed). The shared sub-tables are closed under intersection, so a
later step changes none of the sums that an earlier one has settled.

Averages can be negative. Each table is then projected onto the tables of non-negative cells that
add up to the number of rows, the nearest one in Euclidean distance: clipping at zero alone would
leave the noise of empty cells in, all of it upwards. Projecting disturbs the agreement a little, so
both steps are done twice; more rounds change nothing that can be measured.

Both papers name this improvement and leave it out ([Zhang17], footnote 1).
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from common.bayes.conditionals import Family, Tables, contains
from common.bayes.domain import Domain, View
from common.bayes.simplex import onto_simplex

_MOST_OVERLAPS = 4096  # beyond, further overlaps are left as they are: still valid, less smooth


_ROUNDS = 2


def consistent_tables(
    tables: Tables, domain: Domain, *, rows: int
) -> dict[Family, NDArray[np.float64]]:
    """The tables, non-negative, adding up to `rows`, and agreeing (nearly) where they overlap.

    All tables have noise of the same scale.
    """
    current: dict[Family, NDArray[np.float64]] = {
        family: np.asarray(table, dtype=np.float64) for family, table in tables.items()
    }
    for _ in range(_ROUNDS):
        agreed = reconcile(current, domain, rows=rows)
        current = {family: onto_simplex(table, total=rows) for family, table in agreed.items()}
    return current


def reconcile(tables: Tables, domain: Domain, *, rows: int) -> dict[Family, NDArray[np.float64]]:
    """The tables, moved to agree on every shared sub-table and on the public number of rows.

    The cells are real numbers, and may be negative; each table keeps its shape.
    """
    settled = {
        family: np.asarray(table, dtype=np.float64).ravel() for family, table in tables.items()
    }
    for family, table in settled.items():
        settled[family] = table + (rows - table.sum()) / len(table)
    for overlap in overlaps(list(settled), domain):
        if overlap:
            _settle(settled, overlap, domain)
    return {family: table.reshape(domain.shape(family)) for family, table in settled.items()}


def overlaps(families: list[Family], domain: Domain) -> list[Family]:
    """All intersections of two or more families, smallest table first."""
    found: set[Family] = set()
    frontier = {tuple(sorted(family)) for family in families}
    pool = sorted(frontier)
    while frontier and len(found) < _MOST_OVERLAPS:
        met = {_meet(a, b) for a in sorted(frontier) for b in pool if a != b} - found
        found |= met
        frontier = met
    return sorted(found, key=lambda family: (prod(domain.shape(family)), len(family), family))


def _meet(first: Family, second: Family) -> Family:
    """The finest views that can be summed out of both."""
    levels = dict(second)
    return tuple(View(a, max(level, levels[a])) for a, level in first if a in levels)


def _settle(settled: dict[Family, NDArray[np.float64]], overlap: Family, domain: Domain) -> None:
    """Move every table that contains `overlap` onto the average of their versions of it."""
    cells = prod(domain.shape(overlap))
    homes = [family for family in settled if contains(family, overlap)]
    maps = [_cell_map(family, overlap, domain) for family in homes]
    # The variance of a sum of cells is their number, in units of the noise of one cell.
    summed = [np.bincount(each, minlength=cells) for each in maps]
    versions = [
        np.bincount(each, weights=settled[family], minlength=cells)
        for family, each in zip(homes, maps, strict=True)
    ]
    precision = sum(1.0 / terms for terms in summed)
    average = sum(v / terms for v, terms in zip(versions, summed, strict=True)) / precision
    for family, each, version, terms in zip(homes, maps, versions, summed, strict=True):
        settled[family] += ((average - version) / terms)[each]


def _cell_map(family: Family, overlap: Family, domain: Domain) -> NDArray[np.intp]:
    """For every cell of a table over `family`, the cell of `overlap` it is summed into."""
    axes = {view.attribute: axis for axis, view in enumerate(family)}
    cell = np.zeros(domain.shape(family), dtype=np.intp)
    for view in overlap:
        axis = axes[view.attribute]
        groups = domain.regroup(family[axis], view)
        cell *= domain.size(view)
        cell += groups.reshape([-1 if a == axis else 1 for a in range(len(family))])
    return cell.ravel()
