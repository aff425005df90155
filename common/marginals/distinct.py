"""Rows collapsed to distinct rows with weights, and a counter that makes that choice once.

Public microdata repeats itself: 47,461 rows of 23 bits are 8,435 distinct ones. Whoever asks for
thousands of tables of the same rows pays for the distinct rows only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from common.marginals.counting import Counts, count
from common.schema.codes import Codes

_SAMPLE_ROWS = 1 << 14
_WORTH = 2  # rows must at least halve: weighted rows are slower to count than plain ones
_WORD = 1 << 63  # mixed-radix keys below this fit one int64


def distinct_rows(codes: Codes) -> tuple[Codes, Counts]:
    """The distinct rows, in lexicographic order, and how often each occurs."""
    if not codes.rows:
        return codes, np.zeros(0, dtype=np.int64)
    keys = _keys(codes)
    order = np.lexsort(keys[::-1])
    starts_run = np.zeros(codes.rows, dtype=bool)
    starts_run[0] = True
    for key in keys:
        in_order = key[order]
        starts_run[1:] |= in_order[1:] != in_order[:-1]
    starts = np.flatnonzero(starts_run)
    weights = np.diff(starts, append=codes.rows).astype(np.int64)
    return codes.take(order[starts]), weights


def _keys(codes: Codes) -> list[NDArray[np.int64]]:
    """Columns that together tell rows apart and sort like them: as few as 63 bits each allow."""
    keys: list[NDArray[np.int64]] = []
    reach = _WORD
    for column, size in zip(codes.columns, codes.sizes, strict=True):
        if reach * size < _WORD:
            keys[-1] = keys[-1] * size + column
            reach *= size
        else:
            keys.append(column.astype(np.int64))
            reach = size
    return keys


class Counter:
    """One table's rows, held in the form in which they are counted fastest.

    The rows are collapsed once, where a sample of them says that it pays; every request after that
    reads the distinct rows. The answers are those of `common.marginals.count` on the rows given.
    """

    def __init__(self, codes: Codes, threads: int | None = None) -> None:
        self._rows = codes.rows
        self._threads = threads
        self._codes = codes
        self._weights: Counts | None = None
        if _repeats(codes):
            distinct, weights = distinct_rows(codes)
            if _WORTH * distinct.rows <= codes.rows:
                self._codes, self._weights = distinct, weights

    @property
    def sizes(self) -> tuple[int, ...]:
        """The domain sizes of the attributes."""
        return self._codes.sizes

    @property
    def rows(self) -> int:
        """The number of rows the counts add up to."""
        return self._rows

    @property
    def rows_held(self) -> int:
        """The number of rows a request reads: the distinct ones where rows were collapsed."""
        return self._codes.rows

    def count(self, attribute_sets: Sequence[Sequence[int]]) -> list[Counts]:
        """The contingency table of every attribute set, as `common.marginals.count` gives it."""
        return count(self._codes, attribute_sets, self._weights, self._threads)


def _repeats(codes: Codes) -> bool:
    """Whether rows spread over the whole table repeat often enough to look at all of them.

    A guess about speed only: the counts do not depend on it.
    """
    if math.prod(codes.sizes) * _WORTH <= codes.rows:
        return True
    spread = codes.take(slice(None, None, max(1, codes.rows // _SAMPLE_ROWS)))
    return distinct_rows(spread)[0].rows * _WORTH <= spread.rows
