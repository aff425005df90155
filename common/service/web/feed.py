"""Live news for browsers: one thread makes a document, every listener gets it.

Server-sent events. The document is made while there is a listener, and sent when it has changed; so
ten browsers cost the store no more than one.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus

from common.errors import ParleyError
from common.service.web.exchange import EVENTS, Response, text

logger = logging.getLogger(__name__)

MOST_LISTENERS = 16
EVERY_S = 0.5
HEARTBEAT_S = 10.0


class Feed:
    """The news of one site.

    `make` returns the document of this moment, one line of JSON; one thread calls it.
    """

    def __init__(
        self, make: Callable[[], bytes], *, every_s: float = EVERY_S, most: int = MOST_LISTENERS
    ) -> None:
        self._make, self._every_s, self._most = make, every_s, most
        self._news = threading.Condition()
        self._document, self._version = b"", 0
        self._listeners = 0
        self._closed = False
        self._thread = threading.Thread(target=self._watch, name="feed", daemon=True)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Look for news for the length of a block, then disconnect every listener."""
        self._thread.start()
        try:
            yield
        finally:
            with self._news:
                self._closed = True
                self._news.notify_all()
            self._thread.join()

    def response(self, alive: Callable[[], bool]) -> Response:
        """Stream events for as long as the listener's session is alive."""
        if self._listeners >= self._most or self._closed:
            return text(
                HTTPStatus.SERVICE_UNAVAILABLE, "Too many windows are open.", ("Retry-After", "10")
            )
        return Response(
            kind=EVENTS, body=self._events(alive), headers=(("X-Accel-Buffering", "no"),)
        )

    def _events(self, alive: Callable[[], bool]) -> Iterator[bytes]:
        with self._news:
            if self._listeners >= self._most:
                return
            self._listeners += 1
            self._news.notify_all()
        try:
            yield b"retry: 2000\n\n"
            newest = 0
            while alive():
                version, body = self._newer_than(newest)
                if self._closed:
                    return
                fresh, newest = version > newest, version
                yield b"event: state\ndata: " + body + b"\n\n" if fresh else b": still here\n\n"
            yield b"event: out\ndata: log in again\n\n"
        finally:
            with self._news:
                self._listeners -= 1

    def _newer_than(self, newest: int) -> tuple[int, bytes]:
        """Wait for a newer document, at most a heartbeat; return the newest and its number."""
        with self._news:
            self._news.wait_for(lambda: self._closed or self._version > newest, HEARTBEAT_S)
            return self._version, self._document

    def _watch(self) -> None:
        while True:
            with self._news:
                self._news.wait_for(lambda: self._closed or self._listeners)
                if self._closed:
                    return
            try:
                document = self._make()
            except ParleyError as error:  # a busy store; there is another look soon
                logger.warning("no news this time: %s", error)
            except Exception:  # a defect, which a page that stands still would hide
                logger.exception("no news this time")
            else:
                self._take(document)
            with self._news:
                self._news.wait_for(lambda: self._closed, timeout=self._every_s)

    def _take(self, document: bytes) -> None:
        with self._news:
            if document != self._document:
                self._document, self._version = document, self._version + 1
                self._news.notify_all()
