"""All studies that a party is invited to: one loop looks for work, a few workers do it.

A study takes a seat (a worker) only for a turn: to be reviewed, to send its owner's approval, to
take in messages that the curator has for it. Waiting for an owner or for other parties takes no
seat. A turn that has nothing left to do keeps listening only while no other study waits for a seat,
and a turn that has more to do gives its seat up after a while if another study waits. So no study
can keep another one from going on, whatever the order in which the parties meet them.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from common.errors import InputError, LocalError, ParleyError
from common.study.ids import StudyId, short_id
from common.study.progress import StudyState, StudySummary
from common.wire.catalogue import ErrorCode, WireError
from party.client.connection import Connection, HungUpError
from party.client.context import PartyContext, require_no_rollback
from party.client.dialer import Backoff, Dialer
from party.client.session import Need, PartySession, decline
from party.client.turn import DEFAULT_LIMITS, Limits, Turn
from party.client.watches import ReleaseWatch, SourceWatch
from party.journal import JournalState
from party.releases import Collector

logger = logging.getLogger(__name__)

_MOST_LOOKS = 12  # between two attempts at a study that cannot go on here
# A curator that answers with INTERNAL may have a full disk: the search for studies goes on.
_OUT_OF_REACH = (ErrorCode.UNAVAILABLE, ErrorCode.TOO_MANY_CALLS, ErrorCode.INTERNAL)
_SEATLESS = "waits for a seat"
_POSTPONED = "postponed: our rows cannot be read. `parley doctor party` says why"

Ending = JournalState | ParleyError | None


@dataclass(frozen=True, slots=True)
class _Seat:
    """A worker that a study has for a turn, and what will come of it."""

    turn: Turn
    outcome: Future[JournalState | None]


@dataclass(slots=True)
class _Place:
    """What the loop knows of a study: its turn, its ending, or what keeps it from going on."""

    session: PartySession
    backoff: Backoff
    seat: _Seat | None = None
    ending: JournalState | None = None
    error: Exception | None = None  # why it cannot go on here; it is tried again
    failed: int = 0  # errors in a row
    not_before: float = 0.0
    seated_at: float = 0.0  # the newest turn
    note: str = ""

    def is_done(self, *, once: bool) -> bool:
        """Say whether nothing is left to do; with `once` an error is not tried again."""
        ended = self.ending is not None or (once and self.error is not None)
        return self.seat is None and ended


class SessionManager:
    """Looks for studies now and then, and takes part in them."""

    def __init__(
        self,
        context: PartyContext,
        *,
        dialer: Dialer,
        backoff: Callable[[], Backoff],
        stopping: threading.Event,
        look_again_s: float,
        seats: int,
        limits: Limits = DEFAULT_LIMITS,
        collector: Collector | None = None,
    ) -> None:
        self._context, self._dialer, self._backoff = context, dialer, backoff
        self._stopping, self._look_again_s = stopping, look_again_s
        self._seats, self._limits = seats, limits
        self._source = SourceWatch(context.check_source, changed=self._wake_up)
        self._releases = ReleaseWatch(collector, changed=self._wake_up)
        self._places: dict[StudyId, _Place] = {}
        # Studies that wait for a seat; first come, first served.
        self._waiting: dict[StudyId, tuple[Need, StudySummary]] = {}
        self._wake = threading.Event()
        self._look_at = 0.0
        self._reached = False
        self._asks_for_all, self._listed_all = True, False
        self._said_full = False

    def run(self, *, once: bool, only: StudyId | None = None) -> dict[StudyId, Ending]:
        """Take part in every open study that lists this party; return how each ended, if it did.

        A study that cannot go on because of something here (a table without its columns, a full
        disk) is tried again now and then, and the log says so. With `once` this returns when all
        studies have ended. Without it, studies that ended and are not listed any more are
        forgotten, or a node that runs for years would remember every one.

        Raises:
            InputError: with `once`, the owner's table cannot be read.
            LocalError: the party's folder was rolled back.
            WireError: the curator cannot be reached, or refuses us.
        """
        with contextlib.suppress(LocalError):  # as in `_note`
            self._context.notes.clear()
        threading.Thread(target=self._hang_up_when_stopping, daemon=True).start()
        backoff = self._backoff()
        # Two workers more: one looks at the source, and one fetches releases.
        with ThreadPoolExecutor(self._seats + 2, "study") as workers:
            try:
                while not self._stopping.is_set():
                    self._settle()
                    self._releases.look(workers, again_s=self._look_again_s)
                    if once and self._all_done() and self._releases.is_done():
                        break
                    self._source.look(workers, again_s=self._look_again_s)
                    if time.monotonic() >= self._look_at:
                        self._look(backoff, once=once, only=only)
                    self._give_seats(workers)
                    self._pause()
            finally:
                self._dialer.hang_up()  # otherwise this would wait until the studies end
        self._settle()
        endings: dict[StudyId, Ending] = {}
        for study, place in self._places.items():
            if place.error is None or isinstance(place.error, ParleyError):
                endings[study] = place.error or place.ending
            elif once:  # a node that is stopped has said so in its log
                raise place.error
        return endings

    def _all_done(self) -> bool:
        """Say whether there were studies and all are done; raise if our rows cannot be read."""
        if self._source.error is not None:
            raise self._source.error
        return bool(self._places) and all(
            place.is_done(once=True) for place in self._places.values()
        )

    def _hang_up_when_stopping(self) -> None:
        # A call may hang for a minute on a curator that does not answer; a signal must not wait.
        self._stopping.wait()
        self._dialer.hang_up()
        self._wake_up()

    def _wake_up(self) -> None:
        self._wake.set()

    def _pause(self) -> None:
        """Wait until it is time to look, a turn has ended, or one is to be ended."""
        until = self._look_at - time.monotonic()
        if self._waiting:
            until = min(until, self._limits.idle_s / 2)
        self._wake.wait(max(0.0, until))
        self._wake.clear()

    def _look(self, backoff: Backoff, *, once: bool, only: StudyId | None) -> None:
        """Ask the curator what there is, and note which studies need a turn."""
        # The summaries of studies whose turn is under way may be older than what the turn does.
        free = {study for study, place in self._places.items() if place.seat is None}
        invited = self._invited(backoff)
        if invited is None:
            return
        self._look_at = time.monotonic() + self._look_again_s
        oldest_first = reversed(invited)
        listed = [summary for summary in oldest_first if only in (None, summary.study)]
        begun = {
            record.study
            for record in self._context.journal.studies()
            if record.state is JournalState.RUNNING
        }
        for summary in listed:
            if summary.study not in self._places and (
                not summary.state.over or summary.study in begun
            ):
                session = PartySession(summary.study, self._context)
                self._places[summary.study] = _Place(session, self._backoff())
                free.add(summary.study)
            if summary.study in free:
                self._consider(self._places[summary.study], summary, once=once)
        self._miss(free - {study.study for study in listed}, once=once)

    def _miss(self, unlisted: Iterable[StudyId], *, once: bool) -> None:
        """Ask once for all studies, also those that ended; then the curator lost one."""
        for study in unlisted:
            place = self._places[study]
            if place.ending is not None:
                if not once:
                    del self._places[study]
            elif time.monotonic() < place.not_before:
                continue
            elif self._listed_all:
                self._fail(study, WireError(ErrorCode.STUDY_UNKNOWN, short_id(study)))
            else:
                self._asks_for_all, self._look_at = True, 0.0

    def _invited(self, backoff: Backoff) -> list[StudySummary] | None:
        """Return the studies that list us, newest first; None if the curator is out of reach."""
        identity = self._context.identity.public.encoded
        try:
            with self._dialer.dial() as connection:
                # Everything is compared with our journal once a connection; a poll is about news.
                invited = connection.enrol(
                    self._context.name, identity, with_ended=self._asks_for_all
                )
                require_no_rollback(self._context.journal, self._context.policy, invited)
                self._tidy(connection, invited)
        except HungUpError:
            return None  # the loop sees next that this node stops
        except WireError as error:
            logger.warning("looking for studies: %s", error)
            self._reached, self._asks_for_all = False, True
            self._stopping.wait(backoff.after(error, out_of_reach=_OUT_OF_REACH))
            return None
        if not self._reached:
            logger.info("the curator is reached; studies that list us: %d", len(invited))
            self._reached = True
        self._listed_all, self._asks_for_all = self._asks_for_all, False
        backoff.progressed()
        return invited

    def _tidy(self, connection: Connection, invited: Iterable[StudySummary]) -> None:
        """End studies that the owner withdrew from; have the queues of ended ones dropped.

        What was kept of ended studies for an audit is wiped when its time is over.

        A study that ended for us and was finished without us is noted: our rows may be in its sums,
        and then we can countersign.

        A study under way may be waiting for others when its owner withdraws. And a node may die
        between the end of a study and its last acknowledgement, without which the curator keeps
        what it has for us.
        """
        self._context.journal.wipe_expired(at=self._context.now())
        for study in invited:
            if not study.state.over:
                if self._context.withdrew(study.study):
                    decline(connection, study.study)
                continue
            if study.state is StudyState.DONE and self._has_ended(study.study):
                self._context.journal.leave(study.study)
            if study.acknowledged < study.queued and self._has_ended(study.study):
                with contextlib.suppress(WireError):  # the next look tries again
                    connection.acknowledge(study.study, study.queued)

    def _has_ended(self, study: StudyId) -> bool:
        """Say whether we are through with a study; one in its turn sees to itself."""
        place = self._places.get(study)
        record = self._context.journal.record(study)
        seated = place is not None and place.seat is not None
        return not seated and (record is None or record.state is not JournalState.RUNNING)

    def _consider(self, place: _Place, summary: StudySummary, *, once: bool) -> None:
        """Have a study wait for a seat if there is something to do for it."""
        if place.is_done(once=once):
            return
        need = place.session.needs(summary)
        if need in (Need.WORK, Need.REVIEW):
            if time.monotonic() >= place.not_before:
                self._waiting[summary.study] = (need, summary)
            return
        self._waiting.pop(summary.study, None)
        if need is Need.OVER:
            self._end(summary.study, place)

    def _end(self, study: StudyId, place: _Place) -> None:
        """Note that a study is over; an error here stays what the owner hears of it."""
        ended = place.session.ended()
        place.ending = ended or JournalState.ABORTED
        if place.error is None:
            self._note(study, "")
            if ended is None:
                logger.info("study %s ended without us", short_id(study))

    def _give_seats(self, workers: ThreadPoolExecutor) -> None:
        """Start turns while there are seats, the most urgent and then the oldest first."""
        free = self._seats - sum(place.seat is not None for place in self._places.values())
        first = sorted(self._waiting, key=lambda study: self._waiting[study][0])
        for study in first[: free if self._source.is_readable else 0]:
            _, summary = self._waiting.pop(study)
            place = self._places[study]
            self._note(study, "")
            turn = Turn(self._limits)
            outcome = workers.submit(self._take_turn, place.session, turn, summary)
            outcome.add_done_callback(lambda _: self._wake_up())
            place.seat, place.seated_at = _Seat(turn, outcome), turn.began
        self._take_back_seats()
        self._free_rows()

    def _take_back_seats(self) -> None:
        """Have turns end that are idle, or long if another study waits for their seat."""
        contested = bool(self._waiting) and self._source.is_readable
        for place in self._places.values():
            if place.seat is not None:
                place.seat.turn.cede(contested=contested)
        words = _SEATLESS if contested else ""
        for study in self._waiting:
            self._note(study, words if self._source.error is None else _POSTPONED)
        if contested and not self._said_full:
            logger.warning(
                "no seat is left: all %d are taken, studies that wait for one: %d (the setting is "
                "`seats`)", self._seats, len(self._waiting),
            )  # fmt: skip
        self._said_full = contested

    def _free_rows(self) -> None:
        """Keep the rows of at most as many waiting studies as there are seats, the latest ones."""
        idle = [
            place
            for place in self._places.values()
            if place.seat is None and place.session.holds_rows
        ]
        idle.sort(key=lambda place: place.seated_at)
        for place in idle[: max(0, len(idle) - self._seats)]:
            place.session.drop()

    def _take_turn(
        self, session: PartySession, turn: Turn, summary: StudySummary
    ) -> JournalState | None:
        with self._dialer.dial() as connection:
            return session.take_turn(turn, connection, summary)

    def _settle(self) -> None:
        """See what came of the turns that have ended."""
        for study, place in self._places.items():
            if place.seat is not None and place.seat.outcome.done():
                seat, place.seat = place.seat, None
                self._settle_one(study, place, seat)
                if place.ending is not None:
                    self._context.alert(study, place.ending.value)
                    place.session.drop()

    def _settle_one(self, study: StudyId, place: _Place, seat: _Seat) -> None:
        error = seat.outcome.exception()
        place.error = None
        if error is None or seat.turn.messages:
            place.backoff.progressed()
            place.failed = 0
        if error is None:
            place.ending = seat.outcome.result()
            self._look_at = 0.0  # what comes next only the curator knows
        elif isinstance(error, HungUpError):
            logger.info("study %s: this node is stopping", short_id(study))
            place.ending = place.session.ended()
        elif isinstance(error, WireError) and place.session.ended() is not None:
            place.ending = place.session.ended()  # an acknowledgement was lost; see `_tidy`
        elif isinstance(error, WireError):
            self._try_again(study, place, error)
        elif isinstance(error, Exception):
            self._fail(study, error)
        else:
            raise error

    def _try_again(self, study: StudyId, place: _Place, error: WireError) -> None:
        try:
            wait_s = place.backoff.after(error)
        except WireError:
            self._fail(study, error)
            return
        logger.warning("study %s: %s", short_id(study), error)
        self._put_off(place, wait_s)

    def _fail(self, study: StudyId, error: Exception) -> None:
        """Say at once that a study cannot go on here; it is tried again after 1, 2, 4, ... looks.

        A node that stays for the next study may never come to its end.
        """
        place = self._places[study]
        place.error = error
        self._waiting.pop(study, None)
        self._put_off(place, self._look_again_s * min(_MOST_LOOKS, 1 << min(place.failed, 10)))
        if not place.failed:
            self._context.alert(study, "stopped", words="`parley party status` says why")
        place.failed += 1
        known = isinstance(error, ParleyError)
        words = _words(error) if isinstance(error, ParleyError) else type(error).__name__
        logger.error(
            "study %s cannot go on here: %s", short_id(study), words,
            exc_info=None if known else error,
        )  # fmt: skip
        self._note(study, f"cannot go on: {' '.join(str(error).split()) if known else words}")
        if isinstance(error, InputError):
            self._source.look_soon()

    def _put_off(self, place: _Place, wait_s: float) -> None:
        place.not_before = time.monotonic() + wait_s
        self._look_at = min(self._look_at, place.not_before)

    def _note(self, study: StudyId, words: str) -> None:
        place = self._places[study]
        if place.note != words:
            place.note = words
            with contextlib.suppress(LocalError):  # a full disk stops no study for want of a note
                self._context.notes.write(study, words, at=self._context.now())


def _words(error: ParleyError) -> str:
    """Return what a log may have of an error: errors of input may quote rows."""
    if isinstance(error, InputError) or isinstance(error.__cause__, InputError):
        return f"{type(error).__name__}. `parley doctor party` says what is wrong on our own side"
    return " ".join(str(error).split())
