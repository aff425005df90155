"""Ciphertexts that are multiplied from party to party; the curator gets the product.

The first party posts its chunks to the second in sealed envelopes, and so on; the last one submits
the product. With one-share noise [Pathak10; Su16] the curator opens the step with its selector
E(u), and the parties permute it by the seed that the first party proposed in the set-up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.crypto.paillier.keys import Blinder, PublicKey
from common.crypto.sums.one_share import Selection
from common.crypto.sums.plan import (
    ContributionSubmitted,
    Noise,
    PartialForwarded,
    SumMessage,
    SumPlan,
)
from common.crypto.sums.secure_sum import SumParty
from common.errors import RemoteProtocolError
from common.exchanges import masked
from common.exchanges.masked import MASKED_INPUT
from common.privacy.secret import Secret
from common.study.messages import StepMessage
from common.study.sides import Move, PartySide, Post, relayed
from common.study.steps import StepAtCurator, StepAtParty

ENVELOPE = "envelope"  # sealed by one party to another; the curator cannot open it


@dataclass(frozen=True, slots=True)
class RingKey:
    """The curator's public key, and this party's means to blind ciphertexts under it."""

    public: PublicKey
    blinder: Blinder


@dataclass(frozen=True, slots=True)
class PermutationSeed:
    """The seed that the parties of a study with one-share noise agreed on."""

    seed: Secret[bytes]


class RingParty(PartySide):
    """A party's place in the ring. Holds its counts: secret."""

    def __init__(self, plan: SumPlan, context: StepAtParty, values: NDArray[np.int64]) -> None:
        memory = context.memory.state
        key, agreed = memory.get(RingKey), memory.get(PermutationSeed)
        selection = None
        if plan.noise is Noise.ONE_SHARE and agreed is not None:
            selection = Selection(selector=context.opening, seed=agreed.seed)
        self._name = context.name
        self._sum = SumParty(
            plan,
            context.memory.member,
            values,
            source=context.source,
            blinder=None if key is None else key.blinder,
            selection=selection,
        )
        self._sum.prepare()

    @property
    def awaits(self) -> tuple[str, ...]:
        return () if self._sum.finished else (ENVELOPE,)

    @property
    def done(self) -> bool:
        return self._sum.finished

    def begin(self) -> list[Post]:
        return [_post(message) for message in self._sum.begin()]

    def receive(self, message: StepMessage) -> list[Post]:
        (envelope,) = message.parts(bytes)
        forwarded = PartialForwarded(sender=message.peer, recipient=self._name, envelope=envelope)
        return [_post(self._sum.receive(forwarded))]


class RingCurator(masked.MaskedCurator):
    """Relays the envelopes of the ring, and decrypts its product."""

    awaits = (MASKED_INPUT, ENVELOPE)

    def __init__(self, plan: SumPlan, context: StepAtCurator) -> None:
        super().__init__(plan, context)
        self.opening = self._sum.selector or b""
        self._relays = dict.fromkeys(plan.parties[:-1], plan.chunks)  # how many are awaited

    @property
    def waiting_for(self) -> tuple[str, ...]:
        for name, awaited in self._relays.items():
            if awaited:
                return (name,)  # nothing reaches the parties after it in the ring
        return super().waiting_for

    def receive(self, sender: str, message: StepMessage) -> list[Move]:
        if message.round != ENVELOPE:
            return super().receive(sender, message)
        message.parts(bytes)
        if not self._relays.get(sender) or message.peer != self._plan.successor(sender):
            raise RemoteProtocolError(
                f"{sender!r} posts an envelope to {message.peer!r}, which the ring does not expect"
            )
        self._relays[sender] -= 1
        return [relayed(sender, message)]


def _post(message: SumMessage) -> Post:
    if isinstance(message, ContributionSubmitted):
        return masked.chunk_post(message)
    return Post(round=ENVELOPE, payload=(message.envelope,), to=message.recipient)
