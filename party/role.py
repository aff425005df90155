"""A party's half of a study, as a state machine without I/O.

Feed it what the curator sent; carry out the effects it returns, in order. The role derives every
step from the approved study and the published results, and answers that and nothing else: what the
curator asks for is compared, never obeyed. Time, sockets and files are the shell's business;
randomness is handed in, one source per step, so that a shell that keeps the sources can rebuild a
role after a crash by feeding it the same messages again.

A message that was seen before changes nothing. A message that is not allowed raises
RemoteProtocolError, and changes nothing either.

The shell executes effects strictly in order. `ChargeBudget` returns only after the charge is on
disk; if it fails, the rest of the list is dropped and the study is refused. `Send` is journalled
before it goes out, so that the same bytes go out again after a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from common.crypto.identities.identity import Identity, LocalParty
from common.crypto.paillier.blinding import FixedBaseBlinder
from common.crypto.paillier.keys import Blinder, PublicKey
from common.crypto.sums.agreement import SeedExchange
from common.crypto.sums.boxes import Dispute, check_begun_again
from common.crypto.sums.one_share import Selection, propose_seed, receive_seed
from common.crypto.sums.plan import Aggregation, Noise, PartialForwarded, SumMessage, SumPlan
from common.crypto.sums.recovery import RecoverableParty
from common.crypto.sums.replacement import ShareKeeper
from common.crypto.sums.secure_sum import SumParty
from common.crypto.two_party.computation import ComputationContext, TwoPartyComputation
from common.errors import LocalError, PolicyError, RemoteProtocolError
from common.privacy.randomness import RandomSource, SourceOfStep
from common.privacy.secret import Secret
from common.study.document import Study
from common.study.history import History
from common.study.messages import (
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
from common.study.requests import PartyRows
from common.study.script import ScriptRun
from common.study.steps import (
    ChoiceStep,
    JointChoiceStep,
    ReplaceStep,
    Step,
    SumStep,
    step_digest,
)
from common.study.sums import decode_total, seed_partners, sum_plan_of
from party.states import ALLOWED, IN_A_STEP, ChargeBudget, Effect, Send, State

BlinderOfKey = Callable[[PublicKey, RandomSource], Blinder]

SEED_STEP = -1  # asks for the random source of what precedes the first step


class PartyRole:
    """One party's view of one study."""

    def __init__(
        self,
        *,
        study: Study,
        run: ScriptRun,
        name: str,
        identity: Identity,
        data: PartyRows,
        source_of: SourceOfStep,
        blinder_of: BlinderOfKey = FixedBaseBlinder,
    ) -> None:
        declared = study.rows_of.get(name)
        if declared != data.rows:
            raise PolicyError(
                f"study {study.name!r}: it says that {name!r} has {declared} rows, and the data "
                f"has {data.rows}. The row count sets the noise. Ask for a study with the right one"
            )
        self._study, self._run, self._name = study, run, name
        self._history = History(study.digest)
        self._member = LocalParty(name=name, identity=identity, roster=study.roster)
        self._first = study.parties[0]
        self._data, self._source_of, self._blinder_of = data, source_of, blinder_of
        self._keeper = ShareKeeper(name)
        self._waiting_vectors: list[NDArray[np.int64]] = []
        self.state = State.AWAITING_STUDY
        self._number = 0
        self._spent = Fraction(0)
        self._key: PublicKey | None = None
        self._blinder: Blinder | None = None
        self._seed: Secret[bytes] | None = None
        self._exchange: SeedExchange | None = None
        self._sum: SumParty | TwoPartyComputation | None = None
        self._plan: SumPlan | None = None
        self._recoverable: RecoverableParty | None = None
        self._missing: tuple[str, ...] = ()  # in the newest step that says so
        self._at_fault: set[str] = set()  # in a dispute about a box
        self._charged = -1  # the newest step that was charged: one that is begun again is not
        self._chosen: bytes | None = None
        self._seen: set[bytes] = set()

    @property
    def phase(self) -> str:
        """The phase of the open step; empty between steps."""
        step = self._run.step() if self.state in IN_A_STEP else None
        return "" if step is None else step.phase

    @property
    def step_number(self) -> int:
        """The number of steps that have their result."""
        return self._number

    def receive(self, message: ToParty) -> list[Effect]:
        """Consume one message; return effects in the order they must happen."""
        if message.study != self._study.digest:
            raise RemoteProtocolError("the message belongs to another study")
        fingerprint = message_digest(message)
        if fingerprint in self._seen:
            return []
        if not isinstance(message, ALLOWED[self.state]):
            raise RemoteProtocolError(
                f"{type(message).__name__} is not expected: this party is waiting for "
                f"{self.state.value}"
            )
        effects = self._handle(message)
        self._seen.add(fingerprint)
        return effects

    def _handle(self, message: ToParty) -> list[Effect]:
        match message:
            case StudyOpened():
                return self._open_study(message)
            case StepOpened():
                return self._open_step(message)
            case EnvelopeRelayed():
                return self._open_envelope(message)
            case KeysRelayed():
                early = self.state is State.AWAITING_SEED
                return self._take_seeds(message) if early else self._take_keys(message)
            case BoxDisputed():
                secret = self._in_open_sum(message).open_box(message.receiver, message.signature)
                return [self._send(BoxOpened, receiver=message.receiver, secret=secret)]
            case BoxJudged():
                return self._note_verdict(message)
            case ListPublished():
                return self._sign_list(message)
            case SignaturesRelayed():
                return self._reveal_masks(message)
            case ResultPublished():
                return self._take_result(message)
            case StudyFinished():
                if self._run.step() is not None:
                    raise RemoteProtocolError("the curator ends the study before its last step")
                self._check_missing(message.missing)
                self.state = State.FINISHED
                return []
            case StudyAborted():
                self.state = State.ABORTED
                return []
            case _:
                assert_never(message)

    def _open_study(self, message: StudyOpened) -> list[Effect]:
        if self._study.aggregation is Aggregation.PAILLIER:
            key = PublicKey.from_bytes(message.public_key)
            if key.bits != self._study.key_bits:
                raise RemoteProtocolError(
                    f"the curator offers a key of {key.bits} bits, the study says "
                    f"{self._study.key_bits}"
                )
            self._key = key
            self._blinder = self._blinder_of(key, self._source_of(SEED_STEP))
        elif message.public_key:
            raise RemoteProtocolError("a key is offered that this study does not use")
        self._history.add_key(message.public_key)
        if self._study.agreement:
            self.state, partners = State.AWAITING_SEED, seed_partners(self._study, self._name)
            self._exchange = SeedExchange(self._member, self._study.digest, *partners)
            return [self._send(KeysDealt, payload=self._exchange.offer(self._source_of(SEED_STEP)))]
        self.state = State.AWAITING_STEP
        if self._key is None or self._study.noise is not Noise.ONE_SHARE:
            return []
        if self._name != self._first:
            self.state = State.AWAITING_SEED
            return []
        self._seed, envelopes = propose_seed(
            self._member,
            study=self._study.digest,
            parties=self._study.parties,
            source=self._source_of(SEED_STEP),
        )
        return [self._post(name, envelope) for name, envelope in envelopes.items()]

    def _take_seeds(self, message: KeysRelayed) -> list[Effect]:
        self._check_missing(message.missing)
        if self._exchange is None:
            raise RemoteProtocolError("seeds of masks are not expected here")
        self._member = self._exchange.secrets(message.payload, message.missing)
        self._exchange, self._missing, self.state = None, message.missing, State.AWAITING_STEP
        return []

    def _open_step(self, message: StepOpened) -> list[Effect]:
        self._check_missing(message.missing)
        begun = self._charged == self._number  # words left in a sum that is begun again
        if self.state is not State.AWAITING_STEP and message.missing == self._missing:
            raise RemoteProtocolError(
                f"step {message.step}: it is opened again, and the same parties are in it. A sum "
                "is begun again only without a party that was there"
            )
        step = self._run.step_without(message.missing)
        if step is None:
            raise RemoteProtocolError("a step is asked for after the study's last one")
        if message.step != self._number:
            raise RemoteProtocolError(
                f"step {message.step}: the curator asks for it, and step {self._number} is next. "
                "No step is answered twice"
            )
        if message.digest != step_digest(self._history.digest, self._number, step):
            raise RemoteProtocolError(
                f"the curator's step {self._number} is not what the approved study and the results "
                f"published so far imply: {step.name!r}"
            )
        cost = step.costs.get(self._name)
        if cost and not begun:
            self._refuse_overspending(step.name, cost)
        plan = None
        if not isinstance(step, ChoiceStep):
            history, number = self._history.digest, self._number
            plan = sum_plan_of(self._study, number, step, self._key, history=history)
        effects: list[Effect]
        if plan is not None and plan.may_miss:
            if self.state is not State.AWAITING_STEP:
                check_begun_again(plan, may_miss=self._study.may_miss)
            effects, state = [self._deal_keys(plan)], State.AWAITING_KEYS
        else:
            mine = self._name in step.parties
            sent = self._contribute(step, plan, message.opening) if mine else ()
            effects, state = [*self._charge(step), *sent], State.IN_STEP
        self._run.leave_out(message.missing)
        if state is State.IN_STEP:
            self._recoverable = None  # of a sum that is begun again without recovery
        self._missing, self._plan, self.state = message.missing, plan, state
        return effects

    def _check_missing(self, missing: tuple[str, ...]) -> None:
        """Raise unless the study can go on without these parties, and they stay out."""
        in_order = tuple(each for each in self._study.parties if each in missing)
        if missing != in_order or not set(self._missing) <= set(missing):
            raise RemoteProtocolError(
                "the parties that are missing are named in the study's order, and stay missing"
            )
        self._check_fault(missing)
        if self._name in missing:
            raise RemoteProtocolError(f"the curator lists {self._name!r} as missing, which is here")
        if len(missing) > self._study.may_miss:
            raise RemoteProtocolError(
                f"{len(missing)} parties are missing, and the study can do without "
                f"{self._study.may_miss}"
            )

    def _check_fault(self, missing: Iterable[str]) -> None:
        kept = self._at_fault - set(missing) - {self._name}
        if kept:
            raise RemoteProtocolError(
                f"the curator goes on with {', '.join(sorted(kept))}, which is at fault in a "
                "dispute about key shares"
            )

    def _charge(self, step: Step) -> list[Effect]:
        """Charge what the step costs this party, once, before its answer leaves."""
        cost = step.costs.get(self._name)
        if not cost or self._charged == self._number:
            return []
        self._spent += cost
        self._charged = self._number
        if delta := self._study.delta:
            return [ChargeBudget(step=step.name, mechanism=step.mechanism, rho=cost, delta=delta)]
        return [ChargeBudget(step=step.name, mechanism=step.mechanism, epsilon=cost)]

    def _deal_keys(self, plan: SumPlan) -> Effect:
        """Deal keys for a sum; nothing about the rows is in them, so nothing is charged yet."""
        source = self._source_of(self._number)
        self._recoverable = RecoverableParty(plan, self._member, source=source)
        return self._send(KeysDealt, payload=self._recoverable.offer())

    def _take_keys(self, message: KeysRelayed) -> list[Effect]:
        step, party = self._run.step(), self._in_open_sum(message)
        if not isinstance(step, SumStep):
            raise RemoteProtocolError("keys belong to a sum")
        accusation = party.accusation(message.payload, message.missing)
        if accusation is not None:
            dealer, signature = accusation
            self.state = State.AWAITING_VERDICT
            return [self._send(BoxRefused, dealer=dealer, signature=signature)]
        words = party.contribute(
            step.request.answer(self._data),
            message.payload,
            message.missing,
            source=self._source_of(self._number),
        )
        self.state = State.AWAITING_LIST
        return [*self._charge(step), *map(self._outgoing, words)]

    def _note_verdict(self, message: BoxJudged) -> list[Effect]:
        """See for ourselves who is at fault in a dispute: the study goes on without that party."""
        self._in_open_sum(message)
        if self._plan is None:
            raise RemoteProtocolError("a dispute belongs to a sum")
        dispute = Dispute(
            dealer=message.dealer,
            receiver=message.receiver,
            evidence=message.evidence,
            signature=message.signature,
            secret=message.secret,
        )
        self._at_fault.add(dispute.at_fault(self._plan, self._study.roster))
        return []

    def _sign_list(self, message: ListPublished) -> list[Effect]:
        self._check_fault({*self._missing, *message.missing})
        signature = self._in_open_sum(message).sign(message.missing)
        self._run.leave_out(message.missing)
        self._missing = tuple(
            name for name in self._study.parties if name in self._missing or name in message.missing
        )
        self.state = State.AWAITING_SIGNATURES
        return [self._send(ListSigned, signature=signature)]

    def _reveal_masks(self, message: SignaturesRelayed) -> list[Effect]:
        payload = self._in_open_sum(message).reveal(message.payload)
        self.state = State.IN_STEP
        return [self._send(MasksRevealed, payload=payload)]

    def _in_open_sum(
        self,
        message: KeysRelayed | BoxDisputed | BoxJudged | ListPublished | SignaturesRelayed,
    ) -> RecoverableParty:
        if self._recoverable is None or message.step != self._number:
            raise RemoteProtocolError(
                f"{type(message).__name__} of step {message.step} is not expected here: step "
                f"{self._number} is open"
            )
        return self._recoverable

    def _refuse_overspending(self, step: str, cost: Fraction) -> None:
        """Refuse to pass the promise, which in the sound profile is the epsilon delivered."""
        promise = self._study.promise
        if self._study.profile == "sound" and self._spent + cost > promise.budget:
            raise PolicyError(
                f"step {step!r}: it costs {promise.currency} {cost}. With {self._spent} spent "
                f"before, that is more than the {promise.budget} that the study promises"
            )

    def _contribute(self, step: Step, plan: SumPlan | None, opening: bytes) -> Iterable[Effect]:
        source = self._source_of(self._number)
        match step:
            case SumStep():
                values = step.request.answer(self._data)
            case ReplaceStep():
                values = self._replacement(step, source)
            case JointChoiceStep():
                self._sum = self._computing(step, source)
                return [self._outgoing(message) for message in self._sum.begin()]
            case ChoiceStep():
                return [self._choose(step.choice.run(self._data, source))]
            case _:
                assert_never(step)
        assert plan is not None  # noqa: S101  # every step but a choice has one
        self._sum = self._summing(plan, values, opening, source)
        return [self._outgoing(message) for message in self._sum.begin()]

    def _choose(self, payload: bytes) -> Effect:
        self._chosen = payload
        return self._send(ChoiceSubmitted, payload=payload)

    def _computing(self, step: JointChoiceStep, source: RandomSource) -> TwoPartyComputation:
        context = ComputationContext(
            study=self._study.digest,
            step=self._number,
            digest=step_digest(self._history.digest, self._number, step),
            garbler=step.partner,
            evaluator=step.party,
        )
        bits = step.choice.inputs(self._data, source)
        return TwoPartyComputation(context, step.choice, self._member, bits, source)

    def _summing(
        self, plan: SumPlan, values: NDArray[np.int64], opening: bytes, source: RandomSource
    ) -> SumParty:
        selection = None
        if plan.noise is Noise.ONE_SHARE and self._seed is not None:
            selection = Selection(selector=opening, seed=self._seed)
        party = SumParty(
            plan,
            self._member,
            values,
            source=source,
            blinder=self._blinder,
            selection=selection,
        )
        party.prepare()
        return party

    def _replacement(self, step: ReplaceStep, source: RandomSource) -> NDArray[np.int64]:
        """Return our counts with fresh shares on our own turn; else the shares that we give up."""
        if step.release.party != self._name:
            return self._keeper.hand_over(step.group)
        if step.group is step.release.groups[0]:
            counts = step.counts(self._data)
            self._waiting_vectors = self._keeper.answer(step.release, counts, source)
        return self._waiting_vectors.pop(0)

    def _open_envelope(self, message: EnvelopeRelayed) -> list[Effect]:
        if self.state is State.AWAITING_SEED:
            if message.sender != self._first or self._exchange is not None:
                raise RemoteProtocolError(
                    f"no permutation seed of {message.sender!r} is expected: where there is one, "
                    f"it comes from {self._first!r}"
                )
            self._seed = receive_seed(
                self._member,
                study=self._study.digest,
                proposer=self._first,
                envelope=message.envelope,
            )
            self.state = State.AWAITING_STEP
            return []
        if self._sum is None or message.step != self._number:
            raise RemoteProtocolError(
                f"an envelope of step {message.step} from {message.sender!r} is not expected here"
            )
        forwarded = PartialForwarded(
            sender=message.sender, recipient=self._name, envelope=message.envelope
        )
        answer, step = self._sum.receive(forwarded), self._run.step()
        if isinstance(answer, np.ndarray):  # what a two-party computation came to
            if not isinstance(step, JointChoiceStep):
                raise LocalError("only a joint choice has a two-party computation")
            return [self._choose(step.choice.outcome(answer))]
        return [self._outgoing(answer)]

    def _take_result(self, message: ResultPublished) -> list[Effect]:
        step = self._run.step()
        if step is None or message.step != self._number:
            raise RemoteProtocolError(f"a result of step {message.step} is not expected here")
        if self._sum is not None and not self._sum.finished:
            raise RemoteProtocolError(
                f"a result of step {message.step} is published, but {self._name!r} has not "
                "contributed everything yet"
            )
        if self._chosen is not None and message.result != self._chosen:
            raise RemoteProtocolError(
                f"the choice published for step {message.step} is not the one {self._name!r} made"
            )
        self._run.advance(
            message.result if self._plan is None else decode_total(self._plan, message.result)
        )
        self._history.add_result(self._number, message.result)
        if self._study.may_miss:
            self._history.add_missing(self._number, self._missing)
        self._sum = self._chosen = self._plan = self._recoverable = None
        self._number, self.state = self._number + 1, State.AWAITING_STEP
        return []

    def _outgoing(self, message: SumMessage) -> Effect:
        if isinstance(message, PartialForwarded):
            return self._post(message.recipient, message.envelope)
        return self._send(ShareSubmitted, chunk=message.chunk, payload=message.payload)

    def _post(self, recipient: str, envelope: bytes) -> Send:
        return self._send(EnvelopePosted, recipient=recipient, envelope=envelope)

    def _send(self, kind: Callable[..., ToCurator], **content: Any) -> Send:  # noqa: ANN401  # fields of the message
        """Send a message of this study's open step."""
        return Send(message=kind(study=self._study.digest, step=self._number, **content))
