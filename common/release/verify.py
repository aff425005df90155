"""`parley verify`: is a release what its makers signed, and is it consistent?

By default an identity that the release names must have signed: a party that the study pins, or the
identity that signed the study; of a release of a single owner, its maker. A signature by an
identity that nothing in the release names is worth as much as none, unless the caller asks for it.
"""

from __future__ import annotations

import enum
import zipfile
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common.crypto.identities.identity import normal_fingerprint
from common.errors import InputError, OtherVersionError
from common.privacy.statement import versions
from common.release import folder as release
from common.release.contents import Contents, FileError, data_names, open_release, read_whole
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
from common.study.standing import Standing, State, standings
from common.wording import Reporter, silent

_NOT_SIGNED = (
    "are missing: the release is not signed, so files and manifest could have been changed alike. "
    "Ask for a signed one, or pass --unsigned if you know how it came here"
)
_NOT_PINNED = (
    "none is by an identity that study.toml names. Pass the fingerprint that you were told with "
    "--signer, or --unsigned if you know how the release came here"
)
_NO_CURATOR = (
    "study.toml is signed by no curator, so --all-parties asked for the parties' signatures only: "
    "pass the curator's fingerprint with --signer"
)


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


@dataclass(slots=True)
class Consistency:
    """What a comparison of the files with each other found."""

    study: Study | None = None  # what the owners agreed on, if there were several
    privacy: Mapping[str, Any] = field(default_factory=dict)  # the privacy statement
    results: tuple[bytes, ...] = ()  # what was published during the study
    derived: bool = False  # whether statement and model follow from the study and the results
    problems: list[Problem] = field(default_factory=list)  # files that contradict another file
    not_checked: list[str] = field(default_factory=list)  # what could not be looked at, and why

    @property
    def owners(self) -> tuple[Standing, ...]:
        """How each owner stands to the sums, if the study may miss some."""
        if self.study is None or not self.study.may_miss:
            return ()
        missing, left = self.privacy["missing"], self.privacy.get("left", ())
        sums = len(self.results)
        return tuple(standings(self.study.parties, sums=sums, missing=missing, left=left))

    def blame(self, file: str, *, why: str) -> None:
        """Record a file that is not what the other files say it must be."""
        self.problems.append(Problem(file, Kind.INCONSISTENT, why))


def other_version(manifest: Manifest) -> str | None:
    """Return the version of parley that made a release, if it is not the running version."""
    made_by = str(manifest.versions.get("parley"))
    return None if made_by == versions()["parley"] else made_by


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What is known about a release after a look at it."""

    where: str  # the folder or file
    checked: Checked  # its bytes, against the manifest and the signatures
    consistency: Consistency | None  # its files, against each other; None if that was not asked for
    # everything that is wrong; empty if nothing that was looked at is
    problems: tuple[Problem, ...]
    remarks: tuple[str, ...] = ()  # what the caller asked for, and cannot be asked of this release

    @property
    def not_checked(self) -> tuple[str, ...]:
        """What was not checked, and why."""
        if self.consistency is None:
            return ("whether the files agree with each other",)
        return tuple(self.consistency.not_checked)

    @property
    def verified(self) -> bool:
        """Whether everything was checked, and is right."""
        return not self.problems and not self.not_checked

    @property
    def derived(self) -> bool:
        """Whether the statement was derived from the study: then its epsilon can be relied on."""
        return self.consistency is not None and self.consistency.derived

    @property
    def owners(self) -> tuple[Standing, ...]:
        """How each owner stands to the sums of a study that may miss some; empty if not derived."""
        found = self.consistency
        return () if found is None or not found.derived else found.owners

    @property
    def other_version(self) -> str | None:
        """The other version of parley that made it, if nothing was derived for that reason."""
        return None if self.consistency is None else other_version(self.checked.manifest)

    @property
    def signatures(self) -> tuple[Signature, ...]:
        return self.checked.signatures

    def require(self, *, allow_other_version: bool = False) -> None:
        """Raise InputError, naming the files, unless there is no problem.

        If there is none, but another version made the release, raise OtherVersionError.
        """
        if self.problems:
            listed = "\n".join(f"- {problem}" for problem in self.problems)
            raise InputError(f"{self.where} is not a release to rely on:\n{listed}")
        if self.other_version is not None and not allow_other_version:
            raise OtherVersionError(
                f"{self.where}: NOT VERIFIED. Not checked: {'; '.join(self.not_checked)}. Verify "
                f"it with parley {self.other_version!r}, or pass --allow-other-version and rely "
                "on its signatures alone"
            )

    def as_json(self) -> dict[str, object]:
        return {
            "release": self.where,
            "verified": self.verified,
            "derived": self.derived,
            "signed": bool(self.signatures),
            "problems": [
                {"file": each.file, "kind": each.kind.value, "detail": each.detail}
                for each in self.problems
            ],
            "signatures": [each.as_json() for each in self.signatures],
            "owners": [each.as_json() for each in self.owners],
            "study": self.checked.manifest.study,
            "files": len(self.checked.manifest.files),
            "parley": self.checked.manifest.versions.get("parley"),
            "not_checked": list(self.not_checked),
            "remarks": list(self.remarks),
        }


def verify(
    path: Path,
    *,
    signers: Sequence[str] = (),
    all_parties: bool = False,
    unsigned: bool = False,
    bytes_only: bool = False,
    tell: Reporter = silent,
) -> Verified:
    """Check a release folder or .zip. Nothing is unpacked, and nothing is written.

    Args:
        path: the folder or the .zip.
        signers: fingerprints that must be among the signatures.
        all_parties: every party of the study must have countersigned, and the curator signed.
        unsigned: no signature is needed.
        bytes_only: do not compare the files with each other.
        tell: told how far the work is.

    Raises:
        InputError: it cannot be read, has no manifest, or is not safe to read.
    """
    if all_parties and bytes_only:
        raise InputError("who the parties are is in the study: leave out --bytes-only")
    signers = [normal_fingerprint(fingerprint) for fingerprint in signers]
    with open_release(path) as contents:
        checked = check_bytes(contents, tell=tell)
        consistency = None if bytes_only else _consistency(contents, checked, tell)
    problems = [*checked.problems, *name_problems(checked.manifest)]
    problems += () if consistency is None else consistency.problems
    study = None if consistency is None else consistency.study
    signed = {each.identity.fingerprint for each in checked.signatures}
    missing = {each: "a signature that is asked for" for each in signers if each not in signed}
    remarks = []
    if all_parties and study is not None:
        derived = consistency is not None and consistency.derived
        owners = consistency.owners if consistency and derived else ()
        gone = [each for each in owners if each.state is not State.WHOLE]
        missing |= missing_parties(study, checked.signatures, [each.party for each in gone])
        remarks += [_may_sign(each, study, checked.signatures) for each in gone]
        missing |= missing_curator(study, checked.signatures, signers)
        if curator_of(study) is None:
            remarks.append(_NO_CURATOR)
    elif all_parties and not problems:  # or a release without parties would pass for vouched for
        detail = "is missing: without a study there are no parties that could countersign"
        problems.append(Problem(release.STUDY, Kind.MISSING, detail))
    if not (unsigned or signers or all_parties):
        problems += _unsigned(study, checked.signatures)
    problems += [
        Problem(f"{FOLDER}/{fingerprint}.json", Kind.SIGNATURE, f"is missing: {what}")
        for fingerprint, what in missing.items()
    ]
    return Verified(
        where=str(path),
        checked=checked,
        consistency=consistency,
        problems=tuple(problems),
        remarks=tuple(remarks),
    )


def _consistency(contents: Contents, checked: Checked, tell: Reporter) -> Consistency:
    """Compare the files with each other, if they are what the manifest says."""
    if checked.problems or name_problems(checked.manifest):
        return Consistency(not_checked=["whether the files agree: some have changed"])
    from common.release.derive import check_consistency  # takes a while to load

    return check_consistency(contents, checked, tell=tell)


def _unsigned(study: Study | None, signatures: Sequence[Signature]) -> list[Problem]:
    """Report that no identity signed that the release itself names."""
    if not signatures:
        return [Problem(FOLDER, Kind.SIGNATURE, _NOT_SIGNED)]
    if study is None:
        return []
    pinned = {identity.fingerprint for identity in study.roster.values()} | {study.signer}
    if any(each.identity.fingerprint in pinned for each in signatures):
        return []
    return [Problem(FOLDER, Kind.SIGNATURE, _NOT_PINNED)]


def _may_sign(owner: Standing, study: Study, signatures: Sequence[Signature]) -> str:
    """Name an owner that left: the others vouch for that, so the owner need not countersign."""
    if owner.state is State.MISSING:
        return f"{owner.party} is {owner.words}. It need not countersign"
    identity = study.roster[owner.party]
    signed = any(each.role is SignerRole.PARTY and each.identity == identity for each in signatures)
    return (
        f"{owner.party} {owner.words}. It need not countersign, and "
        f"{'did' if signed else 'did not; it can'}"
    )


def missing_parties(
    study: Study, signatures: Sequence[Signature], absent: Collection[str] = ()
) -> dict[str, str]:
    """Return the parties that did not countersign, by fingerprint.

    A signature as curator is no countersignature. Parties that went missing during the study need
    not countersign: the others vouch for that.
    """
    vouching = {each.identity for each in signatures if each.role is SignerRole.PARTY}
    return {
        identity.fingerprint: f"the countersignature of party {name!r}"
        for name, identity in study.roster.items()
        if identity not in vouching and name not in absent
    }


def curator_of(study: Study) -> str | None:
    """Return the identity that signed the study as its curator, if a curator signed it."""
    parties = {identity.fingerprint for identity in study.roster.values()}
    return None if study.signer in parties else study.signer


def missing_curator(
    study: Study, signatures: Sequence[Signature], signers: Sequence[str]
) -> dict[str, str]:
    """Return the study's curator, unless it or an identity of `signers` signed as curator."""
    curator = curator_of(study)
    if curator is None or any(
        each.role is SignerRole.CURATOR and each.identity.fingerprint in {curator, *signers}
        for each in signatures
    ):
        return {}
    return {curator: "the signature, as curator, of the identity that signed the study"}
