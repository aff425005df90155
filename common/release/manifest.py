"""What a release consists of, and who signed that: manifest.json, pages.json and the signatures.

The manifest lists data, model, sums and statement by size and SHA-256. It names the study, and the
method with its version. The bytes of manifest.json are signed as they are, so signers need not
agree on a normal form. Each signature is a JSON file of its own, signatures/FINGERPRINT.json:
copies of a release that were signed in different places are put together by copying files.

pages.json lists the pages for people. They are their maker's own word: the signature of a curator,
or of a single owner, is of the manifest and of pages.json, a party's of the manifest alone.

Version 1 of the manifest, of parley 0.2, lists the pages as well, and has no method: every method
had its first version then.
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
from typing import Any, BinaryIO, NamedTuple

from common.crypto.framing import frame
from common.crypto.identities.identity import SIGNATURE_BYTES, Identity, PublicIdentity
from common.errors import InputError, OtherVersionError

MANIFEST = "manifest.json"
PAGES = "pages.json"
FOLDER = "signatures"
MOST_FILES = 100
MOST_SIGNATURES = 1_000
MOST_JSON_BYTES = 1 << 20  # of a manifest or a signature
_MANIFEST_FORMAT = "parley release manifest"
_PAGES_FORMAT = "parley release pages"
_SIGNATURE_FORMAT = "parley release signature"
_VERSION = 2  # of the manifest; version 1 is read as well
_PAGES_VERSION = 1
_OF_MANIFEST, _OF_PAGES_TOO = 1, 2  # versions of a signature, by what it is of
_MOST_NAME = 100
_PIECE = 1 << 20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_KEYS = {"format", "version", "role", "name", "fingerprint", "identity", "signature"}


class MethodVersion(NamedTuple):
    """Which version of which method made a model: it says what follows from the sums."""

    name: str
    version: int

    def __str__(self) -> str:
        return f"version {self.version} of {self.name}"


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
    method: MethodVersion | None  # None in version 1 of the format

    @property
    def lists_pages(self) -> bool:
        """Whether the pages are among the files, as in version 1 of the format."""
        return self.method is None

    def to_bytes(self) -> bytes:
        document = {
            "format": _MANIFEST_FORMAT,
            "version": 1 if self.method is None else _VERSION,
            "study": self.study,
            "date": self.date,
            **({} if self.method is None else {"method": self.method._asdict()}),
            "files": _listed(self.files),
            "versions": dict(self.versions),
        }
        return json_text(document).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Manifest:
        """Read a manifest; OtherVersionError if it is of a later version of the format."""
        document = strict_json(data, MANIFEST)
        version, versions = document.get("version"), document.get("versions")
        if document.get("format") != _MANIFEST_FORMAT or type(version) is not int or version < 1:
            raise InputError(f"{MANIFEST}: not a {_MANIFEST_FORMAT} of version 1 to {_VERSION}")
        if not isinstance(versions, dict) or not all(
            isinstance(version, str) for version in versions.values()
        ):
            raise InputError(f"{MANIFEST}: versions are not texts")
        if version > _VERSION:
            raise OtherVersionError(
                f"{MANIFEST}: version {version} of the format, and this program reads up to "
                f"{_VERSION}. Use parley {versions.get('parley', 'of a later version')!r}"
            )
        study = document.get("study")
        if study is not None and not _matches(_SHA256, study):
            raise InputError(f"{MANIFEST}: the study's digest is not 64 hexadecimal digits")
        if not _matches(_DATE, document.get("date")):
            raise InputError(f"{MANIFEST}: the date is not like 2026-11-17")
        return cls(
            files=_entries(document.get("files"), MANIFEST),
            study=study,
            date=document["date"],
            versions=versions,
            method=None if version == 1 else _method(document.get("method")),
        )


def _method(value: object) -> MethodVersion:
    if not isinstance(value, dict) or set(value) != {"name", "version"}:
        raise InputError(f"{MANIFEST}: expected the name and the version of the method")
    name, version = value["name"], value["version"]
    if not isinstance(name, str) or not 0 < len(name) <= _MOST_NAME or not name.isprintable():
        raise InputError(f"{MANIFEST}: the method's name is not 1 to {_MOST_NAME} characters")
    if type(version) is not int or version < 1:
        raise InputError(f"{MANIFEST}: the method's version is not a number from 1 on")
    return MethodVersion(name, version)


def pages_bytes(files: Mapping[str, FileEntry]) -> bytes:
    document = {"format": _PAGES_FORMAT, "version": _PAGES_VERSION, "files": _listed(files)}
    return json_text(document).encode()


def read_pages(data: bytes) -> dict[str, FileEntry]:
    """Return the pages that a pages.json lists; raise InputError if it is damaged."""
    document = strict_json(data, PAGES)
    kind = (_PAGES_FORMAT, _PAGES_VERSION)
    if (document.get("format"), document.get("version")) != kind:
        raise InputError(f"{PAGES}: not {_PAGES_FORMAT} of version {_PAGES_VERSION}")
    return _entries(document.get("files"), PAGES)


def _listed(files: Mapping[str, FileEntry]) -> dict[str, object]:
    return {
        name: {"sha256": entry.sha256, "size": entry.size} for name, entry in sorted(files.items())
    }


def _entries(files: object, where: str) -> dict[str, FileEntry]:
    if not isinstance(files, dict) or not 0 < len(files) <= MOST_FILES:
        raise InputError(f"{where}: expected 1 to {MOST_FILES} files")
    return {name: _entry(name, value, where) for name, value in files.items()}


class SignerRole(enum.StrEnum):
    """What a signature says."""

    CURATOR = "curator"  # I ran the study, this is what came out, and the pages are mine
    OWNER = "owner"  # I made this of my own rows, and the pages are mine
    PARTY = "party"  # I took part in the study, and these are the results I saw


@dataclass(frozen=True, slots=True, kw_only=True)
class Signer:
    """A signer: name, role and key."""

    role: SignerRole
    name: str
    identity: Identity

    def sign(self, manifest: bytes, pages: bytes | None = None) -> Signature:
        """Sign a manifest, and a maker its pages.json, given as the bytes of their files."""
        digest = "" if pages is None else hashlib.sha256(pages).hexdigest()
        message = _signed_bytes(self.role, self.name, manifest, digest)
        return Signature(
            role=self.role,
            name=self.name,
            identity=self.identity.public,
            signature=self.identity.sign(message),
            pages=digest,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """A signature as its file has it; nothing in it is believed before `require`."""

    role: SignerRole
    name: str
    identity: PublicIdentity
    signature: bytes
    pages: str = ""  # the SHA-256 of the pages.json that was signed with the manifest, if one was

    @property
    def file(self) -> str:
        return f"{FOLDER}/{self.identity.fingerprint}.json"

    def require(self, manifest: bytes) -> None:
        """Raise InputError unless this identity signed the manifest in this role and name."""
        message = _signed_bytes(self.role, self.name, manifest, self.pages)
        if not self.identity.signed(message, signature=self.signature):
            raise InputError(
                f"{self.file}: {self.role.value} {self.name!r} did not sign this manifest"
            )

    def __str__(self) -> str:
        word = "countersigned" if self.role is SignerRole.PARTY else "signed"
        return f"{word} by {self.role.value} {self.name!r} {self.identity.fingerprint}"

    def as_json(self) -> dict[str, str]:
        fingerprint = self.identity.fingerprint
        return {"role": self.role.value, "name": self.name, "fingerprint": fingerprint}

    def to_bytes(self) -> bytes:
        document = {
            "format": _SIGNATURE_FORMAT,
            "version": _OF_PAGES_TOO if self.pages else _OF_MANIFEST,
            "role": self.role.value,
            "name": self.name,
            "fingerprint": self.identity.fingerprint,
            "identity": self.identity.text,
            **({"pages": self.pages} if self.pages else {}),
            "signature": base64.b64encode(self.signature).decode(),
        }
        return json_text(document).encode()

    @classmethod
    def from_bytes(cls, data: bytes, file: str) -> Signature:
        """Read a signature from the file of that name; raise InputError if it is damaged."""
        document = strict_json(data, file)
        version = _OF_PAGES_TOO if "pages" in document else _OF_MANIFEST
        if document.keys() - {"pages"} != _KEYS or (document["format"], document["version"]) != (
            _SIGNATURE_FORMAT,
            version,
        ):
            raise InputError(f"{file}: not a {_SIGNATURE_FORMAT} that this version reads")
        try:
            signature = cls(
                role=SignerRole(document["role"]),
                name=str(document["name"]),
                identity=PublicIdentity(base64.b64decode(document["identity"], validate=True)),
                signature=base64.b64decode(document["signature"], validate=True),
                pages=document.get("pages", ""),
            )
        except (binascii.Error, TypeError, ValueError, InputError) as error:
            raise InputError(f"{file}: not a signature: {error}") from None
        if signature.file != file or document["fingerprint"] != signature.identity.fingerprint:
            raise InputError(f"{file}: the identity in it has another fingerprint")
        if not 0 < len(signature.name) <= _MOST_NAME or not signature.name.isprintable():
            raise InputError(f"{file}: a name has 1 to {_MOST_NAME} printable characters")
        if len(signature.signature) != SIGNATURE_BYTES:
            raise InputError(f"{file}: a signature has {SIGNATURE_BYTES} bytes")
        if version == _OF_PAGES_TOO and not _matches(_SHA256, signature.pages):
            raise InputError(f"{file}: the digest of {PAGES} is not 64 hexadecimal digits")
        if signature.pages and signature.role is SignerRole.PARTY:
            raise InputError(f"{file}: a party signs no pages")
        return signature


def _signed_bytes(role: SignerRole, name: str, manifest: bytes, pages: str) -> bytes:
    """Return the bytes that are signed. No other message that is ever signed is equal to them."""
    digest = hashlib.sha256(manifest).digest()
    if not pages:
        return frame((f"{_SIGNATURE_FORMAT} {_OF_MANIFEST}", role.value, name, digest))
    both = (digest, bytes.fromhex(pages))
    return frame((f"{_SIGNATURE_FORMAT} {_OF_PAGES_TOO}", role.value, name, *both))


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
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("a key is there twice")
    return table


def _entry(name: str, value: object, where: str) -> FileEntry:
    if not is_plain_name(name) or name in (MANIFEST, PAGES):
        raise InputError(f"{where}: {name!r} is not a name for a file of a release")
    if not isinstance(value, dict) or set(value) != {"sha256", "size"}:
        raise InputError(f"{where}: {name}: expected sha256 and size")
    sha256, size = value["sha256"], value["size"]
    if not _matches(_SHA256, sha256) or type(size) is not int or size < 0:
        raise InputError(f"{where}: {name}: not a SHA-256 and a size")
    return FileEntry(sha256, size)


def _matches(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None
