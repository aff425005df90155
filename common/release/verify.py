"""`parley verify`: is a release what its makers signed, and does it agree with itself?

By default an identity that the release names must have signed: a party that the study pins, or the
identity that signed the study; of a release of a single owner, its maker. A signature by an
identity that nothing in the release names is worth as much as none, unless the caller asks for it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from common.crypto.identities.identity import normal_fingerprint
from common.errors import InputError, OtherVersionError
from common.release.checking import (
    Agreement,
    Checked,
    Kind,
    Problem,
    check_bytes,
    name_problems,
    other_version,
)
from common.release.contents import Contents, open_release
from common.release.folder import STUDY
from common.release.manifest import FOLDER, Signature, SignerRole
from common.release.progress import Reporter, silent
from common.study.document import Study

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What is known about a release after a look at it."""

    where: str  # the folder or file
    checked: Checked  # its bytes, against the manifest and the signatures
    agreement: Agreement | None  # its files, against each other; None if that was not asked for
    # everything that is wrong; empty if nothing that was looked at is
    problems: tuple[Problem, ...]
    remarks: tuple[str, ...] = ()  # what the caller asked for and the release does not allow to ask

    @property
    def not_checked(self) -> tuple[str, ...]:
        """What was not looked at, and why."""
        if self.agreement is None:
            return ("whether the files agree with each other",)
        return tuple(self.agreement.not_checked)

    @property
    def verified(self) -> bool:
        """Whether everything was looked at, and is right."""
        return not self.problems and not self.not_checked

    @property
    def derived(self) -> bool:
        """Whether the statement was derived from the study: then its epsilon can be relied on."""
        return self.agreement is not None and self.agreement.derived

    @property
    def other_version(self) -> str | None:
        """Which other version of parley made it, if that kept us from deriving anything."""
        return None if self.agreement is None else other_version(self.checked.manifest)

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
            "signatures": [signer_json(each) for each in self.signatures],
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
    """Look at a release folder or .zip. Nothing is unpacked, and nothing is written.

    Args:
        path: the folder or the .zip.
        signers: fingerprints that must be among the signatures.
        all_parties: every party of the study must have countersigned, and the curator signed.
        unsigned: no signature is needed.
        bytes_only: do not ask whether the files agree with each other.
        tell: told how far the work is.

    Raises:
        InputError: it cannot be read, has no manifest, or is not safe to read.
    """
    if all_parties and bytes_only:
        raise InputError("who the parties are is in the study: leave out --bytes-only")
    signers = [normal_fingerprint(fingerprint) for fingerprint in signers]
    with open_release(path) as contents:
        checked, agreement = _look_at(contents, bytes_only=bytes_only, tell=tell)
    problems = [*checked.problems, *name_problems(checked.manifest)]
    problems += () if agreement is None else agreement.problems
    study = None if agreement is None else agreement.study
    signed = {each.identity.fingerprint for each in checked.signatures}
    missing = {each: "a signature that is asked for" for each in signers if each not in signed}
    remarks = []
    if all_parties and study is not None:
        gone = _went_missing(agreement)
        missing |= missing_parties(study, checked.signatures, gone)
        remarks += [
            f"{name} went missing during the study, and need not countersign" for name in gone
        ]
        missing |= missing_curator(study, checked.signatures, signers)
        if curator_of(study) is None:
            remarks.append(_NO_CURATOR)
    elif all_parties and not problems:  # or a release without parties would pass for vouched for
        detail = "is missing: without a study there are no parties that could countersign"
        problems.append(Problem(STUDY, Kind.MISSING, detail))
    if not (unsigned or signers or all_parties):
        problems += _unsigned(study, checked.signatures)
    problems += [
        Problem(f"{FOLDER}/{fingerprint}.json", Kind.SIGNATURE, f"is missing: {what}")
        for fingerprint, what in missing.items()
    ]
    return Verified(
        where=str(path),
        checked=checked,
        agreement=agreement,
        problems=tuple(problems),
        remarks=tuple(remarks),
    )


def _look_at(
    contents: Contents, *, bytes_only: bool, tell: Reporter
) -> tuple[Checked, Agreement | None]:
    """Compare the files with the manifest, and with each other if that is asked for."""
    checked = check_bytes(contents, tell=tell)
    if bytes_only:
        return checked, None
    if checked.problems or name_problems(checked.manifest):  # not worth reading
        return checked, Agreement(not_checked=["whether the files agree: some have changed"])
    from common.release.derive import check_agreement  # takes a while to load

    return checked, check_agreement(contents, checked, tell=tell)


def _unsigned(study: Study | None, signatures: Sequence[Signature]) -> list[Problem]:
    """Report that no identity signed that the release itself names."""
    if not signatures:
        return [Problem(FOLDER, Kind.SIGNATURE, _NOT_SIGNED)]
    if study is None:
        return []
    pinned = {member.identity.fingerprint for member in study.members} | {study.signer}
    if any(each.identity.fingerprint in pinned for each in signatures):
        return []
    return [Problem(FOLDER, Kind.SIGNATURE, _NOT_PINNED)]


def _went_missing(agreement: Agreement | None) -> list[str]:
    """The parties that a statement calls missing, if it follows from the other files."""
    return [] if agreement is None or not agreement.derived else list(agreement.privacy["missing"])


def missing_parties(
    study: Study, signatures: Sequence[Signature], gone: Collection[str] = ()
) -> dict[str, str]:
    """The parties that did not countersign, by fingerprint; signing as a curator is not that.

    Those that are gone need not: the others vouch for that.
    """
    vouching = {each.identity for each in signatures if each.role is SignerRole.PARTY}
    return {
        member.identity.fingerprint: f"the countersignature of party {member.name!r}"
        for member in study.members
        if member.identity not in vouching and member.name not in gone
    }


def curator_of(study: Study) -> str | None:
    """The identity that signed the study as its curator; None if a party signed it, or no one."""
    parties = {member.identity.fingerprint for member in study.members}
    return None if study.signer in parties else study.signer


def missing_curator(
    study: Study, signatures: Sequence[Signature], signers: Sequence[str]
) -> dict[str, str]:
    """The study's curator, unless it or an identity of `signers` signed as curator."""
    curator = curator_of(study)
    if curator is None or any(
        each.role is SignerRole.CURATOR and each.identity.fingerprint in {curator, *signers}
        for each in signatures
    ):
        return {}
    return {curator: "the signature, as curator, of the identity that signed the study"}


def signer_json(signature: Signature) -> dict[str, str]:
    """Who vouches, and as what, for a script."""
    return {
        "role": signature.role.value,
        "name": signature.name,
        "fingerprint": signature.identity.fingerprint,
    }


def signer_text(signature: Signature) -> str:
    word = "countersigned" if signature.role is SignerRole.PARTY else "signed"
    return f"{word} by {signature.role.value} {signature.name!r} {signature.identity.fingerprint}"
