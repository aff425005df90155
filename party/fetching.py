"""A release fetched from the curator: written whole and verified, or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from common.errors import InputError
from common.release import folder as release
from common.release.progress import Reporter, silent
from common.release.verify import Verified, verify
from common.study.ids import StudyId


def keep_release(
    pieces: Iterable[bytes],
    study: StudyId,
    target: Path,
    *,
    most_bytes: int,
    allow_other_version: bool = False,
    tell: Reporter = silent,
) -> Verified:
    """Write what the curator sends, if it is a release of that study to rely on.

    Its digest needs no one's word: its manifest has the digest of every file, its
    signatures are of the manifest, and its model follows from the study and the results.

    Nothing is at the target if this fails. A release that another version of parley made is not
    derived again, so it is taken only if that is allowed.

    Raises:
        InputError: it is too large, is not to be relied on, or is of another study.
        OtherVersionError: another version of parley made it.
    """
    with release.new_file(target) as scratch:
        size = 0
        with scratch.open("wb") as stream:
            for piece in pieces:
                size += len(piece)
                if size > most_bytes:
                    raise InputError(
                        f"the release has more than {most_bytes:,} bytes; raise --most-gb "
                        "if you have room for it. Nothing was kept"
                    )
                stream.write(piece)
        # Who sends it is known, and the owner's own books decide about the countersignature.
        read = verify(scratch, unsigned=True, tell=tell)
        found = replace(read, where=f"{target}, as the curator sent it,")
        found.require(allow_other_version=allow_other_version)
        if found.checked.manifest.study != study.hex():
            raise InputError("the curator sent the release of another study; nothing was kept")
    return replace(found, where=str(target))
