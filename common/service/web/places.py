"""Who may hold a connection: so many at a time, and slow ones make room.

A connection whose request has arrived keeps its place until it is answered. One that is still
sending keeps it while there is room; when there is none, a new connection takes the place of the
oldest one of the address that has the most. So a request that arrives promptly is served, however
many slow connections are held open, and an address that holds many loses its own first.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from collections import Counter
from dataclasses import dataclass

from common.service.log_limits import RateLimit

logger = logging.getLogger(__name__)
logger.addFilter(RateLimit(per_second=1))


@dataclass(slots=True, eq=False)
class Place:
    """A connection's place."""

    connection: socket.socket  # what is closed when the place is taken away
    address: str  # whose connection it is


class Places:
    """The places of one server. Threads may share it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._arriving: dict[Place, None] = {}  # oldest first
        self._answered: set[Place] = set()

    def enter(self, connection: socket.socket, address: str) -> Place | None:
        """A place for a new connection; None if every request that is here is being answered."""
        place = Place(connection, address)
        with self._lock:
            if len(self._arriving) + len(self._answered) >= self._most:
                if not self._arriving:
                    return None
                self._take_away(self._slowest())
            self._arriving[place] = None
        return place

    def wrap(self, place: Place, connection: socket.socket) -> bool:
        """Note what the connection has become; False if its place was taken away meanwhile."""
        with self._lock:
            place.connection = connection
            return place in self._arriving

    def arrived(self, place: Place) -> bool:
        """Keep a place until `leave`; False if it was taken away before the request was whole."""
        with self._lock:
            if place not in self._arriving:
                return False
            del self._arriving[place]
            self._answered.add(place)
            return True

    def leave(self, place: Place) -> None:
        """Give a place back; again is harmless."""
        with self._lock:
            self._arriving.pop(place, None)
            self._answered.discard(place)

    def _slowest(self) -> Place:
        held = Counter(place.address for place in self._arriving)
        return max(self._arriving, key=lambda place: held[place.address])  # the first of equals

    def _take_away(self, place: Place) -> None:
        logger.warning("a slow connection of %s was closed: every place was taken", place.address)
        del self._arriving[place]
        with contextlib.suppress(OSError):  # it ended, or TLS is just being put around it
            socket.socket.shutdown(place.connection, socket.SHUT_RDWR)
