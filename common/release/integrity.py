"""Are the files of a release what its lists say, and are the lists what its signers signed?

Whether the files agree with each other is asked elsewhere (`common.release.derive`).
"""

from __future__ import annotations

import enum
import hashlib
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from common.errors import InputError
from common.methods.registry import publishes_rows
from common.release import folder as release
from common.release.contents import Contents, FileError, data_names, read_whole
from common.release.manifest import (
    FOLDER,
    MANIFEST,
    MOST_JSON_BYTES,
    PAGES,
    FileEntry,
    Manifest,
    Signature,
    SignerRole,
    read_pages,
    sha256_of,
)
from common.wording import Reporter, silent


class Fault(enum.StrEnum):
    """What can speak against a file."""

    CHANGED = "changed"
    MISSING = "missing"
    EXTRA = "extra"
    SIGNATURE = "signature"
    INCONSISTENT = "inconsistent"
    REHEARSAL = "rehearsal"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, and with which file."""

    file: str
    kind: Fault
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
    pages: Mapping[str, FileEntry]  # the pages for people, which the manifest does not list
    signatures: tuple[Signature, ...]  # those that are right, the maker's first
    # empty if every file is what the two lists say, and every signature right
    problems: tuple[Problem, ...]

    @property
    def files(self) -> dict[str, FileEntry]:
        return {**self.manifest.files, **self.pages}

    @property
    def maker(self) -> Signature | None:
        """The signature of the curator or of the single owner, if there is one."""
        return next((s for s in self.signatures if s.role is not SignerRole.PARTY), None)


def check_bytes(contents: Contents, *, tell: Reporter = silent) -> Checked:
    """Compare every file with the manifest or pages.json, and these with every signature.

    Files are read once, in pieces, so a table of any size will do.
    """
    data = read_whole(contents, MANIFEST, most=MOST_JSON_BYTES)
    manifest = Manifest.from_bytes(data)
    signatures, problems = _signatures(contents, data)
    pages, of_pages = _pages(contents, manifest, signatures)
    files, present = {**manifest.files, **pages}, set(data_names(contents))
    problems += of_pages
    problems += [
        Problem(name, Fault.MISSING, "is listed, but missing")
        for name in sorted(files.keys() - present)
    ]
    problems += [
        Problem(name, Fault.EXTRA, "is extra: no list of the release has it")
        for name in sorted(present - files.keys())
    ]
    total = sum(entry.size for entry in files.values()) or 1
    progress = 0
    for name in sorted(present & files.keys()):
        tell(progress / total, f"reading {name}")
        problems += _compare(contents, name, files[name])
        progress += files[name].size
    return Checked(
        manifest=manifest,
        manifest_bytes=data,
        pages=pages,
        signatures=tuple(signatures),
        problems=tuple(problems),
    )


def _pages(
    contents: Contents, manifest: Manifest, signatures: Sequence[Signature]
) -> tuple[dict[str, FileEntry], list[Problem]]:
    """Return the pages that pages.json lists, and what is wrong with that list.

    The maker signs it with the manifest, so neither can be replaced without the other.
    """
    if manifest.lists_pages:
        extra = [Problem(PAGES, Fault.EXTRA, "is extra: the manifest lists the pages")]
        return {}, extra if PAGES in contents.sizes() else []
    if PAGES not in contents.sizes():
        return {}, [Problem(PAGES, Fault.MISSING, "is missing: it lists the pages")]
    try:
        data = read_whole(contents, PAGES, most=MOST_JSON_BYTES)
        with contents.blaming(PAGES):
            pages = read_pages(data)
    except FileError as error:
        return {}, [Problem(PAGES, Fault.CHANGED, f"has changed: {error.why}")]
    digest = hashlib.sha256(data).hexdigest()
    problems = [
        Problem(
            PAGES, Fault.SIGNATURE, f"is not what {signature.role.value} {signature.name!r} signed"
        )
        for signature in signatures
        if signature.role is not SignerRole.PARTY and signature.pages != digest
    ]
    both = sorted(pages.keys() & manifest.files.keys())
    problems += [Problem(name, Fault.EXTRA, "is in both lists of the release") for name in both]
    return pages, problems


def _compare(contents: Contents, name: str, expected: FileEntry) -> list[Problem]:
    if contents.sizes()[name] != expected.size:
        size = contents.sizes()[name]
        detail = f"has changed: {size:,} bytes instead of {expected.size:,}"
        return [Problem(name, Fault.CHANGED, detail)]
    try:
        with contents.open(name) as stream:
            actual = sha256_of(stream, most=expected.size)
    except (InputError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        return [Problem(name, Fault.CHANGED, f"has changed: it cannot be read ({error})")]
    if actual != expected:
        return [Problem(name, Fault.CHANGED, "has changed: its SHA-256 is not the manifest's")]
    return []


def _signatures(contents: Contents, manifest: bytes) -> tuple[list[Signature], list[Problem]]:
    signatures: list[Signature] = []
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
            problems.append(Problem(file, Fault.SIGNATURE, detail))
        else:
            signatures.append(signature)
    signatures.sort(key=lambda signature: (signature.role is SignerRole.PARTY, signature.name))
    makers = [signature for signature in signatures if signature.role is not SignerRole.PARTY]
    problems += [
        Problem(
            signature.file,
            Fault.SIGNATURE,
            "is a second maker's signature. A release has one maker",
        )
        for signature in makers[1:]
    ]
    return signatures, problems


def name_problems(checked: Checked) -> list[Problem]:
    """Report listed files that a release of this kind does not have, or lacks."""
    manifest, tables = checked.manifest, release.TABLES
    listed = manifest.files.keys()
    required = release.files_besides_the_table(listed, study=manifest.study is not None)
    rows = manifest.method is None or publishes_rows(manifest.method.name)
    pages = release.pages_of_kind(listed, rows=rows)
    if manifest.lists_pages:
        required, pages = required | pages, frozenset()
    lacking = (required - listed) | (pages - checked.pages.keys())
    strange = (listed - required - set(tables)) | (checked.pages.keys() - pages)
    problems = [
        Problem(name, Fault.MISSING, "is missing: every release of this kind has it")
        for name in sorted(lacking)
    ]
    problems += [
        Problem(name, Fault.EXTRA, "is extra: no release of this kind has such a file")
        for name in sorted(strange)
    ]
    if len(listed & set(tables)) != int(rows):
        words = f"a release has exactly one of {', '.join(tables)}; of answers, none"
        problems.append(Problem(tables[0], Fault.MISSING, words))
    return problems
