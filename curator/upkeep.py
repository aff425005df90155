"""What a running curator does besides its studies' messages: deadlines, old queues, alerts.

`Upkeep` and `Alerting` look for what is due. One thread calls `look` every second.
"""

from __future__ import annotations

import datetime as dt
import logging
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from common.errors import ParleyError
from common.service.alerts import Event, Hook
from common.service.process import Monotonic, logging_failures, stamp
from common.study.ids import StudyId, short_id
from common.wording import moment
from curator.store.records import Alert
from curator.store.store import Store
from curator.studies import Studies
from curator.waiting import Pause, Waits

logger = logging.getLogger(__name__)

WRITE_CALLS_EVERY_S = 60.0
OVERDUE, WAITING = "overdue", "waiting"
_AGE_QUEUES_EVERY_S = 3600.0
_GIVE_UP_AFTER_S = 24 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingLimits:
    """How long a step may wait for parties."""

    deadline: dt.timedelta  # before its study is overdue
    warning: dt.timedelta = dt.timedelta.max  # before the operator is told
    # Before a study ends or goes on without a party, whatever the deadline: parties have to find
    # a curator that was started again.
    least: dt.timedelta = dt.timedelta(minutes=1)
    # Whether an overdue study ends; otherwise the operator is told, once a step.
    end_overdue: bool = False


class Upkeep:
    """Looks after the studies of a curator.

    A study that may miss the parties it waits for goes on without them after the deadline. What is
    decided here for good is measured by a clock that cannot be set, while this process runs.
    """

    def __init__(self, studies: Studies, limits: WaitingLimits) -> None:
        self._studies, self._limits = studies, limits
        context = studies.context
        self._waits = Waits(context.clock, context.monotonic)
        self._alerts: Mapping[StudyId, tuple[str, str]] = {}
        self._calls_written = self._queues_aged = context.monotonic()

    def look(self) -> None:
        """Do whatever is due."""
        now = self._studies.context.monotonic()
        self._go_on_as_asked()
        self._limit_waiting()
        if now - self._calls_written >= WRITE_CALLS_EVERY_S:
            self.write_calls()
            self._calls_written = now
        if now - self._queues_aged >= _AGE_QUEUES_EVERY_S:
            self._studies.store.age_queues(hours=1)  # one, however long this process was stopped
            self._queues_aged = now

    def write_calls(self) -> None:
        """Put on disk when every party called last: for commands, and for after a restart."""
        calls = self._studies.presence.seen()
        self._studies.store.note_calls({party: stamp(at) for party, at in calls.items()})

    def _go_on_as_asked(self) -> None:
        """Go on without the parties that the operator declared missing."""
        store = self._studies.store
        for study, party in store.asked_to_miss():
            session = self._studies.known(study)
            try:
                if session is None or session.record.state.over or session.declare_missing(party):
                    store.drop_missing(study, party)
            except ParleyError as error:  # such as: no step is open. It is tried again
                logger.warning("study %s: %s", short_id(study), error)

    def _limit_waiting(self) -> None:
        limits, alerts = self._limits, dict[StudyId, tuple[str, str]]()
        longest_wait = max(limits.deadline, limits.least)
        for study, waits in self._waits.look(self._studies.store.all_awaited()).items():
            wait, since = max(waits.values()), min(wait.since for wait in waits)
            late = [wait.party for wait, length in waits.items() if length > longest_wait]
            if late and self._go_on_without(study, late):
                continue
            if late and limits.end_overdue:
                self._end(study, since)
            elif wait > min(limits.warning, limits.deadline):
                event = OVERDUE if wait > limits.deadline else WAITING
                alerts[study] = (event, since)
                if self._alerts.get(study) != alerts[study]:
                    self._tell(study, event, since)
        self._alerts = alerts

    def _tell(self, study: StudyId, event: str, since: str) -> None:
        """Tell the log and the operator's hook; once a step."""
        store = self._studies.store
        names = ", ".join(wait.party for wait in store.awaited(study))
        words = f"it waits for {names} since {moment(since)}"
        late = " is overdue" if event == OVERDUE else ""
        logger.warning("study %s%s: %s", short_id(study), late, words)
        store.add_alert(study, event, words=words, at=self._studies.context.now())

    def _go_on_without(self, study: StudyId, late: Sequence[str]) -> bool:
        """Declare the overdue parties missing, if the study can do without them.

        Not while every other party is away, too: then it may be the curator that is cut off.
        """
        session = self._studies.known(study)
        with logging_failures(logger, "study %s cannot go on now", short_id(study)):
            if session is None or not session.can_miss(len(late)):
                return False
            others = set(session.names) - set(late)
            if others & self._studies.presence.online():
                return all(session.declare_missing(party) for party in late)
        return False

    def _end(self, study: StudyId, since: str) -> None:
        session = self._studies.known(study)
        if session is None:
            return
        waits = f"it waits for {', '.join(session.waiting_for)} since {moment(since)}"
        with logging_failures(logger, "study %s cannot be ended now", short_id(study)):
            session.abort(f"ended by the curator's step_deadline_s: {waits}")


class Alerting:
    """Hands the events in the store to the operator's webhook or command, in order, one at a time.

    An event that is not taken is tried again, for a day of running; then it is dropped. After a
    crash an event may be delivered twice.
    """

    def __init__(
        self,
        store: Store,
        hook: Hook,
        workers: ThreadPoolExecutor,
        *,
        contacts: Mapping[str, str] | None = None,
        monotonic: Monotonic = time.monotonic,
    ) -> None:
        self._store, self._hook, self._workers = store, hook, workers
        self._contacts = contacts or {}
        self._monotonic = monotonic
        self._pause = Pause()
        self._telling: tuple[Alert, Future[None]] | None = None
        self._failed_since: float | None = None  # of the event that is tried again

    def look(self) -> None:
        """Note what was taken, and hand over the next event."""
        if self._telling is not None:
            if not self._telling[1].done():
                return
            self._settle(*self._telling)
            self._telling = None
        pending = self._store.alerts()
        if not pending:
            return
        if not self._hook:
            self._store.drop_alerts(pending[-1].number)
        elif self._pause.is_over():
            alert = pending[0]
            self._telling = alert, self._workers.submit(self._hook.tell, self._event(alert))

    def _event(self, alert: Alert) -> Event:
        """Return what a hook is told; whom a study waits for is as of this moment.

        An owner that has answered since the event is not asked to answer.
        """
        event: dict[str, object] = {
            "service": "curator",
            "event": alert.event,
            "study": alert.study.hex(),
            "name": alert.name,
            "words": alert.words,
            "at": alert.at,
        }
        if alert.event in (WAITING, OVERDUE):
            names = [wait.party for wait in self._store.awaited(alert.study)]
            event["waits_for"] = names
            event["contacts"] = {name: self._contacts[name] for name in names
                                 if name in self._contacts}  # fmt: skip
        return event

    def _settle(self, alert: Alert, delivery: Future[None]) -> None:
        error, now = delivery.exception(), self._monotonic()
        if error is None:
            self._pause.end()
        else:
            self._pause.lengthen()
            logger.warning("%s", error)
            if self._failed_since is None:
                self._failed_since = now
            if now - self._failed_since < _GIVE_UP_AFTER_S:
                return
            logger.error("the operator was never told: study %s: %s", alert.name, alert.event)
        self._failed_since = None
        self._store.drop_alerts(alert.number)


def look(studies: Studies, upkeep: Upkeep, alerting: Alerting) -> None:
    """Do what commands asked for and what is due; one failure keeps nothing else from being done.

    A failure is logged, and what failed is tried again at the next look.
    """
    with logging_failures(logger, "looking for new studies"):
        studies.open()
    with logging_failures(logger, "looking for what is due"):
        upkeep.look()
    with logging_failures(logger, "looking for alerts"):
        alerting.look()
