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

import numba
import numpy as np
from numpy.typing import NDArray

from common.errors import LocalError


def doubled_maximum_joint_scores(tables: NDArray[np.int64]) -> NDArray[np.int64]:
    """2 n F(X, P) of many tables of shape (tables, 2, |P|), exactly; between -n and 0."""
    if tables.ndim != 3 or tables.shape[1] != 2:
        raise LocalError(f"score F needs a binary child; these tables have shape {tables.shape}")
    narrow = np.ascontiguousarray(tables, dtype=np.int32)
    result = np.empty(len(tables), dtype=np.int64)
    _score_all(narrow, result)
    return result


@numba.njit(cache=True)  # type: ignore[untyped-decorator]  # numba ships no types
def _score_all(tables: NDArray[np.int32], result: NDArray[np.int64]) -> None:
    """Fill `result` with 2 n F, table by table."""
    columns = tables.shape[2]
    weights = np.empty(columns, dtype=np.int32)
    values = np.empty(columns, dtype=np.int32)
    for t in range(tables.shape[0]):
        rows = np.int64(0)
        for p in range(columns):
            rows += tables[t, 0, p] + tables[t, 1, p]
        covered = np.int64(-1)
        for side in range(2):
            mine, other = tables[t, side], tables[t, 1 - side]
            own, rest, items = np.int64(0), np.int64(0), 0
            for p in range(columns):
                if mine[p] >= other[p]:  # a tie may stand on either side
                    own += mine[p]
                    if other[p] > 0:
                        weights[items], values[items] = mine[p], other[p]
                        items += 1
                else:
                    rest += other[p]
            if 2 * own > rows:
                moved = _doubled_gain(weights[:items], values[:items], 2 * own - rows)
                covered = rows + 2 * rest + moved
                break
            covered = 2 * (own + rest)
        result[t] = covered - 2 * rows


@numba.njit(cache=True)  # type: ignore[untyped-decorator]  # numba ships no types
def _doubled_gain(weights: NDArray[np.int32], values: NDArray[np.int32], excess: int) -> int:
    """Twice the best knapsack value, less the overshoot; `excess` is twice the capacity."""
    capacity = excess // 2
    best = np.zeros(capacity + 1, dtype=np.int32)  # best[w]: largest value of weight at most w
    scratch = np.zeros(capacity + 1, dtype=np.int32)
    overshoot = np.int64(0)
    for item in range(len(weights)):
        weight, value = weights[item], values[item]
        # The loops run over slices from zero because only then do they compile to vector code.
        first = max(capacity + 1 - weight, 0)  # from here on the item overshoots
        tail = best[first:]
        reach = np.int32(-2147483648)
        for w in range(len(tail)):
            reach = max(reach, np.int32(tail[w] - np.int32(w)))
        overshoot = max(overshoot, 2 * (np.int64(reach) - first + value - weight) + excess)
        if weight <= capacity:
            scratch[:weight] = best[:weight]
            without, shorter, out = best[weight:], best[:first], scratch[weight:]
            for w in range(len(out)):
                out[w] = max(without[w], np.int32(shorter[w] + value))
            best, scratch = scratch, best
    return max(2 * np.int64(best[capacity]), overshoot)
