"""The steps of a study: opened at once or held, and what may be shown of them.

A step follows from the study and from noisy results that were published, so which attributes it
counts together is public, too. No result is recorded here, noisy or not.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from itertools import combinations

from common.schema.codes import bit_count
from common.study.document import Study
from common.study.ids import short_id
from common.study.steps import Step
from common.wire import codec
from curator.context import StudyContext
from curator.role import CuratorRole
from curator.store.records import Links, StepRecord

logger = logging.getLogger(__name__)

MOST_LINKS = 400  # a picture of more shows no structure


class StepOpening:
    """Sends the message that opens a step to all parties left, in the caller's transaction.

    The message is held in the store while an owner of the step is not online.
    """

    def __init__(self, study: Study, role: CuratorRole, context: StudyContext) -> None:
        self._study, self._role, self._context = study, role, context
        self._store = context.store

    def now_or_later(self, step: Step, body: bytes) -> tuple[str, ...]:
        """Open a step, or hold it; return the owners it is held for."""
        absent = self.absent(step)
        if absent:
            self._store.hold(self._study.digest, body)
            logger.info(
                "study %s: step %d is opened when %s calls", short_id(self._study.digest),
                self._role.step_number + 1, ", ".join(absent),
            )  # fmt: skip
        else:
            self._open(step, body)
        return absent

    def held(self, step: Step) -> tuple[str, ...]:
        """Open the held step if its owners are online; return the owners who are not."""
        absent, body = self.absent(step), self._store.held(self._study.digest)
        if not absent and body is not None:
            self._store.send_held(self._study.digest)
            self._open(step, body)
        return absent

    def absent(self, step: Step) -> tuple[str, ...]:
        """Return the parties of a step that are left and not online."""
        return self._context.absent(name for name in step.parties if name in self._role.left)

    def _open(self, step: Step, body: bytes) -> None:
        opened = codec.TO_PARTY.decode(body)
        self._context.queue(opened, body, self._role.left, phase=step.phase)
        number, at = self._role.step_number, self._context.now()
        self._store.note_step(self._study.digest, step_record(self._study, number, step, at=at))


def step_record(study: Study, number: int, step: Step, *, at: str) -> StepRecord:
    """Return what may be shown of a step that is opened now."""
    return StepRecord(
        number=number,
        name=step.name,
        phase=step.phase,
        opened_at=at,
        costs=step.costs,
        links=_links(study, step.links),
    )


def published_links(study: Study, step: Step, result: bytes) -> Links:
    """Return the pairs that the published result of a step puts together."""
    return _links(study, step.exchange.links_in(result))


def _links(study: Study, sets: Iterable[Sequence[int]]) -> Links:
    """Return every pair of attributes in one of the sets of variables."""
    sizes = study.schema.sizes
    owner = list(range(len(sizes)))
    if study.encoding == "binary":
        owner = [a for a, size in enumerate(sizes) for _ in range(bit_count(size))]
    pairs: set[tuple[int, int]] = set()
    for variables in sets:
        attributes = sorted({owner[variable] for variable in variables})
        pairs.update(combinations(attributes, 2))
        if len(pairs) > MOST_LINKS:
            return ()
    every = len(sizes) * (len(sizes) - 1) // 2
    # A picture of three quarters of all pairs shows no structure either.
    return () if every > 3 and 4 * len(pairs) > 3 * every else tuple(sorted(pairs))
