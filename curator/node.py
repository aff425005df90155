"""The shell that runs the curator's role of one study: store, then send; after a crash the same.

A party's message is given to the role, and what comes of it is stored in ONE transaction: the
message, and the messages it causes to the parties. The server sends from there. The role is
deterministic given the study, the messages in order and the random source of each step, so feeding
it the stored messages again brings it back.

`StudyFinished` says that the release is made, so it is queued when it is: between the last result
and the release the study is PUBLISHING, and a crash there makes the release again.

    node = StudyNode(study, ...)
    node.resume()                              # goes on where a crash stopped it
    node.approve("north", signature)           # the last approval starts the study
    node.receive("north", 1, body)             # for every message, in order; duplicates do no harm
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import assert_never

from common.crypto.paillier import generate_key_pair
from common.errors import ParleyError, RemoteProtocolError
from common.messages import (
    MOST_TEXT,
    Message,
    PartyRefused,
    StudyAborted,
    StudyFinished,
    ToCurator,
    ToParty,
)
from common.privacy.randomness import KeyedRandomSource
from common.rounds import needs_key
from common.study import Study
from common.wire import approval, codec
from common.wire.catalogue import ErrorCode, WireError
from curator.effects import Effect, Fail, Finish, Send
from curator.progress import chosen_links, step_record
from curator.records import Record, StudyState
from curator.surroundings import Outcome, Surroundings
from curator.work import Work, effect_name

logger = logging.getLogger(__name__)

_ABORT_WAIT_S = 0.2
_KEY_STEP = -1  # the randomness of what precedes the first step: the Paillier key


class StudyNode:
    """One study at the curator. Threads may share it."""

    def __init__(self, study: Study, around: Surroundings) -> None:
        self.study = study
        self.names = tuple(member.name for member in study.members)
        self._around = around
        self._store = around.store
        self._lock = threading.RLock()
        self._work: Work | None = None
        self._waiting_for: tuple[str, ...] = ()

    @property
    def record(self) -> Record:
        """Where the study stands."""
        return self._store.record(self.study.digest)

    @property
    def waiting_for(self) -> tuple[str, ...]:
        """The parties whose next word would bring the study on."""
        if self.record.state is StudyState.WAITING:
            approved = self._store.approvals(self.study.digest)
            return tuple(name for name in self.names if name not in approved)
        return self._waiting_for

    def resume(self) -> None:
        """Go on where the last process stopped."""
        with self._lock:
            self._start_when_all_approved()
            if self.record.state is StudyState.RUNNING:
                self._current()
            elif self.record.state is StudyState.PUBLISHING:
                self._around.later(self._publish)

    def approve(self, party: str, signature: bytes) -> StudyState:
        """A party's owner approved; the last approval starts the study.

        Raises:
            WireError: APPROVAL_INVALID, or STUDY_CLOSED.
        """
        identity = next(m.identity for m in self.study.members if m.name == party)
        approval.require(
            study=self.study.digest, party=party, signature=signature, identity=identity
        )
        with self._lock:
            state = self.record.state
            if state in (StudyState.REFUSED, StudyState.FAILED):
                raise WireError(ErrorCode.STUDY_CLOSED, state.value)
            with self._store.transaction():
                self._store.approve(self.study.digest, party, signature, at=self._around.now())
            self._start_when_all_approved()
            return self.record.state

    def decline(self, party: str, reason: str) -> StudyState:
        """A party's owner does not approve, or does not any more: the study ends.

        Raises:
            WireError: STUDY_CLOSED: it has every result, or ended.
        """
        with self._lock:
            state = self.record.state
            if state is StudyState.REFUSED:
                return state
            if state not in (StudyState.WAITING, StudyState.RUNNING):
                raise WireError(ErrorCode.STUDY_CLOSED, state.value)
            approved = party in self._store.approvals(self.study.digest)
            word = "withdrew" if approved else "declined"
            self._end_early(StudyState.REFUSED, f"party {party!r} {word}: {reason}")
            return StudyState.REFUSED

    def abort(self, cause: str) -> None:
        """The operator gives the study up; nothing happens if it is over.

        Nor while it is at work, which may take long: the request stays in the store, and whoever
        looks there has other studies to see to and comes again.
        """
        if not self._lock.acquire(timeout=_ABORT_WAIT_S):
            return
        try:
            if not self.record.state.over:
                self._end_early(StudyState.FAILED, cause)
        finally:
            self._lock.release()

    def receive(self, party: str, sequence: int, body: bytes) -> None:
        """Take in a party's message of that number, durably.

        Raises:
            WireError: SEQUENCE_REUSED, OUT_OF_ORDER, OUT_OF_TURN or STUDY_CLOSED, or what is wrong
                with the bytes; nothing changed.
            RemoteProtocolError: the message is not allowed now; nothing changed.
            LocalError: the store could not be written; the same message can come again.
        """
        digest = self.study.digest
        with self._lock:
            newest = self._store.newest_incoming(digest, party)
            if sequence > newest + 1:
                raise WireError(ErrorCode.OUT_OF_ORDER, f"message {sequence} after {newest}")
            if sequence <= newest:
                before = self._store.incoming_digest(digest, party, sequence)
                if before != hashlib.sha256(body).digest():
                    raise WireError(ErrorCode.SEQUENCE_REUSED, f"message {sequence} of {party!r}")
                return
            self.require_running()
            effects = self._take_in(party, sequence, body, codec.decode_to_curator(body))
            if self.record.state is StudyState.PUBLISHING:
                self._around.later(self._publish)
        # Only whoever is sent something is woken: with K parties most messages cause none.
        self._around.changed(digest, [e.to for e in effects if isinstance(e, Send)])

    def require_running(self) -> None:
        """Raise unless the study takes new messages now.

        Raises:
            WireError: OUT_OF_TURN or STUDY_CLOSED.
        """
        state = self.record.state
        if state is StudyState.WAITING:
            raise WireError(ErrorCode.OUT_OF_TURN, "the study has not begun")
        if state is not StudyState.RUNNING:
            raise WireError(ErrorCode.STUDY_CLOSED, state.value)

    def _take_in(self, party: str, sequence: int, body: bytes, message: ToCurator) -> list[Effect]:
        work = self._current()
        drawn = work.drawn
        number, step = work.role.step_number, work.role.current_step
        try:
            effects = work.role.receive(party, message)
            with self._store.transaction():
                self._store.add_incoming(
                    self.study.digest, party, sequence, body,
                    effects=[effect_name(effect) for effect in effects], at=self._around.now(),
                )  # fmt: skip
                if links := chosen_links(self.study, step, message) if effects else ():
                    self._store.note_links(self.study.digest, number, links)
                self._note(message, len(body), party, sent=True)
                refused = isinstance(message, PartyRefused)
                self._execute(work, effects, StudyState.REFUSED if refused else StudyState.FAILED)
        except BaseException as error:
            # The role may be ahead of the store now, or its streams may be; the next message
            # rebuilds it.
            if not isinstance(error, RemoteProtocolError) or work.drawn != drawn:
                self._work = None
            raise
        self._waiting_for = work.note_step()
        return effects

    def _start_when_all_approved(self) -> None:
        if self.record.state is not StudyState.WAITING:
            return
        if set(self.names) - set(self._store.approvals(self.study.digest)):
            return
        self._make_key()
        work = self._begin()
        effects = work.role.start()
        with self._store.transaction():
            self._store.move(self.study.digest, StudyState.RUNNING, step=0, phase="")
            self._execute(work, effects, StudyState.FAILED)
        self._work = work
        self._waiting_for = work.note_step()
        logger.info("study %s: every party approved, it begins", self.study.digest.hex()[:16])
        self._around.changed(self.study.digest, self.names)

    def _make_key(self) -> None:
        if needs_key(self.study) and self._store.paillier_key(self.study.digest) is None:
            source = KeyedRandomSource(
                self._store.step_key(self.study.digest, _KEY_STEP), private=self._store.private
            )
            key = generate_key_pair(self.study.key_bits, source)
            self._store.keep_paillier_key(self.study.digest, key)

    def _execute(self, work: Work, effects: Sequence[Effect], ending: StudyState) -> None:
        """Write the effects down in order, in the caller's transaction."""
        digest, encoded = self.study.digest, _Encoder()
        step = work.role.current_step
        phase = step.phase if step else ""
        if effects:
            self._store.move(digest, StudyState.RUNNING, step=work.role.step_number, phase=phase)
            if step is not None:
                opened = step_record(self.study, work.role.step_number, step, at=self._around.now())
                self._store.note_step(digest, opened)
        for effect in effects:
            match effect:
                case Send(message=StudyFinished()):
                    continue  # is queued when the release is made
                case Send():
                    body = encoded(effect.message)
                    self._store.queue(digest, effect.to, body)
                    self._note(effect.message, len(body), effect.to, sent=False, phase=phase)
                case Finish():
                    number = work.role.step_number
                    self._store.move(digest, StudyState.PUBLISHING, step=number, phase="")
                case Fail():
                    self._store.end(
                        digest, ending, cause=effect.reason, place="", at=self._around.now()
                    )
                case _:
                    assert_never(effect)

    def _publish(self) -> None:
        """Make the release, tell everybody, close the study."""
        with self._lock:
            if self.record.state is not StudyState.PUBLISHING:
                return
            work = self._current()
            outcome = Outcome(
                study=self.study,
                model=work.role.model(),
                steps=tuple(work.steps.values()),
                results=work.role.results,
                private=self._store.private,
                traffic=self._store.traffic.phases(self.study.digest),
            )
            try:
                place = self._around.publish(outcome)
            except (ParleyError, OSError) as error:
                logger.exception("study %s: no release", self.study.digest.hex()[:16])
                cause = f"the release cannot be made: {error}. Restart the curator to try again"
                self._store.note_cause(self.study.digest, cause)
                return
            self._finish(StudyState.DONE, StudyFinished(study=self.study.digest), place=str(place))

    def _end_early(self, state: StudyState, cause: str) -> None:
        cause = cause[:MOST_TEXT]  # a party's own reason may be as long as a message's can be
        told = StudyAborted(study=self.study.digest, reason=cause)
        self._finish(state, told, cause=cause)

    def _finish(
        self, state: StudyState, told: ToParty, *, cause: str = "", place: str = ""
    ) -> None:
        body = codec.encode_to_party(told)
        with self._store.transaction():
            for name in self.names:
                self._store.queue(self.study.digest, name, body)
                self._note(told, len(body), name, sent=False)
            self._store.end(
                self.study.digest, state, cause=cause, place=place, at=self._around.now()
            )
        self._work, self._waiting_for = None, ()
        logger.info("study %s: %s", self.study.digest.hex()[:16], state.value)
        self._around.changed(self.study.digest, self.names)

    def _note(
        self, message: Message, size: int, party: str, *, sent: bool, phase: str = ""
    ) -> None:
        self._store.traffic.note(
            message, size, party=party, sent=sent, phase=phase, at=self._around.clock()
        )

    def _begin(self) -> Work:
        key = self._store.paillier_key(self.study.digest) if needs_key(self.study) else None
        return Work(self.study, self._around, key)

    def _current(self) -> Work:
        """The role at work, rebuilt from the store after a crash."""
        if self._work is None:
            work = self._begin()
            work.role.start()
            work.note_step()
            for message in self._store.incoming(self.study.digest):
                work.replay(message.sender, message.body, message.effects)
            self._work = work
            self._waiting_for = work.note_step()
        return self._work


@dataclass(slots=True)
class _Encoder:
    """Encodes a message to all parties once."""

    message: ToParty | None = None
    body: bytes = field(default=b"", repr=False)

    def __call__(self, message: ToParty) -> bytes:
        if message is not self.message:
            self.message, self.body = message, codec.encode_to_party(message)
        return self.body
