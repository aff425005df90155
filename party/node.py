"""The shell that runs a party's role: it journals and charges, and only then sends.

For every message the node asks the role what to do, and writes the message, the charges and the
answers down in ONE transaction. Only when that is on disk does anything leave. A crash before the
transaction leaves no trace but the keys of steps, so the same message finds the same randomness; a
crash after it leaves the answers in the outbox, to be sent unchanged. The role is rebuilt by a
replay of the journal (`common.service.durable`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict

from common.errors import PolicyError, RemoteProtocolError
from common.privacy.randomness import SourceOfStep
from common.service.durable import DurableRole, Received
from common.service.process import Clock, stamp
from common.study.document import Study
from common.study.messages import (
    Message,
    PartyRefused,
    StepMessage,
    StudyAborted,
    StudyFinished,
    ToCurator,
    ToParty,
)
from common.wire import codec
from common.wire.frames import NumberedMessage
from party.journal import CURATOR, Journal, JournalState
from party.ledger import Caps, Ledger, LedgerCharge
from party.role import ChargeBudget, Effect, PartyRole, SendToCurator
from party.sources.source import Snapshot

# What the curator learns about a refusal. The owner's reason stays in the journal.
_PUBLIC_REFUSAL = "the owner's budget or policy does not allow this"
_PUBLIC_WITHDRAWAL = "the owner does not take part in this study any more"
_PUBLIC_OBJECTION = "the curator's message is not one that the approved study allows"


class PartyNode:
    """One study at one party. Used from one thread.

    `send` hands bytes to the network; what it raises leaves them in the outbox. `consents` says
    whether the owner still takes part; it is asked in the transaction of every message. `caps` are
    those of the owner's policy as it is now, asked for every message.
    """

    def __init__(
        self,
        study: Study,
        snapshot: Snapshot,
        *,
        party: str,
        role: Callable[[SourceOfStep], PartyRole],
        journal: Journal,
        ledger: Ledger,
        caps: Callable[[], Caps],
        clock: Clock,
        send: Callable[[NumberedMessage], None],
        consents: Callable[[], bool],
    ) -> None:
        self._study, self._snapshot, self._party = study, snapshot, party
        self._journal, self._ledger, self._caps = journal, ledger, caps
        self._clock, self._send, self._consents = clock, send, consents
        self._role = DurableRole(
            study.name,
            begin=role,
            feed=self._feed,
            messages=lambda: journal.inbox.messages(study.digest),
            key_of=lambda step: journal.step_key(study.digest, step),
            private=journal.keys.private,
        )
        journal.begin(study.digest, name=study.name, data_digest=snapshot.digest, at=self._now())

    @property
    def state(self) -> JournalState:
        return self._journal.state(self._study.digest)

    @property
    def newest_received(self) -> int:
        """The sequence of the newest journalled message: what to acknowledge."""
        return self._journal.inbox.newest(self._study.digest, CURATOR)

    def resume(self) -> None:
        """Send again, in order, what the curator has not acknowledged."""
        for outgoing in self._journal.outbox.due(self._study.digest, CURATOR):
            self._send(outgoing)

    def acknowledge(self, newest: int) -> None:
        self._journal.acknowledge(self._study.digest, newest, at=self._now())

    def receive(self, sequence: int, body: bytes) -> None:
        """Take in the curator's message of that sequence, durably, and send what it asks for.

        Raises:
            RemoteProtocolError: the message is not allowed; nothing changed.
            LocalError: the journal could not be written; nothing was charged or sent, and the same
                message can be received again.
        """
        if self._journal.inbox.is_duplicate(
            self._study.digest, CURATOR, sequence=sequence, body=body
        ):
            return
        message = codec.TO_PARTY.decode(body)
        if message.study != self._study.digest:
            raise RemoteProtocolError("a message belongs to another study")
        if self.state is not JournalState.RUNNING:
            self._take_note(sequence, body, message)
            return
        for outgoing in self._take_in(sequence, body, message):
            self._send(outgoing)

    def refuse(self, error: RemoteProtocolError | PolicyError) -> None:
        """Go no further: tell the curator so, and our own journal why. Nothing if it is over."""
        if self.state is not JournalState.RUNNING:
            return
        objection = isinstance(error, RemoteProtocolError)
        refusal = PartyRefused(
            study=self._study.digest,
            step=self._journal.traffic.newest_step(self._study.digest),
            reason=_PUBLIC_OBJECTION if objection else _PUBLIC_REFUSAL,
        )
        outcome = _Done()
        with self._journal.transaction():
            self._journal_outgoing(refusal, outcome)
            self._journal.end(
                self._study.digest, JournalState.REFUSED, reason=str(error), at=self._now()
            )
        self._role.forget()
        for outgoing in outcome.outgoing:
            self._send(outgoing)

    def _take_note(self, sequence: int, body: bytes, message: ToParty) -> None:
        """Remember what still comes for a study that ended here, and never answer it.

        If we refused, the curator may have sent more before it heard of it. If the curator ended
        the study, nothing follows but another message of the end.
        """
        refused = self.state is JournalState.REFUSED
        if not refused and not isinstance(message, StudyAborted | StudyFinished):
            raise RemoteProtocolError("the study is over for this party")
        with self._journal.transaction():
            self._journal.add_received(
                self._study.digest, sequence=sequence, body=body, effects=(), at=self._now()
            )
            if isinstance(message, StudyFinished):
                self._journal.leave(self._study.digest)

    def _take_in(self, sequence: int, body: bytes, message: ToParty) -> list[NumberedMessage]:
        role, caps = self._role.current(), self._caps()
        with self._role.guarded():
            effects, refusal = _ask(role, message)
            with self._journal.transaction():
                self._note(message, len(body), sent=False, phase=role.phase)
                if self._consents() or isinstance(message, StudyAborted | StudyFinished):
                    outcome = self._execute(message, effects, refusal, caps)
                else:  # the owner's no was written down before this message came
                    outcome = _Done()
                    self._refuse(
                        message, "the owner withdrew", outcome, public_reason=_PUBLIC_WITHDRAWAL
                    )
                digest, now = self._study.digest, self._now()
                self._journal.add_received(
                    digest, sequence=sequence, body=body, effects=outcome.effects, at=now
                )
                if outcome.ending is not None:
                    self._journal.end(digest, outcome.ending, reason=outcome.reason, at=now)
        if outcome.ending is not None:
            self._role.forget()
        return outcome.outgoing

    def _execute(
        self, message: ToParty, effects: Sequence[Effect], refusal: str, caps: Caps
    ) -> _Done:
        """Write the effects down in order; a refused charge drops the rest of them."""
        outcome = _Done()
        if refusal:
            self._refuse(message, refusal, outcome)
        for effect in effects:
            if isinstance(effect, SendToCurator):
                self._journal_outgoing(effect.message, outcome)
                continue
            try:
                self._charge(effect, caps)
            except PolicyError as error:
                self._refuse(message, str(error), outcome)
                break
            outcome.effects.append(effect_name(effect))
        if outcome.ending is None:
            if isinstance(message, StudyFinished):
                outcome.ending = JournalState.FINISHED
            elif isinstance(message, StudyAborted):
                outcome.ending, outcome.reason = JournalState.ABORTED, message.reason
        return outcome

    def _charge(self, effect: ChargeBudget, caps: Caps) -> None:
        study = self._study
        if self._snapshot.simulated:  # the rows are no owner's: nothing is charged for them
            return
        charge = LedgerCharge(
            study=study.digest.hex(),
            study_name=study.name,
            rows_per_person=study.person_rows,
            owners_per_person=study.owners_per_person,
            **asdict(effect),
        )
        self._ledger.charge(charge, caps, self._now())

    def _refuse(
        self, message: ToParty, reason: str, outcome: _Done, *, public_reason: str = _PUBLIC_REFUSAL
    ) -> None:
        step = getattr(message, "step", 0)
        self._journal_outgoing(
            PartyRefused(study=self._study.digest, step=step, reason=public_reason), outcome
        )
        outcome.reason = reason

    def _journal_outgoing(self, message: ToCurator, outcome: _Done) -> None:
        body = codec.TO_CURATOR.encode(message)
        sealed_to = message.peer if isinstance(message, StepMessage) else ""
        outgoing = self._journal.add_outgoing(
            self._study.digest,
            body,
            kind=codec.TO_CURATOR.name_of(message),
            recipient="curator" if not sealed_to else f"party {sealed_to}, sealed",
            at=self._now(),
        )
        self._note(message, len(body), sent=True, phase="")
        outcome.effects.append(effect_name(SendToCurator(message=message)))
        outcome.outgoing.append(outgoing)
        if isinstance(message, PartyRefused):
            outcome.ending, outcome.reason = JournalState.REFUSED, message.reason

    def _note(self, message: Message, size: int, *, sent: bool, phase: str) -> None:
        self._journal.traffic.note(
            message, size, party=self._party, sent=sent, phase=phase, at=self._clock()
        )

    def _feed(self, role: PartyRole, earlier: Received) -> list[str]:
        return [effect_name(effect) for effect in role.receive(codec.TO_PARTY.decode(earlier.body))]

    def _now(self) -> str:
        return stamp(self._clock())


def _ask(role: PartyRole, message: ToParty) -> tuple[Sequence[Effect], str]:
    """Return the role's effects, or the reason for its refusal."""
    try:
        return role.receive(message), ""
    except PolicyError as refusal:
        return (), str(refusal)


class _Done:
    """What came of one message, gathered inside its transaction."""

    def __init__(self) -> None:
        self.effects: list[str] = []
        self.outgoing: list[NumberedMessage] = []
        self.ending: JournalState | None = None
        self.reason = ""


def effect_name(effect: Effect) -> str:
    """Name what a replay must come to again: the kind of an effect, not its bytes."""
    if isinstance(effect, ChargeBudget):
        return f"charge {effect.step}: {effect.rho or effect.epsilon}"
    return f"send {codec.TO_CURATOR.name_of(effect.message)}"
