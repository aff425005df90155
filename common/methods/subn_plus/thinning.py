"""How much information a model may take from noisy sums, read off the sums themselves.

A sum y of noise of variance s can be split after the fact. With e of variance s f / (1 - f), drawn
anew, y + e and y - e (1 - f) / f are two looks at the same exact sum whose noises are uncorrelated
(and independent, if the noise is normal), of variances s / (1 - f) and s / f. A model that is
fitted to the first and compared with the second shows what it is worth on rows: noise that it took
for dependence is an error there. So the price of information is the one of the least error, of
a few that are tried, and trees of more than two attributes are joined only if that has less error.

The draws are a function of the published sums: whoever verifies a release repeats them. They cost
no privacy, as nothing does that looks at published sums only. Total variation distances like less
noise than squares do, so the price is a little higher than that of the least squared error.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import sqrt

import numpy as np

from common.methods.designs.nocd import Pair
from common.methods.subn_plus.latent import LatentModel
from common.methods.subn_plus.losses import Floats, Grouping, Measurement, Moments
from common.methods.subn_plus.trees import apart, tree_of
from common.privacy.randomness import KeyedRandomSource, RandomSource, uniforms
from common.privacy.sensitivity import CONTRAST_UNIT, contrast_shift

HELD_BACK = 0.3  # f: the second look's part of what the sums tell
DEARER = 1.3  # than the price of the least squared error; docs/research/subn-notes.md
MOST_DOUBLINGS = 3  # of the price that is tried first, up or down
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a mixture is fitted to: noisy tables, contrasts, and tables of pairs in detail."""

    tables: tuple[Measurement, ...]
    moments: tuple[Moments, ...]
    rows: int
    pairs: tuple[Measurement, ...] = ()

    def split(self) -> tuple[Evidence, Evidence]:
        """Return two looks at the same sums."""
        source = KeyedRandomSource(self._digest(), private=False)
        tables = [halved(table.counts, table.variance, source) for table in self.tables]
        pairs = [halved(table.counts, table.variance, source) for table in self.pairs]
        moments = [
            [
                halved(array, moment.variance / precision, source)
                for array, precision in zip(moment.contrasts, moment.precisions, strict=True)
            ]
            for moment in self.moments
        ]

        def look(side: int, part: float) -> Evidence:
            shown, detail = (
                tuple(
                    replace(table, counts=both[side], variance=table.variance / part)
                    for table, both in zip(whole, halves, strict=True)
                )
                for whole, halves in ((self.tables, tables), (self.pairs, pairs))
            )
            contrasts = tuple(
                replace(moment, contrasts=[a[side] for a in both], variance=moment.variance / part)
                for moment, both in zip(self.moments, moments, strict=True)
            )
            return Evidence(shown, contrasts, self.rows, detail)

        return look(0, 1 - HELD_BACK), look(1, HELD_BACK)

    def error(self, mixture: LatentModel) -> float:
        """Return the mean squared error of a model of the columns, in units of the variance.

        Contrasts and pairs in detail are the same cells whatever the model joins. Views are not: of
        those that hold a pair of one tree, what `apart` leaves.
        """
        total, cells = 0.0, 0
        for moments in self.moments:
            for _, off, variance in (
                _contrast_errors(moments, mixture) if moments.order == 2 else ()
            ):
                total, cells = total + float((off**2).sum()) / variance, cells + off.size
        views = apart(self.tables, tree_of(len(mixture.columns), mixture.links))
        predictions = [(view, _seen(view, mixture)) for view in views if len(view.attributes) > 1]
        for table, shown in [
            *predictions,
            *((pair, _detail(pair, mixture)) for pair in self.pairs),
        ]:
            total += float(((self.rows * shown - table.counts) ** 2).sum()) / table.variance
            cells += table.counts.size
        return total / max(cells, 1)

    def noisier(self) -> Evidence:
        """Return these sums with as much noise again."""
        source = KeyedRandomSource(self._digest(), private=False)

        def again(counts: Floats, variance: float) -> Floats:
            drawn = normals(counts.size, source).reshape(counts.shape)
            return np.asarray(counts + sqrt(variance) * drawn)

        tables, pairs = (
            tuple(
                replace(t, counts=again(t.counts, t.variance), variance=2 * t.variance)
                for t in shown
            )
            for shown in (self.tables, self.pairs)
        )
        moments = tuple(
            replace(
                moment,
                contrasts=[
                    again(array, moment.variance / precision)
                    for array, precision in zip(moment.contrasts, moment.precisions, strict=True)
                ],
                variance=2 * moment.variance,
            )
            for moment in self.moments
        )
        return Evidence(tables, moments, self.rows, pairs)

    def distance(self, mixture: LatentModel, noisier: LatentModel) -> float:
        """Forecast the mean total variation distance of a model's pairs from the rows.

        Of a pair's table in detail, or else of its contrast, what the model is off beside the noise
        of this look. A contrast shows nothing of values within groups: what a fit to noisier sums
        changes there is noise.
        """
        contrasts = next(moments for moments in self.moments if moments.order == 2)
        groups = dict(zip(contrasts.columns, contrasts.groupings, strict=True))
        offs = {pair: (off, v) for pair, off, v in _contrast_errors(contrasts, mixture)}
        hidden = {}
        for a, b in offs:
            change = mixture.together((a, b)) - noisier.together((a, b))
            shown = _in_groups(change, (groups[a], groups[b]))
            hidden[a, b] = max(float(np.abs(change).sum() ** 2 - np.abs(shown).sum() ** 2), 0.0)
        for table in self.pairs:
            a, b = sorted(table.attributes)
            off = _detail(table, mixture) - table.counts / self.rows
            offs[a, b], hidden[a, b] = (off, table.variance / self.rows**2), 0.0
        total = 0.0
        for pair, (off, variance) in offs.items():
            cells, squares = off.size, float((off**2).sum())
            noise = variance * (
                cells - sqrt(2 * cells)
            )  # a deviation less: a root of noise is flat
            total += sqrt(max(cells * (squares - noise) + hidden[pair], 0.0)) / 2
        return total / len(offs)

    def _digest(self) -> bytes:
        digest = hashlib.sha256(b"parley thinning")
        for table in (*self.tables, *self.pairs):
            digest.update(np.ascontiguousarray(table.counts).tobytes())
        for moment in self.moments:
            for array in moment.contrasts:
                digest.update(np.ascontiguousarray(array).tobytes())
        return digest.digest()


def halved(counts: Floats, variance: float | Floats, source: RandomSource) -> tuple[Floats, Floats]:
    """Return both looks at some numbers of these variances."""
    drawn = normals(counts.size, source).reshape(counts.shape)
    moved = np.sqrt(variance * HELD_BACK / (1 - HELD_BACK)) * drawn
    return counts + moved, counts - moved * (1 - HELD_BACK) / HELD_BACK


def normals(count: int, source: RandomSource) -> Floats:
    """Draw normal numbers, two of two uniform ones [Box and Muller]."""
    half = (count + 1) // 2
    first, second = uniforms(2 * half, source).reshape(2, half)
    radius, angle = np.sqrt(-2 * np.log1p(-first)), 2 * np.pi * second
    drawn = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])
    return np.asarray(drawn[:count], dtype=np.float64)


def _seen(table: Measurement, mixture: LatentModel) -> Floats:
    """Return the model's probabilities of a table of several columns."""
    joint = mixture.weights[:, None]
    for column, grouping in zip(table.attributes, table.groupings, strict=True):
        odds = _grouped(mixture.columns[column], grouping)
        joint = (joint[:, :, None] * odds[:, None, :]).reshape(len(joint), -1)
    return np.asarray(joint.sum(axis=0).reshape(table.counts.shape), dtype=np.float64)


def _detail(table: Measurement, mixture: LatentModel) -> Floats:
    """Return the model's probabilities of a pair's table."""
    return _in_groups(mixture.together(table.attributes), table.groupings)


def _in_groups(joint: Floats, groupings: Sequence[Grouping | None]) -> Floats:
    """Return a pair's table in groups."""
    return _grouped(_grouped(joint, groupings[1]).T, groupings[0]).T


def _grouped(column: Floats, grouping: Grouping | None) -> Floats:
    if grouping is None:
        return column
    return np.asarray(column @ np.eye(int(grouping.max()) + 1)[grouping], dtype=np.float64)


def _contrast_errors(
    moments: Moments, mixture: LatentModel
) -> Iterator[tuple[Pair, Floats, float]]:
    """Yield the errors of all pairs of attributes, with the variance of the noise in each."""
    shifts = [contrast_shift(width) / CONTRAST_UNIT for width in moments.widths]
    contrasts = [
        _grouped(mixture.columns[column], grouping) - shift
        for column, grouping, shift in zip(moments.columns, moments.groupings, shifts, strict=True)
    ]
    together = np.concatenate(contrasts, axis=1)
    expected = (together * mixture.weights[:, None]).T @ together
    starts = [0, *np.cumsum(moments.widths).tolist()]
    trees = tree_of(len(mixture.columns), mixture.links)
    pairs = combinations(range(len(contrasts)), 2)
    sums = zip(pairs, moments.contrasts, moments.precisions, strict=True)
    for (i, j), array, precision in sums:
        block = expected[starts[i] : starts[i + 1], starts[j] : starts[j + 1]]
        pair = (moments.columns[i], moments.columns[j])
        if trees[pair[0]] == trees[pair[1]]:
            groupings = moments.groupings[i], moments.groupings[j]
            joint = _in_groups(mixture.together(pair), groupings)
            block = joint - shifts[j] * joint.sum(axis=1)[:, None]
            block = block - shifts[i] * block.sum(axis=0)
        yield pair, block - array, moments.variance / precision


def best_factor(error_at: Callable[[float], float]) -> float:
    """Return the factor of a price that has the least error, by doublings and a parabola."""
    errors = {power: error_at(2.0**power) for power in (-1, 0, 1)}
    for _ in range(MOST_DOUBLINGS - 1):
        best = min(errors, key=lambda power: errors[power])
        if best not in (min(errors), max(errors)):
            break
        power = best + (1 if best == max(errors) else -1)
        errors[power] = error_at(2.0**power)
    best = min(errors, key=lambda power: errors[power])
    if best in (min(errors), max(errors)):
        return 2.0**best
    low, middle, high = (errors[best + step] for step in (-1, 0, 1))
    return float(2.0 ** (best + (low - high) / (2 * max(low - 2 * middle + high, _TINY))))
