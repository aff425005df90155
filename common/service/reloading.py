"""Serve with the settings on disk; SIGHUP reads them again.

A service that is told to read its settings again begins anew with them, in the same process: it
finishes the calls in progress, closes its files and opens them again, as a restart does. Settings
that cannot be read change nothing, and the log says why. Neither do settings that are as they were,
so that a log rotation or a closing terminal disturbs no study.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from common.errors import ParleyError
from common.service.process import stopping_on_signals

_Settings = TypeVar("_Settings")

logger = logging.getLogger(__name__)

_AGAIN, _END = "read again", "end"


class Rounds(Generic[_Settings]):
    """The settings to serve with, one after another, each with the event that ends its round."""

    def __init__(self, read: Callable[[], _Settings]) -> None:
        self._read = read
        self._settings = read()
        self._lock = threading.Lock()
        self._begin, self._stopped = True, False
        self._over = threading.Event()

    def __iter__(self) -> Iterator[tuple[_Settings, threading.Event]]:
        """Yield settings and event until a round ends for another reason than new settings."""
        while True:
            with self._lock:
                if not self._begin:
                    return
                self._begin, self._over = False, threading.Event()
                settings, over = self._settings, self._over
            yield settings, over

    def stop(self) -> None:
        """End this round, and begin no other."""
        with self._lock:
            self._begin, self._stopped = False, True
            self._over.set()

    def read_again(self) -> None:
        """End this round if there are other settings now, and begin the next with them."""
        try:
            settings = self._read()
        except ParleyError as error:
            logger.error("the settings are not read again, the earlier ones hold: %s", error)
            return
        with self._lock:
            if self._stopped:
                return
            if settings == self._settings:
                logger.info("the settings were read again: they are as they were")
                return
            logger.info("the settings have changed: the service begins anew with them")
            self._settings, self._begin = settings, True
            self._over.set()


@contextlib.contextmanager
def reloading(
    read: Callable[[], _Settings], *, with_stdin: bool = False
) -> Iterator[Rounds[_Settings]]:
    """Yield the rounds of a service for the length of a block; in the main thread only."""
    requests: queue.SimpleQueue[str] = queue.SimpleQueue()  # its put is safe in a signal handler
    rounds = Rounds(read)

    def look() -> None:
        while requests.get() == _AGAIN:
            rounds.read_again()

    with stopping_on_signals(
        with_stdin=with_stdin, hang_up=lambda: requests.put(_AGAIN)
    ) as stopping:
        watchers = [
            threading.Thread(target=look, name="read settings", daemon=True),
            threading.Thread(target=_stop_after, args=(stopping, rounds), daemon=True),
        ]
        for watcher in watchers:
            watcher.start()
        try:
            yield rounds
        finally:
            requests.put(_END)
            stopping.set()
            for watcher in watchers:
                watcher.join()


def _stop_after(stopping: threading.Event, rounds: Rounds[_Settings]) -> None:
    stopping.wait()
    rounds.stop()
