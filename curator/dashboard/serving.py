"""The dashboard behind an address: TLS, token and operators; it starts and stops with the service.

On a loopback address it speaks plain HTTP, for a browser on the same machine or at the end of a
tunnel. On any other address, or when operators log in by certificate, it speaks TLS 1.3 with the
curator's own certificate.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import logging
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography import x509

from common.errors import InputError
from common.service.database import Database
from common.service.web.server import WebServer
from common.service.web.sessions import Sessions, token_in
from common.service.web.site import LOOPBACK, Site
from common.wire.catalogue import WireError
from common.wire.pki import certificates
from common.wire.pki.certificates import Role, subject_of
from common.wire.pki.credentials import CredentialFiles, Credentials, Followed
from common.wire.pki.peers import Revocations, listed_in
from curator.dashboard.sign_on import SignOn
from curator.dashboard.site import Dashboard, WatchedService
from curator.settings import STORE, CuratorSettings
from curator.store.reader import StoreReader

logger = logging.getLogger(__name__)


class Operators:
    """Client certificates of the consortium that may log in: listed, and not revoked.

    The list has SHA-256 fingerprints, one per line, and is read again for every visitor.
    """

    def __init__(
        self, path: Path | None, revocations: Revocations, clock: Callable[[], dt.datetime]
    ) -> None:
        self._path, self._revocations, self._clock = path, revocations, clock
        if path is not None:
            listed_in(path)  # refuses a list that cannot be read before it is relied on

    def holder_of(self, certificate: bytes) -> str | None:
        """Return the fingerprint of a certificate that may log in; TLS has verified it."""
        try:
            holder = x509.load_der_x509_certificate(certificate)
            certificates.verify_holder(holder, role=Role.PARTY, at=self._clock())
        except (ValueError, WireError):
            return None
        fingerprint = certificates.fingerprint(holder)
        return fingerprint if self.admits(fingerprint) else None

    def admits(self, fingerprint: str) -> bool:
        """Return whether the certificate is on the list, and not revoked."""
        if self._path is None:
            return False
        try:
            self._revocations.refuse(fingerprint)
            return fingerprint in listed_in(self._path)
        except (InputError, WireError) as error:
            logger.warning("a certificate was not let in: %s", error)
            return False


def browser_tls(files: CredentialFiles) -> Callable[[], ssl.SSLContext]:
    """Return what makes the TLS 1.3 context of this moment; InputError if there can be none now."""

    def context_of(credentials: Credentials) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        try:
            context.load_cert_chain(files.certificate, files.key)
            context.load_verify_locations(cadata=credentials.authority_pem.decode("ascii"))
        except (OSError, ValueError) as error:
            raise InputError(f"{files.key}: cannot be used for TLS: {error}") from error
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    return Followed(files, context_of).latest


def speaks_tls(settings: CuratorSettings) -> bool:
    """Return whether the dashboard is reached from other machines, or shown certificates."""
    return settings.dashboard_operators is not None or not _is_loopback(_host(settings))


def _host(settings: CuratorSettings) -> str:
    return settings.dashboard_listen.rpartition(":")[0].strip("[]")


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@contextmanager
def serving_dashboard(service: WatchedService) -> Iterator[None]:
    """Serve the dashboard for the length of a block, if the settings ask for it."""
    settings, listen = service.settings, service.settings.dashboard_listen
    if not settings.dashboard:
        yield
        return
    secure, token = speaks_tls(settings), settings.folder / "dashboard.token"
    named = subject_of(service.files.load().certificate).hosts if secure else ()
    revocations = Revocations(settings.keys / "revoked.txt")
    operators = Operators(settings.dashboard_operators, revocations, service.clock)
    with Database(settings.folder / STORE, read_only=True) as database:
        dashboard = Dashboard(service, StoreReader(database))
        oidc = settings.oidc
        site = Site(
            title="Parley curator",
            hosts=[*LOOPBACK, *named, _host(settings)],
            sessions=Sessions(token_in(token), now=time.monotonic),
            routes=dashboard.routes(),
            assets=dashboard.assets(),
            secure=secure,
            holder_of=operators.holder_of,
            admits=operators.admits,
            sign_on=None if oidc is None else SignOn(oidc, now=time.monotonic),
        )
        tls = browser_tls(service.files) if secure else None
        server = WebServer(listen, site, name="dashboard", tls=tls)
        site.at_port(server.port)
        with server.running() as port:
            logger.info(
                "dashboard on %s://%s:%s/ (token in %s)",
                "https" if secure else "http", listen.rpartition(":")[0], port, token,
            )  # fmt: skip
            yield
