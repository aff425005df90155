"""Dividing the work of one request among the cores."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ContextDecorator, ExitStack
from threading import RLock
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


class _OneThread(ContextDecorator):
    """One thread for matrix products, whatever the machine has; for one fit at a time.

    A matrix product on two threads adds up in another order than on one, so its last digits depend
    on the number of threads, and with them the bytes of a model. The matrices of a fit are small,
    too: a second thread gains nothing, and beside a busy neighbour both wait for each other.

    The number of threads belongs to the process, and a program that uses Parley as a library may
    want its threads back: they are limited only while something runs in here. Fits of one process
    run one after the other, because the first to end would lift the limit of the others.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._depth = 0
        self._limit = ExitStack()

    def __enter__(self) -> None:
        from threadpoolctl import threadpool_limits  # looks for libraries: few commands need it

        self._lock.acquire()
        self._depth += 1
        if self._depth == 1:
            self._limit.enter_context(threadpool_limits(limits=1, user_api="blas"))

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._limit.close()
        self._lock.release()


one_thread = _OneThread()
