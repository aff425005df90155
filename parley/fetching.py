"""A release fetched from the curator: written whole and verified, or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from common.errors import InputError
from parley import release
from parley.console import Reporter, silent
from parley.verification import Verified, verify


def keep_release(
    pieces: Iterable[bytes],
    study: bytes,
    target: Path,
    *,
    most_bytes: int,
    tell: Reporter = silent,
) -> Verified:
    """Write what the curator sends, if it is a release of that study to rely on.

    Nobody's word is needed for its digest: its manifest has the digest of every file, its
    signatures are of the manifest, and its model follows from the study and the results.

    Args:
        pieces: of the .zip, as they come.
        study: the digest of the study that was asked for.
        target: the .zip to write; nothing is there if this fails.
        most_bytes: more are not taken.
        tell: told how far the verification is.

    Raises:
        InputError: it is too large, is not to be relied on, or is of another study.
    """
    with release.new_file(target) as scratch:
        size = 0
        with scratch.open("wb") as stream:
            for piece in pieces:
                size += len(piece)
                if size > most_bytes:
                    raise InputError(
                        f"the release has more than {most_bytes:,} bytes; raise --most-gb if you "
                        "have room for it. Nothing was kept"
                    )
                stream.write(piece)
        found = replace(verify(scratch, tell=tell), where=f"{target}, as the curator sent it,")
        found.require()
        if found.checked.manifest.study != study.hex():
            raise InputError("the curator sent the release of another study; nothing was kept")
    return replace(found, where=str(target))
