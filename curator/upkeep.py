"""What a running curator sees to besides its studies' messages: deadlines, calls, old queues."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Mapping
from dataclasses import dataclass

from common.errors import ParleyError
from common.service.clock import stamp
from common.study.ids import StudyId, short_id
from common.wording import moment
from curator.alerting import Alerting
from curator.store.store import KEEP_QUEUES
from curator.studies import Studies
from curator.waiting import waited

logger = logging.getLogger(__name__)

WRITE_CALLS_EVERY = dt.timedelta(minutes=1)
_DROP_QUEUES_EVERY = dt.timedelta(hours=1)


OVERDUE, WAITING = "overdue", "waiting"


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingLimits:
    """How long a step may wait for parties."""

    deadline: dt.timedelta  # before its study is overdue
    warning: dt.timedelta = dt.timedelta.max  # before the operator is told
    # Whether an overdue study ends; otherwise the operator is told, once a step.
    end_overdue: bool = False


class Upkeep:
    """Looked at every second, from one thread.

    A study that may miss the parties it waits for goes on without them after the deadline.
    """

    def __init__(
        self, studies: Studies, limits: WaitingLimits, *, alerting: Alerting | None = None
    ) -> None:
        self._studies, self._limits, self._alerting = studies, limits, alerting
        self._told: Mapping[StudyId, tuple[str, str]] = {}
        self._calls_written = self._queues_dropped = dt.datetime.min.replace(tzinfo=dt.UTC)

    def look(self) -> None:
        """See to whatever is due."""
        now = self._studies.around.clock()
        self._see_to_missing()
        self._see_to_waiting(now)
        if self._alerting is not None:
            self._alerting.look(now)
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

    def _see_to_missing(self) -> None:
        """Go on without the parties that the operator declared missing."""
        store = self._studies.store
        for study, party in store.asked_to_miss():
            node = self._studies.known(study)
            try:
                if node is None or node.record.state.over or node.declare_missing(party):
                    store.drop_missing(study, party)
            except ParleyError as error:  # no step is open for it, say; tried again
                logger.warning("study %s: %s", short_id(study), error)

    def _see_to_waiting(self, now: dt.datetime) -> None:
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
                    self._say(study, event, since)
        self._told = told

    def _say(self, study: StudyId, event: str, since: str) -> None:
        """In the log, and to the operator's hook; once a step."""
        store = self._studies.store
        names = ", ".join(each.party for each in store.awaited(study))
        words = f"it waits for {names} since {moment(since)}"
        late = " is overdue" if event == OVERDUE else ""
        logger.warning("study %s%s: %s", short_id(study), late, words)
        store.add_alert(study, event, words=words, at=self._studies.around.now())

    def _go_on_without(self, study: StudyId, now: dt.datetime) -> bool:
        """Declare the parties missing that are overdue, if the study can do without them."""
        node = self._studies.known(study)
        late = [
            each.party
            for each in self._studies.store.awaited(study)
            if waited(each.since, now) > self._limits.deadline
        ]
        try:
            if node is None or not late or not node.can_miss(len(late)):
                return False
            return all(node.declare_missing(party) for party in late)
        except ParleyError as error:  # tried again at the next look
            logger.error("study %s cannot go on now: %s", short_id(study), error)
            return False

    def _end(self, study: StudyId, since: str) -> None:
        node = self._studies.known(study)
        if node is None:
            return
        waits = f"it waits for {', '.join(node.waiting_for)} since {moment(since)}"
        try:
            node.abort(f"ended by the curator's step_deadline_s: {waits}")
        except ParleyError as error:  # tried again at the next look
            logger.error("study %s cannot be ended now: %s", short_id(study), error)
