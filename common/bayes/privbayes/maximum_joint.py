"""Score F: how close a table is to one in which the parents determine a uniform binary child.

F = -1/2 min ||Pr - Pr'||_1 over the *maximum joint distributions* Pr' [Zhang14, Sec. 4.3]: uniform
on the binary child X, with at most one value of X per parent value. Giving each column p of the
count table to one row of X (Z0 to X=0, Z1 to X=1) leaves

    n F = max over partitions of  min(a, n/2) + min(b, n/2) - n,
    a = sum of c_0p over Z0,  b = sum of c_1p over Z1.

The papers search all reachable (a, b). Here is a smaller search. Start from the *majority*
partition, which gives every column to its larger count. If neither sum passes n/2, it is optimal.
Otherwise exactly one does, say a = n/2 + excess (a + b <= n). Then

* a column whose majority is X=1 stays in Z1 in some optimum: the counts c_0 of all columns with
  majority 0, c_1 of those moved, and c_1 of all columns with majority 1 are distinct cells, their
  sum is at most n, and the first sum alone passes n/2; so the others never pass it, and moving the
  column into Z1 raises b by c_1 > c_0 at a cost of at most c_0;
* moving a column with majority 0 into Z1 gains c_1 and costs nothing as long as a stays at n/2 or
  above: a knapsack with weights c_0, values c_1 and capacity `excess`;
* the last column moved may overshoot: each unit of weight beyond the capacity costs one. Moving
  another one after that loses c_0 - c_1 >= 0.

The knapsack has `excess` <= n/2 states, and only columns with both counts positive take part.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from common.errors import LocalError
from common.marginals.threads import run_in_threads, worker_count
from common.schema.compilation import compiled

_TABLES_PER_TASK = 128


def doubled_maximum_joint_scores(tables: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return 2 n F(X, P) of many tables of shape (tables, 2, |P|), exactly; between -n and 0."""
    if tables.ndim != 3 or tables.shape[1] != 2:
        raise LocalError(f"score F needs a binary child; these tables have shape {tables.shape}")
    rows = tables.sum(axis=(1, 2))
    covered = 2 * tables.max(axis=1).sum(axis=1)
    for side in range(2):
        mine, other = tables[:, side], tables[:, 1 - side]
        majority = mine >= other  # a tie may stand on either side
        own = np.where(majority, mine, 0).sum(axis=1)
        over = 2 * own > rows
        gains = _doubled_gains(
            np.where(majority, mine, 0)[over].astype(np.int32),
            np.where(majority, other, 0)[over].astype(np.int32),
            (2 * own - rows)[over],
        )
        rest = np.where(majority, 0, other).sum(axis=1)
        covered[over] = (rows + 2 * rest)[over] + gains
    result: NDArray[np.int64] = covered - 2 * rows
    return result


def _doubled_gains(
    weights: NDArray[np.int32], values: NDArray[np.int32], excesses: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the gains of many tables' knapsacks, divided among the cores."""
    gains = np.zeros(len(excesses), dtype=np.int64)
    kernel = compiled(_fill_doubled_gains)

    def fill(start: int) -> None:
        part = slice(start, start + _TABLES_PER_TASK)
        kernel(weights[part], values[part], excesses[part], gains[part])

    starts = range(0, len(excesses), _TABLES_PER_TASK)
    run_in_threads(fill, starts, worker_count(None) if len(starts) > 1 else 1)
    return gains


def _fill_doubled_gains(
    weights: NDArray[np.int32],
    values: NDArray[np.int32],
    excesses: NDArray[np.int64],
    gains: NDArray[np.int64],
) -> None:
    """Fill in twice the best knapsack value less the overshoot; an excess is twice a capacity.

    The inner loops run over slices from zero because only then do they compile to vector code.
    """
    for table in range(len(excesses)):
        capacity = excesses[table] // 2
        best = np.zeros(capacity + 1, dtype=np.int32)  # largest value of weight at most w
        scratch = np.zeros(capacity + 1, dtype=np.int32)
        overshoot = np.int64(0)
        for weight, value in zip(weights[table], values[table]):  # noqa: B905 (numba knows no strict)
            if value == 0:
                continue
            first = max(capacity + 1 - weight, 0)  # from here on the item overshoots
            tail = best[first:]
            reach = np.int32(-2147483648)
            for w in range(len(tail)):
                reach = max(reach, np.int32(tail[w] - np.int32(w)))
            beyond = 2 * (np.int64(reach) - first + value - weight) + excesses[table]
            overshoot = max(overshoot, beyond)
            if weight <= capacity:
                scratch[:weight] = best[:weight]
                without, shorter, out = best[weight:], best[:first], scratch[weight:]
                for w in range(len(out)):
                    out[w] = max(without[w], np.int32(shorter[w] + value))
                best, scratch = scratch, best
        gains[table] = max(2 * np.int64(best[capacity]), overshoot)
