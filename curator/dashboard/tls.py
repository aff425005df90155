"""TLS for browsers, with the consortium's certificates, which are read again when they change."""

from __future__ import annotations

import ssl
import threading

from common.errors import InputError
from common.wire.pki.credentials import CredentialFiles, Credentials, Followed


class BrowserTls:
    """Gives the context of this moment; TLS 1.3 only. InputError if there can be none now."""

    def __init__(self, files: CredentialFiles) -> None:
        self._files = files
        self._lock = threading.Lock()
        self._followed = Followed(files, self._context)

    def __call__(self) -> ssl.SSLContext:
        with self._lock:
            self._followed.fresh()
            return self._followed.current

    def _context(self, credentials: Credentials) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        try:
            context.load_cert_chain(self._files.certificate, self._files.key)
            context.load_verify_locations(cadata=credentials.authority_pem.decode("ascii"))
        except (OSError, ValueError) as error:
            raise InputError(f"{self._files.key}: cannot be used for TLS: {error}") from error
        context.verify_mode = ssl.CERT_OPTIONAL
        return context
