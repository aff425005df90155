"""Limits of calls under way: their number, how long a peer may stall one, the memory it may fill.

Every call holds a thread from its first byte to its last. So each kind of call has a limit in all,
which adds up to the threads there are, and a lower limit for one party, which others do not feel.
A call above its limit is refused at once. A call whose peer neither sends nor takes the next frame
in time is cancelled, and so is a call under a certificate that was revoked.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import logging
import math
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import grpc

from common.service.process import RateLimit
from common.wire import strict
from common.wire.catalogue import ErrorCode, WireError
from common.wire.pki.peers import Peer, Revocations

logger = logging.getLogger(__name__)
logger.addFilter(RateLimit())

MOST_UNFINISHED_BYTES = 4 * strict.MOST_MESSAGE_BYTES  # of all parties; one may fill a quarter


class CallKind(enum.Enum):
    """The kinds of calls, by what they hold a thread for."""

    SHORT = "short calls"
    WORK = "streams of work"
    RELEASE = "releases being sent"


@dataclass(frozen=True, slots=True)
class Limit:
    """The most calls of a kind that may be under way: in all, and of one party."""

    total: int
    of_a_party: int


def limits(most_streams: int) -> Mapping[CallKind, Limit]:
    return {
        CallKind.SHORT: Limit(max(200, most_streams), 16),
        CallKind.WORK: Limit(most_streams, max(16, most_streams // 4)),
        CallKind.RELEASE: Limit(8, 2),
    }


@dataclass(slots=True, eq=False)
class AdmittedCall:
    """One call under way."""

    kind: CallKind
    peer: Peer  # who makes it
    context: grpc.ServicerContext
    timeout_s: float  # how long the peer may take to send or to take a frame
    # What the party has one call for at a time; a newer call ends the older one.
    place: object = None
    deadline: float = math.inf  # when the peer must have acted
    unfinished_bytes: int = 0  # of a message that is in memory
    # Whether our part of the call is over; gRPC may still be sending the answer.
    handled: bool = False
    closed: bool = False  # whether gRPC's part is over; we may still be at work
    ended: WireError | None = None  # why we ended the call, if we did

    @contextlib.contextmanager
    def in_time(self) -> Iterator[None]:
        """Wait for the peer in a block: it has `timeout_s` to act."""
        self.deadline = time.monotonic() + self.timeout_s
        try:
            yield
        finally:
            self.deadline = math.inf

    def end(self, why: WireError) -> None:
        """Cancel the call: its thread stops waiting for the peer."""
        self.ended = why
        self.context.cancel()


class Admission:
    """The calls under way. Threads may share it."""

    def __init__(
        self, limits: Mapping[CallKind, Limit], revocations: Revocations, *, timeout_s: float
    ) -> None:
        self._limits, self._revocations, self._timeout_s = limits, revocations, timeout_s
        self._lock = threading.Lock()
        self._calls: set[AdmittedCall] = set()

    @contextlib.contextmanager
    def admitted(
        self, kind: CallKind, peer: Peer, context: grpc.ServicerContext
    ) -> Iterator[AdmittedCall]:
        """Count a call until gRPC has sent its answer; TOO_MANY_CALLS if there is no room."""
        call = AdmittedCall(kind, peer, context, self._timeout_s)
        with self._lock:
            self._require_room(kind, peer)
            self._calls.add(call)
        if not context.add_callback(functools.partial(self._closed, call)):
            self._closed(call)
        try:
            yield call
        finally:
            with self._lock:
                call.handled, call.unfinished_bytes = True, 0
                call.deadline = time.monotonic() + self._timeout_s
                self._forget_if_over(call)

    def _require_room(self, kind: CallKind, peer: Peer) -> None:
        limit, alike = self._limits[kind], [c for c in self._calls if c.kind is kind]
        if sum(c.peer.name == peer.name for c in alike) >= limit.of_a_party:
            words = f"party {peer.name!r} has {limit.of_a_party} {kind.value} already"
            raise WireError(ErrorCode.TOO_MANY_CALLS, words)
        if len(alike) >= limit.total:
            raise WireError(ErrorCode.TOO_MANY_CALLS, f"there are {limit.total} {kind.value}")

    def _closed(self, call: AdmittedCall) -> None:
        with self._lock:
            call.closed = True
            self._forget_if_over(call)

    def _forget_if_over(self, call: AdmittedCall) -> None:
        if call.handled and call.closed:
            self._calls.discard(call)

    def take_over(self, call: AdmittedCall, place: object) -> None:
        """Make a call the only one of its kind and party for a place; an older one is ended."""
        with self._lock:
            call.place = place
            older = [
                c for c in self._calls
                if c is not call
                and (c.kind, c.place, c.peer.name) == (call.kind, place, call.peer.name)
            ]  # fmt: skip
        for older_call in older:
            older_call.end(WireError(ErrorCode.UNAVAILABLE, "the party made a newer one"))

    def hold(self, call: AdmittedCall, size: int) -> None:
        """Count bytes of an unfinished message; TOO_MANY_CALLS above the limit."""
        with self._lock:
            sizes = {c: c.unfinished_bytes for c in self._calls}
            theirs = sum(size for c, size in sizes.items() if c.peer.name == call.peer.name)
            if theirs + size > strict.MOST_MESSAGE_BYTES + strict.MOST_FRAME_BYTES:
                words = f"unfinished messages of {call.peer.name!r} fill {theirs:,} bytes"
                raise WireError(ErrorCode.TOO_MANY_CALLS, words)
            if sum(sizes.values()) + size > MOST_UNFINISHED_BYTES:
                raise WireError(ErrorCode.TOO_MANY_CALLS, "unfinished messages fill the memory")
            call.unfinished_bytes += size

    def look(self) -> None:
        """End the calls whose peer is late or was revoked. A watchdog calls this every second."""
        now = time.monotonic()
        with self._lock:
            calls = [call for call in self._calls if call.ended is None]
            # gRPC closes a cancelled call; a call that it does not close is forgotten here.
            self._calls -= {c for c in self._calls if c.handled and c.ended is not None}
        for call in calls:
            why = self._reason_to_end(call, now)
            if why is not None:
                logger.warning("a call of party %s is ended: %s", call.peer.name, why.detail)
                call.end(why)

    def _reason_to_end(self, call: AdmittedCall, now: float) -> WireError | None:
        if now > call.deadline:
            late = f"it neither sent nor took a frame for {self._timeout_s:g} s"
            return WireError(ErrorCode.UNAVAILABLE, late)
        try:
            self._revocations.refuse(call.peer.fingerprint)
        except WireError as revoked:
            return revoked if revoked.code is ErrorCode.CERTIFICATE_REVOKED else None
        return None
