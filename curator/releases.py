"""The release of a study, where it lies."""

from __future__ import annotations

from pathlib import Path

from common.crypto.identities.identity import PublicIdentity
from common.errors import InputError
from common.files import read
from common.release.archive import add_signature
from common.release.manifest import MANIFEST
from common.release.signatures import Signature, SignerRole
from common.wire.catalogue import ErrorCode, WireError
from curator.store.records import StudyState


def release_folder(state: StudyState, place: str) -> Path | None:
    """Where the release is, if it can be handed out."""
    if state is not StudyState.DONE or not place:
        return None
    folder = Path(place)
    return folder if folder.is_dir() and not folder.is_symlink() else None


def countersign(folder: Path, party: str, identity: PublicIdentity, signature: bytes) -> None:
    """Add a party's signature to a release; again is harmless.

    Raises:
        WireError: APPROVAL_INVALID: the identity did not sign this release.
        InputError: the release cannot be read or written.
    """
    made = Signature(role=SignerRole.PARTY, name=party, identity=identity, signature=signature)
    try:
        made.require(read(folder / MANIFEST))
    except InputError as error:
        raise WireError(ErrorCode.APPROVAL_INVALID, str(error)) from None
    add_signature(folder, made)
