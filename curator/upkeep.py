"""What a running curator does besides its studies' messages: deadlines, old queues, alerts.

`Upkeep` and `Alerting` look for what is due. One thread calls `look` every second.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from common.errors import ParleyError
from common.service.alerts import Event, Hook
from common.service.process import logging_failures, stamp
from common.study.ids import StudyId, short_id
from common.wording import moment
from curator.store.records import Alert
from curator.store.store import KEEP_QUEUES, Store
from curator.studies import Studies
from curator.waiting import Pause, waited

logger = logging.getLogger(__name__)

WRITE_CALLS_EVERY = dt.timedelta(minutes=1)
OVERDUE, WAITING = "overdue", "waiting"
_DROP_QUEUES_EVERY = dt.timedelta(hours=1)
_GIVE_UP_AFTER = dt.timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingLimits:
    """How long a step may wait for parties."""

    deadline: dt.timedelta  # before its study is overdue
    warning: dt.timedelta = dt.timedelta.max  # before the operator is told
    # Whether an overdue study ends; otherwise the operator is told, once a step.
    end_overdue: bool = False


class Upkeep:
    """Looks after the studies of a curator.

    A study that may miss the parties it waits for goes on without them after the deadline.
    """

    def __init__(self, studies: Studies, limits: WaitingLimits) -> None:
        self._studies, self._limits = studies, limits
        self._told: Mapping[StudyId, tuple[str, str]] = {}
        self._calls_written = self._queues_dropped = dt.datetime.min.replace(tzinfo=dt.UTC)

    def look(self) -> None:
        """Do whatever is due."""
        now = self._studies.context.clock()
        self._go_on_as_asked()
        self._limit_waiting(now)
        if abs(now - self._calls_written) >= WRITE_CALLS_EVERY:
            self.write_calls()
            self._calls_written = now
        if abs(now - self._queues_dropped) >= _DROP_QUEUES_EVERY:
            self._studies.store.drop_queues(ended_before=stamp(now - KEEP_QUEUES))
            self._queues_dropped = now

    def write_calls(self) -> None:
        """Put on disk when every party called last: for commands, and for after a restart."""
        seen = self._studies.presence.seen()
        self._studies.store.note_calls({party: stamp(at) for party, at in seen.items()})

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

    def _limit_waiting(self, now: dt.datetime) -> None:
        told: dict[StudyId, tuple[str, str]] = {}
        for study, since in self._studies.store.waiting_since().items():
            wait = waited(since, now)
            if wait > self._limits.deadline and self._go_on_without(study, now):
                continue
            if wait > self._limits.deadline and self._limits.end_overdue:
                self._end(study, since)
            elif wait > min(self._limits.warning, self._limits.deadline):
                event = OVERDUE if wait > self._limits.deadline else WAITING
                told[study] = (event, since)
                if self._told.get(study) != told[study]:
                    self._tell(study, event, since)
        self._told = told

    def _tell(self, study: StudyId, event: str, since: str) -> None:
        """Tell the log and the operator's hook; once a step."""
        store = self._studies.store
        names = ", ".join(each.party for each in store.awaited(study))
        words = f"it waits for {names} since {moment(since)}"
        late = " is overdue" if event == OVERDUE else ""
        logger.warning("study %s%s: %s", short_id(study), late, words)
        store.add_alert(study, event, words=words, at=self._studies.context.now())

    def _go_on_without(self, study: StudyId, now: dt.datetime) -> bool:
        """Declare the overdue parties missing, if the study can do without them."""
        session = self._studies.known(study)
        late = [
            each.party
            for each in self._studies.store.awaited(study)
            if waited(each.since, now) > self._limits.deadline
        ]
        with logging_failures(logger, "study %s cannot go on now", short_id(study)):
            if session is not None and late and session.can_miss(len(late)):
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

    An event that is not taken is tried again, for a day; then it is dropped. After a crash an event
    may be delivered twice.
    """

    def __init__(self, store: Store, hook: Hook, workers: ThreadPoolExecutor) -> None:
        self._store, self._hook, self._workers = store, hook, workers
        self._pause = Pause()
        self._telling: tuple[Alert, Future[None]] | None = None

    def look(self, now: dt.datetime) -> None:
        """Note what was taken, and hand over the next event."""
        if self._telling is not None:
            if not self._telling[1].done():
                return
            self._settle(*self._telling, now=now)
            self._telling = None
        pending = self._store.alerts()
        if not pending:
            return
        if not self._hook:
            self._store.drop_alerts(pending[-1].number)
        elif self._pause.is_over():
            alert = pending[0]
            self._telling = alert, self._workers.submit(self._hook.tell, _event(alert))

    def _settle(self, alert: Alert, told: Future[None], *, now: dt.datetime) -> None:
        error = told.exception()
        if error is None:
            self._pause.end()
        else:
            self._pause.lengthen()
            logger.warning("%s", error)
            if waited(alert.at, now) < _GIVE_UP_AFTER:
                return
            logger.error("the operator was never told: study %s: %s", alert.name, alert.event)
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
        alerting.look(studies.context.clock())


def _event(alert: Alert) -> Event:
    return {
        "service": "curator",
        "event": alert.event,
        "study": alert.study.hex(),
        "name": alert.name,
        "words": alert.words,
        "at": alert.at,
    }
