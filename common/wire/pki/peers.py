"""The party that makes a call: the name in the certificate that TLS verified, unless it is revoked.

TLS has checked that an authority we trust issued the certificate and that the caller holds its key.
What it cannot know is checked here, at every call: TLS 1.3 was spoken, the certificate is a
party's, it is still valid (a connection may outlive it), and it is not on the revocation list.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cryptography import x509

from common.errors import InputError
from common.files import read, version_of
from common.wire.catalogue import ErrorCode, WireError
from common.wire.pki import certificates
from common.wire.pki.certificates import Role

_FINGERPRINT = re.compile(r"(?:[0-9A-F]{2}:){31}[0-9A-F]{2}")
HEADER = "# Revoked certificates: SHA-256 fingerprints, one per line; read again when it changes.\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A verified party."""

    name: str
    fingerprint: str

    def require_name(self, claimed: str) -> None:
        """Raise NAME_MISMATCH unless the caller goes by the name in its certificate."""
        if claimed != self.name:
            detail = f"the certificate of {self.name!r} was used for {claimed!r}"
            raise WireError(ErrorCode.NAME_MISMATCH, detail)


class Revocations:
    """The revocation list in a file, read again whenever it changes.

    A list that cannot be read refuses every peer: a certificate that was revoked must not come back
    because a file is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: object = None
        self._revoked: frozenset[str] = frozenset()

    def refuse(self, fingerprint: str) -> None:
        """Raise CERTIFICATE_REVOKED for a listed one, INTERNAL if the list cannot be read."""
        try:
            version = version_of(self._path)
            if version is None or version != self._read:
                self._revoked = parse_revocations(self._path.read_text("utf-8"), self._path)
                self._read = version
        except (OSError, UnicodeDecodeError, InputError) as error:
            raise WireError(ErrorCode.INTERNAL, f"the revocation list: {error}") from error
        if fingerprint in self._revoked:
            raise WireError(ErrorCode.CERTIFICATE_REVOKED, fingerprint)


def parse_revocations(text: str, where: Path) -> frozenset[str]:
    """Return the fingerprints in a list; InputError for anything else but comments."""
    revoked = set()
    for number, line in enumerate(text.splitlines(), start=1):
        entry = line.partition("#")[0].strip().upper()
        if not entry:
            continue
        if not _FINGERPRINT.fullmatch(entry):
            raise InputError(f"{where}, line {number}: not a SHA-256 fingerprint: {entry[:40]}")
        revoked.add(entry)
    return frozenset(revoked)


def listed_in(path: Path) -> frozenset[str]:
    return parse_revocations(read(path).decode("utf-8", "replace"), path)


def identify(
    properties: Mapping[str, Iterable[bytes]], revocations: Revocations, *, at: datetime
) -> Peer:
    """Return the party that makes a call, by the properties that gRPC knows of its connection.

    Raises:
        WireError: CERTIFICATE_MISSING, _UNTRUSTED, _EXPIRED or _REVOKED, or VERSION_MISMATCH.
    """
    version = _only(properties, "ssl_tls_version")
    if version != b"TLSv1.3":
        raise WireError(ErrorCode.VERSION_MISMATCH, f"TLS 1.3 is needed, not {version!r}")
    encoded = _only(properties, "x509_pem_cert")
    if encoded is None:
        raise WireError(ErrorCode.CERTIFICATE_MISSING)
    try:
        certificate, fingerprint = _parsed(encoded)
    except ValueError as error:
        raise WireError(ErrorCode.CERTIFICATE_UNTRUSTED, "unreadable") from error
    subject = certificates.verify_holder(certificate, role=Role.PARTY, at=at)
    revocations.refuse(fingerprint)
    return Peer(name=subject.name, fingerprint=fingerprint)


@functools.lru_cache(maxsize=1024)
def _parsed(encoded: bytes) -> tuple[x509.Certificate, str]:
    """Return a certificate and its fingerprint; kept, because a node shows it at every call."""
    certificate = x509.load_pem_x509_certificate(encoded)
    return certificate, certificates.fingerprint(certificate)


def _only(properties: Mapping[str, Iterable[bytes]], name: str) -> bytes | None:
    values = list(properties.get(name, ()))
    return values[0] if len(values) == 1 else None
