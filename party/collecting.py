"""A node fetches the release of a study that it finished, verifies it, and countersigns it.

As `parley party fetch --release` and `parley party countersign` do by hand; the curator is sent the
signature, too. A release that cannot be relied on is not kept; one that our own records contradict
is kept and not countersigned. Either way the owner is told.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from common.errors import ParleyError, PolicyError
from common.files import make_private_folder
from common.study.ids import StudyId, short_id
from common.wire.catalogue import WireError
from party.client.connection import Connection
from party.client.context import PartyContext
from party.collection import Collected

logger = logging.getLogger(__name__)

MOST_BYTES = 4_000_000_000
_MOST_NAME = 40


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
        """Fetch, verify and countersign one release.

        Raises:
            WireError: the curator cannot be reached, or does not give it now; try again.
        """
        collected = self._collect(study)
        self.context.collection.note(study, collected, at=self.context.now())
        level = logging.WARNING if collected.problem else logging.INFO
        logger.log(level, "study %s: release %s", short_id(study), collected.text())
        self.context.alert(study, "release", words=collected.text())

    def _collect(self, study: StudyId) -> Collected:
        from common.release.verify import verify  # slow to load: it derives a release again
        from party.countersigning import vouch
        from party.fetching import keep_release

        target = self._target(study)
        try:
            make_private_folder(self.folder)
            if target.exists():  # a node that died before it noted this
                found = verify(target, unsigned=True)
                found.require()
            else:
                with self.dial() as connection:
                    pieces = connection.fetch_release(study)
                    found = keep_release(pieces, study, target, most_bytes=MOST_BYTES)
        except WireError:
            raise
        except ParleyError as error:
            return Collected(place=None, countersigned=False, problem=str(error))
        if not self.countersigns:
            return Collected(place=target, countersigned=False, problem="the settings say so")
        try:
            signature = vouch(target, found, self.context)
        except PolicyError as error:
            return Collected(place=target, countersigned=False, problem=str(error))
        with self.dial() as connection:
            connection.countersign(study, signature.signature)
        return Collected(place=target, countersigned=True, problem="")

    def _target(self, study: StudyId) -> Path:
        record = self.context.journal.record(study)
        name = "" if record is None else re.sub(r"\W+", "-", record.name).strip("-")[:_MOST_NAME]
        return self.folder / f"{name or 'study'}-{short_id(study)}.zip"
