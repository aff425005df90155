"""Every study of a curator, side by side, and who waits for news of them."""

from __future__ import annotations

import datetime as dt
import logging
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from common.errors import LocalError
from common.study import Study
from common.subn.steps import Plan
from common.wire.catalogue import ErrorCode, WireError
from curator.node import StudyNode
from curator.records import Queued
from curator.store import Store
from curator.surroundings import Outcome, Surroundings

logger = logging.getLogger(__name__)


class Studies:
    """The studies in a store. Threads may share it.

    Args:
        store: where everything is kept.
        make_plan: makes a fresh copy of a study's plan.
        publish: makes the release of a study that has every result, and says where it is.
        clock: the time.
        later: runs something after the call that asked for it was answered.
    """

    def __init__(
        self,
        store: Store,
        *,
        make_plan: Callable[[Study], Plan],
        publish: Callable[[Outcome], Path],
        clock: Callable[[], dt.datetime],
        later: Callable[[Callable[[], None]], None],
    ) -> None:
        self.store = store
        self.around = Surroundings(
            store=store, make_plan=make_plan, publish=publish, clock=clock, later=later,
            changed=self.wake,
        )  # fmt: skip
        self._nodes: dict[bytes, StudyNode] = {}
        self._news = threading.Lock()
        self._waiting: dict[tuple[bytes, str], threading.Condition] = {}
        self._closed = False

    def open(self) -> None:
        """Take in what commands wrote into the store: new studies, and which are to end."""
        with self._news:
            fresh = [self._add(text) for text in self.store.documents(skip=len(self._nodes))]
            nodes = dict(self._nodes)
        for study, reason in self.store.abort_requests().items():
            if study in nodes:
                nodes[study].abort(f"ended by the curator's operator: {reason}")
        for node in fresh:
            try:
                node.resume()
            except LocalError as error:  # one study that cannot go on does not stop the others
                logger.exception("study %s cannot go on", node.study.digest.hex()[:16])
                self.store.note_cause(node.study.digest, str(error))

    def _add(self, document: str) -> StudyNode:
        study = Study.from_toml(document, where="a study in the curator's store")
        node = self._nodes[study.digest] = StudyNode(study, self.around)
        return node

    def propose(self, study: Study) -> StudyNode:
        """Offer a study to its parties; again is harmless."""
        self.store.propose(study, at=self.around.now())
        self.open()
        return self._nodes[study.digest]

    def of(self, party: str) -> list[StudyNode]:
        """The studies that list a party, newest first."""
        self.open()
        return [node for node in reversed(self._nodes.values()) if party in node.names]

    def node(self, study: bytes, party: str) -> StudyNode:
        """A study that lists the party.

        Raises:
            WireError: STUDY_UNKNOWN, whether it does not exist or is none of the party's business.
        """
        node = self._nodes.get(study)
        if node is None or party not in node.names:
            raise WireError(ErrorCode.STUDY_UNKNOWN, f"{study.hex()[:16]} for {party!r}")
        return node

    def known(self, study: bytes) -> StudyNode | None:
        """A study, for the operator, who may see all of them."""
        return self._nodes.get(study)

    def wake(self, study: bytes, parties: Iterable[str]) -> None:
        """Have these parties look again, if they wait; nobody else's thread is disturbed."""
        with self._news:
            for party in parties:
                waiting = self._waiting.get((study, party))
                if waiting is not None:
                    waiting.notify_all()

    def close(self) -> None:
        """Everybody who waits is sent away."""
        with self._news:
            self._closed = True
            for waiting in self._waiting.values():
                waiting.notify_all()

    def next_message(
        self,
        node: StudyNode,
        party: str,
        *,
        after: int,
        gone: Callable[[], bool],
        patience_s: float,
    ) -> Queued | None:
        """The first message to a party after a number, waited for.

        None when the study is over and has no more, or when the party is gone.

        Raises:
            WireError: UNAVAILABLE: the curator is shutting down.
        """
        place = (node.study.digest, party)
        with self._news:
            news = self._waiting.setdefault(place, threading.Condition(self._news))
            while not gone():
                if self._closed:
                    raise WireError(ErrorCode.UNAVAILABLE, "shutting down")
                # In this order: a study that is over has its last message in the queue.
                over = node.record.state.over
                queued = self.store.next_queued(node.study.digest, party, after=after)
                if queued is not None or over:
                    return queued
                news.wait(patience_s)
        return None
