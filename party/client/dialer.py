"""Connections to the curator: dialled, kept count of, and hung up together.

Credentials are read when a connection is made, so a rotated certificate is used from the next
connection on.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import grpc

from common.wire import tls
from common.wire.pki.certificates import Role
from common.wire.pki.credentials import CredentialFiles, ExpiryWatch
from party.client.connection import Connection, HungUpError


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where the curator is, and how to get there."""

    target: str
    proxy: str | None  # the proxy to ask for the way; None to dial directly
    files: CredentialFiles  # what we show, and whom we trust
    software: str  # what to tell the curator we are

    @property
    def words(self) -> str:
        """For people; not the proxy's own address, which may hold a password."""
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
        """A connection, for the length of a block.

        Raises:
            InputError: a key or certificate cannot be read.
            WireError: CERTIFICATE_EXPIRED or CERTIFICATE_UNTRUSTED, said by our own certificate
                before anything is dialled.
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
