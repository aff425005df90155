"""The releases of finished studies: fetched, verified, countersigned, and remembered.

A node does by itself what `parley party fetch --release` and `parley party countersign` do by hand,
and sends the curator its signature. A release that cannot be relied on is not kept. A release that
our own records contradict is kept and not countersigned. Either way the owner is told.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from common.errors import InputError, ParleyError, PolicyError
from common.files import make_private_folder, whole_file
from common.study.ids import StudyId, folder_name, short_id
from common.wire.catalogue import WireError
from common.wording import Reporter, silent
from party.client.connection import Connection
from party.client.context import PartyContext
from party.collection import Collected

if TYPE_CHECKING:
    from common.release.verify import Verified

logger = logging.getLogger(__name__)

MOST_BYTES = 4_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Collector:
    """Fetches releases for a node."""

    context: PartyContext
    folder: Path  # where the .zip files go
    countersigns: bool  # whether to countersign what our records confirm
    dial: Callable[[], AbstractContextManager[Connection]]  # opens a connection to the curator

    def due(self) -> list[StudyId]:
        return self.context.collection.due(self.context.journal, now=self.context.clock())

    def collect(self, study: StudyId) -> None:
        """Fetch, verify and countersign one release; WireError if it is to be tried again."""
        collected = self._collect(study)
        self.context.collection.note(study, collected, at=self.context.now())
        level = logging.WARNING if collected.problem else logging.INFO
        logger.log(level, "study %s: release %s", short_id(study), collected.text())
        self.context.alert(study, "release", words=collected.text())

    def _collect(self, study: StudyId) -> Collected:
        from common.release.verify import verify  # slow to load: it derives a release again
        from party.countersigning import vouch

        target = self._target(study)
        try:
            make_private_folder(self.folder)
            if target.exists():  # a node that died before it noted this
                verified = verify(target, unsigned=True, rehearsal=True)
                verified.require()
            else:
                with self.dial() as connection:
                    pieces = connection.fetch_release(study)
                    verified = keep_release(pieces, study, target, most_bytes=MOST_BYTES)
        except WireError:
            raise
        except ParleyError as error:
            return Collected(place=None, problem=str(error))
        if not self.countersigns:
            return Collected(place=target, problem="the settings say so")
        try:
            signature = vouch(target, verified, self.context)
        except PolicyError as error:
            return Collected(place=target, problem=str(error))
        with self.dial() as connection:
            connection.countersign(study, signature.signature)
        return Collected(place=target, countersigned=True)

    def _target(self, study: StudyId) -> Path:
        record = self.context.journal.record(study)
        return self.folder / f"{folder_name('' if record is None else record.name, study)}.zip"


def keep_release(
    pieces: Iterable[bytes],
    study: StudyId,
    target: Path,
    *,
    most_bytes: int,
    tell: Reporter = silent,
) -> Verified:
    """Write what the curator sends, if it is a release of that study and can be relied on.

    The release vouches for itself: its manifest has the digest of every file, its signatures are of
    the manifest, and its model follows from the study and the results. Where this version does not
    have the version of the method that made it, that is not derived again. Nothing is at the target
    if this fails.

    Raises:
        InputError: it is too large, is not to be relied on, or is of another study.
        OtherVersionError: a later version of parley made it, in a format of its own.
    """
    from common.release.verify import verify

    with whole_file(target) as scratch:
        size = 0
        with scratch.open("wb") as stream:
            for piece in pieces:
                size += len(piece)
                if size > most_bytes:
                    raise InputError(
                        f"the release has more than {most_bytes:,} bytes, so nothing was kept. "
                        "Raise --most-gb if you have room for it"
                    )
                stream.write(piece)
        # The sender is known, and the owner's own records decide about the countersignature.
        read = verify(scratch, unsigned=True, rehearsal=True, tell=tell)
        verified = replace(read, where=f"{target}, as the curator sent it,")
        verified.require()
        if verified.checked.manifest.study != study.hex():
            raise InputError("the curator sent the release of another study, so nothing was kept")
    return replace(verified, where=str(target))
