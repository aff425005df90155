"""Simulated rows in a study's domains, for a rehearsal: no table of the owner is read.

The rows are a function of the seed, the schema and their number. Every column follows one hidden
number of its row half of the time, so columns depend on each other and a method runs all of its
phases. A long table repeats its first rows: a study states how many rows there are, and a node does
no more work for a larger number. People of a linked schema have events, whose columns follow the
same hidden number.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from common.marginals import count
from common.privacy.randomness import KeyedRandomSource, RandomSource
from common.schema import Codes, Schema
from common.schema.codes import NO_GROUPS, Groups
from common.schema.linked import LinkedCodes, possible_histories
from party.sources.source import Snapshot, Source

MOST_DISTINCT = 100_000
_HALF_WORD = np.uint64(32)


class SimulatedSource(Source):
    """Rows that no one has."""

    def __init__(self, schema: Schema, rows: int, *, seed: str) -> None:
        distinct = min(rows, MOST_DISTINCT)
        self._table = _drawn(schema, distinct, seed)
        times, more = divmod(rows, distinct)
        self._times = times + (np.arange(distinct) < more).astype(np.int64)
        self._snapshot = Snapshot(
            rows=rows,
            digest=hashlib.sha256(f"parley simulated 1\n{rows}\n{seed}".encode()).hexdigest(),
            as_of=None,
            simulated=True,
        )

    def chunks(self) -> Iterator[Codes]:
        for time in range(int(self._times[0])):
            yield self._table.take(np.flatnonzero(self._times > time))

    def count(
        self, sets: Sequence[Sequence[int]], groups: Groups = NO_GROUPS
    ) -> list[NDArray[np.int64]]:
        return count(self._table, sets, groups=groups, weights=self._times)


def _drawn(schema: Schema, rows: int, seed: str) -> Codes:
    source = KeyedRandomSource(hashlib.sha256(seed.encode()).digest(), private=False)
    hidden = source.words(rows) >> _HALF_WORD
    people = schema.possible.repaired(_following(hidden, schema.sizes, source))
    if schema.events is None:
        return people
    most = schema.events.most
    numbers = _following(hidden, [most + 1], source).columns[0].astype(np.int64)
    events = _following(np.repeat(hidden, numbers), schema.of_events.sizes, source)
    linked = LinkedCodes(people.columns, people.sizes, events, numbers, most)
    return possible_histories(schema, linked)


def _following(hidden: NDArray[np.uint64], sizes: Sequence[int], source: RandomSource) -> Codes:
    """Draw columns that follow the hidden number of their row half of the time."""
    columns = []
    for size in sizes:
        words = source.words(len(hidden))
        height = np.where(words & np.uint64(1), hidden, words >> _HALF_WORD)
        columns.append((height * np.uint64(size)) >> _HALF_WORD)
    return Codes.from_columns(columns, sizes)
