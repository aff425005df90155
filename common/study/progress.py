"""Where a study stands, as the curator says it: in its store, on the wire and at the nodes."""

from __future__ import annotations

import enum


class StudyState(enum.StrEnum):
    """The state of a study."""

    WAITING = "waiting for parties"
    RUNNING = "running"
    PUBLISHING = "making the release"
    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"

    @property
    def over(self) -> bool:
        """Whether the study has ended."""
        return self is StudyState.DONE or self.failed

    @property
    def failed(self) -> bool:
        """Whether it has ended without a release."""
        return self in (StudyState.REFUSED, StudyState.FAILED)
