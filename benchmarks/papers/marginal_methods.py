"""What PrivBayes and DP-SUBN are compared with on marginals: small honest versions.

Every method answers all marginals of one order, in the order of `combinations`, as probabilities.
Neighbours are tables with one row replaced, as everywhere in this project, so one histogram has
sensitivity 2. Noise is discrete; what comes out is clipped at zero and scaled to sum to one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from common.errors import LocalError
from common.marginals import count
from common.methods.designs.nocd import Design, View
from common.privacy.exponential import exponential_mechanism
from common.privacy.randomness import RandomSource
from common.privacy.sampling.discrete_laplace import discrete_laplace
from common.schema.codes import Codes

Tables = list[NDArray[np.float64]]
MarginalMethod = Callable[[Codes, int, Fraction, RandomSource], Tables]

_MWEM_ROUND = Fraction(1, 20)  # [Zhang17, Sec. 6.1]: so that one round runs at the least epsilon
_MWEM_SWEEPS = 10
_FITTING_SWEEPS = 30
PRIVIEW_BLOCK = 8  # PriView's recommendation for binary data at moderate budgets


def sets_of(codes: Codes, order: int) -> list[tuple[int, ...]]:
    """Return every set of so many attributes."""
    return list(combinations(range(codes.width), order))


def as_law(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Clipped at zero and scaled to one; uniform if nothing is left."""
    positive = np.maximum(table, 0.0)
    total = positive.sum()
    return positive / total if total > 0 else np.full(table.shape, 1 / table.size)


def laplace(codes: Codes, order: int, epsilon: Fraction, source: RandomSource) -> Tables:
    """Add noise to every cell of every marginal."""
    sets = sets_of(codes, order)
    scale = 2 * len(sets) / epsilon
    return [
        as_law((table + _noise(scale, table.shape, source)).astype(np.float64))
        for table in count(codes, sets)
    ]


def _noise(scale: Fraction, shape: tuple[int, ...], source: RandomSource) -> NDArray[np.int64]:
    return discrete_laplace(scale, int(np.prod(shape)), source).reshape(shape)


def fourier(codes: Codes, order: int, epsilon: Fraction, source: RandomSource) -> Tables:
    """Add noise to every Fourier coefficient of so many bits [Barak07]; binary data only.

    A coefficient is a sum of signs over the rows, which a replaced row moves by at most 2.
    """
    numbers = sum(comb(codes.width, size) for size in range(1, order + 1))
    scale = 2 * numbers / epsilon
    known: dict[tuple[int, ...], float] = {(): float(codes.rows)}
    for size in range(1, order + 1):
        sets = sets_of(codes, size)
        signs = np.indices((2,) * size).sum(axis=0) % 2
        noise = discrete_laplace(scale, len(sets), source)
        for own, table, drawn in zip(sets, count(codes, sets), noise, strict=True):
            known[own] = float((table * (1 - 2 * signs)).sum() + drawn)
    return [as_law(_from_coefficients(own, known)) for own in sets_of(codes, order)]


def _from_coefficients(
    own: Sequence[int], known: dict[tuple[int, ...], float]
) -> NDArray[np.float64]:
    cells = np.indices((2,) * len(own))
    table = np.zeros((2,) * len(own))
    for size in range(len(own) + 1):
        for places in combinations(range(len(own)), size):
            signs = 1 - 2 * (sum(cells[place] for place in places) % 2) if places else 1
            table += signs * known[tuple(own[place] for place in places)]
    return table / table.size


def contingency(codes: Codes, order: int, epsilon: Fraction, source: RandomSource) -> Tables:
    """Add noise to every cell of the domain, and draw as many rows as real ones from it."""
    cells = int(np.prod(codes.sizes))
    places = np.ravel_multi_index(tuple(map(np.asarray, codes.columns)), codes.sizes)
    noisy = np.bincount(places, minlength=cells) + discrete_laplace(2 / epsilon, cells, source)
    ladder = np.cumsum(as_law(noisy.astype(np.float64)))
    rng = np.random.default_rng(list(source.random_bytes(16)))
    drawn = np.minimum(np.searchsorted(ladder, rng.random(codes.rows)), cells - 1)
    columns = np.unravel_index(drawn, codes.sizes)
    synthetic = Codes.from_columns(list(columns), codes.sizes)
    return [table / codes.rows for table in count(synthetic, sets_of(codes, order))]


def uniform(codes: Codes, order: int, epsilon: Fraction, source: RandomSource) -> Tables:
    """Answer every cell alike."""
    shapes = [tuple(codes.sizes[a] for a in own) for own in sets_of(codes, order)]
    return [np.full(shape, 1 / np.prod(shape)) for shape in shapes]


def mwem(codes: Codes, order: int, epsilon: Fraction, source: RandomSource) -> Tables:
    """Multiplicative weights over the whole domain [Hardt12]; domains of up to some 2^18 cells.

    A round chooses the marginal that is worst, by half its L1 distance (sensitivity 1 in counts),
    and measures it, at half of the round's budget each; all measurements are swept ten times.
    """
    sets = sets_of(codes, order)
    exact = count(codes, sets)
    rounds = max(1, int(epsilon / _MWEM_ROUND))
    half = epsilon / (2 * rounds)
    weights = np.full(codes.sizes, codes.rows / np.prod(codes.sizes))
    measured: list[tuple[tuple[int, ...], NDArray[np.float64]]] = []
    for _ in range(rounds):
        errors = [
            np.abs(_margin(weights, own) - table).sum() / 2
            for own, table in zip(sets, exact, strict=True)
        ]
        # Rounded to whole rows, a distance moves by at most 2.
        worst = exponential_mechanism(
            np.rint(errors).astype(np.int64), sensitivity=2, epsilon=half, source=source
        )
        noise = discrete_laplace(2 / half, exact[worst].size, source)
        measured.append((sets[worst], exact[worst] + noise.reshape(exact[worst].shape) * 1.0))
        for _sweep in range(_MWEM_SWEEPS):
            for own, table in measured:
                step = (table - _margin(weights, own)) / (2 * codes.rows)
                shape = [codes.sizes[a] if a in own else 1 for a in range(codes.width)]
                weights *= np.exp(np.clip(step, -1, 1)).reshape(shape)
                weights *= codes.rows / weights.sum()
    return [as_law(_margin(weights, own)) for own in sets]


def _margin(weights: NDArray[np.float64], own: Sequence[int]) -> NDArray[np.float64]:
    return np.asarray(weights.sum(axis=tuple(a for a in range(weights.ndim) if a not in own)))


def covering_design(sizes: Sequence[int], block: int = PRIVIEW_BLOCK) -> Design:
    """Choose PriView's views [Qardaji14]: blocks in which every pair occurs at least once.

    The comparator of NOCD. The published covering designs come from a repository of best known
    ones; these are made greedily, which is a few blocks worse.
    """
    if block < 2:
        raise LocalError(f"a block covers pairs only if it has 2 attributes or more, not {block}")
    uncovered = ~np.eye(len(sizes), dtype=np.bool_)
    views: list[View] = []
    while uncovered.any():
        chosen = [int(uncovered.sum(axis=1).argmax())]
        while len(chosen) < min(block, len(sizes)):
            gains = uncovered[chosen].sum(axis=0)
            gains[chosen] = -1
            # Ties go to the attribute that still misses most: it is the hardest to place later.
            best = np.lexsort((-uncovered.sum(axis=1), -gains))[0]
            if gains[best] <= 0:
                break
            chosen.append(int(best))
        for a, b in combinations(chosen, 2):
            uncovered[a, b] = uncovered[b, a] = False
        views.append(tuple(sorted(chosen)))
    return Design(tuple(views), tuple(sizes))


def from_views(
    codes: Codes,
    design: Design,
    order: int,
    epsilon: Fraction,
    source: RandomSource,
    *,
    consistent: bool,
) -> Tables:
    """Marginals out of noisy views [Qardaji14]: consistency, then maximum entropy.

    Args:
        codes: the rows.
        design: the views.
        order: of the marginals.
        epsilon: for all views together.
        source: of the noise.
        consistent: make views agree on what they share, as PriView does; NOCD's share one attribute
            at most.
    """
    scale = 2 * len(design.views) / epsilon
    tables = {
        view: table + discrete_laplace(scale, table.size, source).reshape(table.shape) * 1.0
        for view, table in zip(design.views, count(codes, design.views), strict=True)
    }
    if consistent:
        tables = agreed(tables, codes.rows)
    near = {a: [view for view in tables if a in view] for a in range(codes.width)}
    return [
        fitted(own, codes.sizes, {view: tables[view] for a in own for view in near[a]})
        for own in sets_of(codes, order)
    ]


def agreed(
    tables: dict[tuple[int, ...], NDArray[np.float64]], rows: int
) -> dict[tuple[int, ...], NDArray[np.float64]]:
    """Make overlapping views agree, from the empty set to ever larger intersections.

    The common margin is the mean weighted by the inverse of what it sums up; a view takes up the
    difference evenly, which leaves what was settled before as it is [Qardaji14, Sec. 4.4].
    """
    shared = {()} | {
        common
        for one, other in combinations(tables, 2)
        if (common := tuple(sorted(set(one) & set(other))))
    }
    tables = dict(tables)
    for common in sorted(shared, key=lambda each: (len(each), each)):
        holders = [view for view in tables if set(common) <= set(view)]
        margins = [_project(tables[view], view, common) for view in holders]
        weights = [
            margin.size / tables[view].size for margin, view in zip(margins, holders, strict=True)
        ]
        mean = np.asarray(sum(w * m for w, m in zip(weights, margins, strict=True)) / sum(weights))
        if not common:
            mean = np.asarray(float(rows))
        for view, margin in zip(holders, margins, strict=True):
            shape = [s if a in common else 1 for a, s in zip(view, tables[view].shape, strict=True)]
            change = (mean - margin) * margin.size / tables[view].size
            tables[view] = tables[view] + change.reshape(shape)
    return tables


def _project(
    table: NDArray[np.float64], view: Sequence[int], onto: Sequence[int]
) -> NDArray[np.float64]:
    return np.asarray(table.sum(axis=tuple(i for i, a in enumerate(view) if a not in onto)))


def fitted(
    own: tuple[int, ...], sizes: Sequence[int], tables: dict[tuple[int, ...], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Fit the law of most entropy with the views' margins, by proportional fitting.

    A margin is summed out of its view before it is clipped: clipping a view first would keep the
    positive half of the noise of every cell.
    """
    margins: dict[tuple[int, ...], NDArray[np.float64]] = {}
    for view, noisy in tables.items():
        common = tuple(a for a in own if a in view)
        if common and not any(set(common) < set(other) for other in margins):
            ordered = np.moveaxis(noisy, [view.index(a) for a in common], range(len(common)))
            summed = ordered.reshape(*[sizes[a] for a in common], -1).sum(axis=-1)
            margins[common] = as_law(summed)
    if own in margins:
        return margins[own]
    table = np.full([sizes[a] for a in own], 1 / np.prod([sizes[a] for a in own]))
    for _ in range(_FITTING_SWEEPS):
        for common, wanted in margins.items():
            have = _project(table, own, common)
            shape = [sizes[a] if a in common else 1 for a in own]
            ratio = np.divide(wanted, have, out=np.zeros_like(wanted), where=have > 0)
            table = table * ratio.reshape(shape)
    return as_law(table)


def average_distance(codes: Codes, answers: Tables, order: int) -> float:
    """Return the average total variation distance to the real marginals."""
    real = (table / codes.rows for table in count(codes, sets_of(codes, order)))
    pairs = zip(real, answers, strict=True)
    return float(np.mean([np.abs(one - other).sum() / 2 for one, other in pairs]))
