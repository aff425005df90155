"""All studies that a party is invited to, each attended in a thread of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from common.errors import InputError, ParleyError
from common.wire.catalogue import WireError
from party.client.attendance import Attendance, decline
from party.client.connection import OPEN, HungUpError
from party.client.household import Household
from party.client.lines import Lines
from party.client.memory import require_memory
from party.client.patience import Patience
from party.journal import StudyState

logger = logging.getLogger(__name__)

_MOST_AT_A_TIME = 16
_MOST_LOOKS = 12  # between two attempts at a study that cannot go on here

Ending = StudyState | ParleyError | None


@dataclass(slots=True)
class _Seat:
    """Our place at a study; left on a failure, it is taken again if the study is still open."""

    future: Future[StudyState | None]
    failed: int
    looks: int = 0

    def is_free(self) -> bool:
        """Whether to try again now: after 1, 2, 4, ... looks for invitations."""
        if not self.future.done() or self.future.exception() is None:
            return False
        self.looks += 1
        return self.looks >= min(_MOST_LOOKS, 1 << min(self.failed, 10))


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

        A study that cannot go on because of something here (rows that are not there, a full disk)
        is tried again now and then, and the log says so.

        Args:
            once: come back when all studies there are have ended; else go on until told to stop.
            only: the digest of the one study to attend.
        """
        patience = self._patience()
        seats: dict[bytes, _Seat] = {}
        with ThreadPoolExecutor(_MOST_AT_A_TIME, "study") as threads:
            try:
                while True:
                    for study in self._invited(patience):
                        seat = seats.get(study)
                        if only in (None, study) and (
                            seat is None or (seat.is_free() and not once)
                        ):
                            failed = 0 if seat is None else seat.failed + 1
                            seats[study] = _Seat(threads.submit(self._attend, study), failed)
                    if once and seats and all(each.future.done() for each in seats.values()):
                        break
                    if patience.sleep(self._look_again_s):
                        break
            finally:
                self._lines.hang_up()  # or the studies would be waited for until they end
        return {study: _ending(each.future) for study, each in seats.items()}

    def _attend(self, study: bytes) -> StudyState | None:
        attendance = Attendance(
            study,
            self._house,
            dial=self._lines.dial,
            patience=self._patience(),
            look_again_s=self._look_again_s,
        )
        try:
            return attendance.attend()
        except Exception as error:
            # Here and at once: a node that stays for the next study may never come to the end.
            known = isinstance(error, ParleyError)
            words = _words(error) if isinstance(error, ParleyError) else type(error).__name__
            logger.error(
                "study %s cannot go on here: %s", study.hex()[:16], words, exc_info=not known
            )
            raise

    def _invited(self, patience: Patience) -> list[bytes]:
        """The open studies that list us; none if the curator is out of reach for now.

        A study that ended while we were away is open for us: its secrets go when we hear how. One
        that the owner withdrew from is ended here: who attends it may be waiting for others.
        """
        identity = self._house.identity.public.encoded
        try:
            with self._lines.dial() as connection:
                # Everything is compared with our journal once a connection; a poll is about news.
                invited = connection.enrol(self._house.name, identity, with_ended=not self._reached)
                require_memory(self._house.journal, self._house.policy, invited)
                for each in invited:
                    if each.state in OPEN and self._house.withdrew(each.study):
                        decline(connection, each.study)
        except HungUpError:
            return []  # whoever told us to stop is heard next
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
        return error


def _words(error: ParleyError) -> str:
    """What a log may have of it: what was read may be quoted, and what was read may be rows."""
    if isinstance(error, InputError):
        return f"{type(error).__name__}; `parley doctor party` says what is wrong with our own side"
    return " ".join(str(error).split())
