"""Sharing out the work of one request among the cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from common.errors import LocalError


def worker_count(threads: int | None) -> int:
    """The number of threads asked for; one per core when nothing was asked for."""
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
