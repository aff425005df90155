"""All studies that a party is invited to, each attended in a thread of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager

from common.errors import ParleyError
from common.wire.catalogue import WireError
from party.client.attendance import Attendance, Household
from party.client.connection import Connection
from party.client.patience import Patience
from party.journal import StudyState

logger = logging.getLogger(__name__)

_OPEN = ("waiting for parties", "running")
_MOST_AT_A_TIME = 16

Ending = StudyState | ParleyError | None


class Invitations:
    """Looks for invitations now and then, and attends.

    Args:
        house: who attends.
        dial: opens a connection.
        patience: makes the patience of one line of connections.
        look_again_s: how often to look for invitations and for the owner's decisions.
    """

    def __init__(
        self,
        house: Household,
        *,
        dial: Callable[[], AbstractContextManager[Connection]],
        patience: Callable[[], Patience],
        look_again_s: float,
    ) -> None:
        self._house = house
        self._dial = dial
        self._patience = patience
        self._look_again_s = look_again_s

    def attend(self, study: bytes) -> StudyState | None:
        """Attend one study until it is over; None if told to stop before."""
        return Attendance(
            study,
            self._house,
            dial=self._dial,
            patience=self._patience(),
            look_again_s=self._look_again_s,
        ).attend()

    def attend_all(self, *, once: bool) -> dict[bytes, Ending]:
        """Attend every open study that lists this party; how each ended.

        Args:
            once: come back when all studies there are have ended; else go on until told to stop.
        """
        patience = self._patience()
        attended: dict[bytes, Future[StudyState | None]] = {}
        with ThreadPoolExecutor(_MOST_AT_A_TIME, "study") as threads:
            while True:
                try:
                    for study in self._invited():
                        if study not in attended:
                            attended[study] = threads.submit(self.attend, study)
                    patience.progressed()
                except WireError as error:
                    logger.warning("looking for studies: %s", error)
                    if patience.wait_after(error):
                        break
                    continue
                if once and attended and all(each.done() for each in attended.values()):
                    break
                if patience.sleep(self._look_again_s):
                    break
        return {study: _ending(each) for study, each in attended.items()}

    def _invited(self) -> list[bytes]:
        with self._dial() as connection:
            invited = connection.enrol(self._house.name, self._house.identity.public.encoded)
        return [each.study for each in invited if each.state in _OPEN]


def _ending(done: Future[StudyState | None]) -> Ending:
    try:
        return done.result()
    except ParleyError as error:
        logger.error("a study ended for this party: %s", type(error).__name__)
        return error
