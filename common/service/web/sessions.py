"""Login: a token that opens a session, and the session's own secrets.

The token is 256 random bits in a file that only its owner may read. It is compared in constant
time, and wrong tokens are counted by address: after a few in a minute, no token from that address
is looked at for a while. Other addresses are not kept out, and open sessions stay open. A session
is a random cookie; the server keeps only its SHA-256, in memory, so a restart ends all sessions.
"""

from __future__ import annotations

import hashlib
import ipaddress
import secrets
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from common.errors import InputError, PolicyError
from common.files import read_private, write_new

LIFE_S = 12 * 3600.0
SIGNED_ON_S = 3600.0  # of a session by single sign-on: whom the issuer removed is out by then
MOST_SESSIONS = 32
MOST_FAILURES = 10
FAILURES_WITHIN_S = 60.0
MOST_ADDRESSES = 1000
_TOKEN_LENGTH = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A user who has logged in."""

    key: str = field(repr=False)  # the value of the cookie
    csrf: str = field(repr=False)  # what every form of this session carries
    expires: float  # on the clock of `Sessions`
    # Fingerprint of the client certificate that opened it; empty for the token.
    certificate: str = ""

    def vouches_for(self, offered: str) -> bool:
        return same(offered, secret=self.csrf)


class Sessions:
    """The sessions of one site. Threads may share it."""

    def __init__(self, token: str, *, now: Callable[[], float]) -> None:
        self._token, self._now = token, now
        self._lock = threading.Lock()
        self._open: dict[bytes, Session] = {}
        self._failures: dict[str, deque[float]] = {}  # by address, the latest last

    def login(self, offered: str, *, address: str = "") -> Session | None:
        """Open a session for the right token; PolicyError after too many wrong tokens."""
        with self._lock:
            now, caller = self._now(), _network(address)
            failures = self._failures.get(caller, deque())
            if len(failures) == MOST_FAILURES and now - failures[0] < FAILURES_WITHIN_S:
                raise PolicyError("too many wrong tokens; wait a minute and try again")
            if not same(offered, secret=self._token):
                self._count_failure(caller, now)
                return None
        return self.open()

    def _count_failure(self, caller: str, now: float) -> None:
        failures = self._failures.pop(caller, deque(maxlen=MOST_FAILURES))
        failures.append(now)
        while len(self._failures) >= MOST_ADDRESSES:
            del self._failures[next(iter(self._failures))]
        self._failures[caller] = failures

    def open(self, certificate: str = "", *, life_s: float = LIFE_S) -> Session:
        """Open a session; the oldest makes room if there are too many."""
        with self._lock:
            session = Session(
                key=secrets.token_urlsafe(32),
                csrf=secrets.token_urlsafe(32),
                expires=self._now() + life_s,
                certificate=certificate,
            )
            while len(self._open) >= MOST_SESSIONS:
                del self._open[next(iter(self._open))]
            self._open[_digest(session.key)] = session
            return session

    def find(self, key: str) -> Session | None:
        """Return the session of a cookie, if it is still open."""
        with self._lock:
            session = self._open.get(_digest(key))
            if session is not None and session.expires <= self._now():
                del self._open[_digest(key)]
                return None
            return session

    def close(self, session: Session) -> None:
        """Log out; to repeat this is harmless."""
        with self._lock:
            self._open.pop(_digest(session.key), None)


def _network(address: str) -> str:
    """Return an address, or of an IPv6 address its /64, which one holder has all of."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is None:
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return address


def same(offered: str, *, secret: str) -> bool:
    """Compare in a time that tells nothing about the secret."""
    return secrets.compare_digest(offered.encode(), secret.encode())


def token_in(path: Path) -> str:
    """Return the token in a private file, where a new token is made the first time."""
    if not path.exists():
        write_new(path, f"{secrets.token_urlsafe(32)}\n".encode(), mode=0o600)
    remedy = "delete it; a new token is made at start"
    token = read_private(path, remedy=remedy).decode("ascii", errors="replace").strip()
    if len(token) < _TOKEN_LENGTH or not token.isascii():
        raise InputError(f"{path}: not a token; {remedy}")
    return token


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()
