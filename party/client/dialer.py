"""The way to the curator: connections that are dialled and hung up together, retry with backoff.

Credentials are read when a connection is made, so a rotated certificate is used from the next
connection on. Waits double from one attempt to the next up to a limit, with a random part, so that
the parties of a curator that comes back do not all call in the same moment.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import grpc

from common.privacy.randomness import RandomSource, below
from common.wire import tls
from common.wire.catalogue import ErrorCode, WireError
from common.wire.pki.certificates import Role
from common.wire.pki.credentials import CredentialFiles, ExpiryWatch
from party.client.connection import Connection, HungUpError

_FEW = 10
_FEW_TIMES = (ErrorCode.INTERNAL, ErrorCode.OUT_OF_ORDER)  # trying again is safe, and may help
_OUT_OF_REACH = (ErrorCode.UNAVAILABLE, ErrorCode.TOO_MANY_CALLS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where the curator is, and how to get there."""

    target: str
    proxy: str | None  # the proxy to ask for the way; None to dial directly
    files: CredentialFiles  # what we show, and whom we trust
    software: str  # what to tell the curator we are

    @property
    def words(self) -> str:
        """The address for people, without the proxy's, which may hold a password."""
        return self.target if self.proxy is None else f"{self.target} through the proxy"


class Dialer:
    """Dials, and can hang up on everything that waits. Threads may share it."""

    def __init__(self, address: Address, clock: Callable[[], dt.datetime]) -> None:
        self._address = address
        self._clock = clock
        self._lock = threading.Lock()
        self._open: set[grpc.Channel] = set()
        self._expiry = ExpiryWatch(clock)
        self._closed = False

    @contextmanager
    def dial(self) -> Iterator[Connection]:
        """Open a connection for the length of a block.

        Raises:
            InputError: a key or certificate cannot be read.
            WireError: CERTIFICATE_EXPIRED or CERTIFICATE_UNTRUSTED, for our own certificate, before
                anything is dialled.
            HungUpError: after `hang_up`.
        """
        files = self._address.files
        state = files.state()
        credentials = files.load()
        credentials.check(role=Role.PARTY, at=self._clock())
        self._expiry.look(files)
        channel = grpc.secure_channel(
            self._address.target,
            tls.channel_credentials(credentials),
            options=tls.channel_options(proxy=self._address.proxy),
        )
        with channel, self._registered(channel):
            yield Connection(
                channel,
                software=self._address.software,
                credentials=credentials,
                replaced=lambda: files.state() != state,
                hung_up=lambda: self._closed,
                clock=self._clock,
                target=self._address.words,
            )

    @contextmanager
    def _registered(self, channel: grpc.Channel) -> Iterator[None]:
        with self._lock:
            if self._closed:
                raise HungUpError
            self._open.add(channel)
        try:
            yield
        finally:
            with self._lock:
                self._open.discard(channel)

    def hang_up(self) -> None:
        """End every connection, in whatever thread, and dial no more."""
        with self._lock:
            self._closed = True
            for channel in self._open:
                channel.close()


@dataclass(slots=True, kw_only=True)
class Backoff:
    """Counts failures since the last progress."""

    first_s: float  # the first wait; waits double
    longest_s: float
    attempts: int  # how many times in a row the curator may be out of reach
    source: RandomSource  # of the random part; nothing depends on its being secret
    failed: int = field(default=0, init=False)

    def progressed(self) -> None:
        self.failed = 0

    def after(
        self, error: WireError, *, out_of_reach: Collection[ErrorCode] = _OUT_OF_REACH
    ) -> float:
        """Return how many seconds to wait after an error.

        `attempts` applies to the codes in `out_of_reach`.

        Raises:
            WireError: the error, if waiting does not help or did not for too long.
        """
        self.failed += 1
        most = self.attempts if error.code in out_of_reach else 0
        if not most and error.code in _FEW_TIMES:
            most = min(_FEW, self.attempts)
        if self.failed >= most:
            raise error
        # Between half of the doubled wait and all of it.
        full = min(self.longest_s, self.first_s * 2.0 ** min(self.failed - 1, 30))
        return full * (0.5 + below(1 << 20, self.source) / (1 << 21))
