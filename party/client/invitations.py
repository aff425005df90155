"""All studies that a party is invited to, each attended in a thread of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from common.errors import ParleyError
from common.wire.catalogue import WireError
from party.client.attendance import Attendance, decline
from party.client.connection import OPEN
from party.client.household import Household
from party.client.lines import Lines
from party.client.patience import Patience
from party.journal import StudyState

logger = logging.getLogger(__name__)

_MOST_AT_A_TIME = 16

Ending = StudyState | ParleyError | None


class Invitations:
    """Looks for invitations now and then, and attends.

    Args:
        house: who attends.
        lines: open connections.
        patience: makes the patience of one line of connections.
        look_again_s: how often to look for invitations and for the owner's decisions.
    """

    def __init__(
        self,
        house: Household,
        *,
        lines: Lines,
        patience: Callable[[], Patience],
        look_again_s: float,
    ) -> None:
        self._house = house
        self._lines = lines
        self._patience = patience
        self._look_again_s = look_again_s
        self._reached = False

    def attend(self, *, once: bool, only: bytes | None = None) -> dict[bytes, Ending]:
        """Attend every open study that lists this party; how each ended, None if it goes on.

        Args:
            once: come back when all studies there are have ended; else go on until told to stop.
            only: the digest of the one study to attend.
        """
        patience = self._patience()
        attended: dict[bytes, Future[StudyState | None]] = {}
        with ThreadPoolExecutor(_MOST_AT_A_TIME, "study") as threads:
            try:
                while True:
                    for study in self._invited(patience):
                        if study not in attended and only in (None, study):
                            attended[study] = threads.submit(self._attend, study)
                    if once and attended and all(each.done() for each in attended.values()):
                        break
                    if patience.sleep(self._look_again_s):
                        break
            finally:
                self._lines.hang_up()  # or the studies would be waited for until they end
        return {study: _ending(each) for study, each in attended.items()}

    def _attend(self, study: bytes) -> StudyState | None:
        return Attendance(
            study,
            self._house,
            dial=self._lines.dial,
            patience=self._patience(),
            look_again_s=self._look_again_s,
        ).attend()

    def _invited(self, patience: Patience) -> list[bytes]:
        """The open studies that list us; none if the curator is out of reach for now.

        A study that ended while we were away is open for us: its secrets go when we hear how. One
        that the owner withdrew from is ended here: who attends it may be waiting for others.
        """
        identity = self._house.identity.public.encoded
        try:
            with self._lines.dial() as connection:
                invited = connection.enrol(self._house.name, identity)
                for each in invited:
                    if each.state in OPEN and self._house.withdrew(each.study):
                        decline(connection, each.study)
        except WireError as error:
            logger.warning("looking for studies: %s", error)
            self._reached = False
            patience.wait_after(error)
            return []
        if not self._reached:
            logger.info("the curator is reached; studies that list us: %d", len(invited))
            self._reached = True
        patience.progressed()
        begun = {
            each.study for each in self._house.journal.studies() if each.state is StudyState.RUNNING
        }
        return [each.study for each in invited if each.state in OPEN or each.study in begun]


def _ending(done: Future[StudyState | None]) -> Ending:
    try:
        return done.result()
    except ParleyError as error:
        logger.error("a study ended for this party: %s", type(error).__name__)
        return error
