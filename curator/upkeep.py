"""What a running curator sees to besides its studies' messages: deadlines, calls, old queues."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Mapping

from common.errors import ParleyError
from curator.context import written
from curator.store.store import KEEP_QUEUES
from curator.studies import Studies
from curator.waiting import overdue, waited

logger = logging.getLogger(__name__)

WRITE_CALLS_EVERY = dt.timedelta(minutes=1)
_DROP_QUEUES_EVERY = dt.timedelta(hours=1)


class Upkeep:
    """Looked at every second, from one thread.

    Args:
        studies: all there are.
        deadline: how long a step may wait for parties before its study is overdue. One that may
            miss these parties goes on without them.
        end_overdue: whether an overdue study ends; otherwise the log says so, once a step.
    """

    def __init__(self, studies: Studies, *, deadline: dt.timedelta, end_overdue: bool) -> None:
        self._studies = studies
        self._deadline, self._end_overdue = deadline, end_overdue
        self._told: Mapping[bytes, str] = {}
        self._calls_written = self._queues_dropped = dt.datetime.min.replace(tzinfo=dt.UTC)

    def look(self) -> None:
        """See to whatever is due."""
        now = self._studies.around.clock()
        self._see_to_overdue(now)
        if abs(now - self._calls_written) >= WRITE_CALLS_EVERY:
            self.write_calls()
            self._calls_written = now
        if abs(now - self._queues_dropped) >= _DROP_QUEUES_EVERY:
            self._studies.store.drop_queues(ended_before=written(now - KEEP_QUEUES))
            self._queues_dropped = now

    def write_calls(self) -> None:
        """Put on disk when every party called last: for commands, and for after a restart."""
        seen = self._studies.presence.seen()
        self._studies.store.note_calls({party: written(at) for party, at in seen.items()})

    def _see_to_overdue(self, now: dt.datetime) -> None:
        late = overdue(self._studies.store.waiting_since(), deadline=self._deadline, now=now)
        for study, since in late.items():
            if self._go_on_without(study, now):
                continue
            if self._end_overdue:
                self._end(study, since)
            elif self._told.get(study) != since:
                names = ", ".join(each.party for each in self._studies.store.awaited(study))
                logger.warning(
                    "study %s is overdue: it waits for %s since %s", study.hex()[:16], names, since
                )
        self._told = late

    def _go_on_without(self, study: bytes, now: dt.datetime) -> bool:
        """Declare the parties missing that are overdue, if the study can do without them."""
        node = self._studies.known(study)
        late = [
            each.party
            for each in self._studies.store.awaited(study)
            if waited(each.since, now) > self._deadline
        ]
        try:
            if node is None or not late or not node.can_miss(len(late)):
                return False
            return all(node.declare_missing(party) for party in late)
        except ParleyError as error:  # tried again at the next look
            logger.error("study %s cannot go on now: %s", study.hex()[:16], error)
            return False

    def _end(self, study: bytes, since: str) -> None:
        node = self._studies.known(study)
        if node is None:
            return
        names = ", ".join(node.waiting_for)
        try:
            node.abort(
                f"ended by the curator's step_deadline_s: it waits for {names} since {since}"
            )
        except ParleyError as error:  # tried again at the next look
            logger.error("study %s cannot be ended now: %s", study.hex()[:16], error)
