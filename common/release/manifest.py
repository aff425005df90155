"""What a release consists of, and who signed that: manifest.json and the folder of signatures.

The manifest lists every file by size and SHA-256, and names the study. The bytes of manifest.json
are signed as they are, so signers need not agree on a normal form. Each signature is a JSON file of
its own, signatures/FINGERPRINT.json: copies of a release that were signed in different places are
put together by copying files.
"""

from __future__ import annotations

import base64
import binascii
import enum
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from cryptography.exceptions import InvalidSignature

from common.crypto.framing import frame
from common.crypto.identities.identity import SIGNATURE_BYTES, Identity, PublicIdentity
from common.errors import InputError

MANIFEST = "manifest.json"
FOLDER = "signatures"
MOST_FILES = 100
MOST_SIGNATURES = 1_000
MOST_JSON_BYTES = 1 << 20  # of a manifest or a signature
_MANIFEST_FORMAT = "parley release manifest"
_SIGNATURE_FORMAT = "parley release signature"
_VERSION = 1  # of both formats
_MOST_NAME = 100
_PIECE = 1 << 20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_KEYS = {"format", "version", "role", "name", "fingerprint", "identity", "signature"}


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file as the manifest knows it."""

    sha256: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The list of the files of a release."""

    files: Mapping[str, FileEntry]  # by name; a name is one plain word, never a path
    # the digest of the study in hexadecimal; None for a release of a single owner
    study: str | None
    date: str  # when the release was made, in UTC, as 2026-11-17
    versions: Mapping[str, str]  # of the software that made the release

    def to_bytes(self) -> bytes:
        document = {
            "format": _MANIFEST_FORMAT,
            "version": _VERSION,
            "study": self.study,
            "date": self.date,
            "files": {
                name: {"sha256": entry.sha256, "size": entry.size}
                for name, entry in sorted(self.files.items())
            },
            "versions": dict(self.versions),
        }
        return json_text(document).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Manifest:
        """Read a manifest; raise InputError unless it is a manifest of this version."""
        document = strict_json(data, MANIFEST)
        if document.get("format") != _MANIFEST_FORMAT or document.get("version") != _VERSION:
            raise InputError(f"{MANIFEST}: not a {_MANIFEST_FORMAT} of version {_VERSION}")
        files, study = document.get("files"), document.get("study")
        versions = document.get("versions")
        if not isinstance(files, dict) or not 0 < len(files) <= MOST_FILES:
            raise InputError(f"{MANIFEST}: expected 1 to {MOST_FILES} files")
        if study is not None and not _matches(_SHA256, study):
            raise InputError(f"{MANIFEST}: the study's digest is not 64 hexadecimal digits")
        if not isinstance(versions, dict) or not all(
            isinstance(version, str) for version in versions.values()
        ):
            raise InputError(f"{MANIFEST}: versions are not texts")
        if not _matches(_DATE, document.get("date")):
            raise InputError(f"{MANIFEST}: the date is not like 2026-11-17")
        listed = {name: _entry(name, value) for name, value in files.items()}
        return cls(files=listed, study=study, date=document["date"], versions=versions)


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
        """Sign a manifest, given as the bytes of its file."""
        made = self.identity.sign(_signed_bytes(self.role, self.name, manifest))
        return Signature(
            role=self.role, name=self.name, identity=self.identity.public, signature=made
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """A signature as its file has it; nothing in it is believed before `require`."""

    role: SignerRole
    name: str
    identity: PublicIdentity
    signature: bytes

    @property
    def file(self) -> str:
        """The name of its file in a release."""
        return f"{FOLDER}/{self.identity.fingerprint}.json"

    def require(self, manifest: bytes) -> None:
        """Raise InputError unless this identity signed the manifest in this role and name."""
        message = _signed_bytes(self.role, self.name, manifest)
        try:
            self.identity.verify(self.signature, message=message)
        except InvalidSignature:
            raise InputError(
                f"{self.file}: {self.role.value} {self.name!r} did not sign this manifest"
            ) from None

    def __str__(self) -> str:
        word = "countersigned" if self.role is SignerRole.PARTY else "signed"
        return f"{word} by {self.role.value} {self.name!r} {self.identity.fingerprint}"

    def as_json(self) -> dict[str, str]:
        """Return who signed, and in which role, for a script."""
        fingerprint = self.identity.fingerprint
        return {"role": self.role.value, "name": self.name, "fingerprint": fingerprint}

    def to_bytes(self) -> bytes:
        document = {
            "format": _SIGNATURE_FORMAT,
            "version": _VERSION,
            "role": self.role.value,
            "name": self.name,
            "fingerprint": self.identity.fingerprint,
            "identity": self.identity.text,
            "signature": base64.b64encode(self.signature).decode(),
        }
        return json_text(document).encode()

    @classmethod
    def from_bytes(cls, data: bytes, file: str) -> Signature:
        """Read a signature from the file of that name; raise InputError if it is damaged."""
        document = strict_json(data, file)
        kind = (_SIGNATURE_FORMAT, _VERSION)
        if set(document) != _KEYS or (document["format"], document["version"]) != kind:
            raise InputError(f"{file}: not a {_SIGNATURE_FORMAT} of version {_VERSION}")
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


def _signed_bytes(role: SignerRole, name: str, manifest: bytes) -> bytes:
    """Return the bytes that are signed. No other message that is ever signed is equal to them."""
    digest = hashlib.sha256(manifest).digest()
    return frame((f"{_SIGNATURE_FORMAT} {_VERSION}", role.value, name, digest))


def is_plain_name(name: str) -> bool:
    """Return whether a name is fit for a file of a release: one word, no path, not hidden."""
    return _matches(_NAME, name)


def sha256_of(stream: BinaryIO, *, most: int | None = None) -> FileEntry:
    """Return a stream's size and SHA-256, in constant memory.

    Stop after `most` bytes and the rest of a piece: then the size is already wrong.
    """
    digest, size = hashlib.sha256(), 0
    while piece := stream.read(_PIECE):
        digest.update(piece)
        size += len(piece)
        if most is not None and size > most:
            break
    return FileEntry(digest.hexdigest(), size)


def json_text(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def strict_json(data: bytes, where: str) -> dict[str, Any]:
    """Read a JSON object in which no key is twice: two readers must not see two documents."""
    try:
        value = json.loads(data.decode(), object_pairs_hook=_no_key_twice)
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise InputError(f"{where}: not JSON: {error}") from None
    if not isinstance(value, dict):
        raise InputError(f"{where}: not a JSON object")
    return value


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _entry(name: str, value: object) -> FileEntry:
    if not is_plain_name(name) or name == MANIFEST:
        raise InputError(f"{MANIFEST}: {name!r} is not a name for a file of a release")
    if not isinstance(value, dict) or set(value) != {"sha256", "size"}:
        raise InputError(f"{MANIFEST}: {name}: expected sha256 and size")
    sha256, size = value["sha256"], value["size"]
    if not _matches(_SHA256, sha256) or type(size) is not int or size < 0:
        raise InputError(f"{MANIFEST}: {name}: not a SHA-256 and a size")
    return FileEntry(sha256, size)


def _matches(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None
