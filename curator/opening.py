"""Opening the steps of a study: at once, or held until all owners of a step are online."""

from __future__ import annotations

import logging

from common.study.document import Study
from common.study.ids import short_id
from common.study.steps import Step
from common.wire import codec
from curator.context import StudyContext
from curator.progress import step_record
from curator.role import CuratorRole

logger = logging.getLogger(__name__)


class StepOpening:
    """Sends the message that opens a step to all who are left, in the caller's transaction."""

    def __init__(self, study: Study, role: CuratorRole, around: StudyContext) -> None:
        self._study, self._role, self._around = study, role, around
        self._store = around.store

    def now_or_later(self, step: Step, body: bytes) -> tuple[str, ...]:
        """Open a step, or hold it if owners of it are not online; these."""
        absent = self.absent(step)
        if absent:
            self._store.hold(self._study.digest, body)
            logger.info(
                "study %s: step %d is opened when %s calls", short_id(self._study.digest),
                self._role.step_number + 1, ", ".join(absent),
            )  # fmt: skip
        else:
            self._queue(step, body)
        return absent

    def held(self, step: Step) -> tuple[str, ...]:
        """Open the step that is held, unless owners of it are not online; these."""
        absent, body = self.absent(step), self._store.held(self._study.digest)
        if not absent and body is not None:
            self._store.release_held(self._study.digest)
            self._queue(step, body)
        return absent

    def absent(self, step: Step) -> tuple[str, ...]:
        """The parties of a step that are left and not online."""
        left = self._left()
        return self._around.absent(name for name in step.parties if name in left)

    def _left(self) -> tuple[str, ...]:
        """The parties that were not declared missing."""
        names = (member.name for member in self._study.members)
        return tuple(name for name in names if name not in self._role.gone)

    def _queue(self, step: Step, body: bytes) -> None:
        digest, opened = self._study.digest, codec.TO_PARTY.decode(body)
        for name in self._left():
            self._store.outbox.add(digest, name, body)
            self._store.traffic.note(
                opened, len(body), party=name, sent=False, phase=step.phase, at=self._around.clock()
            )
        number, at = self._role.step_number, self._around.now()
        self._store.note_step(digest, step_record(self._study, number, step, at=at))
