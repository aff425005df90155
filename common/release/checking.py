"""Is this release what its makers signed? Every file is named that is not."""

from __future__ import annotations

import enum
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from common.errors import InputError
from common.privacy.statement import versions
from common.release import folder as release
from common.release.contents import Contents, data_names, read_whole
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
from common.study.document import Study


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What a look at the bytes of a release found."""

    manifest: Manifest  # what should be there
    manifest_bytes: bytes  # what was signed
    signatures: tuple[Signature, ...]  # those that are right, the maker's first
    # empty if every file is what the manifest says, and every signature right
    problems: tuple[Problem, ...]


def check_bytes(
    contents: Contents, *, tell: Callable[[float, str], None] = lambda share, doing: None
) -> Checked:
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
            signature = Signature.from_bytes(data, file)
            signature.require(manifest)
        except InputError as error:
            detail = str(error).partition(f"{file}: ")[2] or str(error)
            problems.append(Problem(file, Kind.SIGNATURE, f"the signature is wrong: {detail}"))
        else:
            found.append(signature)
    found.sort(key=lambda each: (each.role is SignerRole.PARTY, each.name))
    makers = [each for each in found if each.role is not SignerRole.PARTY]
    problems += [
        Problem(each.file, Kind.SIGNATURE, "is a second maker's signature; a release has one maker")
        for each in makers[1:]
    ]
    return found, problems


@dataclass(slots=True)
class Agreement:
    """What was found."""

    study: Study | None = None  # what the owners agreed on, if there were several
    privacy: Mapping[str, Any] = field(default_factory=dict)  # the privacy statement
    results: tuple[bytes, ...] = ()  # what was published during the study
    derived: bool = False  # whether statement and model follow from the study and the results
    problems: list[Problem] = field(default_factory=list)  # files that contradict another one
    not_checked: list[str] = field(default_factory=list)  # what could not be looked at, and why

    def blame(self, file: str, why: str) -> None:
        """A file that is not what the others say it must be."""
        self.problems.append(Problem(file, Kind.INCONSISTENT, why))


def other_version(manifest: Manifest) -> str | None:
    """The version of parley that made a release, if it is not the one that runs here."""
    made_by = str(manifest.versions.get("parley"))
    return None if made_by == versions()["parley"] else made_by


def name_problems(manifest: Manifest) -> list[Problem]:
    """Files that a release of this kind does not have, though listed; and files that it must."""
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
