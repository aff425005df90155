"""The shell that runs the curator's role of one study: store, then send.

A party's message and the messages it causes to the parties are stored in ONE transaction; the
server sends from there. After a crash the role is rebuilt (`common.service.durable`).

`StudyFinished` says that the release is made, so it is queued when it is: between the last result
and the release the study is PUBLISHING, and a crash there makes the release again.

A party charges its ledger when a step is opened, so the message that opens a step is held back
until every owner of the step is online: no owner pays for a step that waits for an absent one. It
is held in the store, in the transaction of the message that caused it.

What fails for want of room or files is tried again, with growing pauses.
"""

from __future__ import annotations

import datetime as dt
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import assert_never

from common.crypto.identities.identity import PublicIdentity
from common.errors import InputError, ParleyError
from common.study.document import Study
from common.study.ids import StudyId, short_id
from common.study.messages import (
    MOST_TEXT,
    PartyRefused,
    StepOpened,
    StudyAborted,
    StudyFinished,
    ToCurator,
    ToParty,
)
from common.study.signatures import approval_statement
from common.wire import codec
from common.wire.catalogue import ErrorCode, WireError
from curator.context import FinishedStudy, StudyContext
from curator.live_role import DECLARED, effect_names, live_role, make_key, told_dispute
from curator.role import CuratorRole, Effect, Fail, Finish, Leave, SendToParty, Warn
from curator.steps import StepOpening, published_links
from curator.store.records import Record, StudyState, Word
from curator.waiting import Lasting, Pause

logger = logging.getLogger(__name__)

_ABORT_WAIT_S = 0.2


class CuratorSession:
    """One study at the curator. Threads may share it."""

    def __init__(self, digest: StudyId, names: tuple[str, ...], context: StudyContext) -> None:
        self.digest, self.names = digest, names
        self._context = context
        self._store = context.store
        self._lock = threading.RLock()
        self._study: Study | None = None
        self._role = live_role(digest, lambda: self.study, context)
        self._pause = Pause()
        self._expired = Lasting()
        self._publishing = False

    @property
    def study(self) -> Study:
        """What was agreed; InputError if this version of the program cannot read it."""
        if self._study is None:
            self._study = self._store.study(self.digest)
        return self._study

    def identity_of(self, party: str) -> PublicIdentity:
        return self.study.roster[party]

    @property
    def record(self) -> Record:
        return self._store.record(self.digest)

    @property
    def waiting_for(self) -> tuple[str, ...]:
        record = self.record
        if record.state is StudyState.WAITING:
            return self._store.not_approved_by(record)
        return tuple(wait.party for wait in self._store.awaited(self.digest))

    @property
    def holds_a_step(self) -> bool:
        """Whether the next step is opened when all of its owners call."""
        return self.digest in self._store.holding()

    def resume(self) -> None:
        """Go on where the last process or a failure stopped; after a failure, not at every call.

        A study that is at work is left alone.
        """
        with self._free_within(0) as free:
            try:
                if free and self._pause.is_over():
                    self._go_on()
            except Exception as error:  # noqa: BLE001  # the other studies go on
                self._fail("the study cannot go on", error)

    @contextmanager
    def _free_within(self, wait_s: float) -> Iterator[bool]:
        """Lock the study for a block; yield whether it could be locked in time."""
        free = self._lock.acquire(timeout=wait_s)
        try:
            yield free
        finally:
            if free:
                self._lock.release()

    def _go_on(self) -> None:
        record = self.record
        match record.state:
            case StudyState.WAITING:
                self._start_when_all_approved()
                self._end_if_expired()
            case StudyState.RUNNING:
                self._role.current()
                self.open_step()
            case StudyState.PUBLISHING:
                if not self._publishing:
                    self._publish_later()
                return
        self._pause.end()
        if record.cause:  # of a failure that is over
            self._store.note_cause(self.digest, "")

    def _fail(self, what: str, error: Exception) -> None:
        """Record why the study does not go on now, and pause."""
        self._pause.lengthen()
        defect = None if isinstance(error, ParleyError | OSError) else error
        logger.error("study %s: %s: %s", short_id(self.digest), what, error, exc_info=defect)
        cause = f"{what}: {error}. The curator tries again by itself"
        try:
            if self.record.cause != cause:
                self._store.note_cause(self.digest, cause)
        except ParleyError as full:  # the same disk may be full
            logger.error("study %s: the cause is not on disk: %s", short_id(self.digest), full)

    def called(self, party: str) -> None:
        """Note a call of one of the parties: a step may have waited for it."""
        self._context.presence.saw(party, self._context.clock())
        if self.holds_a_step:
            self.open_step()

    def open_step(self) -> None:
        """Open the step that is held, if all of its owners are online by now."""
        with self._lock:
            if not self.holds_a_step:
                return
            role = self._role.current()
            step = role.current_step
            if step is None or {*self._opening(role).absent(step)} == {*self.waiting_for}:
                return
            with self._role.guarded(), self._store.transaction():
                absent = self._opening(role).held(step)
                self._note_waiting(role, absent)
        if not absent:
            self._context.changed(self.digest, self.names)

    def approve(self, party: str, signature: bytes) -> StudyState:
        """Take in the approval of a party's owner; the last approval starts the study."""
        statement = approval_statement(study=self.digest, party=party)
        if not self.identity_of(party).signed(statement, signature=signature):
            raise WireError(ErrorCode.APPROVAL_INVALID, f"party {party!r}")
        with self._lock:
            state = self.record.state
            if state in (StudyState.REFUSED, StudyState.FAILED):
                raise WireError(ErrorCode.STUDY_CLOSED, state.value)
            with self._store.transaction():
                self._store.approve(self.digest, party, signature, at=self._context.now())
            self.called(party)
            self._start_when_all_approved()
            return self.record.state

    def decline(self, party: str, *, reason: str) -> StudyState:
        """Take in that a party's owner declines, or withdraws an approval.

        A study under way that may miss the party goes on without it; any other ends.

        Raises:
            WireError: STUDY_CLOSED: it has every result, or ended.
        """
        with self._lock:
            state = self.record.state
            if state is StudyState.REFUSED:
                return state
            if state not in (StudyState.WAITING, StudyState.RUNNING):
                raise WireError(ErrorCode.STUDY_CLOSED, state.value)
            approved = party in self._store.approvals(self.digest)
            word = f"{'withdrew' if approved else 'declined'}: {reason}"
            if state is StudyState.RUNNING and self.study.may_miss:
                self._go_on_without(party, word)
            else:
                self._end_early(StudyState.REFUSED, f"party {party!r} {word}")
        self._context.changed(self.digest, self.names)
        return self.record.state

    def abort(self, cause: str) -> None:
        """End the study for the operator, unless it is over.

        A study at work, which may take long, is not waited for: the request stays in the store, and
        the curator looks there every second.
        """
        with self._free_within(_ABORT_WAIT_S) as free:
            if free and not self.record.state.over:
                self._end_early(StudyState.FAILED, cause)

    def declare_missing(self, party: str) -> bool:
        """Go on without a party for good, or end a study that cannot; return whether it was done.

        It is not done while the study is at work, which may take long, or while no step is open:
        ask again later. A party that was declared missing before changes nothing.

        Raises:
            InputError: the study does not have the party.
            LocalError: the store could not be written; nothing changed.
        """
        if party not in self.names:
            raise InputError(f"study {short_id(self.digest)}: it has no party {party!r}")
        with self._free_within(_ABORT_WAIT_S) as free:
            if not free or self.record.state is not StudyState.RUNNING:
                return False
            self._go_on_without(party)
        self._context.changed(self.digest, self.names)
        return True

    def can_miss(self, parties: int) -> bool:
        """Return whether the study could go on now without so many parties more."""
        with self._free_within(_ABORT_WAIT_S) as free:
            if not free or self.record.state is not StudyState.RUNNING or not self.study.may_miss:
                return False
            return len(self._role.current().missing) + parties <= self.study.may_miss

    def _go_on_without(self, party: str, why: str = "") -> None:
        role = self._role.current()
        with self._role.guarded():
            effects = role.declare_missing(party, why=why)
            if not effects:
                return
            ending = StudyState.REFUSED if why else StudyState.FAILED
            with self._executing(role, effects, ending=ending):
                sequence = self._store.inbox.newest(self.digest, DECLARED) + 1
                self._keep(DECLARED, sequence, f"{party}\n{why}".encode(), effects)
        logger.warning(
            "study %s: %s %s; it is now %s", short_id(self.digest), party,
            why or "is declared missing", self.record.state.value,
        )  # fmt: skip

    def receive(self, party: str, sequence: int, body: bytes) -> None:
        """Take in a party's message of that number, durably.

        Raises:
            WireError: SEQUENCE_REUSED, OUT_OF_ORDER, OUT_OF_TURN or STUDY_CLOSED, or what is wrong
                with the bytes; nothing changed.
            RemoteProtocolError: the message is not allowed now; nothing changed.
            LocalError: the store could not be written; the same message can come again.
        """
        digest = self.digest
        with self._lock:
            self.called(party)
            if self._store.inbox.is_duplicate(digest, party, sequence=sequence, body=body):
                return
            self.require_running()
            if party in self._role.current().missing:
                raise WireError(ErrorCode.STUDY_CLOSED, f"{party!r} was declared missing")
            effects = self._take_in(party, sequence, body, codec.TO_CURATOR.decode(body))
        # Only a party that is sent something is woken: with K parties most messages cause none.
        self._context.changed(digest, [e.to for e in effects if isinstance(e, SendToParty)])

    def require_running(self) -> None:
        """Raise OUT_OF_TURN or STUDY_CLOSED unless the study takes new messages now."""
        state = self.record.state
        if state is StudyState.WAITING:
            raise WireError(ErrorCode.OUT_OF_TURN, "the study has not begun")
        if state is not StudyState.RUNNING:
            raise WireError(ErrorCode.STUDY_CLOSED, state.value)

    def _take_in(self, party: str, sequence: int, body: bytes, message: ToCurator) -> list[Effect]:
        role = self._role.current()
        refused = isinstance(message, PartyRefused)
        if self.holds_a_step and not refused:
            raise WireError(ErrorCode.OUT_OF_TURN, "the step is not open yet")
        number, step = role.step_number, role.current_step
        with self._role.guarded():
            effects = role.receive(party, message)
            ending = StudyState.REFUSED if refused else StudyState.FAILED
            with self._executing(role, effects, ending=ending):
                self._keep(party, sequence, body, effects)
                if step is not None and role.step_number > number:
                    links = published_links(self.study, step, role.results[-1])
                    if links:
                        self._store.note_links(self.digest, number, links)
                self._store.traffic.note(
                    message, len(body), party=party, sent=True, phase="", at=self._context.clock()
                )
        return effects

    def _keep(self, sender: str, sequence: int, body: bytes, effects: list[Effect]) -> None:
        self._store.inbox.add(
            self.digest, sender, sequence=sequence, body=body, effects=effect_names(effects),
            at=self._context.now(),
        )  # fmt: skip

    def _start_when_all_approved(self) -> None:
        if self.record.state is not StudyState.WAITING:
            return
        # Read from the study itself: an unreadable study is noticed before its last approval.
        if set(self.study.parties) - set(self._store.approvals(self.digest)):
            return
        make_key(self.study, self._store)
        with self._role.guarded():
            role = self._role.begin()
            with self._executing(role, role.start(), ending=StudyState.FAILED):
                self._store.move(self.digest, StudyState.RUNNING, step=0, phase="")
        logger.info("study %s: every party approved, it begins", short_id(self.digest))
        self._context.changed(self.digest, self.names)

    def _end_if_expired(self) -> None:
        """End a study that not all parties approved by its last day, which is over for an hour."""
        if self.record.state is not StudyState.WAITING:
            return
        today = self._context.clock().astimezone(dt.UTC).date()
        if self._expired.holds(called=self.study.expired(today), now=self._context.monotonic()):
            self._end_early(
                StudyState.FAILED,
                f"not approved by {', '.join(self.waiting_for)} by {self.study.expires}, its last "
                "day (expires). Nothing was charged",
            )

    @contextmanager
    def _executing(
        self, role: CuratorRole, effects: list[Effect], *, ending: StudyState
    ) -> Iterator[None]:
        """Store what the block writes, and then the role's effects, in one transaction."""
        with self._store.transaction():
            yield
            self._execute(role, effects, ending)
        # A party may have called between the look at who is online and this line: its call did not
        # see yet that a step is held. Whoever calls from here on does.
        self.open_step()
        if self.record.state is StudyState.PUBLISHING:
            self._publish_later()

    def _execute(self, role: CuratorRole, effects: list[Effect], ending: StudyState) -> None:
        """Write the effects down in order, in the caller's transaction, and who is awaited."""
        anew = self.record.step != role.step_number
        digest, encoded = self.digest, lru_cache(1)(codec.TO_PARTY.encode)  # of one to all, once
        step = role.current_step
        phase = step.phase if step else ""
        opening: bytes | None = None
        if effects:
            self._store.move(digest, StudyState.RUNNING, step=role.step_number, phase=phase)
        for effect in effects:
            match effect:
                case SendToParty(message=StudyFinished()):
                    continue  # is queued when the release is made
                case SendToParty(message=StepOpened()):
                    opening = encoded(effect.message)  # the same to all, and the last to each
                case SendToParty(message=message):
                    self._context.queue(message, encoded(message), [effect.to], phase=phase)
                case Finish():
                    number = role.step_number
                    self._store.move(digest, StudyState.PUBLISHING, step=number, phase="")
                case Leave(party=party, step=number, reason=reason):
                    at = self._context.now()
                    self._store.note_absence(digest, party, number, reason, at=at)
                    logger.warning("study %s: %s; it goes on", short_id(digest), reason)
                case Warn(words=words):
                    logger.warning("study %s: %s", short_id(digest), words)
                    self._store.add_alert(digest, "dispute", words=words, at=self._context.now())
                case Fail():
                    self._store.end(
                        digest, ending, cause=effect.reason, place="", at=self._context.now()
                    )
                case _:
                    assert_never(effect)
        absent: tuple[str, ...] = ()
        if opening is not None and step is not None:
            absent = self._opening(role).now_or_later(step, opening)
        elif step is not None and self.holds_a_step:  # a party less to wait for
            absent = self._opening(role).held(step)
        self._note_waiting(role, absent, anew=anew)

    def _opening(self, role: CuratorRole) -> StepOpening:
        return StepOpening(self.study, role, self._context)

    def _note_waiting(
        self, role: CuratorRole, absent: tuple[str, ...], *, anew: bool = False
    ) -> None:
        """Note whom the study waits for now, in the caller's transaction."""
        word = Word.CALL if absent else Word.ANSWER
        names = absent or role.waiting_for
        self._store.wait_for(self.digest, names, word, at=self._context.now(), anew=anew)

    def _publish_later(self) -> None:
        self._publishing = True
        self._context.later(self._publish)

    def _publish(self) -> None:
        """Make the release, tell every party, close the study."""
        with self._lock:
            try:
                if self.record.state is StudyState.PUBLISHING:
                    role = self._role.current()
                    outcome = self._outcome(role)
                    place = self._context.publish(outcome)
                    if outcome.left:
                        with self._store.transaction():
                            self._store.note_sums(self.digest, outcome.sums_of_left)
                    self._finish(StudyState.DONE, role.finished, place=str(place))
            except Exception as error:  # noqa: BLE001  # tried again
                self._fail("the release cannot be made", error)
            finally:
                self._publishing = False

    def _outcome(self, role: CuratorRole) -> FinishedStudy:
        return FinishedStudy(
            study=self.study,
            model=role.model(),
            steps=role.steps,
            results=role.results,
            private=self._store.keys.private,
            traffic=self._store.traffic.phases(self.digest),
            left=role.missing,
            disputes=tuple(map(told_dispute, role.judged)),
            commitments=role.commitments,
        )

    def _end_early(self, state: StudyState, cause: str) -> None:
        cause = cause[:MOST_TEXT]  # a party's own reason may be as long as a message's can be
        self._finish(state, StudyAborted(study=self.digest, reason=cause), cause=cause)

    def _finish(
        self, state: StudyState, last: ToParty, *, cause: str = "", place: str = ""
    ) -> None:
        """Close the study; `last` is the last message to every party."""
        body = codec.TO_PARTY.encode(last)
        with self._store.transaction():
            self._context.queue(last, body, self.names)
            self._store.end(self.digest, state, cause=cause, place=place, at=self._context.now())
        self._role.forget()
        logger.info("study %s: %s", short_id(self.digest), state.value)
        self._context.changed(self.digest, self.names)
