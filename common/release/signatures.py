"""Signatures of a release: who vouches for which manifest, in what role.

Each is a small JSON file of its own, signatures/FINGERPRINT.json, so that copies of a release that
were signed in different places are put together by copying files.
"""

from __future__ import annotations

import base64
import binascii
import enum
import hashlib
import json
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature

from common.crypto.framing import frame
from common.crypto.identities.identity import SIGNATURE_BYTES, Identity, PublicIdentity
from common.errors import InputError
from common.release.manifest import strict_json

FOLDER = "signatures"
MOST_SIGNATURES = 1_000
_FORMAT = "parley release signature"
_VERSION = 1
_MOST_NAME = 100
_KEYS = {"format", "version", "role", "name", "fingerprint", "identity", "signature"}


class SignerRole(enum.StrEnum):
    """What a signature says."""

    CURATOR = "curator"  # I ran the study, and this is what came out
    OWNER = "owner"  # I made this of my own rows
    PARTY = "party"  # I took part in the study, and these are the results I saw


@dataclass(frozen=True, slots=True, kw_only=True)
class Signer:
    """A signer: name, role and key."""

    role: SignerRole
    name: str
    identity: Identity

    def sign(self, manifest: bytes) -> Signature:
        """The signature of a manifest, given as the bytes of its file."""
        made = self.identity.sign(_statement(self.role, self.name, manifest))
        return Signature(
            role=self.role, name=self.name, identity=self.identity.public, signature=made
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """A signature as it is in its file; nothing in it is believed before `require`."""

    role: SignerRole
    name: str
    identity: PublicIdentity
    signature: bytes

    @property
    def file(self) -> str:
        """Where it is kept in a release."""
        return f"{FOLDER}/{self.identity.fingerprint}.json"

    def require(self, manifest: bytes) -> None:
        """Raise InputError unless this identity signed the manifest in this role and name."""
        try:
            self.identity.verify(self.signature, message=_statement(self.role, self.name, manifest))
        except InvalidSignature:
            raise InputError(
                f"{self.file}: {self.role.value} {self.name!r} did not sign this manifest"
            ) from None

    def to_bytes(self) -> bytes:
        document = {
            "format": _FORMAT,
            "version": _VERSION,
            "role": self.role.value,
            "name": self.name,
            "fingerprint": self.identity.fingerprint,
            "identity": self.identity.text,
            "signature": base64.b64encode(self.signature).decode(),
        }
        return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()

    @classmethod
    def from_bytes(cls, data: bytes, file: str) -> Signature:
        """A signature read back from the file of that name; InputError if it is none."""
        document = strict_json(data, file)
        if set(document) != _KEYS or (document["format"], document["version"]) != (
            _FORMAT,
            _VERSION,
        ):
            raise InputError(f"{file}: not a {_FORMAT} of version {_VERSION}")
        try:
            found = cls(
                role=SignerRole(document["role"]),
                name=str(document["name"]),
                identity=PublicIdentity(base64.b64decode(document["identity"], validate=True)),
                signature=base64.b64decode(document["signature"], validate=True),
            )
        except (binascii.Error, TypeError, ValueError, InputError) as error:
            raise InputError(f"{file}: not a signature: {error}") from None
        if found.file != file or document["fingerprint"] != found.identity.fingerprint:
            raise InputError(f"{file}: the identity in it has another fingerprint")
        if not 0 < len(found.name) <= _MOST_NAME or not found.name.isprintable():
            raise InputError(f"{file}: a name has 1 to {_MOST_NAME} printable characters")
        if len(found.signature) != SIGNATURE_BYTES:
            raise InputError(f"{file}: a signature has {SIGNATURE_BYTES} bytes")
        return found


def _statement(role: SignerRole, name: str, manifest: bytes) -> bytes:
    """The bytes that are signed. They can be taken for nothing else that is ever signed."""
    return frame((f"{_FORMAT} {_VERSION}", role.value, name, hashlib.sha256(manifest).digest()))
