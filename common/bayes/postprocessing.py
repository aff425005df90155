"""Noisy tables made possible: free, because only what was released is looked at.

* `onto_simplex`: the nearest table of non-negative counts that add up to the public rows.
* `margin_of`: the counts of one attribute, with tails that fall outwards.
* `smoothed`: the counts of one attribute, less what is likely noise.
* `consistent_tables`: tables that overlap, made to agree.

[Beran98] Beran, Dümbgen: Modulation of estimators and confidence sets, Annals of Statistics 26.
[Duchi08] Duchi, Shalev-Shwartz, Singer, Chandra: Efficient projections onto the l1-ball.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from common.bayes.domain import Domain, View
from common.bayes.network import Family, Tables, contains
from common.errors import LocalError

Floats = NDArray[np.float64]
_Number = TypeVar("_Number", np.int64, np.float64)

WITHIN = 2.0  # deviations of the noise in a run of bins, up to which the run is a tail
LEAST_SMOOTHED = 4  # values: of fewer, no shrinking is better whatever the counts [Stein]
_MOST_OVERLAPS = 4096  # beyond, further overlaps are not settled: still valid, less smooth
_ROUNDS = 2


def marginal_table(table: NDArray[_Number], axes: Sequence[int]) -> NDArray[_Number]:
    """Return the table over these axes, in this order: all others are summed out."""
    others = tuple(axis for axis in range(table.ndim) if axis not in axes)
    summed: NDArray[_Number] = table.sum(axis=others)
    return summed.transpose(np.argsort(np.argsort(axes)))


def onto_simplex(table: Floats, *, total: float) -> Floats:
    """Return the nearest table (Euclidean) with non-negative cells that add up to `total`.

    Clipping alone would leave the positive half of the noise in the table. The projection lowers
    every cell by the same amount and clips at zero; sorting finds the amount [Duchi08, Fig. 1].
    """
    if total < 0:
        raise LocalError(f"a table cannot sum to {total}")
    falling = np.sort(table, axis=None)[::-1]
    lowering = (np.cumsum(falling) - total) / np.arange(1, falling.size + 1)
    positive = np.flatnonzero(falling > lowering)
    shift = lowering[positive[-1]] if positive.size else lowering[0]
    return np.asarray(np.maximum(table - shift, 0.0), dtype=np.float64)


def mutual_information(table: Floats) -> float:
    """Return I(rows; columns) in bits of a table of weights; negative ones count as none."""
    weights = np.maximum(table, 0.0)
    if weights.sum() <= 0:
        return 0.0
    law = weights / weights.sum()
    independent = law.sum(axis=1, keepdims=True) * law.sum(axis=0, keepdims=True)
    used = law > 0
    return max(0.0, float((law[used] * np.log2(law[used] / independent[used])).sum()))


def margin_of(counts: Floats, rows: int, deviation: float, ordered: int) -> Floats:
    """Return an attribute's counts, non-negative and `rows` in all, from noisy ones.

    Of its values the first `ordered` are in an order; the deviation is that of the noise in one
    count.
    """
    tails = falling_tails(counts[:ordered], deviation)
    return onto_simplex(np.concatenate([tails, counts[ordered:]]), total=rows)


def smoothed(counts: Floats, rows: int, deviation: float, ordered: int) -> Floats:
    """Return an attribute's counts with less noise, if that is likely closer than `onto_simplex`.

    The counts are a sum of cosine waves. Each wave is taken in part: 1 - s^2 / z^2 of a wave of
    height z in noise of deviation s, and of no wave more than of a slower one. Of all such parts
    these have the least squared error by Stein's unbiased estimate, and hardly more than the best
    have [Beran98]. So counts that differ by noise become level, and those of neighbours that are
    alike smooth. Where a few counts have most of the rows, the projection that `margin_of` makes in
    any case has less error by the same estimate: the counts stay as they are. Only the first
    `ordered` values are smoothed, if any are in an order: what is missing is nobody's neighbour.

        >>> smoothed(np.array([104.0, 95.0, 99.0, 103.0, 99.0]), 500, 5.0, 0).round().tolist()
        [100.0, 100.0, 100.0, 100.0, 100.0]
        >>> smoothed(np.array([900.0, 95.0, 2.0, 400.0, 3.0]), 1400, 5.0, 0).round().tolist()
        [900.0, 95.0, 2.0, 400.0, 3.0]
    """
    run, variance = counts[: ordered or len(counts)], deviation**2
    if len(run) < LEAST_SMOOTHED:
        return counts
    waves = np.fft.rfft(np.concatenate([run, run[::-1]]))  # of the counts and their mirror image
    squares = np.maximum(np.abs(waves[1:-1]) ** 2 / (2 * len(run)), 1e-9 * variance)
    parts = _not_falling(1 - variance / squares[::-1], squares[::-1])[::-1]
    parts = np.maximum(parts, 0.0)
    left = (rows - counts.sum()) ** 2 / len(counts) + variance * (len(counts) - len(run) - 1)
    error = left + (variance * (2 * parts - 1) + squares * (1 - parts) ** 2).sum()
    projected = onto_simplex(counts, total=rows)
    freedom = 2 * np.count_nonzero(projected) - 2 - len(counts)
    if error >= np.square(counts - projected).sum() + variance * freedom:
        return counts
    waves[1:-1] *= parts
    smooth = np.fft.irfft(waves, 2 * len(run))[: len(run)]
    return np.concatenate([smooth, counts[len(run) :]])


def falling_tails(counts: Floats, deviation: float) -> Floats:
    """Return the counts with tails that do not rise outwards.

    The bins far out of an amount are nearly empty. Noise in them is small against the table, and
    large against the mean: ten rows too many at a million move it by more than a thousand at the
    median do. From each end, the run of bins that together stay within the noise is replaced by the
    closest counts that never rise outwards. That takes off peaks of noise, keeps the run's total,
    and changes no count that is more than noise.

        >>> falling_tails(np.array([90.0, 40.0, 6.0, -5.0, 4.0, -6.0, 7.0]), 5.0).tolist()
        [90.0, 40.0, 6.0, 0.0, 0.0, 0.0, 0.0]
    """
    falling = np.array(counts, dtype=np.float64)
    for inwards in (falling, falling[::-1]):
        lengths = np.arange(1, inwards.size + 1)
        above = np.flatnonzero(np.cumsum(inwards) > WITHIN * deviation * np.sqrt(lengths))
        run = inwards[: int(above[0]) + 1 if above.size else inwards.size]
        run[:] = _not_falling(run, np.ones(len(run)))
    return falling


def _not_falling(values: Floats, weights: Floats) -> Floats:
    """Return the closest values that never fall: neighbours that do are pooled into their mean.

    `scipy.optimize.isotonic_regression` does this, too. Loading it takes longer than most fits.
    """
    pools: list[tuple[float, float, int]] = []  # mean, weight, how many
    for value, of_value in zip(values.tolist(), weights.tolist(), strict=True):
        mean, weight, size = value, of_value, 1
        while pools and pools[-1][0] >= mean:
            before, heavy, more = pools.pop()
            mean = (before * heavy + mean * weight) / (heavy + weight)
            weight, size = heavy + weight, more + size
        pools.append((mean, weight, size))
    return np.repeat([mean for mean, _, _ in pools], [size for _, _, size in pools])


def consistent_tables(tables: Tables, domain: Domain, *, rows: int) -> dict[Family, Floats]:
    """Return the tables, non-negative, adding up to `rows`, and agreeing where they overlap.

    Averaging takes noise off, and leaves negative counts. Each table is then projected onto the
    simplex, which disturbs the agreement a little. So both steps are done twice; more rounds change
    nothing that can be measured. All tables have noise of one scale.

    Both papers name this improvement and leave it out ([Zhang17], footnote 1).
    """
    current = {family: np.asarray(table, dtype=np.float64) for family, table in tables.items()}
    for _ in range(_ROUNDS):
        agreed = reconcile(current, domain, rows=rows)
        current = {family: onto_simplex(table, total=rows) for family, table in agreed.items()}
    return current


def reconcile(
    tables: Tables, domain: Domain, *, rows: int, variances: Mapping[Family, float] | None = None
) -> dict[Family, Floats]:
    """Return the tables, moved to agree on every shared sub-table and on the number of rows.

    Tables that share attributes each carry a noisy version of their shared sub-table. For every
    shared sub-table, smallest first, the versions are averaged with weights inverse to their
    variance, and each table is moved onto the average by the smallest change (an equal part for
    every cell summed). The shared sub-tables are closed under intersection, so a later step changes
    none of the sums that an earlier one has settled. All of it is linear in the tables: tables
    without bias stay so. `variances` are those of the noise in a cell of each table; without them,
    the noise is taken to be the same in all tables.
    """
    settled = {
        family: np.asarray(table, dtype=np.float64).ravel() for family, table in tables.items()
    }
    for family, table in settled.items():
        settled[family] = table + (rows - table.sum()) / len(table)
    of_a_cell = dict.fromkeys(settled, 1.0) if variances is None else variances
    for overlap in overlaps(list(settled), domain):
        if overlap:
            _settle(settled, overlap, domain, of_a_cell)
    return {family: table.reshape(domain.shape(family)) for family, table in settled.items()}


def overlaps(families: list[Family], domain: Domain) -> list[Family]:
    """Return all intersections of two or more families, smallest table first."""
    meets: set[Family] = set()
    frontier = {tuple(sorted(family)) for family in families}
    pool = sorted(frontier)
    while frontier and len(meets) < _MOST_OVERLAPS:
        met = {_meet(a, b) for a in sorted(frontier) for b in pool if a != b} - meets
        meets |= met
        frontier = met
    return sorted(meets, key=lambda family: (prod(domain.shape(family)), len(family), family))


def _meet(first: Family, second: Family) -> Family:
    """Return the finest views that can be summed out of both."""
    levels = dict(second)
    return tuple(View(a, max(level, levels[a])) for a, level in first if a in levels)


def _settle(
    settled: dict[Family, Floats],
    overlap: Family,
    domain: Domain,
    variances: Mapping[Family, float],
) -> None:
    """Move every table that contains `overlap` onto the average of their versions of it."""
    cells = prod(domain.shape(overlap))
    homes = [family for family in settled if contains(family, overlap)]
    maps = [_cell_map(family, overlap, domain) for family in homes]
    # The variance of a sum of cells is their number times that of one cell.
    summed = [np.bincount(cell_map, minlength=cells) for cell_map in maps]
    versions = [
        np.bincount(cell_map, weights=settled[family], minlength=cells)
        for family, cell_map in zip(homes, maps, strict=True)
    ]
    spread = [terms * variances[family] for family, terms in zip(homes, summed, strict=True)]
    precision = sum(1.0 / variance for variance in spread)
    average = sum(v / variance for v, variance in zip(versions, spread, strict=True)) / precision
    for family, cell_map, version, terms in zip(homes, maps, versions, summed, strict=True):
        settled[family] += ((average - version) / terms)[cell_map]


def _cell_map(family: Family, overlap: Family, domain: Domain) -> NDArray[np.intp]:
    """Return the cell of `overlap` that every cell of a table over `family` is summed into."""
    axes = {view.attribute: axis for axis, view in enumerate(family)}
    cell = np.zeros(domain.shape(family), dtype=np.intp)
    for view in overlap:
        axis = axes[view.attribute]
        groups = domain.regroup(family[axis], view)
        cell *= domain.size(view)
        cell += groups.reshape([-1 if a == axis else 1 for a in range(len(family))])
    return cell.ravel()
