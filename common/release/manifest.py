"""manifest.json: every file of a release by size and SHA-256, and the study it is of.

What is signed are the bytes of the file as they are, so no normal form has to be agreed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from common.errors import InputError

MANIFEST = "manifest.json"
MOST_FILES = 100
MOST_JSON_BYTES = 1 << 20  # of a manifest or a signature
_FORMAT = "parley release manifest"
_VERSION = 1
_PIECE = 1 << 20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file as the manifest knows it."""

    sha256: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a release consists of."""

    files: Mapping[str, FileEntry]  # by name; a name is one plain word, never a path
    # the digest of the study in hexadecimal; None for a release of a single owner
    study: str | None
    date: str  # when the release was made, in UTC, as 2026-11-17
    versions: Mapping[str, str]  # of the software that made the release

    def to_bytes(self) -> bytes:
        document = {
            "format": _FORMAT,
            "version": _VERSION,
            "study": self.study,
            "date": self.date,
            "files": {
                name: {"sha256": entry.sha256, "size": entry.size}
                for name, entry in sorted(self.files.items())
            },
            "versions": dict(self.versions),
        }
        return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Manifest:
        """A manifest read back; InputError if it is none of this version."""
        document = strict_json(data, MANIFEST)
        if document.get("format") != _FORMAT or document.get("version") != _VERSION:
            raise InputError(f"{MANIFEST}: not a {_FORMAT} of version {_VERSION}")
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


def is_plain_name(name: str) -> bool:
    """Whether a name is fit for a file of a release: one word, no path, not hidden."""
    return _matches(_NAME, name)


def sha256_of(stream: BinaryIO, *, most: int | None = None) -> FileEntry:
    """A stream's size and SHA-256, in constant memory; not of much more than `most` bytes."""
    digest, size = hashlib.sha256(), 0
    while piece := stream.read(_PIECE):
        digest.update(piece)
        size += len(piece)
        if most is not None and size > most:
            break
    return FileEntry(digest.hexdigest(), size)


def strict_json(data: bytes, where: str) -> dict[str, Any]:
    """A JSON object in which no key is twice: two readers must not see two different things."""
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
