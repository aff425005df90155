"""TLS for browsers, with the consortium's certificates, which are read again when they change."""

from __future__ import annotations

import logging
import ssl
import threading

from common.errors import InputError
from common.service.log_limits import RateLimit
from common.wire.pki.credentials import CredentialFiles

logger = logging.getLogger(__name__)
logger.addFilter(RateLimit(per_second=1))  # a line for every handshake would be too many


class BrowserTls:
    """Gives the context of this moment; TLS 1.3 only.

    Raises:
        InputError: the files cannot be used now. Later on, the last good ones stay in use.
    """

    def __init__(self, files: CredentialFiles) -> None:
        self._files = files
        self._lock = threading.Lock()
        self._state, self._context = files.state(), _context(files)

    def __call__(self) -> ssl.SSLContext:
        """The context for the next handshake."""
        with self._lock:
            state = self._files.state()
            if state != self._state:
                try:
                    self._context = _context(self._files)
                    self._state = state
                except InputError as error:  # files are replaced one after the other
                    logger.warning("keeping the certificates in use: %s", error)
            return self._context


def _context(files: CredentialFiles) -> ssl.SSLContext:
    credentials = files.load()  # says what is wrong with them, better than OpenSSL would
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_cert_chain(files.certificate, files.key)
        context.load_verify_locations(cadata=credentials.authority_pem.decode("ascii"))
    except (OSError, ValueError) as error:
        raise InputError(f"{files.certificate}: cannot be used for TLS: {error}") from error
    context.verify_mode = ssl.CERT_OPTIONAL
    return context
