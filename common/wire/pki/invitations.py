"""The two files by which an owner joins a consortium: an invitation, and the application it brings.

The operator invites; the owner makes keys and applies; the operator issues a certificate. Neither
file has a secret. Each has a fingerprint of all that it says, which one side reads out to the other
by telephone: a file that was changed on its way, in whatever it says, has another fingerprint.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509

from common.crypto.identities.identity import PublicIdentity
from common.errors import InputError, located
from common.files import read
from common.schema.toml import parse_toml, read_table, text, toml_lines
from common.wire.pki import certificates
from common.wire.pki.certificates import Role, Subject
from common.wire.pki.credentials import parse_certificates, parse_request, pem

INVITATION, APPLICATION = "parley invitation 1", "parley application 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """What an owner has to know to join."""

    party: str  # the name that the owner goes by
    curator: str  # host and port of the curator
    signer: str  # the fingerprint of the identity that signs the curator's studies
    software: str  # the version of parley that the curator runs
    # The certificate of the consortium's authority, and those that go with it.
    authorities: tuple[x509.Certificate, ...]

    def __post_init__(self) -> None:
        """Refuse a name that no certificate can hold."""
        Subject(role=Role.PARTY, name=self.party)

    @property
    def authority_pem(self) -> bytes:
        """The certificates, as `authority.pem` has them."""
        return b"".join(map(pem, self.authorities))

    @property
    def fingerprint(self) -> str:
        return _fingerprint(self._entries())

    def to_toml(self) -> str:
        head = [
            f"# An invitation of {self.party} to a consortium. Nothing in it is secret.",
            "# Read it with `parley consortium accept`, and compare its fingerprint by telephone.",
        ]
        return _written(head, self._entries())

    def _entries(self) -> dict[str, str]:
        return {
            "kind": INVITATION,
            "party": self.party,
            "curator": self.curator,
            "signer": self.signer,
            "software": self.software,
            "authority": self.authority_pem.decode(),
        }

    @classmethod
    def load(cls, path: Path) -> Invitation:
        """Read an invitation; InputError, naming the file, if it is none."""
        entries = _read(path, INVITATION, ("party", "curator", "signer", "software", "authority"))
        authorities = parse_certificates(entries.pop("authority").encode(), where=path)
        with located(str(path)):
            return cls(authorities=tuple(authorities), **entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """What an operator has to know of an owner: a request for a certificate, and an identity."""

    request: x509.CertificateSigningRequest
    identity: PublicIdentity

    @property
    def party(self) -> str:
        return certificates.subject_of(self.request).name

    @property
    def fingerprint(self) -> str:
        return _fingerprint(self._entries())

    def to_toml(self) -> str:
        head = [
            f"# {self.party} applies to a consortium. Nothing in it is secret.",
            "# Read it with `parley consortium approve`, and compare its fingerprint by telephone.",
        ]
        return _written(head, self._entries())

    def _entries(self) -> dict[str, str]:
        return {
            "kind": APPLICATION,
            "identity": self.identity.text,
            "request": pem(self.request).decode(),
        }

    @classmethod
    def load(cls, path: Path) -> Application:
        """Read an application; InputError, naming the file, if it is none."""
        entries = _read(path, APPLICATION, ("identity", "request"))
        request = parse_request(entries["request"].encode(), where=path)
        with located(str(path)):
            subject = certificates.subject_of(request)
            if subject.role is not Role.PARTY:
                raise InputError(f"it asks for the certificate of a {subject.role}. Refuse it")
            return cls(request=request, identity=PublicIdentity.from_text(entries["identity"]))


def file_name(party: str, *, ending: str) -> str:
    """Return a name for a file about a party, whatever its name has in it."""
    return f"{re.sub(r'[^0-9A-Za-z_-]+', '-', party)[:40]}.{ending}"


def _written(head: list[str], entries: Mapping[str, str]) -> str:
    return "\n".join([*head, *toml_lines(entries)]) + "\n"


def _fingerprint(entries: Mapping[str, str]) -> str:
    """Return SHA-256 of what a file says; comments and the ends of lines are none of it."""
    document = "\n".join(toml_lines(entries)).encode()
    return hashlib.sha256(document).digest().hex(":").upper()


def _read(path: Path, kind: str, keys: tuple[str, ...]) -> dict[str, str]:
    with located(str(path)):
        try:
            document = parse_toml(read(path).decode("utf-8"))
        except UnicodeDecodeError:
            raise InputError("it is not UTF-8 text. Ask for the file again") from None
        if document.pop("kind", None) != kind:
            raise InputError(f"it is not a {kind.rpartition(' ')[0]}, or of a later version")
        return read_table(document, dict.fromkeys(keys, text), required=keys)
