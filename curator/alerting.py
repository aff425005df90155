"""Has the operator's webhook or command take the events in the store, in order, one at a time."""

from __future__ import annotations

import datetime as dt
import logging
from concurrent.futures import Future, ThreadPoolExecutor

from common.service.alerts import Event, Hook
from curator.store.records import Alert
from curator.store.store import Store
from curator.waiting import Pause, waited

logger = logging.getLogger(__name__)

_GIVE_UP_AFTER = dt.timedelta(days=1)


class Alerting:
    """Looked at every second, from one thread; an event that is not taken is tried again.

    An event may be delivered twice, after a crash; it is not lost but for a hook that fails for a
    day.
    """

    def __init__(self, store: Store, hook: Hook, workers: ThreadPoolExecutor) -> None:
        self._store, self._hook, self._workers = store, hook, workers
        self._pause = Pause()
        self._telling: tuple[Alert, Future[None]] | None = None

    def look(self, now: dt.datetime) -> None:
        """Take note of what was handed over, and hand over the next event."""
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
            self._telling = alert, self._workers.submit(self._hook.tell, as_event(alert))

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


def as_event(alert: Alert) -> Event:
    return {
        "service": "curator",
        "event": alert.event,
        "study": alert.study.hex(),
        "name": alert.name,
        "words": alert.words,
        "at": alert.at,
    }
