"""The tables of a network from every sum of a study: free, because only published sums are used.

The views of phase 1 and the frontier's tables of phase 3 count the same rows as the tables of
phase 4. Where they cover all rows they are further measurements of the same counts: `reused` takes
the inverse-variance mean of all versions of every shared sub-table. The mean is linear, so it has
no bias. `common.bayes.postprocessing.consistent_tables` then makes the result possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from common.bayes.domain import Domain, View
from common.bayes.network import Family
from common.bayes.postprocessing import marginal_table, reconcile
from common.study.requests import Attributes, Counts

Floats = NDArray[np.float64]
MOST_TABLES = 256  # beyond, earlier sums are left alone: the time grows with their square


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class NoisyTable:
    """A noisy table that covers all rows."""

    variables: Attributes  # in the order of the axes
    table: Counts
    variance: Fraction  # of the noise in a cell


def reused(
    parameters: Sequence[NoisyTable], earlier: Sequence[NoisyTable], domain: Domain, *, rows: int
) -> list[Floats]:
    """Return the tables of the parameters, combined with what earlier sums say about them."""
    if len(parameters) + len(earlier) > MOST_TABLES:
        return [measured.table.astype(np.float64) for measured in parameters]
    tables, variances = _pooled([*parameters, *earlier])
    agreed = reconcile(tables, domain, rows=rows, variances=variances)
    return [
        marginal_table(
            agreed[_family(measured)], np.argsort(np.argsort(measured.variables)).tolist()
        )
        for measured in parameters
    ]


def _pooled(sums: Sequence[NoisyTable]) -> tuple[dict[Family, Floats], dict[Family, float]]:
    """Return the inverse-variance mean of the tables of every set of variables, axes ascending."""
    totals: dict[Family, Floats] = {}
    precisions: dict[Family, float] = {}
    for measured in sums:
        family, precision = _family(measured), float(1 / measured.variance)
        ascending = marginal_table(measured.table, np.argsort(measured.variables).tolist())
        weighted = ascending.astype(np.float64) * precision
        totals[family] = totals[family] + weighted if family in totals else weighted
        precisions[family] = precisions.get(family, 0.0) + precision
    means = {family: total / precisions[family] for family, total in totals.items()}
    return means, {family: 1.0 / precision for family, precision in precisions.items()}


def _family(measured: NoisyTable) -> Family:
    return tuple(View(a) for a in sorted(measured.variables))
