"""The folder of keys and certificates of a curator or of a party.

At the curator:                          At a party:
    authority.key   the authority's key      party.key       its key for connections
    authority.pem   its certificate          party.csr       the request for the curator
    curator.key     the server's key         party.pem       the certificate, once approved
    curator.pem     its certificate          authority.pem   the consortium's authority
    identity.key    what signs               identity.key    what signs, opens and masks in studies
    identity.pub    its public half          identity.pub    its public half, for the study
    revoked.txt     fingerprints
    issued/         every certificate

Private keys are made where they are used, have mode 0600, and leave the folder in no operation. The
authority's key and the identity may be under a passphrase as well; the keys for connections never
are, so that a service can start by itself. No file is overwritten but by a rotation or a change of
passphrase, and each is written whole or not at all. A rotation puts the new key beside the old one
(`.next.key`) until its certificate is there; the old certificate stays valid until it expires, so
nothing has to happen at the same moment on two machines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from common.crypto.identities.identity import Identity, PublicIdentity
from common.crypto.key_files import (
    AskPassphrase,
    identity_bytes,
    load_identity,
    no_passphrase,
    save_identity,
)
from common.errors import InputError
from common.files import flush, read, read_private_key, replace, write_new
from common.privacy.randomness import OsRandomSource
from common.wire.catalogue import WireError
from common.wire.pki import certificates, peers
from common.wire.pki.certificates import Role, Subject
from common.wire.pki.credentials import (
    CredentialFiles,
    key_pem,
    parse_certificates,
    parse_key,
    parse_request,
    pem,
)

AUTHORITY_DAYS = 3650
CERTIFICATE_DAYS = 365
_IDENTITY, _PUBLIC_IDENTITY = "identity.key", "identity.pub"
_CLOCKS_DIFFER = timedelta(hours=1)  # a new certificate is valid for a peer whose clock is behind


@dataclass(frozen=True, slots=True)
class Keyring:
    """One folder, of one role."""

    folder: Path
    role: Role

    @classmethod
    def open(cls, folder: Path) -> Keyring:
        """Return the keyring in a folder; InputError if there is none."""
        for role in Role:
            if (folder / f"{role}.key").exists():
                return cls(folder, role)
        raise InputError(f"{folder}: there are no keys here. Make some with `parley keys init`")

    @property
    def files(self) -> CredentialFiles:
        return CredentialFiles.in_folder(self.folder, self.role)

    @property
    def revoked(self) -> Path:
        return self.folder / "revoked.txt"

    @property
    def identity(self) -> Path:
        """What signs: studies and releases at a curator, everything in studies at a party."""
        return self.folder / _IDENTITY

    @property
    def public_identity(self) -> Path:
        return self.folder / _PUBLIC_IDENTITY

    @property
    def _authority_key(self) -> Path:
        return self.folder / "authority.key"

    @property
    def _next_key(self) -> Path:
        return self.folder / f"{self.role}.next.key"

    @property
    def request(self) -> Path:
        """The request that waits for approval: the rotation's, if one is under way."""
        return self.folder / f"{self.role}.{'next.' if self._next_key.exists() else ''}csr"

    @property
    def is_authority(self) -> bool:
        """Whether certificates can be issued here."""
        return self._authority_key.exists()

    def certificate(self) -> x509.Certificate | None:
        """Return the certificate in use, if there is one yet."""
        return _first(self.files.certificate)

    def authority(self) -> x509.Certificate | None:
        """Return the consortium's authority, if it is known here yet."""
        return _first(self.files.authority)

    def issued(self) -> list[x509.Certificate]:
        """List the certificates issued here, by the holder's name."""
        paths = (self.folder / "issued").glob("*.pem")
        listed = [parse_certificates(read(path), where=path)[0] for path in sorted(paths)]
        return sorted(listed, key=lambda one: certificates.subject_of(one).name)

    def read_request(self) -> x509.CertificateSigningRequest:
        return parse_request(read(self.request), where=self.request)

    def approve(
        self,
        request: x509.CertificateSigningRequest,
        *,
        days: int,
        now: datetime,
        passphrase: AskPassphrase = no_passphrase,
    ) -> tuple[x509.Certificate, Path]:
        """Issue a certificate for a request, and keep a copy; only where the authority's key is."""
        authority = self.authority()
        if not self.is_authority or authority is None:
            raise InputError(f"{self.folder}: the authority's key is not here")
        certificate = certificates.issue(
            request,
            authority=authority,
            authority_key=self._read_authority_key(passphrase),
            first=now - _CLOCKS_DIFFER,
            last=min(now + timedelta(days=days), authority.not_valid_after_utc),
        )
        name = re.sub(r"\W+", "-", certificates.subject_of(request).name)[:40]
        path = self.folder / "issued" / f"{name}-{certificate.serial_number:x}.pem"
        path.parent.mkdir(exist_ok=True)
        write_new(path, pem(certificate))
        return certificate, path

    def _read_authority_key(self, passphrase: AskPassphrase) -> ec.EllipticCurvePrivateKey:
        path = self._authority_key
        return parse_key(read_private_key(path), where=path, passphrase=passphrase)

    def protect(self, *, old: AskPassphrase, new: str | None) -> list[Path]:
        """Put the identity and the authority's key under another passphrase, or under none.

        The key for connections has none: a service reads it whenever it connects.
        """
        content = {}
        if self.identity.exists():
            identity = load_identity(self.identity, passphrase=old)
            content[self.identity] = identity_bytes(identity, passphrase=new)
        if self.is_authority:
            content[self._authority_key] = key_pem(self._read_authority_key(old), passphrase=new)
        for path, data in content.items():  # all of them could be opened
            replace(path, data, mode=0o600)
        return list(content)

    def rotate(
        self, *, now: datetime, passphrase: AskPassphrase = no_passphrase
    ) -> x509.Certificate | None:
        """Make a new key; return its certificate, or None if another authority must issue it."""
        current = self.certificate()
        if current is None:
            raise InputError(f"{self.files.certificate}: there is no certificate to rotate yet")
        if not self._next_key.exists():  # else a rotation is under way: go on with its key
            write_new(self._next_key, key_pem(certificates.new_key()), mode=0o600)
        key = parse_key(read_private_key(self._next_key), where=self._next_key)
        request = certificates.make_request(key, certificates.subject_of(current))
        replace(self.request, pem(request))
        if not self.is_authority:
            return None
        certificate, path = self.approve(
            request, days=CERTIFICATE_DAYS, now=now, passphrase=passphrase
        )
        self.accept(read(path), where=path, now=now)
        return certificate

    def accept(self, chain: bytes, *, where: Path, now: datetime) -> x509.Certificate:
        """Take a certificate for a key of ours into use; after an interruption, repeat it."""
        certificate = parse_certificates(chain, where=where)[0]
        authorities = parse_certificates(read(self.files.authority), where=self.files.authority)
        try:
            certificates.verify(certificate, authorities, role=self.role, at=now)
        except WireError as error:
            raise InputError(f"{where}: {error}") from error
        public = certificate.public_key()
        for path in (self._next_key, self.files.key):
            if path.exists() and parse_key(read(path), where=path).public_key() == public:
                break
        else:
            raise InputError(f"{where}: no key in {self.folder} belongs to this certificate")
        request = self.request
        replace(self.files.certificate, chain)
        if path == self._next_key:
            path.replace(self.files.key)
        request.unlink(missing_ok=True)
        flush(self.folder)
        return certificate

    def trust(self, data: bytes, *, where: Path) -> None:
        """Take over the consortium's authority, once."""
        parse_certificates(data, where=where)
        if not self.files.authority.exists():
            write_new(self.files.authority, data)
        elif read(self.files.authority) != data:
            raise InputError(
                f"{self.files.authority}: another authority than {where}. If the consortium really "
                "has a new one, move the old file away first"
            )

    def revoke(self, fingerprint: str, *, reason: str) -> bool:
        """Put a certificate on the revocation list; return False if it is there already."""
        text = (
            read(self.revoked).decode(errors="replace") if self.revoked.exists() else peers.HEADER
        )
        if fingerprint in peers.parse_revocations(text, self.revoked):
            return False
        line = f"{fingerprint}  # {reason}"
        text += line.rstrip("# ") + "\n"
        if fingerprint not in peers.parse_revocations(text, self.revoked):
            raise InputError(f"{fingerprint!r}: not a SHA-256 fingerprint")
        replace(self.revoked, text.encode())
        return True


def init_curator(
    folder: Path,
    name: str,
    hosts: tuple[str, ...],
    *,
    now: datetime,
    external: bool,
    passphrase: str | None = None,
) -> Keyring:
    """Make the curator's keys: with an authority of its own, or for an existing one to certify.

    A passphrase protects the authority's key and the identity, on top of their mode.
    """
    ring = _new_ring(folder, Subject(role=Role.CURATOR, name=name, hosts=hosts))
    write_new(ring.revoked, peers.HEADER.encode())
    init_identity(folder, passphrase=passphrase)
    if external:
        return ring
    key = certificates.new_key()
    authority = certificates.make_authority(
        key,
        f"{name} consortium",
        first=now - _CLOCKS_DIFFER,
        last=now + timedelta(days=AUTHORITY_DAYS),
    )
    write_new(folder / "authority.key", key_pem(key, passphrase=passphrase), mode=0o600)
    write_new(ring.files.authority, pem(authority))
    _, path = ring.approve(
        ring.read_request(), days=CERTIFICATE_DAYS, now=now, passphrase=lambda: passphrase or ""
    )
    ring.accept(read(path), where=path, now=now)
    return ring


def init_party(folder: Path, name: str, *, passphrase: str | None = None) -> Keyring:
    """Make a party's keys, its identity (under a passphrase, if there is one), and the request."""
    ring = _new_ring(folder, Subject(role=Role.PARTY, name=name))
    init_identity(folder, passphrase=passphrase)
    return ring


def init_identity(folder: Path, *, passphrase: str | None = None) -> PublicIdentity:
    """Make an identity in a folder, with its public half beside it."""
    identity = Identity.generate(OsRandomSource())
    save_identity(folder / _IDENTITY, identity, passphrase=passphrase)
    write_new(folder / _PUBLIC_IDENTITY, f"{identity.public.text}\n".encode())
    return identity.public


def _new_ring(folder: Path, subject: Subject) -> Keyring:
    ring = Keyring(folder, subject.role)
    key = certificates.new_key()
    request = certificates.make_request(key, subject)  # refuses bad names before any file is made
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        files = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise InputError(f"{folder}: cannot be used: {error.strerror}") from error
    if files:
        raise InputError(
            f"{folder}: not empty ({files[0]}). Keys are made in a folder of their own"
        )
    folder.chmod(0o700)
    write_new(ring.files.key, key_pem(key), mode=0o600)
    write_new(ring.request, pem(request))
    return ring


def _first(path: Path) -> x509.Certificate | None:
    """Read the certificate in a file, if it is there yet."""
    return parse_certificates(read(path), where=path)[0] if path.exists() else None
