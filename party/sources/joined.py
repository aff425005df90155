"""Several tables of one owner, one below the other: the rows of all of them take part."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from common.schema import Codes
from common.schema.codes import NO_GROUPS, Groups, concatenate
from party.sources.source import Snapshot, SnapshotSource, Source


class JoinedSource(SnapshotSource):
    """A `Source` of the rows of several."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = tuple(sources)
        snapshots = [source.snapshot for source in self._sources]
        dates = [each.as_of for each in snapshots if each.as_of is not None]
        known = len(dates) == len(snapshots)
        self._snapshot = Snapshot(
            rows=sum(each.rows for each in snapshots),
            digest=_digest([each.digest for each in snapshots]),
            as_of=min(dates) if known else None,
            newest=_newest(dates) if known else None,
        )

    def chunks(self) -> Iterator[Codes]:
        for source in self._sources:
            yield from source.chunks()

    def count(
        self, sets: Sequence[Sequence[int]], groups: Groups = NO_GROUPS
    ) -> list[NDArray[np.int64]]:
        """The contingency table of every attribute set: the sum of those of the tables."""
        counted = [source.count(sets, groups) for source in self._sources]
        return [
            np.sum(np.stack(tables), axis=0, dtype=np.int64)
            for tables in zip(*counted, strict=True)
        ]

    def codes(self) -> Codes:
        return concatenate([source.codes() for source in self._sources])


def _newest(dates: Sequence[dt.date]) -> dt.date | None:
    return max(dates) if max(dates) != min(dates) else None


def _digest(digests: Sequence[str]) -> str:
    """The same for the same tables in any order."""
    content = "parley tables 1\n" + "\n".join(sorted(digests))
    return hashlib.sha256(content.encode()).hexdigest()
