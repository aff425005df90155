"""Counting rows that are made while they are counted: every thread makes, and counts, its own.

A stream is a part of a table that one thread can produce alone, such as a row group of a file. The
thread that decodes a chunk also counts it, while it is in its cache, into totals of its own; the
totals are added up at the end. Requests too large for that have one set of totals, to which the
chunks are added one after the other, by all threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence

from common.marginals.counting import Counts, Tally, checked_sets
from common.marginals.threads import map_in_threads, worker_count
from common.schema.codes import NO_GROUPS, Codes, Groups, grouped_sizes

Stream = Callable[[], Iterable[Codes]]


def count_streams(
    streams: Iterable[Stream],
    sizes: Sequence[int],
    attribute_sets: Sequence[Sequence[int]],
    *,
    groups: Groups = NO_GROUPS,
    threads: int | None = None,
) -> list[Counts]:
    """`common.marginals.count` of all the rows of all streams.

    Streams are taken one by one in the caller's thread, and run in any.
    """
    workers = worker_count(threads)
    sizes = grouped_sizes(sizes, groups)
    whole = Tally(sizes, checked_sets(attribute_sets, sizes))
    if whole.fits_every_thread:
        _count_apart(streams, groups, whole, workers)
    else:
        for chunks in map_in_threads(_all_chunks, streams, workers):
            for chunk in chunks:
                whole.add(chunk.in_groups(groups), threads=workers)
    return whole.tables()


def _all_chunks(stream: Stream) -> list[Codes]:
    return list(stream())


def _count_apart(streams: Iterable[Stream], groups: Groups, whole: Tally, workers: int) -> None:
    idle: list[Tally] = []
    every: list[Tally] = []
    lock = threading.Lock()

    def run(stream: Stream) -> None:
        with lock:
            if not idle:
                every.append(whole.empty())
                idle.append(every[-1])
            tally = idle.pop()
        for chunk in stream():
            tally.add(chunk.in_groups(groups), threads=1)
        with lock:
            idle.append(tally)

    for _ in map_in_threads(run, streams, workers):
        pass
    for tally in every:
        whole.merge(tally)
