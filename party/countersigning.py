"""An owner vouches for a release it took part in: verified, compared with its own books, signed."""

from __future__ import annotations

from pathlib import Path

from common.crypto.identities.files import AskPassphrase, load_identity
from common.crypto.identities.identity import Identity
from common.errors import InputError, PolicyError
from common.methods.registry import run_of
from common.privacy.randomness import OsRandomSource
from common.release.archive import add_signature
from common.release.contents import open_release
from common.release.prior import bundled_prior
from common.release.progress import Reporter, silent
from common.release.signatures import Signature, Signer, SignerRole
from common.release.verify import Verified, verify
from common.service.database import Database
from common.study.document import Study
from party.app import STATE, PartySettings
from party.client.context import PartyContext
from party.journal import Journal
from party.ledger import Ledger
from party.own_record import Books, reasons_against
from party.owner.approvals import Approvals


def countersign(
    release: Path,
    settings: PartySettings,
    *,
    passphrase: AskPassphrase,
    found: Verified | None = None,
    tell: Reporter = silent,
) -> Signature:
    """Add a party's signature to a release folder or .zip; again is harmless.

    `found` is what `verify` found in this release; by default it is verified here.

    Raises:
        InputError: the release is not to be relied on, or is of a single owner.
        PolicyError: it is not the study we approved, the results we saw, or the epsilon we paid.
    """
    identity = load_identity(settings.keys / "identity.key", passphrase=passphrase)
    if found is None:  # unsigned: our own books say whether it is ours
        found = verify(release, unsigned=True, tell=tell)
    found.require(allow_other_version=True)
    study = _study_of(release, found)
    path = settings.folder / STATE
    if not path.exists():
        raise InputError(f"{path}: there are no books of ours to compare the release with")
    with Database(path) as file:
        books = Books(Approvals(file), Journal(file, OsRandomSource()), Ledger(file))
        return _sign(release, found, study, identity, books)


def vouch(release: Path, found: Verified, context: PartyContext) -> Signature:
    """`countersign`, by a node, of a release that was verified just now.

    Raises:
        InputError: it is of a single owner.
        PolicyError: it is not the study we approved, the results we saw, or the epsilon we paid.
    """
    books = Books(context.approvals, context.journal, context.ledger)
    return _sign(release, found, _study_of(release, found), context.identity, books)


def _study_of(release: Path, found: Verified) -> Study:
    study = found.agreement.study if found.agreement is not None else None
    if study is None:
        raise InputError(f"{release} is of a single owner; there is no study to vouch for")
    if not (found.derived and found.verified):
        raise PolicyError("the release cannot be derived from its study here; we do not vouch")
    return study


def _sign(
    release: Path, found: Verified, study: Study, identity: Identity, books: Books
) -> Signature:
    name = _our_name(study, identity)
    _require_ours(release, found, study, name, books)
    signer = Signer(role=SignerRole.PARTY, name=name, identity=identity)
    signature = signer.sign(found.checked.manifest_bytes)
    add_signature(release, signature)
    return signature


def _our_name(study: Study, identity: Identity) -> str:
    for member in study.members:
        if member.identity == identity.public:
            return member.name
    raise PolicyError(
        f"study {study.name!r} has no party with our identity {identity.public.fingerprint}"
    )


def _require_ours(release: Path, found: Verified, study: Study, name: str, books: Books) -> None:
    assert found.agreement is not None  # noqa: S101  # it has a study
    with open_release(release) as contents:
        prior = bundled_prior(contents, study)
    reasons = reasons_against(
        study,
        books,
        party=name,
        results=found.agreement.results,
        privacy=found.agreement.privacy,
        begin=run_of if prior is None else prior.begin,
    )
    if reasons:
        raise PolicyError(f"we do not vouch for {found.where}: {'; '.join(reasons)}")
