"""One turn of a study: how long it may keep its seat, and who ends it.

The session manager gives a study a seat and makes a `Turn`; the study's session works through it in
another thread. Now and then the manager calls `cede` and says whether another study wants the seat.
The limits decide. A turn that waits for a message is ended at once; a turn that works is ended
after the message that it is at.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from party.client.connection import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long a study may keep its seat."""

    idle_s: float = 1.0  # without a message, if another study waits for a seat
    turn_s: float = 10.0  # with messages, if another study waits for a seat
    listening_s: float = 60.0  # without a message, if none does
    stalled_s: float = 600.0  # without a message that the curator said it has


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wait:
    """A session waits for the next message on a connection."""

    connection: Connection
    has_all: bool  # of what the curator said it has; the rest may take long on a slow link
    since: float


class Turn:
    """One turn. `cede` may come from any thread, the rest from the session's."""

    def __init__(
        self,
        limits: Limits = DEFAULT_LIMITS,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits, self._monotonic = limits, monotonic
        self._wait: _Wait | None = None
        self.began = monotonic()
        self.messages = 0  # taken in during this turn
        self.ceded = False  # the session ends the turn as soon as it sees this

    @contextlib.contextmanager
    def waiting(self, connection: Connection, *, has_all: bool) -> Iterator[None]:
        """Let `cede` end the wait for a message that is made in this block."""
        self._wait = _Wait(connection=connection, has_all=has_all, since=self._monotonic())
        try:
            yield
        finally:
            self._wait = None

    def cede(self, *, contested: bool) -> None:
        """End the turn soon if it has lasted, or has waited for a message, for too long.

        `contested` says that another study waits for the seat.
        """
        limits, now, wait = self._limits, self._monotonic(), self._wait
        if contested and now - self.began >= limits.turn_s:
            self.ceded = True
        if wait is None:
            return
        longest = limits.idle_s if contested else limits.listening_s
        if now - wait.since >= (longest if wait.has_all else limits.stalled_s):
            self.ceded = True
            wait.connection.stop_listening()
