"""An earlier release as a public prior: every noisy sum is drawn towards what it says.

The rows of an earlier release are public, so the exact answer of a step on them costs nothing. If
the population has changed little, the noisy sum y of this study is near that answer p, scaled to
the study's rows. The script is given

    p + keep (y - p)      keep = 1 - (n - 2) v / |y - p|^2, and no less than 2 sqrt(2 / n)

for the n counts of a table under noise of variance v: the positive-part estimator of
[JamesStein61]. If the noise is normal, its expected squared error is below that of y itself
whatever p is. Where this year is like the last one most of the noise goes; where it is not,
|y - p| is large and p hardly counts. The noise has Laplace's law or Skellam's, not the normal one,
so the theorem guides here, and the benchmark decides.

The limit from below: |y - p|^2 varies by about v sqrt(2 n), so a smaller `keep` is not to be told
from chance. Fewer than nine counts are left as they are.

Every step after the first follows from what the script was given, so the parties need the rows,
too. All of it is made of published numbers, in integers: it costs no privacy, and every machine
comes to the same.

[JamesStein61] James, Stein: Estimation with quadratic loss. Berkeley Symposium 1961.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError
from common.study.document import Study
from common.study.method import Method
from common.study.requests import LARGEST_PRODUCT, Counts, Request, RowsInMemory, scaled
from common.study.script import Fit, Script, Total, possible_cells
from common.study.steps import Step

_BITS = 20
_SMALL = 16  # counts of a table


class Prior(RowsInMemory):
    """The rows of an earlier release, which answer requests as a party's rows do."""

    def answer(self, request: Request, rows: int) -> Counts:
        """Return what a request would come to if so many rows were like these."""
        return scaled(request.answer(self), top=rows, bottom=self.rows)


def check_prior(method: Method, study: Study, prior: Prior | None) -> None:
    """Refuse a prior that the study does not name, a missing one, or a method that takes none."""
    if study.prior and not method.only_sums:
        raise InputError(
            f"prior: {method.name} does not only add up, so it cannot build on an earlier "
            "release. Leave the prior out, or use method subn+"
        )
    if bool(study.prior) != (prior is not None):
        raise InputError(
            f"prior: release {study.prior[:16]} is not here. Hand it over with prior=..."
            if study.prior
            else "prior: the study names none"
        )


def near_prior(script: Callable[[Study], Script[Fit]], prior: Prior, study: Study) -> Script[Fit]:
    """Run the steps of a method; its sums come back drawn towards the prior's answers."""
    steps = script(study)
    try:
        step = next(steps)
        while True:
            total = yield step
            if isinstance(total, Total) and step.counts_all and step.counted.shown:
                total = _drawn(step, total, prior, study)  # criteria show no table
            step = steps.send(total)
    except StopIteration as end:
        fit: Fit = end.value
        return fit


def _drawn(step: Step, total: Total, prior: Prior, study: Study) -> Total:
    """Draw a total towards the prior's answer; its variance falls."""
    expected = prior.answer(step.counted, sum(study.rows_of[name] for name in step.parties))
    copies = study.noise_shares(len(step.parties)) * total.variance_ratio
    variance = step.noise_law.nominal_variance * copies
    tables = [table.cells for table in step.counted.shown]
    noisy = possible_cells(study.schema.possible, step)
    counts, ratio = drawn_towards(expected, total.counts, variance, tables, noisy)
    return Total(counts, total.variance_ratio * ratio)


def drawn_towards(
    expected: Counts,
    counts: Counts,
    variance: Fraction,
    tables: Sequence[int] = (),
    noisy: NDArray[np.bool_] | None = None,
) -> tuple[Counts, Fraction]:
    """Draw noisy counts towards expected ones; return also the mean part of their noise kept.

    Each table by itself: one that has changed is left as it is, whatever the others do. Small ones
    are taken together.

    `variance` is that of the noise in each count, `tables` how many counts each table has; all are
    one table if these do not add up. `noisy` are the counts that have noise; all if None.
    """
    off, ratio = counts - expected, Fraction(0)
    for part in _parts(tables, counts.size):
        cells = len(part) if noisy is None else int(noisy[part].sum())
        keep = _kept(off[part], cells, variance)
        off[part] = scaled(off[part], top=keep.numerator, bottom=keep.denominator)
        ratio += keep * len(part)
    return expected + off, ratio / max(counts.size, 1)


def _parts(tables: Sequence[int], cells: int) -> list[NDArray[np.intp]]:
    """Return the places of the counts of each large table, then those of all small ones."""
    every = np.arange(cells)
    if sum(tables) != cells:
        return [every]
    by_table = np.split(every, np.cumsum(tables)[:-1])
    small = [part for part in by_table if len(part) < _SMALL]
    parts = [part for part in by_table if len(part) >= _SMALL]
    return [*parts, np.concatenate(small)] if small else parts


def _kept(off: Counts, cells: int, variance: Fraction) -> Fraction:
    """Return the part of the noise to keep, a multiple of 2^-20; 1 changes nothing."""
    squares = _sum_of_squares(off)
    if cells == 0 or squares == 0:
        return Fraction(1)
    least = isqrt((8 << 2 * _BITS) // cells)
    part = int((1 - max(cells - 2, 0) * variance / squares) * (1 << _BITS))
    return Fraction(min(max(part, least), 1 << _BITS), 1 << _BITS)


def _sum_of_squares(off: Counts) -> int:
    largest = int(np.abs(off).max(initial=0))
    wide = off if largest**2 * off.size < LARGEST_PRODUCT else off.astype(object)
    return int((wide * wide).sum())
