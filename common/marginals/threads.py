"""Dividing the work of one request among the cores."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from common.errors import LocalError

Item = TypeVar("Item")
Result = TypeVar("Result")

_AHEAD = 2  # items per thread that are under way or wait: enough to keep it busy, and no more


def worker_count(threads: int | None) -> int:
    """Return the number of threads asked for; one per core when none was."""
    workers = (os.cpu_count() or 1) if threads is None else threads
    if workers < 1:
        raise LocalError(f"counting takes at least one thread, not {workers}")
    return workers


def run_in_threads(task: Callable[[int], None], items: Iterable[int], workers: int) -> None:
    """Run `task` for every item, at most `workers` at a time; the first error is raised.

    The tasks gain from threads only where they release the interpreter lock, as the kernels do.
    """
    if workers == 1:
        for item in items:
            task(item)
        return
    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(task, items):
            pass


def map_in_threads(
    task: Callable[[Item], Result], items: Iterable[Item], workers: int
) -> Iterator[Result]:
    """Yield the results of `task` in the order of the items; only a few are under way at a time.

    The items themselves are taken in the caller's thread. The first error ends everything; so does
    a caller that stops iterating.
    """
    if workers == 1:
        yield from map(task, items)
        return
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(task, item))
                if len(waiting) == _AHEAD * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
