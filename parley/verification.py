"""`parley verify`: is a release what its makers signed, and does it agree with itself?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from common.bundle.checking import Checked, Kind, Problem, check_bytes
from common.bundle.contents import Contents, open_release
from common.bundle.signatures import FOLDER, Signature, SignerRole
from common.crypto.identity import normal_fingerprint
from common.errors import InputError
from common.study import Study
from parley.consistency import Agreement, check_agreement
from parley.console import Reporter, silent
from parley.release import STUDY


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What is known about a release after a look at it.

    Attributes:
        where: the folder or file.
        checked: its bytes, against the manifest and the signatures.
        agreement: its files, against each other; None if that was not asked for.
        problems: everything that is wrong; the release can be relied on if there is nothing.
    """

    where: str
    checked: Checked
    agreement: Agreement | None
    problems: tuple[Problem, ...]

    @property
    def signatures(self) -> tuple[Signature, ...]:
        """Who signed."""
        return self.checked.signatures

    def require(self) -> None:
        """Raise InputError, naming the files, unless there is no problem."""
        if self.problems:
            listed = "\n".join(f"- {problem}" for problem in self.problems)
            raise InputError(f"{self.where} is not a release to rely on:\n{listed}")

    def as_json(self) -> dict[str, object]:
        """Plain values."""
        return {
            "release": self.where,
            "verified": not self.problems,
            "problems": [
                {"file": each.file, "kind": each.kind.value, "detail": each.detail}
                for each in self.problems
            ],
            "signatures": [signer_json(each) for each in self.signatures],
            "study": self.checked.manifest.study,
            "files": len(self.checked.manifest.files),
            "not_checked": ["whether the files agree with each other"]
            if self.agreement is None
            else list(self.agreement.not_checked),
        }


def verify(
    path: Path,
    *,
    signers: Sequence[str] = (),
    all_parties: bool = False,
    bytes_only: bool = False,
    tell: Reporter = silent,
) -> Verified:
    """Look at a release folder or .zip. Nothing is unpacked, and nothing is written.

    Args:
        path: the folder or the .zip.
        signers: fingerprints that must be among the signatures.
        all_parties: every party of the study must have countersigned.
        bytes_only: do not ask whether the files agree with each other.
        tell: told how far the work is.

    Raises:
        InputError: it cannot be read, has no manifest, or is not safe to read.
    """
    if all_parties and bytes_only:
        raise InputError("who the parties are is in the study: leave out --bytes-only")
    wanted = [normal_fingerprint(fingerprint) for fingerprint in signers]
    with open_release(path) as contents:
        return verify_contents(
            contents, wanted, all_parties=all_parties, bytes_only=bytes_only, tell=tell
        )


def verify_contents(
    contents: Contents,
    signers: Sequence[str] = (),
    *,
    all_parties: bool = False,
    bytes_only: bool = False,
    tell: Reporter = silent,
) -> Verified:
    """`verify`, of a release that is open already; fingerprints in their normal form."""
    checked = check_bytes(contents, tell=tell)
    problems = list(checked.problems)
    agreement = None
    if not bytes_only:
        if problems:  # what has changed is not worth reading
            agreement = Agreement(not_checked=["whether the files agree: some have changed"])
        else:
            agreement = check_agreement(contents, checked, tell=tell)
            problems += agreement.problems
    signed = {each.identity.fingerprint for each in checked.signatures}
    missing = {each: "a signature that is asked for" for each in signers if each not in signed}
    if all_parties and agreement is not None:
        if agreement.study is not None:
            missing |= missing_parties(agreement.study, checked.signatures)
        elif not problems:  # or a release without a study would pass for one that all vouch for
            detail = "is missing: without a study there are no parties that could countersign"
            problems.append(Problem(STUDY, Kind.MISSING, detail))
    problems += [
        Problem(f"{FOLDER}/{fingerprint}.json", Kind.SIGNATURE, f"is missing: {what}")
        for fingerprint, what in missing.items()
    ]
    return Verified(
        where=contents.where, checked=checked, agreement=agreement, problems=tuple(problems)
    )


def missing_parties(study: Study, signatures: Sequence[Signature]) -> dict[str, str]:
    """The parties that did not countersign, by fingerprint; signing as a curator is not that."""
    vouching = {each.identity for each in signatures if each.role is SignerRole.PARTY}
    return {
        member.identity.fingerprint: f"the countersignature of party {member.name!r}"
        for member in study.members
        if member.identity not in vouching
    }


def signer_json(signature: Signature) -> dict[str, str]:
    """Who vouches, and as what, for a script."""
    return {
        "role": signature.role.value,
        "name": signature.name,
        "fingerprint": signature.identity.fingerprint,
    }


def signer_text(signature: Signature) -> str:
    """A signature in a line."""
    word = "countersigned" if signature.role is SignerRole.PARTY else "signed"
    return f"{word} by {signature.role.value} {signature.name!r} {signature.identity.fingerprint}"
