"""The open connections of the curator's port: how many there are, whose, and which are closed.

gRPC tells a server whose a call is, and nothing of connections. It closes one that makes no call
for a while (`common.wire.tls`); the rest is done here. Every few seconds the sockets of this
process are looked at. Of each party only so many connections stay, the ones that made a call last.
Those of a revoked certificate are closed and, while most places are taken, those that never made a
call. A socket that is shut down looks to gRPC as if the peer had hung up.

Where a process cannot list its files (`/dev/fd`), only gRPC's own limits hold.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import stat
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from common.service.metrics import Sample, gauge
from common.service.process import Monotonic
from common.wire.catalogue import ErrorCode, WireError
from common.wire.pki.peers import Peer, Revocations

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 5.0
MOST_OF_A_PARTY = 64  # a node has one for each seat, and a few
_CROWDED = 0.8
_FILES = Path("/dev/fd")
_MAPPED = "::ffff:"  # before an address of IPv4 on a socket of IPv6

Address = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How many connections there may be: of all parties, of one, and files of this process."""

    connections: int
    files: int

    @property
    def of_a_party(self) -> int:
        return max(1, min(MOST_OF_A_PARTY, self.connections // 8))


class Connections:
    """The connections of one port. Threads may share it; one thread looks."""

    def __init__(
        self, room: Room, revocations: Revocations, *, monotonic: Monotonic = time.monotonic
    ) -> None:
        self._room, self._revocations, self._monotonic = room, revocations, monotonic
        self._lock = threading.Lock()
        self._callers: dict[Address, tuple[Peer, float]] = {}
        self._refused: set[Address] = set()
        self._silent: frozenset[Address] = frozenset()
        self._due = 0.0
        self._crowded = False
        self.port = 0
        self.open = self.files = 0  # at the last look

    def called(self, peer: Peer, where: str) -> None:
        """Note whose a connection is; `where` is gRPC's name of its other end."""
        with self._lock:
            self._callers[_address(where)] = (peer, self._monotonic())

    def refused(self, where: str) -> None:
        """Have a connection closed that showed a certificate which is not taken."""
        with self._lock:
            self._refused.add(_address(where))

    def look(self) -> None:
        """Count connections, and close those there must not be; a watchdog calls this often."""
        now = self._monotonic()
        if now < self._due:
            return
        self._due = now + LOOK_EVERY_S
        files, sockets = _listed(self.port)
        self.open, self.files = len(sockets), files
        crowded = max(self.open / self._room.connections, files / self._room.files) >= _CROWDED
        if crowded and not self._crowded:
            logger.warning(
                "%d of %d connections and %d of %d files are in use. Raise the limit of open files "
                "(`ulimit -n`), and look for a party with many connections",
                self.open, self._room.connections, files, self._room.files,
            )  # fmt: skip
        self._crowded = crowded
        with self._lock:
            unwanted = self._unwanted(frozenset(sockets), since=now)
        for address in unwanted:
            if address in sockets:
                _shut_down(sockets[address], self.port, address)

    def _unwanted(self, addresses: frozenset[Address], *, since: float) -> set[Address]:
        # A connection that was opened while the others were listed is not among them yet.
        self._callers = {
            where: call
            for where, call in self._callers.items()
            if where in addresses or call[1] >= since
        }
        self._refused &= addresses
        silent = addresses - self._callers.keys()
        closed = self._refused | self._revoked() | self._surplus()
        if self._crowded:
            closed |= silent & self._silent  # it had time for a call
        self._silent = silent
        return closed

    def _revoked(self) -> set[Address]:
        closed = set()
        for where, (peer, _) in self._callers.items():
            try:
                self._revocations.refuse(peer.fingerprint)
            except WireError as error:
                if error.code is ErrorCode.CERTIFICATE_REVOKED:
                    closed.add(where)
        return closed

    def _surplus(self) -> set[Address]:
        by_party: dict[str, list[tuple[float, Address]]] = defaultdict(list)
        for where, (peer, called) in self._callers.items():
            by_party[peer.name].append((called, where))
        closed: set[Address] = set()
        for name, connections in by_party.items():
            surplus = sorted(connections, reverse=True)[self._room.of_a_party :]
            if surplus:
                logger.warning(
                    "party %s has %d connections, and %d are closed: more than %d are not needed",
                    name, len(connections), len(surplus), self._room.of_a_party,
                )  # fmt: skip
            closed.update(where for _, where in surplus)
        return closed

    def samples(self) -> Iterable[Sample]:
        """Yield what a process of few files should be watched for."""
        yield gauge("parley_curator_connections", self.open, "Open connections.")
        yield gauge(
            "parley_curator_connections_limit", self._room.connections,
            "Connections that can be open at a time.",
        )  # fmt: skip
        yield gauge("parley_curator_open_files", self.files, "Open files and connections.")
        yield gauge(
            "parley_curator_open_files_limit", self._room.files,
            "Files and connections that this process may have open.",
        )  # fmt: skip


def _address(where: str) -> Address:
    """Read gRPC's name of a peer, such as `ipv4:192.0.2.1:7443` or `ipv6:%5B::1%5D:7443`."""
    host, _, port = unquote(where).partition(":")[2].rpartition(":")
    return host.strip("[]"), int(port) if port.isdecimal() else 0


def _listed(port: int) -> tuple[int, Mapping[Address, int]]:
    """Return how many files are open, and the connections of a port with their descriptors."""
    try:
        descriptors = [int(file.name) for file in _FILES.iterdir()]
    except OSError:
        return 0, {}
    sockets: dict[Address, int] = {}
    for descriptor in descriptors:
        with _connection(descriptor, port) as opened:
            if opened is not None:
                sockets[opened[1]] = descriptor
    return len(descriptors), sockets


def _shut_down(descriptor: int, port: int, address: Address) -> None:
    """Hang up, if the descriptor still is that connection."""
    with _connection(descriptor, port) as opened:
        if opened is not None and opened[1] == address:
            with contextlib.suppress(OSError):
                opened[0].shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def _connection(descriptor: int, port: int) -> Iterator[tuple[socket.socket, Address] | None]:
    """Open a connection of a port by its descriptor; None if it is something else.

    gRPC may close the descriptor at any moment, and the system may give its number to another file.
    The copy that is looked at here stays what it is. Of a file there is no copy: to close one would
    let go of all locks that this process has on the file, those of the store among them.
    """
    with contextlib.ExitStack() as opened:
        try:
            if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                raise OSError
            copy = os.dup(descriptor)
            opened.callback(os.close, copy)
            if not stat.S_ISSOCK(os.fstat(copy).st_mode):
                raise OSError
            line = socket.socket(fileno=os.dup(copy))
            opened.callback(line.close)
            here, there = line.getsockname(), line.getpeername()
            if line.family not in (socket.AF_INET, socket.AF_INET6) or here[1] != port:
                raise OSError
        except OSError:
            yield None
            return
        yield line, (there[0].removeprefix(_MAPPED), there[1])
