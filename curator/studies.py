"""Every study of a curator, and the parties that wait for messages of them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from common.service.process import Clock, Monotonic, logging_failures
from common.study.document import Study
from common.study.ids import StudyId, short_id
from common.study.script import ScriptRun
from common.wire.catalogue import ErrorCode, WireError
from common.wire.frames import NumberedMessage
from common.wire.strict import MOST_LISTED
from curator.context import FinishedStudy, Presence, StudyContext
from curator.session import CuratorSession
from curator.store.records import StudySummary
from curator.store.store import Store

logger = logging.getLogger(__name__)


class Studies:
    """The studies in a store. Threads may share it."""

    def __init__(
        self,
        store: Store,
        *,
        begin: Callable[[Study], ScriptRun],
        publish: Callable[[FinishedStudy], Path],
        clock: Clock,
        later: Callable[[Callable[[], None]], None],
        prior_of: Callable[[Study], Path | None] = lambda study: None,
        monotonic: Monotonic = time.monotonic,
    ) -> None:
        self.store, self._prior_of = store, prior_of
        self.presence = Presence(monotonic)
        self.context = StudyContext(
            store=store, presence=self.presence, begin=begin, publish=publish, clock=clock,
            monotonic=monotonic, later=later, changed=self.wake,
        )  # fmt: skip
        self._sessions: dict[StudyId, CuratorSession] = {}
        self._introduced = {
            name: (party.identity, party.software) for name, party in store.parties().items()
        }
        self._session_count = 0
        self._listed: dict[str, tuple[tuple[int, int], list[StudySummary]]] = {}
        self._news = threading.Lock()
        self._waiting: dict[tuple[StudyId, str], threading.Condition] = {}
        self._closed = False

    def open(self) -> None:
        """Take up new studies, end those that the operator gave up, try again those that failed.

        Commands write studies and requests into the store. Studies that are over are not looked at.
        """
        under_way = self.store.under_way()
        with self._news:
            fresh = [study for study in under_way if study not in self._sessions]
            for study in fresh:
                self._sessions[study] = CuratorSession(
                    study, self.store.members(study), self.context
                )
            sessions = dict(self._sessions)
            self._session_count += len(fresh)
        for study, session in sessions.items():
            if study not in under_way and session.record.state.over:
                self._forget(study)
            elif reason := under_way.get(study):
                # The request stays in the store if this fails, and the other studies go on.
                with logging_failures(logger, "study %s cannot be ended now", short_id(study)):
                    session.abort(f"ended by the curator's operator: {reason}")
            else:
                session.resume()

    def _forget(self, study: StudyId) -> None:
        """Keep nothing in memory of a study that is over."""
        with self._news:
            self._sessions.pop(study, None)
            for place in [place for place in self._waiting if place[0] == study]:
                self._waiting.pop(place).notify_all()

    def propose(self, study: Study) -> CuratorSession:
        """Offer a study to its parties; to repeat this is harmless."""
        self.store.propose(study, at=self.context.now())
        self.open()
        return self.session(study.digest, study.parties[0])

    def enrol(self, party: str, *, identity: bytes, software: str) -> None:
        """Note a party's identity and software; on disk only when they changed."""
        if self._introduced.get(party) != (identity, software):
            at = self.context.now()
            self.store.enrol(party, identity=identity, software=software, at=at)
            self._introduced[party] = (identity, software)

    def called(self, party: str) -> None:
        """Note a call of a party; steps that waited for it are opened."""
        if not self.presence.saw(party, self.context.clock()):
            return
        waiting = self.store.holding()
        with self._news:
            holding = [self._sessions[study] for study in waiting if study in self._sessions]
        for session in holding:
            if party in session.names:
                # The call is about something else, so it does not fail.
                with logging_failures(logger, "study %s", short_id(session.digest)):
                    session.open_step()

    def summaries(
        self, party: str, *, with_ended: bool, after: StudyId | None = None
    ) -> list[StudySummary]:
        """List the studies of a party, newest first; read again only when something changed.

        `with_ended` adds those that ended and that the party has acknowledged. A list that is full
        goes on with those `after` its last.
        """
        if with_ended or after is not None:
            return self.store.summaries(
                party, with_settled=with_ended, most=MOST_LISTED, after=after
            )
        version = (self.store.version, self._session_count)  # before they are read
        known = self._listed.get(party)
        if known is None or known[0] != version:
            summaries = self.store.summaries(party, with_settled=False, most=MOST_LISTED)
            known = self._listed[party] = (version, summaries)
        return known[1]

    def session(self, study: StudyId, party: str) -> CuratorSession:
        """Return a study of the party; STUDY_UNKNOWN if it lists others or does not exist."""
        session = self.known(study)
        if session is None or party not in session.names:
            raise WireError(ErrorCode.STUDY_UNKNOWN, f"{short_id(study)} for {party!r}")
        return session

    def prior(self, study: Study) -> Path:
        """Return the release that a study builds on; OUT_OF_TURN if there is none here."""
        path = self._prior_of(study)
        if path is None or not path.is_file():
            raise WireError(ErrorCode.OUT_OF_TURN, "no prior here")
        return path

    def known(self, study: StudyId) -> CuratorSession | None:
        """Return a study, if there is one; a study that is over is not kept in memory."""
        with self._news:
            session = self._sessions.get(study)
            if session is None and (names := self.store.members(study)):
                session = CuratorSession(study, names, self.context)
                if not session.record.state.over:
                    self._sessions[study] = session
        return session

    def wake(self, study: StudyId, parties: Iterable[str]) -> None:
        """Wake the threads that wait for messages to these parties, and no others."""
        with self._news:
            for party in parties:
                waiting = self._waiting.get((study, party))
                if waiting is not None:
                    waiting.notify_all()

    def close(self) -> None:
        """Refuse every waiting party."""
        with self._news:
            self._closed = True
            for waiting in self._waiting.values():
                waiting.notify_all()

    def next_message(
        self,
        session: CuratorSession,
        party: str,
        *,
        after: int,
        cancelled: Callable[[], bool],
        look_every_s: float,
    ) -> NumberedMessage | None:
        """Wait for the first message to a party after a number.

        Return None when the study is over and has no more, or when its call is cancelled.

        Raises:
            WireError: UNAVAILABLE: the curator is shutting down.
        """
        place = (session.digest, party)
        with self._news:
            news = self._waiting.setdefault(place, threading.Condition(self._news))
            while not cancelled():
                if self._closed:
                    raise WireError(ErrorCode.UNAVAILABLE, "shutting down")
                # In this order: a study that is over has its last message in the queue.
                over = session.record.state.over
                queued = self.store.outbox.next(session.digest, party, after=after)
                if queued is not None or over:
                    return queued
                news.wait(look_every_s)
        return None
