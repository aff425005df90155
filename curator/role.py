"""The curator's half of a study, as a state machine without I/O.

It opens one step after the other, relays sealed envelopes it cannot read, takes what is submitted
to it, and publishes each step's noisy result to every party. It learns noisy sums and nothing else:
the only thing it ever decrypts is the full product of a sum. Its shell, `curator.session`, carries
out the effects that it returns, in their order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, assert_never

from common.crypto.paillier.keys import PrivateKey
from common.crypto.sums.plan import ContributionSubmitted, Noise, SumPlan
from common.crypto.sums.recovery import RecoverableCurator
from common.crypto.sums.secure_sum import SumCurator
from common.errors import LocalError, RemoteProtocolError
from common.privacy.randomness import SourceOfStep
from common.study.document import Study
from common.study.history import History
from common.study.messages import (
    MOST_TEXT,
    BoxDisputed,
    BoxJudged,
    BoxOpened,
    BoxRefused,
    ChoiceSubmitted,
    EnvelopePosted,
    EnvelopeRelayed,
    KeysDealt,
    KeysRelayed,
    ListPublished,
    ListSigned,
    MasksRevealed,
    PartyRefused,
    ResultPublished,
    ShareSubmitted,
    SignaturesRelayed,
    StepOpened,
    StudyAborted,
    StudyFinished,
    StudyOpened,
    ToCurator,
    ToParty,
    message_digest,
)
from common.study.script import ScriptRun
from common.study.steps import ChoiceStep, Model, ReplaceStep, Step, SumStep, step_digest
from common.study.sums import encode_result, needs_key, sum_plan_of
from curator.disputes import Disputes, why_at_fault
from curator.seeds import SeedRelay
from curator.states import ALLOWED, IN_A_STEP, ROUNDS, Effect, Fail, Finish, Leave, Send, State


class CuratorRole:
    """The curator of one study."""

    def __init__(
        self,
        *,
        study: Study,
        run: ScriptRun,
        private_key: PrivateKey | None,
        source_of: SourceOfStep,
    ) -> None:
        if needs_key(study) != (private_key is not None):
            raise LocalError("a Paillier key is needed for aggregation 'paillier', and only there")
        if private_key is not None and private_key.public_key.bits != study.key_bits:
            raise LocalError(f"the study asks for a key of {study.key_bits} bits")
        self._study, self._run = study, run
        self._private_key, self._source_of = private_key, source_of
        self._history = History(study.digest)
        self.state = State.AWAITING_START
        self._number = 0
        self._results: list[bytes] = []
        self._sum: SumCurator | None = None
        self._recoverable: RecoverableCurator | None = None
        self._disputes = Disputes()  # of the open sum
        self.judged: list[tuple[BoxJudged, str]] = []  # of the study, each with the party at fault
        self._missing: set[str] = set()  # declared missing: out for the rest of the study
        self._listed: tuple[str, ...] = ()  # missing in the newest sum
        self._pending: set[str] = set()  # whose word a round of a recoverable sum waits for
        self._open_plan: SumPlan
        self._awaited_chunks: set[tuple[str, int]] = set()
        self._awaited_relays: dict[str, int] = {}
        self._awaited_seeds: set[str] = set()
        self._seeds = SeedRelay(study)
        self._seen: set[tuple[str, bytes]] = set()

    @property
    def step_number(self) -> int:
        """How many steps have their result."""
        return self._number

    @property
    def results(self) -> tuple[bytes, ...]:
        """What was published, step after step."""
        return tuple(self._results)

    @property
    def current_step(self) -> Step | None:
        """The step that is open now, for progress reports."""
        return self._run.step() if self.state in IN_A_STEP else None

    @property
    def steps(self) -> tuple[Step, ...]:
        """Every step that has its result, with the parties that are in it."""
        return self._run.made

    @property
    def missing(self) -> tuple[str, ...]:
        """The parties that were declared missing, in the order of the study."""
        return tuple(name for name in self._study.parties if name in self._missing)

    @property
    def left(self) -> tuple[str, ...]:
        """The parties that were not declared missing, in the order of the study."""
        return tuple(name for name in self._study.parties if name not in self._missing)

    @property
    def finished(self) -> StudyFinished:
        """The last message of a study that has every result."""
        return StudyFinished(study=self._study.digest, missing=self.missing)

    @property
    def waiting_for(self) -> tuple[str, ...]:
        """The parties whose message the study waits for."""
        if self.state is State.AWAITING_SEEDS:
            waits = self._study.agreement  # for everyone, or for the first to propose a permutation
            return tuple(sorted(self._pending)) if waits else self._study.parties[:1]
        step = self.current_step
        if isinstance(step, ChoiceStep):
            return step.parties
        if step is None:
            return ()
        if self.state in ROUNDS:
            return tuple(sorted(self._pending))
        for name, awaited in self._awaited_relays.items():
            if awaited:
                return (name,)  # nothing reaches the parties after it in the ring
        return tuple(sorted({name for name, _ in self._awaited_chunks}))

    def model(self) -> Model:
        """Return what was learnt; only after `Finish`."""
        if self.state is not State.FINISHED:
            raise LocalError(f"there is no model yet: the curator waits for {self.state.value}")
        return self._run.model()

    def start(self) -> list[Effect]:
        """Open the study: every party has approved."""
        if self.state is not State.AWAITING_START:
            raise LocalError("the study was started before")
        key = b"" if self._private_key is None else self._private_key.public_key.to_bytes()
        self._history.add_key(key)
        effects = self._to_all(StudyOpened(study=self._study.digest, public_key=key))
        others = self._study.parties[1:]
        if self._study.agreement:
            self._await(State.AWAITING_SEEDS)
            return effects
        if self._private_key is not None and self._study.noise is Noise.ONE_SHARE and others:
            self._awaited_seeds = set(others)
            self.state = State.AWAITING_SEEDS
            return effects
        return effects + self._open_next()

    def receive(self, sender: str, message: ToCurator) -> list[Effect]:
        """Consume one message; return effects in the order they must happen."""
        if sender not in self._study.parties:
            raise RemoteProtocolError(f"{sender!r} is not a party of this study")
        if sender in self._missing:
            raise RemoteProtocolError(
                f"{sender!r} was declared missing and is out for the rest of the study: its "
                f"{type(message).__name__} is refused"
            )
        if message.study != self._study.digest:
            raise RemoteProtocolError(f"the message of {sender!r} belongs to another study")
        fingerprint = (sender, message_digest(message))
        if fingerprint in self._seen:
            return []
        if not isinstance(message, ALLOWED[self.state]):
            raise RemoteProtocolError(
                f"{type(message).__name__} of {sender!r} is not expected: the curator is waiting "
                f"for {self.state.value}"
            )
        # A refusal counts whenever it comes: it may be of what was published with the last step.
        if message.step != self._number and not isinstance(message, PartyRefused):
            raise RemoteProtocolError(
                f"{sender!r} speaks of step {message.step}; step {self._number} is open"
            )
        effects = self._handle(sender, message)
        self._seen.add(fingerprint)
        return effects

    def _handle(self, sender: str, message: ToCurator) -> list[Effect]:
        match message:
            case EnvelopePosted():
                return self._relay(sender, message)
            case ShareSubmitted():
                return self._collect(sender, message)
            case KeysDealt() if self.state is State.AWAITING_SEEDS:
                return self._take_seeds(sender, message)
            case KeysDealt() | ListSigned() | MasksRevealed():
                return self._take_word(sender, message)
            case BoxRefused():
                return self._take_accusation(sender, message)
            case BoxOpened():
                return self._take_answer(sender, message)
            case ChoiceSubmitted():
                return self._take_choice(sender, message)
            case PartyRefused():
                reason = f"party {sender!r} refused step {message.step}: {message.reason}"
                may_miss = self._study.may_miss
                return self._do_without(sender, reason) if may_miss else self.abort(reason)
            case _:
                assert_never(message)

    def abort(self, reason: str) -> list[Effect]:
        """End the study without a release."""
        reason = reason[:MOST_TEXT]  # a party's own reason may be as long as a message's can be
        self.state = State.FAILED
        self._sum = self._recoverable = None
        told = self._to_all(StudyAborted(study=self._study.digest, reason=reason))
        return [*told, Fail(reason=reason)]

    def declare_missing(self, party: str, *, why: str = "") -> list[Effect]:
        """Go on without a party for the rest of the study, or end a study that cannot.

        A party that was declared missing before changes nothing. `why` says that it withdrew.
        """
        early = self.state is State.AWAITING_SEEDS and self._study.agreement
        if party not in self._study.parties or not (early or self.state in IN_A_STEP):
            raise LocalError(f"{party!r} cannot be declared missing: no step is open for it")
        if party in self._missing:
            return []
        word = why or f"is missing in step {self._number}"
        return self._do_without(party, f"party {party!r} {word}")

    def _do_without(self, party: str, reason: str) -> list[Effect]:
        return [*self._leave(party, reason), *self._next_round()]

    def _leave(self, party: str, reason: str) -> list[Effect]:
        """Take a party out for the rest of the study, or end a study that cannot do without it."""
        allowed = self._study.may_miss
        if len(self._missing) == allowed:
            also = f"; {', '.join(self.missing)} went missing before" if self._missing else ""
            return self.abort(f"{reason}{also}. The study can do without {allowed} (may_miss)")
        told = (
            f"this party was declared missing in step {self._number} and is out for the rest of "
            f"the study; what it sent stays charged. The curator's reason: {reason}"
        )
        self._missing.add(party)
        self._pending.discard(party)
        self._awaited_chunks = {each for each in self._awaited_chunks if each[0] != party}
        out = StudyAborted(study=self._study.digest, reason=told[:MOST_TEXT])
        return [Leave(party=party, step=self._number, reason=reason), Send(to=party, message=out)]

    def _take_accusation(self, sender: str, message: BoxRefused) -> list[Effect]:
        """Take in that a party cannot open a partner's box; it sends no words before a verdict."""
        chunks = {each for each in self._awaited_chunks if each[0] == sender}
        if self._recoverable is None or len(chunks) < self._open_plan.chunks:
            raise RemoteProtocolError(f"a BoxRefused of {sender!r} is not expected here")
        self._disputes.accuse(
            self._recoverable, dealer=message.dealer, receiver=sender, signature=message.signature
        )
        self._awaited_chunks -= chunks
        return self._next_round()

    def _take_answer(self, sender: str, message: BoxOpened) -> list[Effect]:
        self._disputes.answer(dealer=sender, receiver=message.receiver, secret=message.secret)
        if any(dealer == sender for dealer, _ in self._disputes.unanswered(self.left)):
            return []
        self._pending.discard(sender)
        return self._next_round()

    def _take_seeds(self, sender: str, message: KeysDealt) -> list[Effect]:
        """Take a party's sealed seeds of masks; all are relayed when the last party's are in."""
        if sender not in self._pending:
            raise RemoteProtocolError(f"{sender!r} dealt the seeds of this study before")
        self._seeds.take(sender, message.payload)
        self._pending.discard(sender)
        return self._next_round()

    def _relay_seeds(self) -> list[Effect]:
        relayed, absent = self._seeds.relayed(self.missing).items(), self.missing
        told = [self._send(name, KeysRelayed, missing=absent, payload=own) for name, own in relayed]
        return [*told, *self._open_next()]

    def _take_word(
        self, sender: str, message: KeysDealt | ListSigned | MasksRevealed
    ) -> list[Effect]:
        """Take one party's message in a round of a recoverable sum."""
        if sender not in self._pending or self._recoverable is None:
            raise RemoteProtocolError(
                f"a {type(message).__name__} of {sender!r} is not expected in step {message.step}"
            )
        match message:
            case KeysDealt():
                self._recoverable.take_offer(sender, message.payload)
            case ListSigned():
                self._recoverable.take_signature(sender, message.signature)
            case MasksRevealed():
                self._recoverable.take_revealed(sender, message.payload)
        self._pending.discard(sender)
        return self._next_round()

    def _next_round(self) -> list[Effect]:
        """Begin the next round of seeds or of a recoverable sum, unless it waits for a party."""
        if self._pending or self._awaited_chunks:
            return []
        if self.state is State.AWAITING_SEEDS:
            return self._relay_seeds()
        if self._recoverable is None:
            return []
        match self.state:
            case State.AWAITING_KEYS:
                return self._relay_keys(self._recoverable)
            case State.COLLECTING:
                return self._dispute(self._recoverable)
            case State.AWAITING_OPENINGS:
                return self._judge(self._recoverable)
            case State.AWAITING_SIGNATURES:
                return self._relay_signatures(self._recoverable)
            case State.AWAITING_MASKS:
                return self._finish_sum(self._recoverable)
            case _:
                return []

    def _relay_keys(self, recoverable: RecoverableCurator) -> list[Effect]:
        plan = self._open_plan
        absent = tuple(name for name in plan.parties if name in self._missing)
        relayed = recoverable.relay(absent)
        self._awaited_chunks = {(name, chunk) for name in relayed for chunk in range(plan.chunks)}
        self.state = State.COLLECTING
        return [
            self._send(name, KeysRelayed, missing=absent, payload=payload)
            for name, payload in relayed.items()
        ]

    def _dispute(self, recoverable: RecoverableCurator) -> list[Effect]:
        """Ask the dealers of boxes that do not open; go on if there is none."""
        unanswered = self._disputes.unanswered(self.left)
        if not unanswered:
            return self._judge(recoverable)
        self.state, self._pending = State.AWAITING_OPENINGS, {dealer for dealer, _ in unanswered}
        return [
            self._send(
                dealer,
                BoxDisputed,
                receiver=receiver,
                signature=self._disputes.accusations[dealer, receiver],
            )
            for dealer, receiver in unanswered
        ]

    def _judge(self, recoverable: RecoverableCurator) -> list[Effect]:
        """Leave out who is at fault; then publish the list, or begin the sum again."""
        effects: list[Effect] = []
        verdicts = self._disputes.verdicts(recoverable, self._open_plan, self._study.roster)
        for dispute, party in verdicts:
            if party in self._missing:
                continue
            shown = asdict(dispute)
            message = BoxJudged(study=self._study.digest, step=self._number, **shown)
            self.judged.append((message, party))
            effects += self._to_all(message)
            effects += self._leave(party, why_at_fault(dispute, party, step=self._number))
            if self.state is State.FAILED:
                return effects
        again = self._disputes.left_a_gap(self.left)
        return effects + (self._open_next() if again else self._publish_list(recoverable))

    def _publish_list(self, recoverable: RecoverableCurator) -> list[Effect]:
        missing = recoverable.close()
        self._run.leave_out(missing)
        step = self._run.step()
        there = () if step is None else step.parties
        self._listed = tuple(name for name in self._study.parties if name not in there)
        self._await(State.AWAITING_SIGNATURES)
        return self._to_all(
            ListPublished(study=self._study.digest, step=self._number, missing=missing)
        )

    def _relay_signatures(self, recoverable: RecoverableCurator) -> list[Effect]:
        self._await(State.AWAITING_MASKS)
        return [
            self._send(name, SignaturesRelayed, payload=recoverable.signatures_for(name))
            for name in self.left
        ]

    def _finish_sum(self, taker: SumCurator | RecoverableCurator) -> list[Effect]:
        try:
            total = taker.total()
        except RemoteProtocolError as error:
            return self.abort(f"step {self._number} cannot be decoded: {error}")
        self._run.advance(total)
        return self._publish(encode_result(total))

    def _await(self, state: State) -> None:
        self.state, self._pending = state, set(self.left)

    def _relay(self, sender: str, message: EnvelopePosted) -> list[Effect]:
        if message.recipient not in self._study.parties or message.recipient == sender:
            raise RemoteProtocolError(f"{sender}: message to unknown party {message.recipient!r}")
        early = self.state is State.AWAITING_SEEDS
        if early and (self._study.agreement or sender != self._study.parties[0]):
            raise RemoteProtocolError(
                f"only {self._study.parties[0]!r} proposes a permutation seed"
            )
        relayed = EnvelopeRelayed(
            study=message.study, step=message.step, sender=sender, envelope=message.envelope
        )
        effects: list[Effect] = [Send(to=message.recipient, message=relayed)]
        if self._awaited_relays.get(sender):
            self._awaited_relays[sender] -= 1
        if self.state is State.AWAITING_SEEDS:
            self._awaited_seeds.discard(message.recipient)
            if not self._awaited_seeds:
                effects += self._open_next()
        return effects

    def _collect(self, sender: str, message: ShareSubmitted) -> list[Effect]:
        taker = self._sum or self._recoverable
        if (sender, message.chunk) not in self._awaited_chunks or taker is None:
            raise RemoteProtocolError(
                f"chunk {message.chunk} of {sender!r} is not expected in step {message.step}"
            )
        taker.accept(
            ContributionSubmitted(sender=sender, chunk=message.chunk, payload=message.payload)
        )
        self._awaited_chunks.discard((sender, message.chunk))
        if self._awaited_chunks:
            return []
        if self._sum is None:
            return self._next_round()
        return self._finish_sum(self._sum)

    def _take_choice(self, sender: str, message: ChoiceSubmitted) -> list[Effect]:
        step = self._run.step()
        if not isinstance(step, ChoiceStep) or step.party != sender:
            raise RemoteProtocolError(f"it is not the turn of {sender!r} to choose")
        self._run.advance(message.payload)
        return self._publish(message.payload)

    def _publish(self, result: bytes) -> list[Effect]:
        published = ResultPublished(study=self._study.digest, step=self._number, result=result)
        self._history.add_result(self._number, result)
        if self._study.may_miss:
            self._history.add_missing(self._number, self._listed)
        self._results.append(result)
        self._sum = self._recoverable = None
        self._number += 1
        return self._to_all(published) + self._open_next()

    def _open_next(self) -> list[Effect]:
        self._run.leave_out(self._missing)
        step = self._run.step()
        if step is None:
            self.state = State.FINISHED
            return [*self._to_all(self.finished), Finish()]
        self.state = State.COLLECTING
        opening = b"" if isinstance(step, ChoiceStep) else self._begin_sum(step)
        opened = StepOpened(
            study=self._study.digest,
            step=self._number,
            digest=step_digest(self._history.digest, self._number, step),
            opening=opening,
            missing=self.missing,
        )
        return self._to_all(opened)

    def _begin_sum(self, step: SumStep | ReplaceStep) -> bytes:
        key = None if self._private_key is None else self._private_key.public_key
        plan = sum_plan_of(self._study, self._number, step, key, history=self._history.digest)
        self._open_plan, self._listed = plan, self.missing
        self._recoverable, self._disputes = None, Disputes()
        if plan.may_miss:
            self._recoverable = RecoverableCurator(plan, self._study.roster)
            self._await(State.AWAITING_KEYS)
            return b""
        self._sum = SumCurator(
            plan, private_key=self._private_key, source=self._source_of(self._number)
        )
        submitters = [name for name in plan.parties if plan.successor(name) is None]
        self._awaited_chunks = {
            (name, chunk) for name in submitters for chunk in range(plan.chunks)
        }
        self._awaited_relays = {
            name: plan.chunks for name in plan.parties if name not in submitters
        }
        return self._sum.selector or b""

    def _send(self, to: str, kind: Callable[..., ToParty], **content: Any) -> Send:  # noqa: ANN401  # fields of the message
        """Send a party a message of the open step."""
        message = kind(study=self._study.digest, step=self._number, **content)
        return Send(to=to, message=message)

    def _to_all(self, message: ToParty) -> list[Effect]:
        return [Send(to=name, message=message) for name in self.left]
