"""A key, its certificate and the authority, as read from files and checked against each other."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Generic, TypeVar

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from common.crypto.key_files import AskPassphrase, no_passphrase
from common.errors import InputError, located
from common.files import read, read_private_key, version_of
from common.privacy.secret import Secret
from common.wire.pki import certificates
from common.wire.pki.certificates import Role, Subject, expiry_warning

logger = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What one side of a connection shows, and whom it trusts. The key is never printed."""

    key_pem: Secret[bytes]
    chain_pem: bytes
    authority_pem: bytes
    certificate: x509.Certificate
    authorities: Sequence[x509.Certificate]

    def check(self, *, role: Role, at: datetime) -> Subject:
        """Return who we are; WireError if the other side would not accept the certificate."""
        return certificates.verify(self.certificate, self.authorities, role=role, at=at)


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialFiles:
    """The files of credentials."""

    key: Path
    certificate: Path
    authority: Path

    @classmethod
    def in_folder(cls, folder: Path, role: Role) -> CredentialFiles:
        """Name the files as `parley keys` does."""
        return cls(
            key=folder / f"{role}.key",
            certificate=folder / f"{role}.pem",
            authority=folder / "authority.pem",
        )

    def load(self) -> Credentials:
        """Read the files; InputError if one is unreadable or not private, or they do not fit."""
        key_pem = read_private_key(self.key)
        chain_pem, authority_pem = read(self.certificate), read(self.authority)
        chain = parse_certificates(chain_pem, where=self.certificate)
        key = parse_key(key_pem, where=self.key)
        if key.public_key() != chain[0].public_key():
            raise InputError(
                f"{self.key}: not the key of the certificate {self.certificate}. If a rotation was "
                "interrupted, run `parley keys accept` again"
            )
        return Credentials(
            key_pem=Secret(key_pem),
            chain_pem=chain_pem,
            authority_pem=authority_pem,
            certificate=chain[0],
            authorities=parse_certificates(authority_pem, where=self.authority),
        )

    def state(self) -> tuple[object, ...]:
        """Return a value that changes whenever one of the files is replaced."""
        return tuple(map(version_of, (self.key, self.certificate, self.authority)))


class Followed(Generic[T]):
    """Something made of a server's credentials, made again when their files are replaced.

    Raises:
        InputError: the files cannot be used now. Later on, the last good ones stay in use.
    """

    def __init__(self, files: CredentialFiles, make: Callable[[Credentials], T]) -> None:
        self._files, self._make = files, make
        self._lock = threading.Lock()
        self._state = self._complained = files.state()
        self.current = make(files.load())

    def fresh(self) -> T | None:
        """Return what is made of replaced files; None if the current one stays in use."""
        state = self._files.state()
        if state == self._state:
            return None
        try:
            self.current = self._make(self._files.load())
        except InputError as error:
            # Two files are replaced one after the other; in between they do not fit.
            if state != self._complained:  # a line for every handshake would be too many
                logger.warning("keeping the certificates in use: %s", error)
            self._complained = state
            return None
        self._state = state
        logger.info("certificates reloaded from %s", self._files.certificate)
        return self.current

    def latest(self) -> T:
        """Return what is made of the files of this moment, in any thread."""
        with self._lock:
            self.fresh()
            return self.current


class ExpiryWatch:
    """Warns in the log, once a day, from 30 days before a certificate ends.

    A service runs for longer than that; the operator who starts it has seen the first day.
    """

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._looked = clock()

    def look(self, files: CredentialFiles) -> None:
        """Look at the certificate in use, if that was not done today."""
        now = self._clock()
        if abs(now - self._looked) < timedelta(days=1):
            return
        self._looked = now
        try:
            warning = expiry_warning(files.load().certificate, at=now)
        except InputError as error:  # the one in use stays in use
            warning = str(error)
        if warning is not None:
            logger.warning("%s", warning)


def parse_certificates(data: bytes, *, where: Path) -> list[x509.Certificate]:
    """Return the certificates in a PEM file: at least one, the holder's first."""
    try:
        return x509.load_pem_x509_certificates(data)
    except (ValueError, x509.InvalidVersion):
        raise InputError(f"{where}: not a certificate in PEM form") from None


def parse_request(data: bytes, *, where: Path) -> x509.CertificateSigningRequest:
    try:
        return x509.load_pem_x509_csr(data)
    except (ValueError, x509.InvalidVersion):
        raise InputError(f"{where}: not a certificate request in PEM form") from None


def parse_key(
    data: bytes, *, where: Path, passphrase: AskPassphrase = no_passphrase
) -> ec.EllipticCurvePrivateKey:
    sealed = b"ENCRYPTED" in data
    try:
        with located(str(where)):
            password = passphrase().encode() if sealed else None
        key = serialization.load_pem_private_key(data, password=password)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # Without the cause: nothing of a private key belongs into an error's trace.
        wrong = "the passphrase is wrong, or it is damaged" if sealed else "not a PEM private key"
        raise InputError(f"{where}: {wrong}") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise InputError(f"{where}: not an elliptic-curve key. Make one with `parley keys init`")
    return key


def pem(item: x509.Certificate | x509.CertificateSigningRequest) -> bytes:
    return item.public_bytes(serialization.Encoding.PEM)


def key_pem(key: ec.EllipticCurvePrivateKey, *, passphrase: str | None = None) -> bytes:
    """Write a private key; without a passphrase only the file's mode protects it."""
    if passphrase == "":
        raise InputError("an empty passphrase protects nothing")
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption()
        if passphrase is None
        else serialization.BestAvailableEncryption(passphrase.encode()),
    )
