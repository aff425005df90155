"""Can the owner's table be read at all? Looked at beside the studies, and whatever they ask.

While it cannot, every study is postponed in the same way, before anything of it was looked at: so
what a curator sees of it says nothing about what a study asked.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

logger = logging.getLogger(__name__)

_AGAIN_S = 300.0  # while all is well


class SourceWatch:
    """Looks at the source now and then, in a thread of its own.

    `check` raises an error if the table cannot be read; `changed` is called when a look is over.
    """

    def __init__(self, check: Callable[[], None], *, changed: Callable[[], None]) -> None:
        self._check = check
        self._changed = changed
        self._looking: Future[None] | None = None
        self._due = 0.0
        self.is_readable = False  # until the first look is over
        self.error: BaseException | None = None  # of the newest look

    def look(self, workers: ThreadPoolExecutor, *, again_s: float) -> None:
        """Begin a look if one is due; take note of one that is over.

        After a failure the next look is due in `again_s`.
        """
        if self._looking is not None and self._looking.done():
            self._note(self._looking.exception(), again_s)
            self._looking = None
        if self._looking is None and time.monotonic() >= self._due:
            self._looking = workers.submit(self._check)
            self._looking.add_done_callback(lambda _: self._changed())

    def look_soon(self) -> None:
        """Do not wait until the next look is due."""
        self._due = 0.0

    def _note(self, error: BaseException | None, again_s: float) -> None:
        self.is_readable = error is None
        self._due = time.monotonic() + (_AGAIN_S if error is None else again_s)
        before, self.error = self.error, error
        if error is not None and before is None:
            logger.error(
                "our rows cannot be read (%s): every study is postponed until they can be; "
                "`parley doctor party` says what is wrong", type(error).__name__,
            )  # fmt: skip
        elif error is None and before is not None:
            logger.info("our rows can be read again: studies go on")
