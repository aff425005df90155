"""Tasks of a node beside its studies: it checks that its rows can be read, and fetches releases."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from common.errors import ParleyError
from party.releases import Collector

logger = logging.getLogger(__name__)

_AGAIN_S = 300.0  # for the rows, while all is well
_MOST_LOOKS = 60  # between two attempts at a release


class _Watch:
    """Does one thing at a time, in a thread of its own; `changed` is called when it is done."""

    def __init__(self, *, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._under_way: Future[None] | None = None
        self._due = 0.0

    def look(self, workers: ThreadPoolExecutor, *, again_s: float) -> None:
        """Take note of what is done, and begin what is due; what failed waits for `again_s`."""
        if self._under_way is not None and self._under_way.done():
            self._note(self._under_way.exception(), again_s)
            self._under_way = None
        if self._under_way is None and time.monotonic() >= self._due:
            task = self._next()
            if task is not None:
                self._under_way = workers.submit(task)
                self._under_way.add_done_callback(lambda _: self._changed())

    def _next(self) -> Callable[[], None] | None:
        raise NotImplementedError

    def _note(self, error: BaseException | None, again_s: float) -> None:
        raise NotImplementedError


class SourceWatch(_Watch):
    """Watches whether the owner's table can be read at all; `check` raises an error if not.

    While it cannot, every study is postponed in the same way, before the node looks at any of it.
    So what a curator sees says nothing about what a study asked.
    """

    def __init__(self, check: Callable[[], None], *, changed: Callable[[], None]) -> None:
        super().__init__(changed=changed)
        self._check = check
        self.is_readable = False  # until the first look is over
        self.error: BaseException | None = None  # of the newest look

    def look_soon(self) -> None:
        """Do not wait until the next look is due."""
        self._due = 0.0

    def _next(self) -> Callable[[], None]:
        return self._check

    def _note(self, error: BaseException | None, again_s: float) -> None:
        self.is_readable = error is None
        self._due = time.monotonic() + (_AGAIN_S if error is None else again_s)
        before, self.error = self.error, error
        if error is not None and before is None:
            logger.error(
                "our rows cannot be read (%s), so every study is postponed until they can be. "
                "`parley doctor party` says what is wrong", type(error).__name__,
            )  # fmt: skip
        elif error is None and before is not None:
            logger.info("our rows can be read again: studies go on")


class ReleaseWatch(_Watch):
    """Fetches releases, one at a time, and tries again what fails; none without a collector."""

    def __init__(self, collector: Collector | None, *, changed: Callable[[], None]) -> None:
        super().__init__(changed=changed)
        self._collector = collector
        self.failures = 0  # in a row

    def is_done(self) -> bool:
        """Say whether every release was fetched, or at least tried."""
        if self._collector is None:
            return True
        return self._under_way is None and self.failures >= len(self._collector.due())

    def _next(self) -> Callable[[], None] | None:
        if self._collector is None or not (due := self._collector.due()):
            return None
        # The oldest first; one that cannot be fetched now does not keep the others back.
        return partial(self._collector.collect, due[self.failures % len(due)])

    def _note(self, error: BaseException | None, again_s: float) -> None:
        self.failures = 0 if error is None else self.failures + 1
        if error is None:
            return
        pause = again_s * min(_MOST_LOOKS, 1 << min(self.failures, 10))
        self._due = time.monotonic() + pause
        known = isinstance(error, ParleyError)
        words = " ".join(str(error).split()) if known else type(error).__name__
        logger.warning("a release is not fetched yet: %s", words, exc_info=None if known else error)
