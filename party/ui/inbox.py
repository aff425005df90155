"""The owner's inbox: studies to decide about, with their reviews.

Studies come from files that the owner names, and from the curator, if it is asked. A review reads
the owner's table, so it is made when it is looked at, and again when the owner approves: what is
approved is what is true then.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

from common.errors import InputError, ParleyError, PolicyError
from common.study.document import Study
from common.study.ids import StudyId
from party.client.connection import Connection
from party.client.context import PartyContext, require_open
from party.owner import decisions
from party.owner.decisions import OwnerDecision
from party.owner.review import Review

logger = logging.getLogger(__name__)

MOST_STUDIES = 100


class OwnerInbox:
    """The studies that this owner may decide about; offline without `dial`. For any thread."""

    def __init__(
        self,
        context: PartyContext,
        studies: Iterable[Study],
        *,
        dial: Callable[[], AbstractContextManager[Connection]] | None,
        node: Callable[[], str | None] = lambda: None,
    ) -> None:
        self.context = context
        self._dial = dial
        self.node = node
        self._lock = threading.Lock()
        self._asking = threading.Lock()
        self._studies = {study.digest: study for study in studies}
        self.asks = dial is not None
        self.answer = "The curator was not asked yet."

    def studies(self) -> list[tuple[Study, OwnerDecision | None]]:
        """List every study in the inbox, and what was decided."""
        with self._lock:
            studies = list(self._studies.values())
        return [(study, self.context.approvals.decision(study.digest)) for study in studies]

    def study(self, digest: StudyId) -> Study | None:
        with self._lock:
            return self._studies.get(digest)

    def ask(self) -> None:
        """Ask the curator what we are invited to, and put what came of it into `answer`."""
        if self._dial is None or not self._asking.acquire(blocking=False):
            return
        try:
            with self._dial() as connection:
                self._take(connection)
        except ParleyError as error:
            self.answer = f"The curator could not be asked. {error}"
        finally:
            self._asking.release()

    def _take(self, connection: Connection) -> None:
        invited = connection.enrol(self.context.name, self.context.identity.public.encoded)
        for summary in invited[:MOST_STUDIES]:
            if summary.state.failed and self.context.approvals.decision(summary.study) is None:
                with self._lock:  # there is nothing left to decide about
                    self._studies.pop(summary.study, None)
                continue
            if self.study(summary.study) is not None:
                continue
            try:
                study = Study.from_toml(connection.fetch_study(summary.study), where="a study")
                self.context.take_prior(study, connection)
            except InputError as error:  # one that cannot be read hides no other
                logger.warning("the curator sent what is not a study: %s", error)
                continue
            if study.digest != summary.study:
                logger.warning("the curator sent another study than the one asked for")
                continue
            with self._lock:
                self._studies[study.digest] = study
        self.answer = f"The curator was asked at {self.context.clock():%H:%M:%S} UTC."

    def review(self, study: Study) -> tuple[Review, str]:
        """Read the owner's table; return the review, and the digest of the rows it is about."""
        source = self.context.open_source(study)
        return self.context.review(study, source), source.snapshot.digest

    def approve(self, study: Study, *, shown_cost: str) -> None:
        """Approve what was shown; PolicyError if it costs something else by now, or is over."""
        require_open(study, self.context, self._dial, warn=logger.warning)
        review, rows = self.review(study)
        if str(review.cost) != shown_cost:
            raise PolicyError(
                f"the study costs epsilon {review.cost} now, and {shown_cost} was shown; nothing "
                "was decided. Review it again"
            )
        decisions.approve(self.context.approvals, review, at=self.context.now(), data_digest=rows)

    def decline(self, study: Study, *, reason: str) -> None:
        """Decline a study, or withdraw from it; PolicyError if it is over."""
        context = self.context
        decisions.decline(
            study.digest, approvals=context.approvals, journal=context.journal,
            ledger=context.ledger, reason=reason, at=context.now(),
        )  # fmt: skip

    def withdrawal_means(self, study: Study) -> str:
        """Say what comes of withdrawing from an approved study; empty if that cannot be."""
        context = self.context
        decision = context.approvals.decision(study.digest)
        if decision is None or not decision.approved:
            return ""
        try:
            return decisions.withdrawal_means(
                study.digest, journal=context.journal, ledger=context.ledger
            )
        except PolicyError:
            return ""
