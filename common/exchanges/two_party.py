"""A choice of two parties on their rows together, by a two-party computation.

Three sealed envelopes go between the two (`common.crypto.two_party`); the chooser computes the
outcome and publishes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from common.crypto.framing import frame
from common.crypto.two_party.computation import Circuit, TwoPartyComputation, message_bytes
from common.crypto.two_party.gates import Bits
from common.errors import InputError, RemoteProtocolError
from common.exchanges.choice import CHOICE, Choice, OwnChoice, Publisher, require_own
from common.exchanges.ring import ENVELOPE
from common.privacy.randomness import RandomSource
from common.study.messages import StepMessage
from common.study.requests import PartyRows
from common.study.sides import CuratorSide, Move, PartySide, Post, relayed
from common.study.steps import Step, StepAtCurator, StepAtParty

_MOST_CIRCUIT_BYTES = 1 << 27


class JointChoice(Choice, Circuit, Protocol):
    """A mechanism that two parties run on their rows together, as a two-party computation.

    Its circuit is given what `inputs` makes of each party's rows; `run`, on the rows of both, has
    the same law.
    """

    def inputs(self, data: PartyRows, source: RandomSource) -> Bits:
        """Return what one party puts into the computation: its rows and its noise."""

    def outcome(self, bits: Bits) -> bytes:
        """Return what is published of the computation's result, or raise RemoteProtocolError."""


def joint_choice_step(
    *,
    name: str,
    phase: str,
    party: str,
    partner: str,
    choice: JointChoice,
    epsilon: Fraction,
    mechanism: str,
) -> Step:
    """Return a step that asks two parties for a choice; `party` computes and publishes it."""
    return Step(
        name=name,
        phase=phase,
        parties=(partner, party),
        exchange=Joint(choice, party),
        mechanism=mechanism,
        epsilon=epsilon,
    )


@dataclass(frozen=True)
class Joint(OwnChoice):
    """What a mechanism chose on the rows of two parties, neither of which saw the other's."""

    choice: JointChoice

    def canonical(self, step: Step) -> bytes:
        return frame(("joint", step.parties[0], super().canonical(step)))

    def party(self, context: StepAtParty) -> PartySide:
        return JointParty(self.choice, context)

    def curator(self, context: StepAtCurator) -> CuratorSide:
        return JointCurator(self, context.step.parties)

    def owners_with(self, step: Step, party: str) -> int:
        return len(step.parties)

    def check_size(self, step: Step) -> None:
        if max(message_bytes(self.choice)) > _MOST_CIRCUIT_BYTES:
            raise InputError(
                f"step {step.name!r}: its two-party computation needs a message of more than "
                f"{_MOST_CIRCUIT_BYTES:,} bytes. Give attributes fewer values, or choose in turn"
            )


class JointParty(PartySide):
    """One of the two. Holds what it put in: secret."""

    def __init__(self, choice: JointChoice, context: StepAtParty) -> None:
        garbler, evaluator = context.step.parties
        self._choice, self._name = choice, context.name
        self._computation = TwoPartyComputation(
            choice,
            context.memory.member,
            choice.inputs(context.data, context.source),
            context.source,
            study=context.study.digest,
            step=context.number,
            digest=context.digest,
            ends=(garbler, evaluator),
        )
        self._chosen: bytes | None = None

    @property
    def awaits(self) -> tuple[str, ...]:
        return () if self._computation.finished else (ENVELOPE,)

    def begin(self) -> list[Post]:
        return [self._post(envelope) for envelope in self._computation.begin()]

    def receive(self, message: StepMessage) -> list[Post]:
        (envelope,) = message.parts(bytes)
        answer = self._computation.receive(message.peer, envelope)
        if isinstance(answer, bytes):
            return [self._post(answer)]
        self._chosen = self._choice.outcome(answer)
        return [Post(round=CHOICE, payload=(self._chosen,))]

    def _post(self, envelope: bytes) -> Post:
        return Post(round=ENVELOPE, payload=(envelope,), to=self._computation.other)

    def check_result(self, result: bytes) -> None:
        require_own(result, self._chosen, name=self._name)


class JointCurator(Publisher):
    """Relays the envelopes of the two, and takes the outcome."""

    awaits = (ENVELOPE, CHOICE)

    def receive(self, sender: str, message: StepMessage) -> list[Move]:
        if message.round == CHOICE:
            return super().receive(sender, message)
        message.parts(bytes)
        if {sender, message.peer} != set(self._parties):
            raise RemoteProtocolError(f"{sender!r} is not one of the two parties of this step")
        return [relayed(sender, message)]
