"""One thread for matrix products, whatever the machine has.

A matrix product on two threads adds up in another order than on one, so its last digits depend on
the number of threads, and with them the bytes of a model. The matrices of a fit are small, too: a
second thread gains nothing, and beside a busy neighbour both wait for each other. Cores are better
used by processes.

The number of threads belongs to the process, and a program that uses Parley as a library may want
its threads back: `one_thread` limits them only while something runs in it. Fits of one process run
one after the other, because the first to end would lift the limit of the others.
"""

from __future__ import annotations

from contextlib import ContextDecorator, ExitStack
from threading import RLock


class _OneThread(ContextDecorator):
    """The limit, for one thread of Python at a time."""

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
