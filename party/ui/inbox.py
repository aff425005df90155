"""What is in the owner's inbox: studies to decide about, with their reviews.

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
from party.client.connection import ENDED, Connection
from party.client.context import PartyContext
from party.owner import decisions
from party.owner.decisions import Decision
from party.owner.review import Review

logger = logging.getLogger(__name__)

MOST_STUDIES = 100


class OwnerInbox:
    """The studies that this owner may decide about. Threads may share it.

    Without `dial` it stays offline.
    """

    def __init__(
        self,
        house: PartyContext,
        studies: Iterable[Study],
        *,
        dial: Callable[[], AbstractContextManager[Connection]] | None,
        node: Callable[[], str | None] = lambda: None,
    ) -> None:
        self.house = house
        self._dial = dial
        self.node = node
        self._lock = threading.Lock()
        self._asking = threading.Lock()
        self._studies = {study.digest: study for study in studies}
        self.asks = dial is not None
        self.answer = "The curator was not asked yet."

    def studies(self) -> list[tuple[Study, Decision | None]]:
        """Every study in the inbox, and what was decided."""
        with self._lock:
            found = list(self._studies.values())
        return [(study, self.house.approvals.decision(study.digest)) for study in found]

    def study(self, digest: StudyId) -> Study | None:
        with self._lock:
            return self._studies.get(digest)

    def ask(self) -> None:
        """Ask the curator what we are invited to; what it answered is in `answer`."""
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
        invited = connection.enrol(self.house.name, self.house.identity.public.encoded)
        for summary in invited[:MOST_STUDIES]:
            if summary.state in ENDED and self.house.approvals.decision(summary.study) is None:
                with self._lock:  # there is nothing left to decide about
                    self._studies.pop(summary.study, None)
                continue
            if self.study(summary.study) is not None:
                continue
            try:
                study = Study.from_toml(connection.fetch_study(summary.study), where="a study")
                self.house.take_prior(study, connection)
            except InputError as error:  # one that cannot be read hides no other
                logger.warning("the curator sent what is not a study: %s", error)
                continue
            if study.digest != summary.study:
                logger.warning("the curator sent another study than the one asked for")
                continue
            with self._lock:
                self._studies[study.digest] = study
        self.answer = f"The curator was asked at {self.house.clock():%H:%M:%S} UTC."

    def review(self, study: Study) -> Review:
        """A study through the owner's eyes; reads the owner's table."""
        return self._review(study)[0]

    def _review(self, study: Study) -> tuple[Review, str]:
        source = self.house.open_source(study)
        return self.house.review(study, source), source.snapshot.digest

    def approve(self, study: Study, *, shown_cost: str) -> None:
        """The owner's yes, to what was shown; PolicyError if that is not true any more."""
        seen, rows = self._review(study)
        if str(seen.cost) != shown_cost:
            raise PolicyError(
                f"the study costs epsilon {seen.cost} now, and {shown_cost} was shown; nothing was "
                "decided. Review it again"
            )
        decisions.approve(self.house.approvals, seen, at=self.house.now(), data_digest=rows)

    def decline(self, study: Study, *, reason: str) -> None:
        """The owner's no, also to what was approved; PolicyError if it is over."""
        house = self.house
        decisions.decline(
            study.digest, approvals=house.approvals, journal=house.journal, ledger=house.ledger,
            reason=reason, at=house.now(),
        )  # fmt: skip

    def withdrawal_means(self, study: Study) -> str:
        """What comes of withdrawing from a study that was approved; empty if that cannot be."""
        house = self.house
        decision = house.approvals.decision(study.digest)
        if decision is None or not decision.approved:
            return ""
        try:
            return decisions.withdrawal_means(
                study.digest, journal=house.journal, ledger=house.ledger
            )
        except PolicyError:
            return ""
