"""Ciphertexts that are multiplied from party to party; the curator gets the product.

The first party posts its chunks to the second in sealed envelopes, and so on; the last one submits
the product. With one-share noise [Pathak10; Su16] the curator opens the step with its selector
E(u), and the parties permute it by the seed that the first party proposed in the set-up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.crypto.identities.envelope import Mailbox
from common.crypto.paillier.keys import Blinder, PublicKey
from common.crypto.sums.one_share import Selection, make_selector
from common.crypto.sums.plan import Noise, SumPlan
from common.crypto.sums.ring import RingContributor, decrypted, ring_topic
from common.errors import LocalError, RemoteProtocolError
from common.exchanges.masked import MASKED_INPUT, MaskedCurator
from common.privacy.secret import Secret
from common.study.messages import StepMessage
from common.study.requests import encode_cells
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
        member, memory = context.memory.member, context.memory.state
        key, agreed = memory.get(RingKey), memory.get(PermutationSeed)
        selection = None
        if plan.noise is Noise.ONE_SHARE and agreed is not None:
            selection = Selection(selector=context.opening, seed=agreed.seed)
        self._plan, self._name = plan, member.name
        self._topic = ring_topic(plan, selection)
        self._mailbox = Mailbox(member, study=plan.study, step=plan.step)
        self._before = plan.predecessor(member.name)
        self._ring = RingContributor(
            plan,
            member,
            values,
            source=context.source,
            blinder=None if key is None else key.blinder,
            selection=selection,
        )

    @property
    def awaits(self) -> tuple[str, ...]:
        return () if self._ring.finished else (ENVELOPE,)

    def begin(self) -> list[Post]:
        if self._before is not None:
            return []
        return [self._passed_on(None) for _ in range(self._plan.chunks)]

    def receive(self, message: StepMessage) -> list[Post]:
        (envelope,) = message.parts(bytes)
        if message.peer != self._before:
            raise RemoteProtocolError(
                f"{self._name!r} got a partial product from {message.peer!r}; in this ring it "
                f"expects one from {self._before!r}"
            )
        partial = self._mailbox.open(message.peer, topic=self._topic, envelope=envelope)
        return [self._passed_on(partial)]

    def _passed_on(self, incoming: bytes | None) -> Post:
        """Send the next chunk to the next party of the ring; the last one's to the curator."""
        chunk, product = self._ring.next_chunk, self._ring.contribute(incoming)
        successor = self._plan.successor(self._name)
        if successor is None:
            return Post(round=MASKED_INPUT, payload=(chunk, product))
        envelope = self._mailbox.seal(successor, topic=self._topic, plaintext=product)
        return Post(round=ENVELOPE, payload=(envelope,), to=successor)


class RingCurator(MaskedCurator):
    """Relays the envelopes of the ring, and decrypts its product."""

    awaits = (MASKED_INPUT, ENVELOPE)

    def __init__(self, plan: SumPlan, context: StepAtCurator) -> None:
        super().__init__(plan)
        key = context.private_key
        if key is None or key.public_key != plan.public_key:
            raise LocalError("the curator's private key does not belong to the plan's public key")
        self._key = key
        self._total = np.zeros(plan.cells, dtype=np.int64)
        if plan.noise is Noise.ONE_SHARE:
            selector = make_selector(
                key, parties=len(plan.parties), context=plan.digest, source=context.source
            )
            self.opening = selector.to_bytes(key.public_key)
        self._relays = dict.fromkeys(plan.parties[:-1], plan.chunks)  # how many are awaited

    @property
    def waiting_for(self) -> tuple[str, ...]:
        for name, awaited in self._relays.items():
            if awaited:
                return (name,)  # nothing reaches the parties after it in the ring
        return super().waiting_for

    @property
    def done(self) -> bool:
        return not self._awaited

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

    def _take(self, sender: str, chunk: int, payload: bytes) -> None:
        totals = decrypted(self._plan, self._key, chunk, payload)
        self._total[self._plan.cells_of(chunk)] = totals

    def result(self) -> bytes:
        return encode_cells(self._total)
