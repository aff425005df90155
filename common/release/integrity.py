"""Are the files of a release what its manifest says, and is the manifest what its signers signed?

Whether the files agree with each other is asked elsewhere (`common.release.derive`).
"""

from __future__ import annotations

import enum
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from common.errors import InputError
from common.release import folder as release
from common.release.contents import Contents, FileError, data_names, read_whole
from common.release.manifest import (
    FOLDER,
    MANIFEST,
    MOST_JSON_BYTES,
    FileEntry,
    Manifest,
    Signature,
    SignerRole,
    sha256_of,
)
from common.wording import Reporter, silent


class Kind(enum.StrEnum):
    """What can be wrong with a file."""

    CHANGED = "changed"
    MISSING = "missing"
    EXTRA = "extra"
    SIGNATURE = "signature"
    INCONSISTENT = "inconsistent"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, and with which file."""

    file: str
    kind: Kind
    detail: str

    def __str__(self) -> str:
        name = self.file if self.file.isprintable() else repr(self.file)
        return f"{name}: {self.detail}"


def require_none(where: str, problems: Sequence[Problem]) -> None:
    """Raise InputError, naming the files, if there is a problem."""
    if problems:
        listed = "\n".join(f"- {problem}" for problem in problems)
        raise InputError(f"{where} is not a release to rely on:\n{listed}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What a look at the bytes of a release found."""

    manifest: Manifest  # what should be there
    manifest_bytes: bytes  # what was signed
    signatures: tuple[Signature, ...]  # those that are right, the maker's first
    # empty if every file is what the manifest says, and every signature right
    problems: tuple[Problem, ...]


def check_bytes(contents: Contents, *, tell: Reporter = silent) -> Checked:
    """Compare every file with the manifest, and the manifest with every signature.

    Files are read once, in pieces, so a table of any size will do.

    Raises:
        InputError: there is no manifest that could be compared with.
    """
    data = read_whole(contents, MANIFEST, most=MOST_JSON_BYTES)
    manifest = Manifest.from_bytes(data)
    signatures, problems = _signatures(contents, data)
    present = set(data_names(contents))
    problems += [
        Problem(name, Kind.MISSING, "is in the manifest, but missing")
        for name in sorted(manifest.files.keys() - present)
    ]
    problems += [
        Problem(name, Kind.EXTRA, "is extra: the manifest does not have it")
        for name in sorted(present - manifest.files.keys())
    ]
    total = sum(entry.size for entry in manifest.files.values()) or 1
    done = 0
    for name in sorted(present & manifest.files.keys()):
        tell(done / total, f"reading {name}")
        problems += _compare(contents, name, manifest.files[name])
        done += manifest.files[name].size
    return Checked(
        manifest=manifest,
        manifest_bytes=data,
        signatures=tuple(signatures),
        problems=tuple(problems),
    )


def _compare(contents: Contents, name: str, expected: FileEntry) -> list[Problem]:
    if contents.sizes()[name] != expected.size:
        found = contents.sizes()[name]
        detail = f"has changed: {found:,} bytes instead of {expected.size:,}"
        return [Problem(name, Kind.CHANGED, detail)]
    try:
        with contents.open(name) as stream:
            actual = sha256_of(stream, most=expected.size)
    except (InputError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        return [Problem(name, Kind.CHANGED, f"has changed: it cannot be read ({error})")]
    if actual != expected:
        return [Problem(name, Kind.CHANGED, "has changed: its SHA-256 is not the manifest's")]
    return []


def _signatures(contents: Contents, manifest: bytes) -> tuple[list[Signature], list[Problem]]:
    found: list[Signature] = []
    problems: list[Problem] = []
    for file in contents.sizes():
        if not file.startswith(f"{FOLDER}/"):
            continue
        try:
            data = read_whole(contents, file, most=MOST_JSON_BYTES)
            with contents.blaming(file):
                signature = Signature.from_bytes(data, file)
                signature.require(manifest)
        except FileError as error:
            detail = f"the signature is wrong: {error.why}"
            problems.append(Problem(file, Kind.SIGNATURE, detail))
        else:
            found.append(signature)
    found.sort(key=lambda each: (each.role is SignerRole.PARTY, each.name))
    makers = [each for each in found if each.role is not SignerRole.PARTY]
    problems += [
        Problem(each.file, Kind.SIGNATURE, "is a second maker's signature. A release has one maker")
        for each in makers[1:]
    ]
    return found, problems


def name_problems(manifest: Manifest) -> list[Problem]:
    """Report files of the manifest that a release of this kind does not have, or lacks."""
    listed, tables = manifest.files.keys(), release.TABLES
    needed = release.files_besides_the_table(listed, study=manifest.study is not None)
    problems = [
        Problem(name, Kind.MISSING, "is missing: every release of this kind has it")
        for name in sorted(needed - listed)
    ]
    problems += [
        Problem(name, Kind.EXTRA, "is extra: no release of this kind has such a file")
        for name in sorted(listed - needed - set(tables))
    ]
    if len(listed & set(tables)) != 1:
        words = f"a release has exactly one of {', '.join(tables)}"
        problems.append(Problem(tables[0], Kind.MISSING, words))
    return problems
