"""`parley verify`: is a release what its makers signed, and is it consistent?

By default an identity that the study's digest stands for must have signed: a pinned party, or the
pinned curator. Whoever signed the study's text is not among them: a signature can be replaced
without a change of the digest. A release of a single owner has no digest that could name its maker.
A signature by any other identity is worth as much as none, unless the caller asks for it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from common.crypto.identities.identity import normal_fingerprint
from common.errors import InputError, UnknownSignerError
from common.release import folder as release
from common.release.contents import Contents, open_release
from common.release.derive import Consistency, check_consistency
from common.release.integrity import (
    Checked,
    Fault,
    Problem,
    check_bytes,
    name_problems,
    require_none,
)
from common.release.manifest import FOLDER, Signature, SignerRole
from common.release.stated import OwnerStanding
from common.study.document import Study
from common.wording import Reporter, silent

_NOT_SIGNED = (
    "are missing: the release is not signed, so files and manifest could have been changed alike. "
    "Ask for a signed one, or pass --unsigned if you know how it came here"
)
_NO_CURATOR = (
    "study.toml pins no curator and is signed by none, so --all-parties asked for the parties' "
    "signatures only: pass the curator's fingerprint with --signer"
)
_REHEARSED = (
    "is of a rehearsal: its rows were simulated, so nothing in the release is about a real row. "
    "Pass --rehearsal to check it as one"
)
ON_TRUST = (
    "that the random numbers were random: a maker who used a seed could say otherwise",
    "that each owner's number of rows was agreed, not counted",
    "that the owners' rows are true",
    "that the synthetic rows, if there are any, were drawn from the model",
    "what report.html, usage.json and network.svg say: they are their maker's own word",
)
"""What no reader of a release can check."""
_MAKER_NOT_NAMED = (
    "nothing in the release says whose key its maker's is: compare the fingerprint with one that "
    "the maker told you, or pass that one with --signer"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What is known about a release after a look at it."""

    where: str  # the folder or file
    checked: Checked  # its bytes, against the manifest and the signatures
    consistency: Consistency  # its files, against each other
    # everything that is wrong; empty if nothing that was looked at is
    problems: tuple[Problem, ...]
    remarks: tuple[str, ...] = ()  # what the caller has to know of the signatures
    unknown_signers: str = ""  # whose keys to compare, if no signature is by an identity to expect

    @property
    def not_checked(self) -> tuple[str, ...]:
        """What was not checked, and why."""
        consistency = self.consistency
        return (*consistency.not_checked, *filter(None, [consistency.not_derived]))

    @property
    def verified(self) -> bool:
        """Whether everything was checked, and is right."""
        return not (self.problems or self.not_checked or self.unknown_signers)

    @property
    def signatures(self) -> tuple[Signature, ...]:
        return self.checked.signatures

    def require(self) -> None:
        """Raise InputError, naming the files, unless there is no problem.

        If there is none, raise UnknownSignerError if no signature is by an identity to expect.
        """
        require_none(self.where, self.problems)
        if self.unknown_signers:
            raise UnknownSignerError(f"{self.where}: NOT VERIFIED. {self.unknown_signers}")

    def as_json(self) -> dict[str, object]:
        return {
            "release": self.where,
            "verified": self.verified,
            "derived": self.consistency.derived,
            "signed": bool(self.signatures),
            "problems": [
                {"file": problem.file, "kind": problem.kind.value, "detail": problem.detail}
                for problem in self.problems
            ],
            "signatures": [signature.as_json() for signature in self.signatures],
            "owners": [owner.as_json() for owner in self.consistency.owners],
            "study": self.checked.manifest.study,
            "files": len(self.checked.files),
            "parley": self.checked.manifest.versions.get("parley"),
            "method": str(self.checked.manifest.method or ""),
            "not_checked": list(self.not_checked),
            "remarks": list(self.remarks),
            "unknown_signers": self.unknown_signers,
            "on_trust": list(ON_TRUST),
        }


def verify(
    path: Path,
    *,
    signers: Sequence[str] = (),
    all_parties: bool = False,
    unsigned: bool = False,
    bytes_only: bool = False,
    rehearsal: bool = False,
    tell: Reporter = silent,
) -> Verified:
    """Check a release folder or .zip. Nothing is unpacked, and nothing is written.

    Args:
        path: the folder or the .zip.
        signers: fingerprints that must be among the signatures.
        all_parties: every party of the study must have countersigned, and the curator signed.
        unsigned: no signature is needed.
        bytes_only: do not compare the files with each other.
        rehearsal: a release of a rehearsal will do, too.
        tell: told how far the work is.
    """
    if all_parties and bytes_only:
        raise InputError("who the parties are is in the study: leave out --bytes-only")
    signers = [normal_fingerprint(fingerprint) for fingerprint in signers]
    with open_release(path) as contents:
        checked = check_bytes(contents, tell=tell)
        problems = [*checked.problems, *name_problems(checked)]
        if bytes_only:
            consistency = Consistency(not_checked=["whether the files agree with each other"])
            consistency.study = _study(contents, checked)
        elif problems:
            consistency = Consistency(not_checked=["whether the files agree: some have changed"])
        else:
            consistency = check_consistency(contents, checked, tell=tell)
    study = consistency.study
    problems += consistency.problems
    if study is not None and study.rehearsal and not rehearsal:
        problems.append(Problem(release.STUDY, Fault.REHEARSAL, _REHEARSED))
    signed = {signature.identity.fingerprint for signature in checked.signatures}
    missing = {
        signer: "a signature that is asked for" for signer in signers if signer not in signed
    }
    remarks = _remarks(consistency)
    if all_parties and study is not None:
        gone = [owner for owner in consistency.owners if owner.left]
        missing |= missing_parties(study, checked.signatures, [owner.party for owner in gone])
        remarks += [_may_sign(owner, study, checked.signatures) for owner in gone]
        missing |= missing_curator(study, checked.signatures, signers)
        if curator_of(study) is None:
            remarks.append(_NO_CURATOR)
    elif all_parties and not problems:  # or a release without parties would pass for vouched for
        detail = "is missing: without a study there are no parties that could countersign"
        problems.append(Problem(release.STUDY, Fault.MISSING, detail))
    unknown = ""
    if not (unsigned or signers or all_parties):
        if not checked.signatures:
            problems.append(Problem(FOLDER, Fault.SIGNATURE, _NOT_SIGNED))
        elif study is not None:
            unknown = unknown_signers(study, checked.signatures)
        elif checked.manifest.study is None:
            remarks.append(_MAKER_NOT_NAMED)
    if checked.signatures and checked.pages and checked.maker is None:
        remarks.append(f"the pages ({', '.join(sorted(checked.pages))}) are signed by no one")
    problems += [
        Problem(f"{FOLDER}/{fingerprint}.json", Fault.SIGNATURE, f"is missing: {what}")
        for fingerprint, what in missing.items()
    ]
    return Verified(
        where=str(path),
        checked=checked,
        consistency=consistency,
        problems=tuple(problems),
        remarks=tuple(remarks),
        unknown_signers=unknown,
    )


def _remarks(consistency: Consistency) -> list[str]:
    """Say which files another version wrote otherwise than this one would."""
    files = ", ".join(dict.fromkeys(consistency.other_forms))
    if not files:
        return []
    words = f"the words of {files} were not compared: parley {consistency.made_by} wrote them"
    return [f"{words}. Rely on the table, the model and the numbers of the statement"]


def _study(contents: Contents, checked: Checked) -> Study | None:
    """Read the study, if there is one: it says who must sign, whatever else is looked at."""
    if checked.problems or checked.manifest.study is None:
        return None
    study = release.read_study(contents)
    if study.digest.hex() != checked.manifest.study:
        raise InputError(f"{release.STUDY}: its digest is not the manifest's")
    return study


def unknown_signers(study: Study, signatures: Sequence[Signature]) -> str:
    """Say whose keys to compare; empty if an identity signed that the study's digest stands for."""
    signed = {
        signature.identity.fingerprint: f"{signature.role.value} {signature.name!r}"
        for signature in signatures
    }
    if signed.keys() & study.pinned:
        return ""
    counted = (
        f"The study pins curator {study.curator}, which did not sign it, nor did a party"
        if study.curator
        else "The study's digest pins no curator, and no party signed it"
    )
    listed = ", ".join(f"{fingerprint} ({who})" for fingerprint, who in signed.items())
    return (
        f"{counted}. Whose key this is, nothing in the release says: {listed}. Compare it with the "
        "fingerprint that the curator's operator told you (`parley keys show` prints it there), "
        "and pass that one: --signer FINGERPRINT"
    )


def _may_sign(owner: OwnerStanding, study: Study, signatures: Sequence[Signature]) -> str:
    """Name an owner that left: the others vouch for that, so the owner need not countersign."""
    if not owner.sums:
        return f"{owner.party} is {owner.words}. It need not countersign"
    identity = study.roster[owner.party]
    signed = any(
        signature.role is SignerRole.PARTY and signature.identity == identity
        for signature in signatures
    )
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
    vouching = {
        signature.identity for signature in signatures if signature.role is SignerRole.PARTY
    }
    return {
        identity.fingerprint: f"the countersignature of party {name!r}"
        for name, identity in study.roster.items()
        if identity not in vouching and name not in absent
    }


def curator_of(study: Study) -> str | None:
    """Return the identity to expect as curator: the pinned one, else the signer of the study."""
    parties = {identity.fingerprint for identity in study.roster.values()}
    return study.curator or (None if study.signer in parties else study.signer)


def missing_curator(
    study: Study, signatures: Sequence[Signature], signers: Sequence[str]
) -> dict[str, str]:
    """Return the study's curator, unless it or an identity of `signers` signed as curator."""
    curator = curator_of(study)
    if curator is None or any(
        signature.role is SignerRole.CURATOR
        and signature.identity.fingerprint in {curator, *signers}
        for signature in signatures
    ):
        return {}
    who = "that the study pins" if study.curator else "that signed the study"
    return {curator: f"the signature, as curator, of the identity {who}"}
