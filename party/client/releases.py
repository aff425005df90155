"""Has releases fetched beside the studies, one at a time; what fails is tried again."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

from common.errors import ParleyError
from common.study.ids import StudyId

logger = logging.getLogger(__name__)

_MOST_LOOKS = 60  # between two attempts


class ReleaseCollector(Protocol):
    """What is asked of a collector; see `party.collecting`."""

    def due(self) -> list[StudyId]:
        """The studies whose releases are to be fetched."""

    def collect(self, study: StudyId) -> None:
        """Fetch one; raises WireError to be asked again."""


class ReleaseWatch:
    """Looks for releases to fetch, in a thread of its own.

    `changed` is called when an attempt is over.
    """

    def __init__(self, collector: ReleaseCollector | None, *, changed: Callable[[], None]) -> None:
        self._collector, self._changed = collector, changed
        self._trying: Future[None] | None = None
        self._not_before = 0.0
        self.failures = 0  # in a row

    def look(self, workers: ThreadPoolExecutor, *, again_s: float) -> None:
        """Begin an attempt if one is due; take note of one that is over."""
        if self._trying is not None and self._trying.done():
            self._note(self._trying.exception(), again_s)
            self._trying = None
        if self._collector is None or self._trying is not None:
            return
        if time.monotonic() >= self._not_before and (due := self._collector.due()):
            self._trying = workers.submit(self._collector.collect, due[0])
            self._trying.add_done_callback(lambda _: self._changed())

    def is_done(self) -> bool:
        """Whether every release was fetched, or at least tried."""
        if self._collector is None:
            return True
        return self._trying is None and (bool(self.failures) or not self._collector.due())

    def _note(self, error: BaseException | None, again_s: float) -> None:
        self.failures = 0 if error is None else self.failures + 1
        if error is None:
            return
        pause = again_s * min(_MOST_LOOKS, 1 << min(self.failures, 10))
        self._not_before = time.monotonic() + pause
        known = isinstance(error, ParleyError)
        words = " ".join(str(error).split()) if known else type(error).__name__
        logger.warning("a release is not fetched yet: %s", words, exc_info=None if known else error)
