"""The curator's half of a study, as a state machine without I/O.

It opens one step after the other, relays sealed envelopes it cannot read, takes what is submitted
to it, and publishes each step's noisy result to everybody. It learns noisy sums and nothing else:
the only thing it ever decrypts is the full product of a sum.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import assert_never

from common.crypto.paillier.keys import PrivateKey
from common.crypto.sums.plan import ContributionSubmitted, Noise
from common.crypto.sums.secure_sum import SumCurator
from common.errors import LocalError, RemoteProtocolError
from common.privacy.randomness import RandomSource
from common.study.document import Study
from common.study.history import History
from common.study.messages import (
    MOST_TEXT,
    ChoiceSubmitted,
    EnvelopePosted,
    EnvelopeRelayed,
    PartyRefused,
    ResultPublished,
    ShareSubmitted,
    StepOpened,
    StudyAborted,
    StudyFinished,
    StudyOpened,
    ToCurator,
    ToParty,
    message_digest,
)
from common.study.script import ScriptRun
from common.study.steps import ChoiceStep, Model, Step, step_digest
from common.study.sums import encode_result, needs_key, sum_plan_of
from curator.effects import Effect, Fail, Finish, Send

SourceOfStep = Callable[[int], RandomSource]


class State(enum.Enum):
    """What the curator is waiting for."""

    AWAITING_START = "the start"
    AWAITING_SEEDS = "the first party's permutation seeds"
    COLLECTING = "contributions to the step"
    FINISHED = "nothing: the release can be made"
    FAILED = "nothing: the study failed"


# Every transition there is. What is not listed is refused.
ALLOWED: dict[State, tuple[type[ToCurator], ...]] = {
    State.AWAITING_START: (),
    State.AWAITING_SEEDS: (EnvelopePosted, PartyRefused),
    State.COLLECTING: (EnvelopePosted, ShareSubmitted, ChoiceSubmitted, PartyRefused),
    State.FINISHED: (),
    State.FAILED: (),
}


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
        """The curator, before the start.

        Args:
            study: as everybody approved it.
            run: a fresh copy of the study's script.
            private_key: made for this study, if it aggregates under Paillier.
            source_of: gives the randomness of a step, by its number.
        """
        if needs_key(study) != (private_key is not None):
            raise LocalError("a Paillier key is needed for aggregation 'paillier', and only there")
        if private_key is not None and private_key.public_key.bits != study.key_bits:
            raise LocalError(f"the study asks for a key of {study.key_bits} bits")
        self._study, self._run = study, run
        self._private_key, self._source_of = private_key, source_of
        self._names = tuple(member.name for member in study.members)
        self._history = History(study.digest)
        self._state = State.AWAITING_START
        self._number = 0
        self._results: list[bytes] = []
        self._sum: SumCurator | None = None
        self._missing_chunks: set[tuple[str, int]] = set()
        self._missing_relays: dict[str, int] = {}
        self._missing_seeds: set[str] = set()
        self._seen: set[tuple[str, bytes]] = set()

    @property
    def state(self) -> State:
        """What the curator is waiting for."""
        return self._state

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
        return self._run.step() if self._state is State.COLLECTING else None

    @property
    def waiting_for(self) -> tuple[str, ...]:
        """Whose message would bring the study on."""
        if self._state is State.AWAITING_SEEDS:
            return self._names[:1]
        step = self.current_step
        if isinstance(step, ChoiceStep):
            return step.parties
        if step is None:
            return ()
        for name, missing in self._missing_relays.items():
            if missing:
                return (name,)  # nothing reaches the parties after it in the ring
        return tuple(sorted({name for name, _ in self._missing_chunks}))

    def model(self) -> Model:
        """What was learnt; only after `Finish`."""
        if self._state is not State.FINISHED:
            raise LocalError(f"there is no model yet: the curator waits for {self._state.value}")
        return self._run.model()

    def start(self) -> list[Effect]:
        """Every party has approved: open the study."""
        if self._state is not State.AWAITING_START:
            raise LocalError("the study was started before")
        key = b"" if self._private_key is None else self._private_key.public_key.to_bytes()
        self._history.add_key(key)
        effects = self._to_all(StudyOpened(study=self._study.digest, public_key=key))
        others = self._names[1:]
        if self._private_key is not None and self._study.noise is Noise.ONE_SHARE and others:
            self._missing_seeds = set(others)
            self._state = State.AWAITING_SEEDS
            return effects
        return effects + self._open_next()

    def receive(self, sender: str, message: ToCurator) -> list[Effect]:
        """Consume one message; return effects in the order they must happen."""
        if sender not in self._names:
            raise RemoteProtocolError(f"{sender!r} is not a party of this study")
        if message.study != self._study.digest:
            raise RemoteProtocolError(f"the message of {sender!r} belongs to another study")
        fingerprint = (sender, message_digest(message))
        if fingerprint in self._seen:
            return []
        if not isinstance(message, ALLOWED[self._state]):
            raise RemoteProtocolError(
                f"{type(message).__name__} of {sender!r} is not expected: the curator is waiting "
                f"for {self._state.value}"
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
            case ChoiceSubmitted():
                return self._take_choice(sender, message)
            case PartyRefused():
                return self.abort(f"party {sender!r} refused step {message.step}: {message.reason}")
            case _:
                assert_never(message)

    def abort(self, reason: str) -> list[Effect]:
        """End the study without a release."""
        reason = reason[:MOST_TEXT]  # a party's own reason may be as long as a message's can be
        self._state = State.FAILED
        self._sum = None
        told = self._to_all(StudyAborted(study=self._study.digest, reason=reason))
        return [*told, Fail(reason=reason)]

    def _relay(self, sender: str, message: EnvelopePosted) -> list[Effect]:
        if message.recipient not in self._names or message.recipient == sender:
            raise RemoteProtocolError(f"{sender!r} writes to {message.recipient!r}, who is nobody")
        if self._state is State.AWAITING_SEEDS and sender != self._names[0]:
            raise RemoteProtocolError(f"only {self._names[0]!r} proposes a permutation seed")
        relayed = EnvelopeRelayed(
            study=message.study, step=message.step, sender=sender, envelope=message.envelope
        )
        effects: list[Effect] = [Send(to=message.recipient, message=relayed)]
        if self._missing_relays.get(sender):
            self._missing_relays[sender] -= 1
        if self._state is State.AWAITING_SEEDS:
            self._missing_seeds.discard(message.recipient)
            if not self._missing_seeds:
                effects += self._open_next()
        return effects

    def _collect(self, sender: str, message: ShareSubmitted) -> list[Effect]:
        if (sender, message.chunk) not in self._missing_chunks or self._sum is None:
            raise RemoteProtocolError(
                f"chunk {message.chunk} of {sender!r} is not expected in step {message.step}"
            )
        self._sum.accept(
            ContributionSubmitted(sender=sender, chunk=message.chunk, payload=message.payload)
        )
        self._missing_chunks.discard((sender, message.chunk))
        if self._missing_chunks:
            return []
        try:
            total = self._sum.total()
        except RemoteProtocolError as error:
            return self.abort(f"step {message.step} cannot be decoded: {error}")
        self._run.advance(total)
        return self._publish(encode_result(total))

    def _take_choice(self, sender: str, message: ChoiceSubmitted) -> list[Effect]:
        step = self._run.step()
        if not isinstance(step, ChoiceStep) or step.party != sender:
            raise RemoteProtocolError(f"it is not the turn of {sender!r} to choose")
        self._run.advance(message.payload)
        return self._publish(message.payload)

    def _publish(self, result: bytes) -> list[Effect]:
        published = ResultPublished(study=self._study.digest, step=self._number, result=result)
        self._history.add_result(self._number, result)
        self._results.append(result)
        self._sum = None
        self._number += 1
        return self._to_all(published) + self._open_next()

    def _open_next(self) -> list[Effect]:
        step = self._run.step()
        if step is None:
            self._state = State.FINISHED
            return [*self._to_all(StudyFinished(study=self._study.digest)), Finish()]
        self._state = State.COLLECTING
        opening = b""
        if not isinstance(step, ChoiceStep):
            opening = self._begin_sum(step)
        opened = StepOpened(
            study=self._study.digest,
            step=self._number,
            digest=step_digest(self._history.digest, self._number, step),
            opening=opening,
        )
        return self._to_all(opened)

    def _begin_sum(self, step: Step) -> bytes:
        if isinstance(step, ChoiceStep):
            raise LocalError("a choice is not summed")
        key = None if self._private_key is None else self._private_key.public_key
        plan = sum_plan_of(self._study, self._number, step, key, history=self._history.digest)
        self._sum = SumCurator(
            plan, private_key=self._private_key, source=self._source_of(self._number)
        )
        submitters = [name for name in plan.parties if plan.successor(name) is None]
        self._missing_chunks = {
            (name, chunk) for name in submitters for chunk in range(plan.chunks)
        }
        self._missing_relays = {
            name: plan.chunks for name in plan.parties if name not in submitters
        }
        return self._sum.selector or b""

    def _to_all(self, message: ToParty) -> list[Effect]:
        return [Send(to=name, message=message) for name in self._names]
